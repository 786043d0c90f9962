// SPDX-License-Identifier: BSD-3-Clause
// Clock: the times of ranks that execute the ops of their schedules, independent of where their
// messages go (price.hpp says what each op costs). A time is a Moment, which knows on what it was
// spent, or an Instant, which costs less. Both give the same nanoseconds to the last bit. Only
// price.cpp and outline/ use it; one thread.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "model/costs.hpp"
#include "model/in_row/tape.hpp"
#include "model/price.hpp"
#include "schedule/schedule.hpp"
#include "schedule/step_order.hpp"

namespace unisono::model {

struct Moment {
  double ns = 0;
  Parts parts;

  Moment& operator+=(const Parts& more) {
    parts += more;
    ns += more.sum();
    return *this;
  }
  bool operator==(const Moment&) const = default;
};
struct Instant {
  double ns = 0;

  Instant& operator+=(const Parts& more) {
    ns += more.sum();
    return *this;
  }
  bool operator==(const Instant&) const = default;
};
template <class Time>
Time later_by(Time time, const Parts& more) {
  return time += more;
}
template <class Time>
const Time& later(const Time& a, const Time& b) {
  return a.ns < b.ns ? b : a;
}

// How often each content of a range is sent to another host: those sent more than once are staged.
class Contents {
 public:
  // A range and how often its memory had been written.
  using Key = std::tuple<schedule::Memory, schedule::SlotId, std::int64_t, std::int64_t, int>;

  void note_write(const schedule::Range& target) {
    ++writes_[static_cast<std::size_t>(target.memory)];
  }
  Key key(const schedule::Range& source) const {
    return {source.memory, source.slot, source.offset, source.count,
            writes_[static_cast<std::size_t>(source.memory)]};
  }

 private:
  std::array<int, schedule::kMemoryCount> writes_{};
};

// The first segment's time, and for each further one what the second adds to it.
inline double of_segments(double first, double second, std::int64_t segments) {
  return first + static_cast<double>(segments - 1) * (second - first);
}
inline Instant of_segments(const Instant& first, const Instant& second, std::int64_t segments) {
  return {.ns = of_segments(first.ns, second.ns, segments)};
}
inline Moment of_segments(const Moment& first, const Moment& second, std::int64_t segments) {
  const auto grown = [segments](double a, double b) { return of_segments(a, b, segments); };
  return {.ns = grown(first.ns, second.ns),
          .parts = {.latency = grown(first.parts.latency, second.parts.latency),
                    .bytes = grown(first.parts.bytes, second.parts.bytes),
                    .reduction = grown(first.parts.reduction, second.parts.reduction),
                    .hand_over = grown(first.parts.hand_over, second.parts.hand_over)}};
}

// The messages of a rank to other hosts, where these may be staged.
struct Copies {
  Contents contents;
  std::map<Contents::Key, int> of_content;  // messages of each content that cross hosts
  std::map<Contents::Key, bool> staged;
};

// One rank's clock.
template <class Time>
struct RankClock {
  std::size_t next = 0;
  schedule::SlotId awaited = -1;
  Time now;
  std::array<Time, 2> port;  // when the next message may leave: within the host, between hosts
  Parts staging;             // of the caller's buffers that others may need
  std::unique_ptr<Copies> copies;  // null where nothing may be staged

  // As if it were new.
  void forget() {
    next = 0;
    awaited = -1;
    now = {};
    port = {};
    copies.reset();
  }
};

template <class Time>
class Clock {
 public:
  using Rank = RankClock<Time>;

  // `costs` must outlive it.
  explicit Clock(Costs& costs)
      : costs_(costs),
        start_up_(costs.start_up()),
        hand_over_(costs.hand_over()),
        helps_(costs.helps()),
        turns_ns_(turns_of_helped()) {
    forget();
  }

  // A clock of Moments also writes there what ranks do from now on; null: nowhere.
  void record(Tape* tape) { tape_ = tape; }

  // As if no rank had done anything.
  void forget() {
    busy_.assign(costs_.ranks_are_apart() ? 0 : static_cast<std::size_t>(costs_.core_sets()), 0.0);
  }

  void begin(Rank& rank, const schedule::Schedule& schedule) {
    rank.forget();
    rank.staging = staging_of_helped(schedule);
    spend(rank, schedule.rank, start_up_);
    spend(rank, schedule.rank, rank.staging);
    if (stages(schedule)) count_copies(schedule, rank);
  }

  // The next segment, when the rank is through with one.
  void begin_again(Rank& rank, const schedule::Schedule& schedule) {
    spend(rank, schedule.rank, rank.staging);
    rank.next = 0;
    if (rank.copies == nullptr) return;
    rank.copies->contents = {};
    rank.copies->staged.clear();
  }

