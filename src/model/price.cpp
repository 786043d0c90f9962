// SPDX-License-Identifier: BSD-3-Clause
#include "model/price.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <vector>

#include "base/check.hpp"
#include "schedule/step_order.hpp"

namespace unisono::model {
namespace {

using schedule::Memory;
using schedule::Op;
using schedule::OpKind;
using schedule::Range;
using schedule::Schedule;
using schedule::SlotId;
using schedule::Target;

struct Moment {
  double ns = 0;
  Parts parts;

  Moment& operator+=(const Parts& more) {
    parts += more;
    ns += more.sum();
    return *this;
  }
};
Moment operator+(Moment moment, const Parts& more) { return moment += more; }
const Moment& later(const Moment& a, const Moment& b) { return a.ns < b.ns ? b : a; }

// How often each content of a range is sent to somebody: those sent more than once are staged.
class Contents {
 public:
  // A range and how often its memory had been written.
  using Key = std::tuple<Memory, SlotId, std::int64_t, std::int64_t, int>;

  void note_write(const Range& target) { ++writes_[static_cast<std::size_t>(target.memory)]; }
  Key key(const Range& source) const {
    return {source.memory, source.slot, source.offset, source.count,
            writes_[static_cast<std::size_t>(source.memory)]};
  }

 private:
  std::array<int, schedule::kMemoryCount> writes_{};
};

// Calls in a row until each rank is as far behind the one it waits for as it remains; and so many
// more are measured.
constexpr int kCallsBefore = 2, kCallsInRow = 2;

// One rank's clock.
struct Rank {
  std::size_t next = 0;
  SlotId awaited = -1;
  Moment now;
  std::array<Moment, 2> port;  // when the next message may leave: within the host, between hosts
  std::vector<Moment> arrivals;
  std::vector<bool> filled;
  Parts staging;  // of the caller's buffers that others may need
  Contents contents;
  std::map<Contents::Key, int> copies;  // messages of each content that cross hosts
  std::map<Contents::Key, bool> staged;
};

// The times of the ranks' actions, independent of where their messages go.
class Clock {
 public:
  Clock(const Machine& machine, const Work& work, const schedule::Shape& shape)
      : costs_(machine, work, shape) {
    if (!work.apart || costs_.core_sets() == 1) {
      busy_.resize(static_cast<std::size_t>(costs_.core_sets()));
    }
  }

  Rank begin(const Schedule& schedule) {
    Rank rank;
    rank.arrivals.resize(schedule.slots.size());
    rank.filled.resize(schedule.slots.size());
    rank.staging = staging_of_helped(schedule);
    spend(rank, schedule.rank, costs_.start_up());
    spend(rank, schedule.rank, rank.staging);
    if (stages(schedule)) count_copies(schedule, rank);
    return rank;
  }

  // The next segment, when the rank is through with one.
  void begin_again(Rank& rank, const Schedule& schedule) {
    spend(rank, schedule.rank, rank.staging);
    rank.next = 0;
    rank.filled.assign(rank.filled.size(), false);
    rank.contents = {};
    rank.staged.clear();
  }

  // The next call of a row. Its start is shared by its segments.
  void begin_call(Rank& rank, const Schedule& schedule, std::int64_t segments) {
    Parts start = costs_.start_up();
    start.latency /= static_cast<double>(segments);
    spend(rank, schedule.rank, start);
    begin_again(rank, schedule);
  }

  // The work on each set of cores so far; none where each rank is alone.
  const std::vector<double>& busy() const { return busy_; }

  // fill(target, arrival) for each message.
  template <class Fill>
  void send(const Schedule& schedule, const Op& op, Rank& rank, const Fill& fill) {
    std::array<const Moment*, 2> multicast{};
    std::array<Moment, 2> arrival;
    for (const Target& target : schedule.targets_of(op)) {
      const bool crosses = costs_.crosses_hosts(schedule.rank, target.peer);
      const MessageCost& cost = costs_.message(crosses, op.left.count);
      const std::size_t kind = crosses ? 1 : 0;
      if (multicast[kind] == nullptr) {
        const bool once = op.kind == OpKind::multicast && cost.multicasts;
        arrival[kind] =
            leave(schedule, op, rank, kind, cost) + (once ? cost.multicast_flight : flight_);
        if (once) multicast[kind] = &arrival[kind];
      }
      fill(target, arrival[kind]);
    }
  }

