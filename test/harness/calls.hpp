// SPDX-License-Identifier: BSD-3-Clause
// Calls that several tests make of a communicator or give to the chooser.
#pragma once

#include <cstdint>

#include "arith/type.hpp"
#include "plan/call.hpp"
#include "schedule/shape.hpp"

namespace unisono::test {

// The sum of `count` float64; its buffers are still to be set.
inline plan::Call allreduce(std::int64_t count) {
  plan::Call call;
  call.collective = schedule::Collective::allreduce;
  call.count = count;
  call.type = static_cast<int>(arith::Type::float64);
  call.op = static_cast<int>(arith::Operator::sum);
  call.element_bytes = sizeof(double);
  return call;
}

}  // namespace unisono::test
