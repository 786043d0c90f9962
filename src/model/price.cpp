// SPDX-License-Identifier: BSD-3-Clause
#include "model/price.hpp"

#include <algorithm>
#include <concepts>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "model/clock.hpp"
#include "model/in_row/bound_ranks.hpp"
#include "model/in_row/tape.hpp"
#include "model/outline/walk.hpp"

namespace unisono::model {
namespace {

using schedule::Op;
using schedule::OpKind;
using schedule::Schedule;
using schedule::SlotId;
using schedule::Target;

// Calls in a row until each rank is as far behind the one it waits for as it remains; and so many
// more are measured.
constexpr int kCallsBefore = 2, kCallsInRow = 2;

template <class Time>
Price price_of_end(const Clock<Time>& clock, const Time& last, int last_rank,
                   const std::vector<double>& busy, std::int64_t segments) {
  const auto end = clock.end_of(last.ns, busy, segments);
  Price price{.ns = end.ns, .parts = end.more, .last_rank = last_rank};
  if constexpr (requires { last.parts; }) {
    price.parts = last.parts;
    price.parts.hand_over += end.more.hand_over;
  }
  return price;
}

}  // namespace

// Executes all ranks, each until a wait for an empty slot; the rank that fills this slot lets it
// continue. Keeps its memory for the next set.
template <class Time>
class PriceWalk {
 public:
  explicit PriceWalk(Costs& costs) : clock_(costs) {}

  // The price of a call alone. nullopt if it is `most_ns` or more, which it may notice before it
  // has executed all.
  std::optional<Price> price(std::span<const Schedule> set, const Calls& calls, double most_ns) {
    begin(set, calls, most_ns);
    if constexpr (std::same_as<Time, Moment>) {
      if (calls.slot_indexes > 0) begin_tape();
    }
    if (!walk()) return std::nullopt;
    clock_.record(nullptr);
    std::size_t last = last_rank();
    alone_ns_ = ranks_[last].now.ns;
    Time end = ranks_[last].now;
    std::vector<double> busy = clock_.busy();
    if (calls.segments > 1) {
      first_ = {.end = end.ns, .busy = busy};
      if (!again()) return std::nullopt;
      last = last_rank();
      end = of_segments(end, ranks_[last].now, calls.segments);
      for (double& each : busy) each *= static_cast<double>(calls.segments);
    }
    Price price = price_of_end(clock_, end, static_cast<int>(last), busy, calls.segments);
    return price.ns < most_ns ? std::optional(price) : std::nullopt;
  }

  // The nanoseconds in a row, after price() of the same set, which has filled the tape.
  double in_row(const Calls& calls) const {
    Replay replay(tape_, at_the_end(), arrivals_.size(), clock_.busy());
    const double start_ns = clock_.start_of_segment(calls.segments).sum();
    const auto repeat = [&](int times) {
      for (; times > 0; --times) replay.go_on(start_ns);
    };
    repeat(kCallsBefore - 1);
    const std::vector<Replay::Rank> before = replay.ranks();
    const std::vector<double> busy_before = replay.busy();
    repeat(kCallsInRow);
    // A rank may not be further ahead than its slot indexes.
    typename Clock<Time>::InRow row{
        .ns = alone_ns_ / calls.slot_indexes, .busy = replay.busy(), .turns = {}};
    for (std::size_t r = 0; r < before.size(); ++r) {
      row.ns = std::max(row.ns, (replay.ranks()[r].now - before[r].now) / kCallsInRow);
    }
    for (std::size_t set = 0; set < row.busy.size(); ++set) {
      row.busy[set] = (row.busy[set] - busy_before[set]) / kCallsInRow;
    }
    const std::vector<bool> bound = find_bound(set_);
    row.overlaps = std::ranges::find(bound, true) == bound.end();
    row.turns.resize(row.busy.size());
    for (std::size_t r = 0; r < ranks_.size() && !row.turns.empty(); ++r) {
      row.turns[static_cast<std::size_t>(clock_.core_set(static_cast<int>(r)))] +=
          bound[r] ? 1.0 : 1.0 / calls.slot_indexes;
    }
    return clock_.finish_in_row(row) * static_cast<double>(calls.segments);
  }