  // The start of the next call of a row, which is shared by its segments.
  Parts start_of_segment(std::int64_t segments) const {
    Parts start = start_up_;
    start.latency /= static_cast<double>(segments);
    return start;
  }
  void begin_call(Rank& rank, const schedule::Schedule& schedule, std::int64_t segments) {
    spend(rank, schedule.rank, start_of_segment(segments));
    begin_again(rank, schedule);
  }

  // The work on each set of cores so far; none where each rank is alone.
  const std::vector<double>& busy() const { return busy_; }

  // fill(target, arrival) for each message; it returns the arrival's number on a tape.
  template <class Fill>
  void send(const schedule::Schedule& schedule, const schedule::Op& op, Rank& rank,
            const Fill& fill) {
    std::array<bool, 2> is_multicast{};
    std::array<Time, 2> arrival;
    std::array<const Parts*, 2> flight{};
    for (const schedule::Target& target : schedule.targets_of(op)) {
      const bool crosses = costs_.crosses_hosts(schedule.rank, target.peer);
      const std::size_t kind = crosses ? 1 : 0;
      if (!is_multicast[kind]) {
        const MessageCost& cost = costs_.message(crosses, op.left.count);
        const bool once = op.kind == schedule::OpKind::multicast && cost.multicasts;
        const Time left = leave(schedule, op, rank, kind, cost);
        flight[kind] = once ? &cost.multicast_flight : flight_;
        arrival[kind] = later_by(left, *flight[kind]);
        is_multicast[kind] = once;
      }
      const std::size_t number = fill(target, arrival[kind]);
      write([&](Tape& tape) { tape.arrive(kind, number, flight[kind]->sum()); });
    }
  }

  // `number`: of the arrival on a tape.
  void wait(const schedule::Schedule& schedule, const schedule::Op& op, Rank& rank,
            const Time& arrival, std::size_t number = 0) {
    const schedule::Slot& slot = schedule.slots[static_cast<std::size_t>(op.slot)];
    const bool blocks = arrival.ns > rank.now.ns;
    if (blocks) rank.now = arrival;
    if (blocks && hands_over(schedule.rank)) spend(rank, schedule.rank, hand_over_);
    const bool crosses = costs_.crosses_hosts(schedule.rank, slot.source);
    const Parts& reception = costs_.message(crosses, slot.count).reception;
    spend(rank, schedule.rank, reception);
    write([&](Tape& tape) { tape.wait(schedule.rank, number, reception.sum()); });
  }

  void compute(const schedule::Schedule& schedule, const schedule::Op& op, Rank& rank) {
    if (op.kind == schedule::OpKind::reduce) {
      work(rank, schedule.rank, costs_.reduction(op.target.count));
    } else if (op.kind == schedule::OpKind::sum) {
      const Parts& reduction = costs_.reduction(op.target.count);
      for (std::int32_t i = 1; i < op.operand_count; ++i) {
        spend(rank, schedule.rank, reduction);
      }
      write([&](Tape& tape) {
        tape.spend(schedule.rank, reduction.sum(), std::max(op.operand_count, 1) - 1);
      });
    } else if (op.left != op.target) {
      work(rank, schedule.rank, costs_.copy(op.target.count));
    }
    if (rank.copies != nullptr) rank.copies->contents.note_write(op.target);
  }

  // A lower bound of the price, once a rank's clock is at `ns`. `busy` is the work so far, in a
  // segment, of ranks that share cores; 0 if they share none.
  double least_price(double ns, double busy, std::int64_t segments) const {
    // Sums of other order round otherwise.
    constexpr double kRounding = 1 - 1e-9;
    const double times = static_cast<double>(segments);
    const double shared = ns + (busy * times - ns) / costs_.cores();
    return (std::max(ns, shared) + turns_ns_ * times) * kRounding;
  }
  // Whether ranks share each set of cores. That of hosts may differ.
  bool all_share_cores() const {
    for (std::size_t set = 0; set < busy_.size(); ++set) {
      if (!costs_.shares_cores(static_cast<int>(set))) return false;
    }
    return !busy_.empty();
  }

  // The nanoseconds, and how they differ from those of the rank that ends last.
  struct End {
    double ns = 0;
    Parts more;
  };
  End end_of(double last_ns, std::span<const double> busy, std::int64_t segments) const {
    End end{.ns = last_ns, .more = {}};
    double turns = 0;  // of the ranks on each core
    for (std::size_t set = 0; set < busy.size(); ++set) {
      const int number = static_cast<int>(set);
      if (!costs_.shares_cores(number)) continue;
      turns = std::max(turns, static_cast<double>(costs_.ranks_of(number)) / costs_.cores());
      const double shared = last_ns + (busy[set] - last_ns) / costs_.cores();
      if (shared <= end.ns) continue;
      end.more.hand_over += shared - end.ns;
      end.ns = shared;
    }
    if (!helps_) return end;
    const double turns_ns = turns * static_cast<double>(segments) * hand_over_.hand_over;
    end.more.hand_over += turns_ns;
    end.ns += turns_ns;
    return end;
  }

