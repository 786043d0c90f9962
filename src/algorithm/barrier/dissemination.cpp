// SPDX-License-Identifier: BSD-3-Clause
// Dissemination barrier. In step s everyone signals the rank 2^s above, cyclically, and waits for
// the signal of the rank 2^s below; a signal stands for everyone its sender has heard of, so what a
// rank knows doubles in each step, for any P, with no folding and no special rank.
//
//   P = 5     step 0 (+1)            step 1 (+2)            step 2 (+4)
//             0>1 1>2 2>3 3>4 4>0    0>2 1>3 2>4 3>0 4>1    0>4 1>0 2>1 3>2 4>3
//   0 knows   4                      2 3                    1
//
// Steps: ceil(log2 P). Bytes: none, signals only.
// Source: Hensgen, Finkel and Manber, IJPP 17(1), 1988; RDS of Kini 2003, section 4.1.2.
#include "algorithm/pattern/dissemination.hpp"
#include "algorithm/algorithm.hpp"
#include "algorithm/emit.hpp"

namespace unisono::algorithm::barrier {

Schedule dissemination(const Shape& shape, const Parameters&, int rank) {
  const int steps = pattern::dissemination_steps(shape.ranks);
  Builder b(shape, rank, 2 * steps);
  OpId sent = Builder::kNone;
  OpId arrived = Builder::kNone;
  for (int step = 0; step < steps; ++step) {
    const SlotId slot = b.slot(pattern::dissemination_source(shape.ranks, rank, step), 0);
    // After the send before it, and so after all the waits: a signal stands for all ranks heard
    // from.
    sent = b.send(pattern::dissemination_target(shape.ranks, rank, step), slot,
                  schedule::input(0, 0), {arrived, sent});
    arrived = b.wait(slot);
  }
  return std::move(b).take();
}

}  // namespace unisono::algorithm::barrier
