// SPDX-License-Identifier: BSD-3-Clause
#include "sim/events.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include "base/check.hpp"
#include "sim/event_queue.hpp"

namespace unisono::sim {
namespace {

constexpr std::int32_t kRuns = -1, kInBarrier = -2;

struct SimulatedRank {
  Time now = 0;
  std::array<Time, 2> port{}, left{};
  Place place;
  std::int32_t awaited = kRuns;  // slot, or in a barrier
  std::uint32_t received = 0;
};

class Simulation {
 public:
  Simulation(const ProgramSet& programs, const EventOptions& options)
      : programs_(programs),
        options_(options),
        random_(options.seed),
        ranks_(static_cast<std::size_t>(programs.ranks())) {
    if (options.placement != nullptr) {
      network_.emplace(*options.placement, options.network, options.seed);
    }
    std::size_t slots = 0;
    for (int rank = 0; rank < programs.ranks(); ++rank) {
      first_slot_.push_back(slots);
      slots += programs.program(rank).slots;
      const Time start = options.skew > 0 ? std::floor(random_.unit() * options.skew) : 0;
      at(rank).now = programs.start_up() + start;
      at(rank).place = programs.program(rank).begin();
      if (options.noise.given()) {
        offsets_.push_back(std::floor(random_.unit() * options.noise.period()));
      }
      queue_.push(event(at(rank).now, rank, 0, EventKind::resume));
    }
    arrivals_.assign(slots, kUnfilled);
  }

  base::Result<EventOutcome> run() && {
    while (!queue_.empty()) handle(queue_.pop());
    if (finished_ < ranks_.size()) {
      UNISONO_CHECK(options_.barrier_after > 0, "schedules that deadlock");
      return base::Error{base::Code::argument,
                         "barriers never end: the ranks do not receive equally many messages "
                         "between them; simulate this schedule without barriers"};
    }
    for (const SimulatedRank& rank : ranks_) result_.outcome.by_rank.push_back(rank.now);
    result_.outcome.finish = *std::ranges::max_element(result_.outcome.by_rank);
    result_.outcome.steps = programs_.step_count();
    if (network_) result_.held_up = network_->held_up();
    return std::move(result_);
  }

