// SPDX-License-Identifier: BSD-3-Clause
#include "nic/lowering/schedule_reader.hpp"

#include <fmt/format.h>

#include "nic/program/tables.h"

namespace unisono::nic {

base::Error ScheduleReader::refuse(std::string_view why) const {
  const std::string where = at_ < 0 ? "" : fmt::format(", op {}", at_);
  return {base::Code::unsupported,
          fmt::format("the NIC cannot run this {} at rank {}{}: {}",
                      schedule::collective_name(schedule_.shape.collective), schedule_.rank, where,
                      why)};
}

base::Status ScheduleReader::check_allgather() const {
  const schedule::Shape& shape = schedule_.shape;
  if (shape.collective != schedule::Collective::allgather) return refuse("it is no allgather");
  if (shape.ranks < 2) return refuse("a single rank has nobody to send to");
  if (shape.ranks > UNISONO_NIC_RANKS_MAX) {
    return refuse(fmt::format("it has {} ranks, and the NIC keeps track of {} blocks", shape.ranks,
                              UNISONO_NIC_RANKS_MAX));
  }
  for (int rank = 0; rank < shape.ranks; ++rank) {
    if (schedule::block(shape, rank).count > 0) continue;
    return refuse(
        fmt::format("the block of rank {} is empty and cannot be told from others; lower "
                    "the same schedule of longer blocks, which go the same ways",
                    rank));
  }
  return base::success();
}

std::string ScheduleReader::memory_text(const schedule::Range& range) {
  switch (range.memory) {
    case schedule::Memory::input:
      return "its vector";
    case schedule::Memory::output:
      return "the result";
    case schedule::Memory::scratch:
      return "scratch memory";
    case schedule::Memory::slot:
      return fmt::format("slot {}", range.slot);
  }
  return "";
}

}  // namespace unisono::nic
