// SPDX-License-Identifier: BSD-3-Clause
// Landings: the messages that a rank may receive straight where its schedule copies them, in its
// output (decision 64). It comes there piece by piece, before its copy may be done. So steps before
// the copy that use that part of the output must be among its predecessors, and are done before
// something lands. The copy then does nothing, and sends of the message read the output. Control
// path; pure; any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/schedule.hpp"
#include "topology/host_map.hpp"

namespace unisono::plan {

// From when on a message lands. only_apart: from the start if input and output are two buffers,
// otherwise never. waited: while its wait could be the next step. apart: from the start if they are
// two, otherwise as waited. start: always from the start.
enum class Landing : std::uint8_t { no, only_apart, waited, apart, start };

class Landings {
 public:
  // None.
  Landings() = default;
  // Messages of other hosts, of `from_count` elements or more.
  Landings(const schedule::Schedule& schedule, const topology::HostMap& hosts,
           std::int64_t from_count);

  Landing of(schedule::SlotId slot) const {
    return slots_.empty() ? Landing::no : slots_[static_cast<std::size_t>(slot)].landing;
  }
  // A part of the output.
  const schedule::Range& target(schedule::SlotId slot) const {
    return slots_[static_cast<std::size_t>(slot)].target;
  }

 private:
  struct Slot {
    Landing landing = Landing::no;
    schedule::Range target;
  };
  std::vector<Slot> slots_;
};

}  // namespace unisono::plan
