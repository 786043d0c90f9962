// SPDX-License-Identifier: BSD-3-Clause
// Shapes of calls, and the facts about a host on which tests choose among candidates.
#pragma once

#include <cstdint>

#include "schedule/shape.hpp"
#include "select/select.hpp"

namespace unisono::select::test {

inline schedule::Shape shape_of(schedule::Collective collective, int ranks, std::int64_t count) {
  return {.collective = collective,
          .ranks = ranks,
          .count = collective == schedule::Collective::barrier ? 0 : count};
}

inline Circumstances circumstances() {
  return {.element_bytes = 8,
          .cores = 4,
          .multicast = true,
          .staged_multicast = true,
          .receive_buffer_bytes = 128 << 10,
          .op = arith::Operator::sum,
          .type = arith::Type::float64,
          .shared_receive_buffers = true};
}

}  // namespace unisono::select::test
