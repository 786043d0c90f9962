// SPDX-License-Identifier: BSD-3-Clause
// Two-dimensional mesh: everyone multicasts its block along its row, then all it has along its
// column. Two steps with about 2 sqrt(P) messages a rank. Holes in the last row are played by the
// ranks above them, which have the blocks that were meant for the hole in their message as well.
//
//   P = 5     row                   column
//   0 1 2     0 => 1 2   3 => 4 2   0 => 3: 012     3 => 0: 34
//   3 4       1 => 0 2   4 => 3 2   1 => 4: 012     4 => 1: 34
//             2 => 0 1              2 plays the hole (1, 2); it has 3 and 4 from them directly
//
//   P = 7     row                   column
//   0 1 2     6 => 1 2, for the     1 => 4: 012 6   4 => 1: 345
//   3 4 5     holes in row 2        2 => 5: 012 6   5 => 2: 345
//   6
//
// Steps: 2. Bytes: (1 + sqrt(P)) m; at most (3 + ceil(sqrt(P))) m with holes. Each message is
// staged once. A message with blocks for a hole is put together in scratch memory.
// Source: Kumar and Kalé, ICPADS 2004, section 3.1, equation 3.
#include "algorithm/algorithm.hpp"
#include "algorithm/allgather/place.hpp"
#include "algorithm/emit.hpp"
#include "algorithm/pattern/mesh.hpp"

namespace unisono::algorithm::allgather {

namespace {

// The blocks of `rank` after the row step, which it gives to its column: its row, then the blocks
// received in place of a hole.
class Gathered {
 public:
  Gathered(const Shape& shape, const pattern::Mesh& mesh, int rank)
      : shape_(shape), mesh_(mesh), rank_(rank), played_(mesh.played(rank)) {}

  int played() const { return played_; }
  Range played(int i) const { return place(shape_, mesh_.played_rank(rank_, i)); }

  // The message, once everything is in place after `complete`.
  Value message(Builder& b, OpId complete) const {
    if (played_ == 0 && mesh_.row_size(mesh_.row(rank_)) == 1) return {own_block(shape_, rank_)};
    if (played_ == 0) return {row(), complete};
    const Range scratch = b.scratch(size());
    Range rest = scratch;
    OpId ready = b.copy(take(rest, row().count), row(), {complete});
    for (int i = 0; i < played_; ++i) {
      ready = b.copy(take(rest, played(i).count), played(i), {ready});
    }
    return {scratch, ready};
  }

  // Takes the message of this rank at another one of its column.
  void receive(Builder& b) const {
    const SlotId slot = b.slot(rank_, size());
    const OpId arrived = b.wait(slot);
    Range rest = b.of(slot);
    b.copy(row(), take(rest, row().count), {arrived});
    for (int i = 0; i < played_; ++i) {
      b.copy(played(i), take(rest, played(i).count), {arrived});
    }
  }

 private:
  Range row() const {
    const int row = mesh_.row(rank_);
    return place(shape_, mesh_.rank_at(row, 0), mesh_.row_size(row));
  }
  std::int64_t size() const {
    std::int64_t size = row().count;
    for (int i = 0; i < played_; ++i) size += played(i).count;
    return size;
  }
  // The next `count` elements of a message.
  static Range take(Range& rest, std::int64_t count) {
    Range part = rest;
    part.count = count;
    rest.offset += count;
    rest.count -= count;
    return part;
  }

  const Shape& shape_;
  const pattern::Mesh& mesh_;
  int rank_, played_;
};

}  // namespace

Schedule mesh2d(const Shape& shape, const Parameters&, int rank) {
  const pattern::Mesh mesh(shape.ranks);
  const int row = mesh.row(rank);
  const int column = mesh.column(rank);
  const Gathered own(shape, mesh, rank);
  Builder b(shape, rank, 3 * (mesh.columns() + mesh.rows()) + 4);
  // Slots, in this order. The others of the row in the order of columns. Ranks for which this rank
  // replaces a hole. The others of the column in the order of rows.
  const auto without = [](int number, int at) { return number < at ? number : number - 1; };
  const auto with = [](int number, int at) { return number < at ? number : number + 1; };
  const auto row_slots = [&](int to) { return mesh.row_size(mesh.row(to)) - 1 + mesh.played(to); };

  send_to_each(b, mesh.columns() - 1, {own_block(shape, rank)}, [&](int i) {
    const int peer = mesh.peer(rank, with(i, column));
    const bool plays = mesh.row(peer) != row;
    return schedule::Target{peer, plays ? mesh.columns() - 1 + column / (mesh.rows() - 1)
                                        : without(column, mesh.column(peer))};
  });
  OpId complete = b.copy(place(shape, rank), own_block(shape, rank));
  const auto receive = [&](int source, Range to) {
    const SlotId slot = b.slot(source, to.count);
    const OpId arrived = b.wait(slot);
    complete = b.copy(to, b.of(slot), {arrived, complete});
  };
  for (int i = 0; i + 1 < mesh.row_size(row); ++i) {
    const int source = mesh.rank_at(row, with(i, column));
    receive(source, place(shape, source));
  }
  for (int i = 0; i < own.played(); ++i) receive(mesh.played_rank(rank, i), own.played(i));
  const int column_peers = mesh.column_size(column) - 1;
  if (column_peers > 0) {
    send_to_each(b, column_peers, own.message(b, complete), [&](int i) {
      const int peer = mesh.rank_at(with(i, row), column);
      return schedule::Target{peer, row_slots(peer) + without(row, mesh.row(peer))};
    });
  }
  for (int i = 0; i < column_peers; ++i) {
    Gathered(shape, mesh, mesh.rank_at(with(i, row), column)).receive(b);
  }
  return std::move(b).take();
}

}  // namespace unisono::algorithm::allgather