  void wait(const Schedule& schedule, const Op& op, Rank& rank) {
    const auto slot = static_cast<std::size_t>(op.slot);
    const int source = schedule.slots[slot].source;
    const bool blocks = rank.arrivals[slot].ns > rank.now.ns;
    rank.now = later(rank.now, rank.arrivals[slot]);
    if (blocks && !costs_.helps() && costs_.shares_cores(costs_.core_set(schedule.rank))) {
      spend(rank, schedule.rank, costs_.hand_over());
    }
    spend(rank, schedule.rank,
          costs_.message(costs_.crosses_hosts(schedule.rank, source), schedule.slots[slot].count)
              .reception);
  }

  void compute(const Schedule& schedule, const Op& op, Rank& rank) {
    if (op.kind == OpKind::reduce) {
      spend(rank, schedule.rank, costs_.reduction(op.target.count));
    } else if (op.kind == OpKind::sum) {
      for (std::int32_t i = 1; i < op.operand_count; ++i) {
        spend(rank, schedule.rank, costs_.reduction(op.target.count));
      }
    } else if (op.left != op.target) {
      spend(rank, schedule.rank, costs_.copy(op.target.count));
    }
    rank.contents.note_write(op.target);
  }

  // The price, given the rank that ends last and the work on each set of cores.
  Price finish(const Moment& last, int last_rank, const std::vector<double>& busy,
               std::int64_t segments) const {
    Price price{.ns = last.ns, .parts = last.parts, .last_rank = last_rank};
    double turns = 0;  // of the ranks on each core
    for (std::size_t set = 0; set < busy.size(); ++set) {
      const int number = static_cast<int>(set);
      if (!costs_.shares_cores(number)) continue;
      turns = std::max(turns, static_cast<double>(costs_.ranks_of(number)) / costs_.cores());
      const double shared = last.ns + (busy[set] - last.ns) / costs_.cores();
      if (shared <= price.ns) continue;
      price.parts.hand_over += shared - price.ns;
      price.ns = shared;
    }
    if (!costs_.helps()) return price;
    const double turns_ns = turns * static_cast<double>(segments) * costs_.hand_over().hand_over;
    price.parts.hand_over += turns_ns;
    price.ns += turns_ns;
    return price;
  }

  // The time of the shared cores for what one of its ranks has to do; 0 if it has a core of its
  // own.
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
    return costs_.helps() ? ns + turns * costs_.hand_over().hand_over : ns;
  }

  int core_set(int rank) const { return costs_.core_set(rank); }

 private:
  // The buffers of the caller that others may need are copied to where they can reach them.
  Parts staging_of_helped(const Schedule& schedule) {
    if (!costs_.helps()) return {};
    const schedule::StepOrder order = schedule::order_steps(schedule, true);
    std::int64_t elements = 0;
    if (order.stages_input) elements += schedule::input_count(schedule.shape, schedule.rank);
    if (order.stages_output) elements += schedule::output_count(schedule.shape, schedule.rank);
    return {.bytes = costs_.message(false, elements).occupies.bytes};
  }

  void spend(Rank& rank, int number, const Parts& parts) {
    rank.now += parts;
    if (!busy_.empty()) busy_[static_cast<std::size_t>(costs_.core_set(number))] += parts.sum();
  }

  // Occupies the rank with a message and its port; when it leaves. Sets flight_.
  Moment leave(const Schedule& schedule, const Op& op, Rank& rank, std::size_t kind,
               const MessageCost& cost) {
    bool is_staged = false;
    if (kind == 1 && cost.can_be_staged) {
      const Contents::Key key = rank.contents.key(op.left);
      is_staged = rank.copies[key] > 1;
      if (is_staged && !rank.staged[key]) {
        rank.staged[key] = true;
        spend(rank, schedule.rank, cost.staging);
      }
    }
    spend(rank, schedule.rank, is_staged ? cost.occupies_staged : cost.occupies);
    const Moment left = later(rank.now, rank.port[kind]);
    rank.port[kind] = left + (is_staged ? cost.gap_staged : cost.gap);
    flight_ = is_staged ? cost.flight_staged : cost.flight;
    return left;
  }

  bool stages(const Schedule& schedule) {
    return costs_.hosts() > 1 && costs_.message(true, schedule.shape.count).can_be_staged;
  }

  void count_copies(const Schedule& schedule, Rank& rank) {
    Contents contents;
    for (const Op& op : schedule.ops) {
      for (const Target& target : schedule.targets_of(op)) {
        if (costs_.crosses_hosts(schedule.rank, target.peer)) ++rank.copies[contents.key(op.left)];
      }
      if (schedule::writes_range(op)) contents.note_write(op.target);
    }
  }

