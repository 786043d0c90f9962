// SPDX-License-Identifier: BSD-3-Clause
// Bine broadcast: a binomial tree whose edges are 1, 1, 3, 5, 11, ... ranks long, upwards from even
// places and downwards from odd ones, where those of the usual tree are 1, 2, 4, 8, 16, .... A
// third less distance. Where groups of ranks begin anywhere, fewer messages leave them.
//
//   P = 8, root 0     step 2: 0 -> 3     step 1: 0 -> 7, 3 -> 4     step 0: 0 -> 1, 3 -> 2, 4 -> 5,
//                                                                   7 -> 6
//
// Steps: ceil(log2 P). Bytes: ceil(log2 P) n.
// Surplus ranks get the vector from their left neighbour in the end. Another root shifts the ranks
// cyclically. Source: De Sensi et al., "Bine Trees", SC 2025.
#include "algorithm/pattern/bine.hpp"
#include "algorithm/algorithm.hpp"
#include "algorithm/emit.hpp"
#include "algorithm/pattern/ring.hpp"

namespace unisono::algorithm::broadcast {

Schedule bine(const Shape& shape, const Parameters&, int rank) {
  const pattern::BineCube cube(shape.ranks);
  const int own = pattern::ring_shift(shape.ranks, rank, -shape.root);
  const auto real = [&](int shifted) {
    return pattern::ring_shift(shape.ranks, shifted, shape.root);
  };
  Builder b(shape, rank, cube.dimensions() + 3);
  Value vector{schedule::input(0, shape.count)};
  const int joins = cube.outside(own) ? 0 : cube.joins(own);
  if (own != 0) {
    const int parent = cube.outside(own) ? cube.fold_partner(own) : cube.partner(own, joins);
    const SlotId slot = b.slot(real(parent), shape.count);
    vector = {b.of(slot), b.wait(slot)};
  }
  for (int d = joins - 1; d >= 0; --d) {
    b.send(real(cube.partner(own, d)), 0, vector.range, {vector.ready});
  }
  if (!cube.outside(own) && cube.fold_partner(own) >= 0) {
    b.send(real(cube.fold_partner(own)), 0, vector.range, {vector.ready});
  }
  if (own != 0) b.copy(schedule::output(0, shape.count), vector.range, {vector.ready});
  return std::move(b).take();
}

}  // namespace unisono::algorithm::broadcast
