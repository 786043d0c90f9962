// SPDX-License-Identifier: BSD-3-Clause
// TreePorts: a rank's ports to the trees of a group. The vectors that go by them are TreeVectors
// (tree_vector.hpp): as a whole by the first tree, or in pieces by one tree each. Each packet is an
// operation of a tree's port. Several vectors may be in flight, as far as the ports have room.
//
// A port's memory of operation s is used again by operation s + 2 depth. So a rank posts operation
// s + depth only when it has taken the result of s. Then each rank has what a new packet overwrites
// (tables.h), and no result is overwritten before it is taken. One thread at a time. Data path: no
// allocation, no lock.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "nic/lowering/lower.hpp"
#include "nic/port/port.hpp"
#include "nic/port/vector_limit.hpp"
#include "nic/service/client.hpp"

namespace unisono::nic {

// The cuts of a vector of up to kWordsMax words: piece i has the bytes from bounds[i] to bounds[i +
// 1] and uses tree i. They are those of the schedule, so they lie between elements.
struct TreeCut {
  int pieces = 1;
  std::array<std::size_t, kPiecesMax + 1> bounds = {};

  static TreeCut whole(std::size_t bytes) { return {.pieces = 1, .bounds = {0, bytes}}; }
  std::size_t offset(int piece) const { return bounds[static_cast<std::size_t>(piece)]; }
  std::size_t bytes(int piece) const {
    return bounds[static_cast<std::size_t>(piece) + 1] - offset(piece);
  }
  // The fewest packets that hold a piece.
  std::uint64_t packets(int piece) const;
};

class TreePorts {
 public:
  // Adds the tree in which this rank is `node`, made for kPacketsMax operations. `waiter`: the
  // number of this process among those on its host that may sleep; none: the program does not wake
  // it.
  base::Status add(const Node& node, std::unique_ptr<Membership> member,
                   std::optional<std::uint32_t> waiter);
  const std::vector<Node>& nodes() const { return nodes_; }
  // Whether the program can wake this process.
  bool is_woken() const { return !trees_.empty() && trees_[0].wakes != nullptr; }
  // The number of the next operation on the first tree, which every vector uses.
  std::uint64_t next() const { return trees_[0].port->next(); }

  // Whether all packets of a vector may be posted now. With no vector in flight they may.
  bool has_room(const TreeCut& cut) const;
  // Requests what may be lost, as Port does, of the operations before these, one for each tree.
  using Ends = std::array<std::uint64_t, kPiecesMax>;
  Ends ends() const;  // all that are posted here
  base::Result<int> repair(const Ends& ends, std::int64_t now_ns, std::int64_t delay_ns);

 private:
  friend class TreeVector;
  struct Tree {
    std::unique_ptr<Membership> member;
    std::unique_ptr<WakeRing> wakes;
    std::unique_ptr<Port> port;
    // The results of all operations before this one are taken, ...
    std::uint64_t taken = 0;
    // ... and those of taken + i for each bit i.
    std::uint32_t taken_later = 0;

    void take(std::uint64_t operation);
  };

  std::vector<Tree> trees_;
  std::vector<Node> nodes_;
  std::array<std::uint64_t, UNISONO_NIC_WORDS_MAX> words_ = {};
};

}  // namespace unisono::nic