 private:
  void begin(std::span<const Schedule> set, const Calls& calls, double most_ns) {
    set_ = set;
    clock_.forget();
    ranks_.resize(set.size());
    first_slots_.resize(set.size());
    std::size_t slots = 0;
    for (std::size_t r = 0; r < set.size(); ++r) {
      first_slots_[r] = slots;
      slots += set[r].slots.size();
      clock_.begin(ranks_[r], set[r]);
    }
    arrivals_.assign(slots, {});
    fill_ready();
    most_ns_ = most_ns;
    segments_ = calls.segments;
    first_.reset();
    shares_ = clock_.all_share_cores();
  }

  // A message leaves and arrives, and its sender may stage it.
  void begin_tape() {
    std::size_t most = 0;
    for (const Schedule& schedule : set_) most += schedule.ops.size() + 3 * schedule.targets.size();
    tape_.begin(most);
    clock_.record(&tape_);
  }

  void fill_ready() {
    ready_.resize(set_.size());
    for (std::size_t r = 0; r < set_.size(); ++r) ready_[r] = static_cast<int>(r);
  }

  // The next segment of all, as walk().
  bool again() {
    for (Arrival& each : arrivals_) each.is_there = false;
    for (std::size_t r = 0; r < ranks_.size(); ++r) clock_.begin_again(ranks_[r], set_[r]);
    fill_ready();
    return walk();
  }

  // One segment; false if it stopped early, since the price is too high.
  bool walk() {
    while (!ready_.empty()) {
      const auto rank = static_cast<std::size_t>(ready_.back());
      ready_.pop_back();
      advance(rank);
      if (is_too_dear(rank)) return false;
    }
    return true;
  }

  std::vector<Replay::Rank> at_the_end() const {
    std::vector<Replay::Rank> ranks;
    ranks.reserve(ranks_.size());
    for (const RankClock<Time>& rank : ranks_) {
      const int number = static_cast<int>(ranks.size());
      ranks.push_back({.now = rank.now.ns,
                       .port = {rank.port[0].ns, rank.port[1].ns},
                       .staging_ns = rank.staging.sum(),
                       .hand_over_ns = clock_.hand_over_ns(number),
                       .set = static_cast<std::size_t>(clock_.core_set(number))});
    }
    return ranks;
  }

  // No clock goes back, and work does not become less. The further segments take what the second
  // one adds to the first.
  bool is_too_dear(std::size_t rank) const {
    if (most_ns_ == kAnyPrice) return false;
    const auto set = static_cast<std::size_t>(clock_.core_set(static_cast<int>(rank)));
    const double now = ranks_[rank].now.ns;
    const double ns = first_ ? of_segments(first_->end, now, segments_) : now;
    const double busy = !shares_ ? 0 : first_ ? first_->busy[set] : clock_.busy()[set];
    return clock_.least_price(ns, busy, segments_) >= most_ns_;
  }

  std::size_t last_rank() const {
    std::size_t last = 0;
    for (std::size_t r = 0; r < set_.size(); ++r) {
      UNISONO_CHECK(ranks_[r].next == set_[r].ops.size(), "the price of schedules that deadlock");
      if (ranks_[r].now.ns > ranks_[last].now.ns) last = r;
    }
    return last;
  }

  void advance(std::size_t r) {
    const Schedule& schedule = set_[r];
    RankClock<Time>& rank = ranks_[r];
    const std::size_t first_slot = first_slots_[r];
    rank.awaited = -1;
    for (; rank.next < schedule.ops.size(); ++rank.next) {
      const Op& op = schedule.ops[rank.next];
      if (op.kind == OpKind::wait) {
        const std::size_t number = first_slot + static_cast<std::size_t>(op.slot);
        const Arrival& arrival = arrivals_[number];
        if (!arrival.is_there) {
          rank.awaited = op.slot;
          return;
        }
        clock_.wait(schedule, op, rank, arrival.at, number);
      } else if (schedule::writes_range(op)) {
        clock_.compute(schedule, op, rank);
      } else {
        clock_.send(schedule, op, rank,
                    [&](const Target& target, const Time& at) { return fill(target, at); });
      }
    }
  }

