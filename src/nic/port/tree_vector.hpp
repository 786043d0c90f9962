// SPDX-License-Identifier: BSD-3-Clause
// TreeVector: one vector on its way by the trees of a group (tree_ports.hpp). A tree takes its
// piece in packets; each packet is an operation of that tree's port. All ranks cut alike, so
// element i is in the same packet at all ranks. All packets of a vector are in flight at once. So a
// process that has posted its vector need not run again before the result is there. The vector is
// done when its last packet is. The object is used again for a later vector. One thread at a time.
// Data path: no allocation, no lock.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/result.hpp"
#include "nic/port/tree_ports.hpp"

namespace unisono::nic {

class TreeVector {
 public:
  // The ports outlive it.
  explicit TreeVector(TreePorts& ports) : ports_(ports) {}

  // Starts with the next vector, cut like this, for which the ports have room. This process posts
  // its contribution ...
  base::Status post(std::uint32_t combine, const TreeCut& cut, const Contribution& own,
                    Giving giving = Giving::at_once);
  // ... or another process of this host posts it.
  void follow(const TreeCut& cut);

  bool is_done() const;
  bool is_broken() const;        // contributions differ; it will never be done
  std::int64_t done_ns() const;  // once it is done; as Port's
  // Bit t: on tree t this host has sent the contributions of itself and those below it. Also set
  // for trees that the vector does not use.
  std::uint32_t given() const;
  std::uint32_t lacking() const;  // bit t: the piece of tree t is not done
  // The first rank whose contribution differs, if this host can see it; otherwise -1.
  int mismatching_rank() const;
  // Its number on the first tree.
  std::uint64_t number() const { return ranges_[0].first; }
  // Ends `ends` before this vector.
  void limit(TreePorts::Ends& ends) const;
  // Copies the result to the place of the whole vector, once it is done; none: nowhere. Then the
  // ports may use its memory again. False: the result has another length.
  bool take(void* output);

  // Whether this host's process asks in operations on query; it asks again, for a whole vector of
  // one packet.
  bool queries() const { return port(0).queries(); }
  base::Status query() { return tree(0).port->query(range(0).first); }

  // As WakeRing's, for one packet of the vector; others may still be missing afterwards.
  bool arm();
  int wake_descriptor() const { return tree(awaited_).wakes->descriptor(); }
  void disarm();
  void sleep(std::int64_t limit_ns);  // all three

 private:
  struct Range {
    std::uint64_t first = 0, end = 0;  // operations that have the packets of a piece
  };
  struct Part {
    std::size_t offset = 0, bytes = 0;
  };
  void begin(const TreeCut& cut);
  Part packet(int piece, std::uint64_t number) const;
  TreePorts::Tree& tree(int piece) const { return ports_.trees_[static_cast<std::size_t>(piece)]; }
  const Port& port(int piece) const { return *tree(piece).port; }
  const Range& range(int piece) const { return ranges_[static_cast<std::size_t>(piece)]; }
  bool is_done(int piece) const;
  bool is_given(int piece) const;
  std::optional<std::uint64_t> broken(int piece) const;  // the first such operation

  TreePorts& ports_;
  TreeCut cut_;
  std::array<Range, kPiecesMax> ranges_;
  int awaited_ = 0;  // the piece and the operation for which arm() sleeps
  std::uint64_t awaited_operation_ = 0;
};

}  // namespace unisono::nic