  Costs costs_;
  std::vector<double> busy_;  // of each set of cores; none where each rank is alone
  Parts flight_;              // of the message that left last
};

// The first segment's time, and for each further one what the second adds to it.
Moment of_segments(const Moment& first, const Moment& second, std::int64_t segments) {
  const auto more = static_cast<double>(segments - 1);
  const auto grown = [more](double a, double b) { return a + more * (b - a); };
  return {.ns = grown(first.ns, second.ns),
          .parts = {.latency = grown(first.parts.latency, second.parts.latency),
                    .bytes = grown(first.parts.bytes, second.parts.bytes),
                    .reduction = grown(first.parts.reduction, second.parts.reduction),
                    .hand_over = grown(first.parts.hand_over, second.parts.hand_over)}};
}

// Marks ranks that wait for ranks which wait for them, if calls follow each other. It also marks
// ranks between two such groups. The others may be some calls ahead or behind.
std::vector<bool> find_bound(std::span<const Schedule> set) {
  std::vector<std::vector<std::size_t>> from(set.size()), to(set.size());
  for (const Schedule& schedule : set) {
    const auto sender = static_cast<std::size_t>(schedule.rank);
    for (const Target& target : schedule.targets) {
      to[sender].push_back(static_cast<std::size_t>(target.peer));
      from[static_cast<std::size_t>(target.peer)].push_back(sender);
    }
  }
  std::vector<bool> bound(set.size(), true);
  // Ranks without senders are free, and those that have free senders only; and likewise receivers.
  const auto release = [&](const auto& before, const auto& after) {
    std::vector<std::size_t> left(set.size()), free;
    for (std::size_t rank = 0; rank < set.size(); ++rank) {
      left[rank] = before[rank].size();
      if (left[rank] == 0) free.push_back(rank);
    }
    while (!free.empty()) {
      const std::size_t rank = free.back();
      free.pop_back();
      bound[rank] = false;
      for (const std::size_t next : after[rank]) {
        if (--left[next] == 0) free.push_back(next);
      }
    }
  };
  release(from, to);
  release(to, from);
  return bound;
}

// Executes all ranks, each until a wait for an empty slot; the rank that fills this slot lets it
// continue.
class PriceWalk {
 public:
  PriceWalk(std::span<const Schedule> set, const Machine& machine, const Work& work)
      : set_(set), clock_(machine, work, set.front().shape) {
    for (const Schedule& schedule : set) {
      ready_.push_back(ranks_.size());
      ranks_.push_back(clock_.begin(schedule));
    }
  }

  Price price(const Calls& calls) {
    std::size_t last = walk();
    const double alone_ns = ranks_[last].now.ns;
    Moment end = ranks_[last].now;
    std::vector<double> busy = clock_.busy();
    if (calls.segments > 1) {
      for (std::size_t r = 0; r < ranks_.size(); ++r) {
        clock_.begin_again(ranks_[r], set_[r]);
        ready_.push_back(r);
      }
      last = walk();
      end = of_segments(end, ranks_[last].now, calls.segments);
      for (std::size_t set = 0; set < busy.size(); ++set) {
        busy[set] *= static_cast<double>(calls.segments);
      }
    }
    Price price = clock_.finish(end, static_cast<int>(last), busy, calls.segments);
    if (calls.slot_indexes > 0) price.in_row_ns = in_row(calls, alone_ns);
    return price;
  }

