// SPDX-License-Identifier: BSD-3-Clause
// TreePorts: a rank's ports to the trees of a group, and the current operation on them. A vector
// uses the first tree as a whole, or is cut into pieces with one tree each. A tree takes its piece
// in packets; each packet is an operation of that tree's port. All ranks cut alike, so element i is
// in the same packet at all ranks. All packets of a vector are in flight at once, at most as many
// as a port allows. So a process that has posted its vector need not run again before the result is
// there. The operation is done when its last packet is. One operation at a time; one thread at a
// time. Data path: no allocation, no lock.
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

class TreePorts {
 public:
  // The cuts of a vector of up to kWordsMax words: piece i has the bytes from bounds[i] to bounds[i
  // + 1] and uses tree i. They are those of the schedule, so they lie between elements.
  struct Cut {
    int pieces = 1;
    std::array<std::size_t, kPiecesMax + 1> bounds = {};
    static Cut whole(std::size_t bytes) { return {.pieces = 1, .bounds = {0, bytes}}; }
  };

  // Adds the tree in which this rank is `node`, made for kPacketsMax operations. `waiter`: the
  // number of this process among those on its host that may sleep; none: the program does not wake
  // it.
  base::Status add(const Node& node, std::unique_ptr<Membership> member,
                   std::optional<std::uint32_t> waiter);
  const std::vector<Node>& nodes() const { return nodes_; }
  // Whether the program can wake this process.
  bool is_woken() const { return !trees_.empty() && trees_[0].wakes != nullptr; }

  // Starts the next operation, cut like this. This process posts its contribution ...
  base::Status post(std::uint32_t combine, const Cut& cut, const Contribution& own);
  // ... or another process of this host posts it.
  void follow(const Cut& cut);

  // For the last operation.
  bool is_done() const;
  bool is_broken() const;        // contributions differ; it will never be done
  std::int64_t done_ns() const;  // once it is done; as Port's
  // Bit t: on tree t this host has sent the contributions of itself and those below it. Also set
  // for trees that the operation does not use.
  std::uint32_t given() const;
  std::uint32_t lacking() const;  // bit t: the piece of tree t is not done
  // The first rank whose contribution differs, if this host can see it; otherwise -1.
  int mismatching_rank() const;
  // Its number on the first tree, which every operation uses; and the next one's.
  std::uint64_t number() const { return trees_[0].first; }
  std::uint64_t next() const { return trees_[0].port->next(); }
  // Copies the result to the place of the whole vector, once it is done; none: nowhere. False: the
  // result has another length.
  bool take(void* output) const;
  // Requests what may be lost, as Port does.
  base::Result<int> repair(std::int64_t now_ns, std::int64_t delay_ns);

  // As WakeRing's, for one packet of the operation; others may still be missing afterwards.
  bool arm();
  int wake_descriptor() const { return awaited_->wakes->descriptor(); }
  void disarm();
  void sleep(std::int64_t limit_ns);  // all three

 private:
  struct Tree {
    std::unique_ptr<Membership> member;
    std::unique_ptr<WakeRing> wakes;
    std::unique_ptr<Port> port;
    std::uint64_t first = 0, end = 0;  // operations that have the last vector's packets

    bool is_done() const;
    bool is_given() const;
    std::optional<std::uint64_t> broken() const;  // the first such operation
  };
  struct Piece {
    std::size_t offset = 0, bytes = 0;
  };
  void begin(const Cut& cut);
  Piece piece(int number) const;
  static Piece packet(const Piece& piece, std::uint64_t number);
  std::span<Tree> used() { return std::span(trees_).first(static_cast<std::size_t>(cut_.pieces)); }
  std::span<const Tree> used() const {
    return std::span(trees_).first(static_cast<std::size_t>(cut_.pieces));
  }

  std::vector<Tree> trees_;
  std::vector<Node> nodes_;
  Cut cut_;
  Tree* awaited_ = nullptr;
  std::uint64_t awaited_operation_ = 0;
  std::array<std::uint64_t, UNISONO_NIC_WORDS_MAX> words_ = {};
};

}  // namespace unisono::nic