  // The time of the shared cores for the work of one rank; 0 if it has a core of its own.
  double least_shared_ns(double busy_ns, int rank, std::int64_t segments) const {
    if (busy_.empty() || !costs_.shares_cores(costs_.core_set(rank))) return 0;
    return busy_ns * static_cast<double>(segments) / costs_.cores();
  }

  // A segment in a row of them: `ns` of the slowest rank, `busy` and `turns` of each set of cores.
  // `turns` are those of its ranks, less than one for a rank that needs none in each segment.
  struct InRow {
    double ns = 0;
    std::vector<double> busy, turns;
    bool overlaps = false;  // no rank waits for another one that waits for it
  };
  double finish_in_row(const InRow& row) const {
    double ns = row.ns, turns = 0;
    for (std::size_t set = 0; set < row.busy.size(); ++set) {
      if (!costs_.shares_cores(static_cast<int>(set))) continue;
      turns = std::max(turns, row.turns[set] / costs_.cores());
      const double shared = row.overlaps ? row.busy[set] / costs_.cores()
                                         : row.ns + (row.busy[set] - row.ns) / costs_.cores();
      ns = std::max(ns, shared);
    }
    return helps_ ? ns + turns * hand_over_.hand_over : ns;
  }

  int core_set(int rank) const { return costs_.core_set(rank); }
  // The time until a rank has a core after a wait.
  double hand_over_ns(int rank) const { return hands_over(rank) ? hand_over_.sum() : 0; }

 private:
  template <class Write>
  void write(const Write& entry) {
    if constexpr (std::same_as<Time, Moment>) {
      if (tape_ != nullptr) entry(*tape_);
    }
  }

  bool hands_over(int rank) const { return !helps_ && costs_.shares_cores(costs_.core_set(rank)); }

  // Each rank on a core needs it once in each segment.
  double turns_of_helped() const {
    double turns = 0;
    for (int set = 0; helps_ && set < costs_.core_sets(); ++set) {
      if (!costs_.shares_cores(set)) continue;
      turns = std::max(turns, static_cast<double>(costs_.ranks_of(set)) / costs_.cores());
    }
    return turns * hand_over_.hand_over;
  }

  Parts staging_of_helped(const schedule::Schedule& schedule) {
    if (!helps_) return {};
    const std::int64_t elements = schedule::staged_elements(schedule, needed_);
    return {.bytes = costs_.message(false, elements).occupies.bytes};
  }

  void spend(Rank& rank, int number, const Parts& parts) {
    rank.now += parts;
    if (!busy_.empty()) busy_[static_cast<std::size_t>(costs_.core_set(number))] += parts.sum();
  }

  void work(Rank& rank, int number, const Parts& parts) {
    spend(rank, number, parts);
    write([&](Tape& tape) { tape.spend(number, parts.sum()); });
  }

  // Occupies the rank with a message and its port; when it leaves. Sets flight_.
  Time leave(const schedule::Schedule& schedule, const schedule::Op& op, Rank& rank,
             std::size_t kind, const MessageCost& cost) {
    bool is_staged = false;
    if (kind == 1 && cost.can_be_staged && rank.copies != nullptr) {
      Copies& copies = *rank.copies;
      const Contents::Key key = copies.contents.key(op.left);
      is_staged = copies.of_content[key] > 1;
      if (is_staged && !copies.staged[key]) {
        copies.staged[key] = true;
        work(rank, schedule.rank, cost.staging);
      }
    }
    const Parts& occupies = is_staged ? cost.occupies_staged : cost.occupies;
    const Parts& gap = is_staged ? cost.gap_staged : cost.gap;
    spend(rank, schedule.rank, occupies);
    const Time left = later(rank.now, rank.port[kind]);
    rank.port[kind] = later_by(left, gap);
    write([&](Tape& tape) { tape.leave(schedule.rank, kind, occupies.sum(), gap.sum()); });
    flight_ = is_staged ? &cost.flight_staged : &cost.flight;
    return left;
  }

  bool stages(const schedule::Schedule& schedule) {
    return costs_.hosts() > 1 && costs_.message(true, schedule.shape.count).can_be_staged;
  }

  void count_copies(const schedule::Schedule& schedule, Rank& rank) {
    rank.copies = std::make_unique<Copies>();
    Contents contents;
    for (const schedule::Op& op : schedule.ops) {
      for (const schedule::Target& target : schedule.targets_of(op)) {
        if (costs_.crosses_hosts(schedule.rank, target.peer))
          ++rank.copies->of_content[contents.key(op.left)];
      }
      if (schedule::writes_range(op)) contents.note_write(op.target);
    }
  }

  Costs& costs_;
  Parts start_up_, hand_over_;
  bool helps_;
  double turns_ns_;           // of helped ranks, in each segment
  std::vector<double> busy_;  // of each set of cores; none where each rank is alone
  std::vector<char> needed_;
  Tape* tape_ = nullptr;
  const Parts* flight_ = nullptr;  // of the message that left last
};

}  // namespace unisono::model
