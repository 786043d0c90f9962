// SPDX-License-Identifier: BSD-3-Clause
#include "select/nic/pays.hpp"

#include <algorithm>

#include "nic/port/vector_limit.hpp"
#include "select/nic/tree_choice.hpp"

namespace unisono::select {
namespace {

using model::Constant;
using schedule::Collective;

constexpr double kWordBytes = 8;

}  // namespace

bool nic_adds_floats(std::uint32_t combine) {
  switch (combine & UNISONO_NIC_COMBINE_MASK) {
    case UNISONO_NIC_SUM_FLOAT64:
    case UNISONO_NIC_SUM_FLOAT32:
    case UNISONO_NIC_SUM_FLOAT16:
    case UNISONO_NIC_SUM_BFLOAT16:
    case UNISONO_NIC_MIN_FLOAT16:
    case UNISONO_NIC_MIN_BFLOAT16:
    case UNISONO_NIC_MAX_FLOAT16:
    case UNISONO_NIC_MAX_BFLOAT16:
    case UNISONO_NIC_PRODUCT_FLOAT64:
    case UNISONO_NIC_PRODUCT_FLOAT32:
    case UNISONO_NIC_PRODUCT_FLOAT16:
    case UNISONO_NIC_PRODUCT_BFLOAT16:
      return true;
    default:
      return false;
  }
}

std::size_t nic_bytes_that_pay(const model::Machine& machine, Collective collective,
                               std::uint32_t combine) {
  constexpr std::size_t kLongest = nic::kPacketsMax * nic::kPacketBytes;
  const auto up_to = [&](Constant constant) {
    const auto bytes = static_cast<std::size_t>(model::constant_of(machine, constant).count());
    return std::min(bytes, kLongest);
  };
  if (collective == Collective::broadcast) return up_to(Constant::nic_broadcast);
  return nic_adds_floats(combine) ? up_to(Constant::nic_real_vector) : kLongest;
}

std::size_t nic_bytes_to_gather(const model::Machine& machine, int hosts) {
  const auto of_host =
      static_cast<std::size_t>(model::constant_of(machine, Constant::nic_gathered).count());
  return std::min(of_host * static_cast<std::size_t>(hosts), nic::kPacketsMax * nic::kPacketBytes);
}

std::size_t nic_bytes_of_host(const model::Machine& machine) {
  return static_cast<std::size_t>(model::constant_of(machine, Constant::nic_host_block).count());
}

bool nic_rooted_pays(Collective collective, int hosts) {
  return collective == Collective::reduce && hosts > 1 + nic_fan_in(hosts);
}

bool nic_root_multicasts(const model::Machine& machine, base::Toggle rooted, int hosts,
                         bool multicasts) {
  if (!multicasts || hosts <= 2 || hosts > UNISONO_NIC_RANKS_MAX) return false;
  if (rooted != base::Toggle::automatic) return rooted == base::Toggle::on;
  return hosts >= model::constant_of(machine, Constant::nic_root_multicast).count();
}

NicBlockCosts NicBlockCosts::of(const model::Machine& machine) {
  const auto ns = [&machine](Constant constant) {
    return model::constant_of(machine, constant).ns();
  };
  return {.block = ns(Constant::nic_block),
          .block_word = ns(Constant::nic_block_per_byte) * kWordBytes,
          .message = ns(Constant::nic_message),
          .joined = ns(Constant::nic_joined),
          .joined_word = ns(Constant::nic_joined_per_byte) * kWordBytes,
          .step = ns(Constant::nic_step)};
}

bool nic_joins_blocks(const NicBlockCosts& costs, int ranks, std::size_t block_bytes) {
  const auto words = static_cast<double>(nic::words_of(block_bytes));
  const double singly = (ranks - 1) * (costs.block + words * costs.block_word);
  double joined = 0;
  double largest = 0;
  for (int distance = 1; distance < ranks; distance *= 2) {
    const double blocks = std::min(distance, ranks - distance);
    joined += costs.message + blocks * (costs.joined + words * costs.joined_word);
    if (distance > 1) joined += costs.step;
    largest = std::max(largest, blocks);
  }
  return largest * (1 + words) <= UNISONO_NIC_WORDS_MAX && joined < singly;
}

}  // namespace unisono::select
