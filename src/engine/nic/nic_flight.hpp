// SPDX-License-Identifier: BSD-3-Clause
// NicFlight: one collective of a group in the NIC path, from its start until its result is taken:
// on the trees (nic_reduction.hpp) or as an allgather (nic_allgather.hpp). A group has a few, which
// it uses by turns (nic_group.hpp). A rank's flights start in the same order as the other ranks',
// and end in any. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "engine/nic/nic_allgather.hpp"
#include "engine/nic/nic_reduction.hpp"
#include "plan/nic_call.hpp"

namespace unisono::engine {

class NicFlight {
 public:
  // `allgather`: none if the group does none. It outlives this, as does what `reduction` refers to.
  NicFlight(std::unique_ptr<NicReduction> reduction, NicAllgather* allgather);

  // Its number among all operations of the group; the same at all ranks.
  std::uint64_t number() const { return number_; }
  // Whether it is an allgather off the trees. If it is not done, missing() has bit h for each host
  // whose block is missing.
  bool is_gathering() const { return is_gathering_; }
  std::uint64_t missing() const { return is_gathering_ ? gathering_->missing() : 0; }
  // Bit t: this host has sent its subtree's contributions on tree t, or the operation does not use
  // that tree. In an allgather, the number of pieces of its block that it has sent.
  std::uint32_t given() const {
    return is_gathering_ ? static_cast<std::uint32_t>(gathering_->given())
                         : reduction_->vector().given();
  }
  // The number of pieces of an allgather that this rank has of all hosts.
  std::uint32_t finished() const {
    return is_gathering_ ? static_cast<std::uint32_t>(gathering_->finished()) : 0;
  }
  // Bit t: the piece of tree t is not done.
  std::uint32_t lacking() const { return is_gathering_ ? 0 : reduction_->vector().lacking(); }
  // Whether all ranks of this host have arrived.
  bool is_host_complete() const {
    return is_gathering_ ? gathering_->is_host_complete() : reduction_->is_host_complete();
  }
  // When the result was in memory, once it is; by the clock of base/clock.hpp.
  std::int64_t done_ns() const {
    return is_gathering_ ? gathering_->done_ns() : reduction_->vector().done_ns();
  }
  // The rank whose call differs, after an error with Code::mismatch; none: not known here.
  std::optional<NicRank> mismatching_rank() const;
  // How soon poll() should be called to repeat a question, as NicReduction's.
  std::int64_t question_in_ns(std::int64_t now_ns) const {
    return is_gathering_ ? std::numeric_limits<std::int64_t>::max()
                         : reduction_->question_in_ns(now_ns);
  }
  // Describes what it lacks, for people: "operation 3 on host 1 lacks ...".
  std::string describe() const;

  // To sleep until NicGroup::poll() has news, where the program wakes this rank: arm(); if it
  // returns true, poll wake_descriptor(), with other descriptors; disarm(). The sleep ends before
  // NicGroup::repair() is due. Operations with the same descriptor may be armed together, if all of
  // them are checked afterwards.
  bool arm() { return is_gathering_ ? gathering_->arm() : reduction_->vector().arm(); }
  int wake_descriptor() const {
    return is_gathering_ ? gathering_->wake_descriptor() : reduction_->vector().wake_descriptor();
  }
  void disarm() { is_gathering_ ? gathering_->disarm() : reduction_->vector().disarm(); }

 private:
  friend class NicGroup;
  bool has_room(const plan::NicCall& call) const;
  base::Status start(std::uint64_t number, const plan::NicCall& call, const void* input,
                     void* output, int ranks);
  base::Result<bool> poll() { return is_gathering_ ? gathering_->poll() : reduction_->poll(); }
  base::Status take() { return is_gathering_ ? base::success() : reduction_->take(); }
  void sleep(std::int64_t limit_ns) {
    is_gathering_ ? gathering_->sleep(limit_ns) : reduction_->vector().sleep(limit_ns);
  }

  const std::unique_ptr<NicReduction> reduction_;
  std::optional<NicGathering> gathering_;
  bool is_gathering_ = false;
  bool is_under_way_ = false;  // started, and not taken
  std::uint64_t number_ = 0;
};

}  // namespace unisono::engine