 private:
  double in_row(const Calls& calls, double alone_ns) {
    const auto repeat = [&](int times) {
      for (; times > 0; --times) {
        for (std::size_t r = 0; r < ranks_.size(); ++r) {
          clock_.begin_call(ranks_[r], set_[r], calls.segments);
          ready_.push_back(r);
        }
        walk();
      }
    };
    repeat(kCallsBefore - 1);
    std::vector<double> before;
    before.reserve(ranks_.size());
    for (const Rank& rank : ranks_) before.push_back(rank.now.ns);
    const std::vector<double> busy_before = clock_.busy();
    repeat(kCallsInRow);
    // A rank may not be further ahead than its slot indexes.
    Clock::InRow row{.ns = alone_ns / calls.slot_indexes, .busy = clock_.busy(), .turns = {}};
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      row.ns = std::max(row.ns, (ranks_[r].now.ns - before[r]) / kCallsInRow);
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

  // One segment; returns the rank that ends last.
  std::size_t walk() {
    while (!ready_.empty()) {
      const std::size_t rank = ready_.back();
      ready_.pop_back();
      advance(rank);
    }
    std::size_t last = 0;
    for (std::size_t r = 0; r < set_.size(); ++r) {
      UNISONO_CHECK(ranks_[r].next == set_[r].ops.size(), "the price of schedules that deadlock");
      if (ranks_[r].now.ns > ranks_[last].now.ns) last = r;
    }
    return last;
  }

  void advance(std::size_t r) {
    const Schedule& schedule = set_[r];
    Rank& rank = ranks_[r];
    rank.awaited = -1;
    for (; rank.next < schedule.ops.size(); ++rank.next) {
      const Op& op = schedule.ops[rank.next];
      if (op.kind == OpKind::wait) {
        if (!rank.filled[static_cast<std::size_t>(op.slot)]) {
          rank.awaited = op.slot;
          return;
        }
        clock_.wait(schedule, op, rank);
      } else if (schedule::writes_range(op)) {
        clock_.compute(schedule, op, rank);
      } else {
        clock_.send(schedule, op, rank,
                    [&](const Target& target, const Moment& at) { fill(target, at); });
      }
    }
  }

  void fill(const Target& target, const Moment& at) {
    Rank& peer = ranks_[static_cast<std::size_t>(target.peer)];
    peer.arrivals[static_cast<std::size_t>(target.slot)] = at;
    peer.filled[static_cast<std::size_t>(target.slot)] = true;
    if (peer.awaited != target.slot) return;
    peer.awaited = -1;
    ready_.push_back(static_cast<std::size_t>(target.peer));
  }

  std::span<const Schedule> set_;
  Clock clock_;
  std::vector<Rank> ranks_;
  std::vector<std::size_t> ready_;
};

// One segment of one rank that stands for all.
void walk_alike(const Schedule& any, Clock& clock, Rank& rank) {
  for (const Op& op : any.ops) {
    if (op.kind == OpKind::wait) {
      UNISONO_CHECK(rank.filled[static_cast<std::size_t>(op.slot)], "ranks that are not alike");
      clock.wait(any, op, rank);
    } else if (schedule::writes_range(op)) {
      clock.compute(any, op, rank);
    } else {
      // A message of this rank to a peer's slot stands for the one that it receives in its slot of
      // that number.
      clock.send(any, op, rank, [&](const Target& target, const Moment& at) {
        rank.arrivals[static_cast<std::size_t>(target.slot)] = at;
        rank.filled[static_cast<std::size_t>(target.slot)] = true;
      });
    }
  }
}

// One segment of a rank that waits for nobody.
void walk_alone(const Schedule& one, Clock& clock, Rank& rank) {
  for (const Op& op : one.ops) {
    if (op.kind == OpKind::wait) {
      clock.wait(one, op, rank);
    } else if (schedule::writes_range(op)) {
      clock.compute(one, op, rank);
    } else {
      clock.send(one, op, rank, [](const Target&, const Moment&) {});
    }
  }
}

}  // namespace

Price price(std::span<const Schedule> set, const Machine& machine, const Work& work,
            const Calls& calls) {
  UNISONO_CHECK(!set.empty(), "the price of no schedules");
  return PriceWalk(set, machine, work).price(calls);
}

double least_ns(const Schedule& one, const Machine& machine, const Work& work, const Calls& calls,
                Segments segments) {
  Clock clock(machine, work, one.shape);
  Rank rank = clock.begin(one);
  walk_alone(one, clock, rank);
  if (segments == Segments::one) return rank.now.ns;
  return clock.least_shared_ns(rank.now.ns, one.rank, calls.segments);
}

Price price_of_alike(const Schedule& any, const Machine& machine, const Work& work,
                     const Calls& calls) {
  Clock clock(machine, work, any.shape);
  Rank rank = clock.begin(any);
  walk_alike(any, clock, rank);
  const double alone_ns = rank.now.ns;
  Moment end = rank.now;
  std::vector<double> busy = clock.busy();
  if (calls.segments > 1) {
    clock.begin_again(rank, any);
    walk_alike(any, clock, rank);
    end = of_segments(end, rank.now, calls.segments);
  }
  // Where all ranks share cores, these have the work of all.
  for (double& each : busy) each *= static_cast<double>(calls.segments) * any.shape.ranks;
  Price price = clock.finish(end, any.rank, busy, calls.segments);
  if (calls.slot_indexes == 0) return price;
  // All are at the same op, so that each call delays them as the next one does.
  const double before = rank.now.ns;
  const std::vector<double> busy_before = clock.busy();
  clock.begin_call(rank, any, calls.segments);
  walk_alike(any, clock, rank);
  Clock::InRow row{.ns = std::max(rank.now.ns - before, alone_ns / calls.slot_indexes),
                   .busy = clock.busy(),
                   .turns = {}};
  for (std::size_t set = 0; set < row.busy.size(); ++set) {
    row.busy[set] = (row.busy[set] - busy_before[set]) * any.shape.ranks;
  }
  row.overlaps = any.targets.empty();
  row.turns.resize(row.busy.size(), any.shape.ranks);
  price.in_row_ns = clock.finish_in_row(row) * static_cast<double>(calls.segments);
  return price;
}

}  // namespace unisono::model
