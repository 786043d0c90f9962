// SPDX-License-Identifier: BSD-3-Clause
// NicFlight: one collective of a group in the NIC path, from its start until its result is taken:
// on the trees (nic_reduction.hpp), as an allgather (nic_allgather.hpp) or as a multicast of its
// root (nic_broadcast.hpp). A group has a few, which it uses by turns, and one for barriers of its
// own (nic_group.hpp). A rank's flights start in the same order as the other ranks', and end in
// any. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "engine/nic/nic_allgather.hpp"
#include "engine/nic/nic_broadcast.hpp"
#include "engine/nic/nic_reduction.hpp"
#include "plan/nic_call.hpp"

namespace unisono::engine {

class NicFlight {
  // Calls one of them with the part that has the operation.
  template <class Self, class OnTrees, class OfBlocks>
  static auto by_way(Self& self, const OnTrees& on_trees, const OfBlocks& of_blocks) {
    if (self.way_ == Way::trees) return on_trees(*self.reduction_);
    return self.way_ == Way::singly ? of_blocks(*self.gathering_) : of_blocks(*self.casting_);
  }

 public:
  // `allgather`, `broadcast`: none if the group does none. They outlive this, as does what
  // `reduction` refers to.
  NicFlight(std::unique_ptr<NicReduction> reduction, NicAllgather* allgather,
            NicBroadcast* broadcast);

  // Its number among all operations of the group; the same at all ranks.
  std::uint64_t number() const { return number_; }
  // Whether it needs blocks of certain hosts: an allgather off the trees, or the multicast of a
  // root. If it is not done, missing() has bit h for each host whose block is missing.
  bool awaits_blocks() const { return way_ != Way::trees; }
  std::uint64_t missing() const {
    return by_way(
        *this, [](const auto&) { return std::uint64_t{0}; },
        [](const auto& blocks) { return blocks.missing(); });
  }
  // Whether it is the multicast of a root.
  bool is_casting() const { return way_ == Way::from_root; }
  // Bit t: this host has sent its subtree's contributions on tree t, or the operation does not use
  // that tree. Where it awaits blocks, the number of pieces of its block that it has sent.
  std::uint32_t given() const {
    return by_way(
        *this, [](const auto& trees) { return trees.vector().given(); },
        [](const auto& blocks) { return static_cast<std::uint32_t>(blocks.given()); });
  }
  // The number of pieces of an allgather that this rank has of all hosts.
  std::uint32_t finished() const {
    return by_way(
        *this, [](const auto&) { return std::uint32_t{0}; },
        [](const auto& blocks) { return static_cast<std::uint32_t>(blocks.finished()); });
  }
  // Bit t: the piece of tree t is not done.
  std::uint32_t lacking() const { return awaits_blocks() ? 0 : reduction_->vector().lacking(); }
  // Whether all ranks of this host have arrived; for the multicast of a root on this host, the
  // root.
  bool is_host_complete() const {
    const auto ask = [](const auto& part) { return part.is_host_complete(); };
    return by_way(*this, ask, ask);
  }
  // When the result was in memory, once it is; by the clock of base/clock.hpp.
  std::int64_t done_ns() const {
    return by_way(
        *this, [](const auto& trees) { return trees.vector().done_ns(); },
        [](const auto& blocks) { return blocks.done_ns(); });
  }
  // The rank whose call differs, after an error with Code::mismatch; none: not known here.
  std::optional<NicRank> mismatching_rank() const;
  // How soon poll() should be called to repeat a question, as NicReduction's.
  std::int64_t question_in_ns(std::int64_t now_ns) const {
    return awaits_blocks() ? std::numeric_limits<std::int64_t>::max()
                           : reduction_->question_in_ns(now_ns);
  }
  // Describes what it lacks, for people: "operation 3 on host 1 lacks ...".
  std::string describe() const;

  // To sleep until NicGroup::poll() has news, where the program wakes this rank: arm(); if it
  // returns true, poll wake_descriptor(), with other descriptors; disarm(). The sleep ends before
  // NicGroup::repair() is due. Operations with the same descriptor may be armed together, if all of
  // them are checked afterwards.
  bool arm() {
    return by_way(
        *this, [](auto& trees) { return trees.vector().arm(); },
        [](auto& blocks) { return blocks.arm(); });
  }
  int wake_descriptor() const {
    return by_way(
        *this, [](const auto& trees) { return trees.vector().wake_descriptor(); },
        [](const auto& blocks) { return blocks.wake_descriptor(); });
  }
  void disarm() {
    by_way(
        *this, [](auto& trees) { trees.vector().disarm(); }, [](auto& blocks) { blocks.disarm(); });
  }

 private:
  friend class NicGroup;
  enum class Way : std::uint8_t { trees, singly, from_root };

  bool has_room(const plan::NicCall& call) const;
  base::Status start(const plan::NicCall& call, const void* input, void* output, int ranks);
  base::Result<bool> poll() {
    const auto ask = [](auto& part) { return part.poll(); };
    return by_way(*this, ask, ask);
  }
  base::Status take();
  void sleep(std::int64_t limit_ns) {
    by_way(
        *this, [&](auto& trees) { trees.vector().sleep(limit_ns); },
        [&](auto& blocks) { blocks.sleep(limit_ns); });
  }

  const std::unique_ptr<NicReduction> reduction_;
  std::optional<NicGathering> gathering_;
  std::optional<NicCasting> casting_;
  Way way_ = Way::trees;
  bool is_under_way_ = false;  // started, and not taken
  std::uint64_t number_ = 0;
  // Multicasts of roots that had started before it, and those that all ranks have read when it is
  // done.
  std::uint64_t casts_before_ = 0, casts_read_ = 0;
};

}  // namespace unisono::engine
