// SPDX-License-Identifier: BSD-3-Clause
// NicTrees: a rank's part in the trees of a group, and the operation that is under way on them. It
// goes whole by the first tree, or in pieces, one by each of several; and by its tree in packets,
// each of which is an operation of that tree's port. All ranks cut alike, so element i is in the
// same packet everywhere. A tree is a group of its own in the host's program. All of a vector's
// packets are in flight at once, as many as a port allows: who has given a vector need not come
// back to give more of it, so no process is needed on the way here either. All of it ends when the
// last packet has. One operation at a time; one thread at a time. Data path: no allocation, no
// lock.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "engine/nic/vector_limit.hpp"
#include "nic/lowering/lower.hpp"
#include "nic/port/port.hpp"
#include "nic/service/client.hpp"

namespace unisono::engine {

class NicTrees {
 public:
  // Adds the tree in which this rank is `node`, made for kNicPacketsMax operations. `waiter`: this
  // process, of those on its host that may sleep; none: it is not woken.
  base::Status add(const nic::Node& node, std::unique_ptr<nic::Membership> member,
                   std::optional<std::uint32_t> waiter);
  const std::vector<nic::Node>& nodes() const { return nodes_; }
  // Whether the program can wake this process.
  bool is_woken() const { return !trees_.empty() && trees_[0].wakes != nullptr; }

  // How a vector of up to kNicWordsMax goes: in so many pieces of whole elements, by the first
  // trees.
  struct Cut {
    std::size_t bytes = 0;
    std::size_t element_bytes = 1;
    int pieces = 1;
  };
  // The next operation goes so. Its vector, or nothing for zeros, is given by this process ...
  base::Status post(std::uint32_t combine, const Cut& cut, const void* vector);
  // ... or by another one of this host.
  void follow(const Cut& cut);

  // Of the last operation.
  bool is_done() const;
  bool is_broken() const;        // contributions differ; it will never be done
  std::int64_t done_ns() const;  // once it is done; as nic::Port's
  // Bit t: on tree t this host has sent what it and those below it have given; also where it does
  // not go.
  std::uint32_t given() const;
  std::uint32_t lacking() const;  // bit t: what goes there is not done
  // The first rank whose contribution differs, where that is seen here; -1: nowhere.
  int odd_rank() const;
  // Its number among those on the first tree, where each has a part; and the next one's.
  std::uint64_t number() const { return trees_[0].first; }
  std::uint64_t next() const { return trees_[0].port->next(); }
  // To the place of the whole vector, once it is done. False: it has another length.
  bool take(void* output) const;
  // Asks for what may be lost, as nic::Port does.
  base::Result<int> repair(std::int64_t now_ns, std::int64_t delay_ns);

  // As nic::WakeRing's, for the packet that is waited for; it may not be the last.
  bool arm();
  int wake_descriptor() const { return awaited_->wakes->descriptor(); }
  void disarm();
  void sleep(std::int64_t limit_ns);  // all three

 private:
  struct Tree {
    std::unique_ptr<nic::Membership> member;
    std::unique_ptr<nic::WakeRing> wakes;
    std::unique_ptr<nic::Port> port;
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
  std::vector<nic::Node> nodes_;
  Cut cut_;
  Tree* awaited_ = nullptr;
  std::uint64_t awaited_operation_ = 0;
  std::array<std::uint64_t, UNISONO_NIC_WORDS_MAX> words_ = {};
};

}  // namespace unisono::engine