 private:
  static Event event(Time time, int rank, std::uint32_t what, EventKind kind) {
    return {static_cast<std::uint64_t>(time), static_cast<std::uint32_t>(rank), what, kind};
  }
  SimulatedRank& at(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  Time& slot(int rank, std::int32_t number) {
    return arrivals_[first_slot_[static_cast<std::size_t>(rank)] +
                     static_cast<std::size_t>(number)];
  }

  void handle(const Event& next) {
    ++result_.events;
    const int rank = static_cast<int>(next.rank);
    const Time now = static_cast<Time>(next.time);
    switch (next.kind) {
      case EventKind::arrive:
        arrive(rank, static_cast<std::int32_t>(next.what), now);
        break;
      case EventKind::enter_network:
        enter_network(next.what, now);
        break;
      case EventKind::settle_network:
        if (next.what == settle_version_) settle_network(now);
        break;
      case EventKind::resume:
        at(rank).awaited = kRuns;
        advance(rank);
        break;
    }
  }

  void arrive(int rank, std::int32_t number, Time now) {
    slot(rank, number) = now;
    if (at(rank).awaited != number) return;
    at(rank).awaited = kRuns;
    advance(rank);
  }

  // Occupies the rank's core.
  Time busy(int rank, Time start, Time work) const {
    if (offsets_.empty()) return start + work;
    return options_.noise.end_of(start, work, offsets_[static_cast<std::size_t>(rank)]);
  }

  void observe(int rank, const Step& step, Time begin, Time end) const {
    if (!options_.observe) return;
    const int peer = step.kind == StepKind::work ? -1 : programs_.peer(rank, step);
    options_.observe({rank, step.kind, peer, begin, end});
  }

  // Runs the rank until a message is missing, a barrier or its end.
  void advance(int number) {
    SimulatedRank& rank = at(number);
    programs_.go_on(rank.place, [&](const Step& step) {
      return rank.awaited == kRuns && execute(number, rank, step);
    });
    if (rank.awaited == kInBarrier) join_barrier(number, true);
    if (rank.awaited != kRuns) return;
    ++finished_;
    if (options_.barrier_after > 0) join_barrier(number, false);
  }

  // Whether it did, and not waits for a message. Behind it, the rank may be in a barrier.
  bool execute(int number, SimulatedRank& rank, const Step& step) {
    const StepCost& cost = programs_.cost(step);
    const Time before = rank.now;
    switch (step.kind) {
      case StepKind::send:
        rank.now = busy(number, rank.now, cost.occupied);
        rank.left[step.port] = std::max(rank.now, rank.port[step.port]);
        rank.port[step.port] = rank.left[step.port] + cost.gap;
        [[fallthrough]];
      case StepKind::follow:
        send(number, step, cost, rank.left[step.port]);
        break;
      case StepKind::wait: {
        const Time arrival = slot(number, step.slot);
        if (arrival == kUnfilled) {
          rank.awaited = step.slot;
          return false;
        }
        rank.now = busy(number, std::max(rank.now, arrival), cost.occupied);
        ++rank.received;
        break;
      }
      case StepKind::work:
        rank.now = busy(number, rank.now, cost.occupied);
        break;
    }
    observe(number, step, before, rank.now);
    const auto every = static_cast<std::uint32_t>(options_.barrier_after);
    if (every > 0 && step.kind == StepKind::wait && rank.received % every == 0) {
      rank.awaited = kInBarrier;
    }
    return true;
  }

  // Ranks that have ended take part in all later barriers.
  void join_barrier(int number, bool waits) {
    if (waits) in_barrier_.push_back(number);
    latest_ = std::max(latest_, at(number).now);
    if (in_barrier_.empty() || in_barrier_.size() + finished_ < ranks_.size()) return;
    const Time end = latest_ + options_.barrier;
    for (const int rank : in_barrier_) {
      at(rank).now = end;
      queue_.push(event(end, rank, 0, EventKind::resume));
    }
    in_barrier_.clear();
    ++result_.barriers;
  }

  void send(int number, const Step& step, const StepCost& cost, Time left) {
    ++result_.outcome.messages;
    const int peer = programs_.peer(number, step);
    Time delay = 0;
    while (options_.loss > 0 && random_.unit() < options_.loss) {
      ++result_.lost;
      delay += options_.repair;
    }
    const Time arrival = left + cost.flight;
    if (!network_ || step.port == 0) {
      queue_.push(
          event(arrival + delay, peer, static_cast<std::uint32_t>(step.slot), EventKind::arrive));
      return;
    }
    // The part of the flight that grows with the size, and that of the sender, are on the links.
    const Time before = std::min(cost.on_wire - cost.streamed, cost.occupied);
    Passage passage{left - before, cost.on_wire, cost.bytes, number, peer, step.slot, delay};
    passage.rest += arrival - (passage.start + passage.duration);
    std::uint32_t place = static_cast<std::uint32_t>(passages_.size());
    if (idle_.empty()) {
      passages_.push_back(passage);
    } else {
      place = idle_.back();
      idle_.pop_back();
      passages_[place] = passage;
    }
    queue_.push(event(passage.start, number, place, EventKind::enter_network));
  }

  void enter_network(std::uint32_t place, Time now) {
    const Passage passage = passages_[place];
    idle_.push_back(place);
    const Time arrival = network_->enter(passage);
    if (arrival >= 0) {
      queue_.push(event(arrival, passage.target, static_cast<std::uint32_t>(passage.slot),
                        EventKind::arrive));
    } else if (!settles_now_ || settle_time_ != now) {
      // After all that enter at this time.
      settles_now_ = true;
      settle_time_ = now;
      queue_.push(event(now, 0, ++settle_version_, EventKind::settle_network));
    }
  }

  void settle_network(Time now) {
    settles_now_ = false;
    const Time next = network_->settle(now, [&](const Passage& passage, Time arrival) {
      queue_.push(event(std::max(arrival, now), passage.target,
                        static_cast<std::uint32_t>(passage.slot), EventKind::arrive));
    });
    if (next >= 0) queue_.push(event(next, 0, ++settle_version_, EventKind::settle_network));
  }

  const ProgramSet& programs_;
  const EventOptions& options_;
  base::Prng random_;
  std::vector<SimulatedRank> ranks_;
  std::vector<std::size_t> first_slot_;
  std::vector<Time> arrivals_;
  std::vector<Time> offsets_;  // of each rank in the noise
  EventQueue queue_;
  std::optional<Network> network_;
  std::vector<Passage> passages_;  // that have not yet entered the network
  std::vector<std::uint32_t> idle_;
  std::uint32_t settle_version_ = 0;
  bool settles_now_ = false;
  Time settle_time_ = 0;
  std::vector<int> in_barrier_;
  Time latest_ = 0;
  std::size_t finished_ = 0;
  EventOutcome result_;
};

}  // namespace

base::Result<EventOutcome> simulate_events(const ProgramSet& programs,
                                           const EventOptions& options) {
  return Simulation(programs, options).run();
}

}  // namespace unisono::sim
