// SPDX-License-Identifier: BSD-3-Clause
// n-way dissemination: in step s everyone signals the k ranks at the distances i (k+1)^s above,
// i = 1 .. k, cyclically, and waits for the k below. What a rank knows grows k+1 times in each
// step, for any P; the last step has only the signals that still tell somebody something new.
//
//   P = 5, k = 2   step 0 (+1 +2)       step 1 (+3)
//                  0 => 1 2             0 > 3
//                  1 => 2 3  ...        1 > 4  ...
//   0 knows        3 4                  1 2
//
// Steps: ceil(log_{k+1} P). Bytes: none, signals only; those of a step are one multicast.
// k = 1 is the dissemination barrier, k = P-1 one step in which everyone signals everyone.
// Source: Hoefler, Mehlan, Mietke and Rehm, CAC at IPDPS 2006 (n-way dissemination).
#include "algorithm/algorithm.hpp"
#include "algorithm/emit.hpp"
#include "algorithm/pattern/dissemination.hpp"
#include "algorithm/pattern/ring.hpp"

namespace unisono::algorithm::barrier {

Schedule kdissemination(const Shape& shape, const Parameters& parameters, int rank) {
  const int ranks = shape.ranks;
  const int k = parameters.values[0];
  Builder b(shape, rank, 16);
  // Slots: the k of a step in the order of their distances, step by step.
  SlotId first = 0;
  Value known{schedule::input(0, 0)};
  for (std::int64_t stride = 1; stride < ranks; stride *= k + 1) {
    const int near = static_cast<int>(stride);
    const int peers = pattern::dissemination_peers(ranks, near, k);
    // After the send before it, and so after all the waits: a signal stands for all ranks heard
    // from.
    known.ready = send_to_each(b, peers, known, [&](int i) {
      return schedule::Target{pattern::ring_shift(ranks, rank, (i + 1) * near), first + i};
    });
    for (int i = 0; i < peers; ++i) {
      const SlotId slot = b.slot(pattern::ring_shift(ranks, rank, -(i + 1) * near), 0);
      known.ready = b.wait(slot, {known.ready});
    }
    first += peers;
  }
  return std::move(b).take();
}

}  // namespace unisono::algorithm::barrier
