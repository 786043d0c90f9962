// SPDX-License-Identifier: BSD-3-Clause
// Outline: what the price of a set of schedules needs of them, in a seventh of their memory. A
// choice prices hundreds of sets. So each rank's schedule is outlined as soon as it is built, and
// the next rank's takes its memory. All ranks are on one host, where no range is staged. One
// thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <vector>

#include "schedule/schedule.hpp"

namespace unisono::model {

class Outline {
 public:
  enum class Kind : std::int32_t { send, multicast, wait, reduce, copy };
  // size: in sizes(). A wait has its own slot. A send has its peer and the slot there. A multicast
  // has its first target and their number. A reduce has the number of reductions as `peer`.
  struct Step {
    Kind kind;
    std::int32_t size, slot, peer;
  };

  Outline() { clear(); }
  Outline(Outline&&) = default;
  Outline& operator=(Outline&&) = default;
  // As if it had no ranks.
  void clear();
  // The schedule of the next rank. are_helped: other ranks may do its steps.
  void add(const schedule::Schedule& schedule, bool are_helped);
  // Makes it that of calls of `to` elements in place of `from`; false if a number would not be
  // whole, and then it stays. A vector of equal parts is cut into as many parts again, so that the
  // steps are the same. No rank may be added then.
  bool scale(std::int64_t from, std::int64_t to);
  // Whether scale() would do it, with the ranks so far.
  bool can_scale(std::int64_t from, std::int64_t to) const;
  // Makes it that of calls in pieces (Algorithm::repeats): first so many longer ones, then the
  // shorter ones. The outlines of one piece differ in sizes only.
  void repeat(const Outline& longer, int longer_ones, const Outline& shorter, int shorter_ones);
  // So many further ranks, each with the steps of rank 0 and peers as much further on, cyclically.
  void rotate(int ranks);

  int ranks() const { return static_cast<int>(ranks_.size()); }
  std::span<const Step> steps_of(int rank) const;
  // The first slot of the rank, among those of all.
  std::size_t first_slot_of(int rank) const { return at(rank).first_slot; }
  std::size_t slots() const { return slots_; }
  std::int32_t staged_by(int rank) const { return at(rank).staged; }  // in sizes()
  std::span<const schedule::Target> targets_of(const Step& multicast) const {
    return {targets_.data() + multicast.slot, static_cast<std::size_t>(multicast.peer)};
  }
  // Numbers of elements; some of them may be equal.
  std::span<const std::int64_t> sizes() const { return sizes_; }

 private:
  struct Rank {
    std::size_t first_step = 0, first_slot = 0;
    std::int32_t staged = 0;
  };

  struct Free {
    void operator()(Step* steps) const { std::free(steps); }
  };

  // Room for so many further steps, which are not counted yet.
  Step* more_steps(std::size_t count);
  const Rank& at(int rank) const { return ranks_[static_cast<std::size_t>(rank)]; }
  std::int32_t size_of(std::int64_t elements) {
    return elements == last_size_ ? last_ : find_size(elements);
  }
  std::int32_t find_size(std::int64_t elements);

  std::vector<Rank> ranks_;
  std::unique_ptr<Step, Free> steps_;  // room for some
  std::size_t step_room_ = 0, step_count_ = 0;
  std::vector<schedule::Target> targets_;
  std::size_t slots_ = 0;
  std::vector<std::int64_t> sizes_;
  std::int64_t last_size_ = -1;
  std::int32_t last_ = -1;
  // By the first bits of a product: in sizes_, or -1.
  static constexpr int kNearBits = 5;
  std::array<std::int32_t, std::size_t{1} << kNearBits> near_{};
  std::vector<char> needed_;
};

}  // namespace unisono::model
