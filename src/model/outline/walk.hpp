// SPDX-License-Identifier: BSD-3-Clause
// OutlineWalk: the price of an outlined set of schedules (outline.hpp), with the same operations on
// the same numbers as price.cpp. So its nanoseconds are the same to the last bit. It keeps its
// memory for the next set. Only price.cpp uses it; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "model/clock.hpp"
#include "model/outline/outline.hpp"

namespace unisono::model {

class OutlineWalk {
 public:
  // `clock` and its costs outlive it. Only what does not depend on the ranks' times is asked of it.
  OutlineWalk(Costs& costs, const Clock<Instant>& clock)
      : costs_(costs),
        clock_(clock),
        shares_(clock.all_share_cores()),
        hand_over_(!costs.helps() && costs.shares_cores(0) ? costs.hand_over().sum() : 0) {}

  // nullopt if the price is `most_ns` or more, which it may notice before it has executed all.
  std::optional<double> ns_below(double most_ns, const Outline& outline, std::int64_t segments);
  // The time for which a rank needs a core, whenever messages arrive. It has no hand-overs. For the
  // further ranks of an outline it knows what it has worked out for the ones before.
  double work_of(const Outline& outline, int rank, const Scale& scale);

 private:
  // The nanoseconds of a number of elements.
  struct OfSize {
    double occupies = 0, gap = 0, flight = 0, multicast_flight = 0;
    double reception = 0, reduction = 0, copy = 0, staging = 0;
    bool multicasts = false;
  };
  struct Rank {
    double now = 0, port = 0;
    std::size_t next = 0;  // step
    schedule::SlotId awaited = -1;
  };

  OfSize of_size(std::int64_t elements);
  // The first ones, so many, are known.
  void work_out_sizes(std::size_t known);
  void begin();
  void begin_again();
  // One segment; false if it stopped early, since the price is too high.
  bool walk();
  // Whether a rank whose clock is at `now` makes it so.
  bool is_too_dear(double now) const;
  void advance(int number);
  void fill(std::int32_t peer, schedule::SlotId slot, double at);
  double staging_of(int rank) const;
  // The time of the last rank.
  double last_ns() const;

  Costs& costs_;
  const Clock<Instant>& clock_;
  bool shares_;       // all ranks share cores
  double hand_over_;  // of a wait that blocks
  const Outline* outline_ = nullptr;
  Scale scale_;  // of the sizes
  std::int64_t segments_ = 1;
  double most_ns_ = kAnyPrice, busy_ = 0;
  // The first segment, when the ranks do the second one.
  struct Segment {
    double end = 0, busy = 0;
  };
  std::optional<Segment> first_;
  BySize<OfSize> known_;
  std::vector<OfSize> sizes_;
  std::vector<Rank> ranks_;
  static constexpr double kNotThere = -1;
  std::vector<double> arrivals_;  // by slot of all ranks
  std::vector<int> ready_;
};

}  // namespace unisono::model