  std::size_t fill(const Target& target, const Time& at) {
    const auto peer = static_cast<std::size_t>(target.peer);
    const std::size_t number = first_slots_[peer] + static_cast<std::size_t>(target.slot);
    arrivals_[number] = {at, true};
    RankClock<Time>& rank = ranks_[peer];
    if (rank.awaited == target.slot) {
      rank.awaited = -1;
      ready_.push_back(target.peer);
    }
    return number;
  }

  struct Arrival {
    Time at;
    bool is_there = false;
  };

  std::span<const Schedule> set_;
  Clock<Time> clock_;
  double alone_ns_ = 0;  // of the first segment
  double most_ns_ = kAnyPrice;
  std::int64_t segments_ = 1;
  // The first segment, when the ranks do the second one.
  struct Segment {
    double end = 0;
    std::vector<double> busy;
  };
  std::optional<Segment> first_;
  bool shares_ = false;  // ranks share each set of cores
  std::vector<RankClock<Time>> ranks_;
  std::vector<std::size_t> first_slots_;  // by rank: in arrivals_
  std::vector<Arrival> arrivals_;         // by slot of each rank
  std::vector<int> ready_;
  Tape tape_;  // of the first segment, if calls in a row are asked for
};

namespace {

// One rank that stands for all.
template <class Time>
class AlikeWalk {
 public:
  AlikeWalk(Costs& costs, const Schedule& any) : any_(any), clock_(costs) {
    clock_.begin(rank_, any);
  }

  Price price(const Calls& calls) {
    walk();
    const double alone_ns = rank_.now.ns;
    Time end = rank_.now;
    std::vector<double> busy = clock_.busy();
    if (calls.segments > 1) {
      clock_.begin_again(rank_, any_);
      walk();
      end = of_segments(end, rank_.now, calls.segments);
    }
    // Where all ranks share cores, these have the work of all.
    for (double& each : busy) each *= static_cast<double>(calls.segments) * any_.shape.ranks;
    Price price = price_of_end(clock_, end, any_.rank, busy, calls.segments);
    if (calls.slot_indexes > 0) price.in_row_ns = in_row(calls, alone_ns);
    return price;
  }

 private:
  // All are at the same op, so that each call delays them as the next one does.
  double in_row(const Calls& calls, double alone_ns) {
    const double before = rank_.now.ns;
    const std::vector<double> busy_before = clock_.busy();
    clock_.begin_call(rank_, any_, calls.segments);
    walk();
    typename Clock<Time>::InRow row{
        .ns = std::max(rank_.now.ns - before, alone_ns / calls.slot_indexes),
        .busy = clock_.busy(),
        .turns = {}};
    for (std::size_t set = 0; set < row.busy.size(); ++set) {
      row.busy[set] = (row.busy[set] - busy_before[set]) * any_.shape.ranks;
    }
    row.overlaps = any_.targets.empty();
    row.turns.resize(row.busy.size(), any_.shape.ranks);
    return clock_.finish_in_row(row) * static_cast<double>(calls.segments);
  }

  // One segment.
  void walk() {
    Time none;
    none.ns = -1;
    arrivals_.assign(any_.slots.size(), none);
    for (const Op& op : any_.ops) {
      if (op.kind == OpKind::wait) {
        const Time& arrival = arrivals_[static_cast<std::size_t>(op.slot)];
        UNISONO_CHECK(arrival.ns >= 0, "ranks that are not alike");
        clock_.wait(any_, op, rank_, arrival);
      } else if (schedule::writes_range(op)) {
        clock_.compute(any_, op, rank_);
      } else {
        // A message of this rank to a peer's slot stands for the one that it receives in its slot
        // of that number.
        clock_.send(any_, op, rank_, [&](const Target& target, const Time& at) {
          arrivals_[static_cast<std::size_t>(target.slot)] = at;
          return static_cast<std::size_t>(target.slot);
        });
      }
    }
  }

  const Schedule& any_;
  Clock<Time> clock_;
  RankClock<Time> rank_;
  std::vector<Time> arrivals_;
};

double least_ns_of(Clock<Instant>& clock, const Schedule& one, const Calls& calls,
                   Segments segments) {
  RankClock<Instant> rank;
  clock.begin(rank, one);
  for (const Op& op : one.ops) {
    if (op.kind == OpKind::wait) {
      clock.wait(one, op, rank, {});
    } else if (schedule::writes_range(op)) {
      clock.compute(one, op, rank);
    } else {
      clock.send(one, op, rank, [](const Target&, const Instant&) { return std::size_t{0}; });
    }
  }
  if (segments == Segments::one) return rank.now.ns;
  return clock.least_shared_ns(rank.now.ns, one.rank, calls.segments);
}

}  // namespace

Price price(std::span<const Schedule> set, const Machine& machine, const Work& work,
            const Calls& calls) {
  UNISONO_CHECK(!set.empty(), "the price of no schedules");
  return Pricer(machine, work, set.front().shape).price(set, calls);
}

double least_ns(const Schedule& one, const Machine& machine, const Work& work, const Calls& calls,
                Segments segments) {
  Costs costs(machine, work, one.shape);
  Clock<Instant> clock(costs);
  return least_ns_of(clock, one, calls, segments);
}

Price price_of_alike(const Schedule& any, const Machine& machine, const Work& work,
                     const Calls& calls) {
  return Pricer(machine, work, any.shape).price_of_alike(any, calls);
}

struct Pricer::State {
  State(const Machine& machine, const Work& work, const schedule::Shape& shape)
      : costs(machine, work, shape), clock(costs), walk(costs), outline_walk(costs, clock) {}

  Costs costs;
  Clock<Instant> clock;
  PriceWalk<Instant> walk;
  OutlineWalk outline_walk;
  std::optional<PriceWalk<Moment>> walk_of_parts;
};

Pricer::Pricer(const Machine& machine, const Work& work, const schedule::Shape& shape)
    : state_(std::make_unique<State>(machine, work, shape)) {}
Pricer::Pricer(Pricer&&) noexcept = default;
Pricer& Pricer::operator=(Pricer&&) noexcept = default;
Pricer::~Pricer() = default;

Price Pricer::price(std::span<const Schedule> set, const Calls& calls) {
  if (!state_->walk_of_parts) state_->walk_of_parts.emplace(state_->costs);
  PriceWalk<Moment>& walk = *state_->walk_of_parts;
  Price price = *walk.price(set, calls, kAnyPrice);
  if (calls.slot_indexes > 0) price.in_row_ns = walk.in_row(calls);
  return price;
}

Price Pricer::price_of_alike(const Schedule& any, const Calls& calls) {
  return AlikeWalk<Moment>(state_->costs, any).price(calls);
}

std::optional<double> Pricer::ns_below(double most_ns, std::span<const Schedule> set,
                                       const Calls& calls) {
  const auto price = state_->walk.price(set, calls, most_ns);
  return price ? std::optional(price->ns) : std::nullopt;
}

std::optional<double> Pricer::ns_below(double most_ns, const Outline& outline, const Calls& calls) {
  return state_->outline_walk.ns_below(most_ns, outline, calls.segments);
}

double Pricer::work_of(const Outline& outline, int rank, const Scale& scale) {
  return state_->outline_walk.work_of(outline, rank, scale);
}

double Pricer::least_ns_of_rank(double work_ns, int rank, const Calls& calls,
                                Segments segments) const {
  if (segments == Segments::one) return work_ns;
  return state_->clock.least_shared_ns(work_ns, rank, calls.segments);
}

bool Pricer::shares_cores(int rank) const {
  return !state_->costs.ranks_are_apart() &&
         state_->costs.shares_cores(state_->costs.core_set(rank));
}

bool Pricer::share_all_cores() const {
  return state_->costs.core_sets() == 1 && state_->clock.all_share_cores();
}

double Pricer::least_ns_of_work(double work_ns, double own_ns, const Calls& calls) const {
  return state_->clock.least_price(own_ns, work_ns, calls.segments);
}

double Pricer::ns_of_alike(const Schedule& any, const Calls& calls) {
  return AlikeWalk<Instant>(state_->costs, any).price(calls).ns;
}

double Pricer::least_ns(const Schedule& one, const Calls& calls, Segments segments) {
  return least_ns_of(state_->clock, one, calls, segments);
}

}  // namespace unisono::model
