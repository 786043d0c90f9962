// SPDX-License-Identifier: BSD-3-Clause
#include "sim/sweep.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "base/index.hpp"
#include "sim/arrivals.hpp"

namespace unisono::sim {
namespace {

struct SweptRank {
  Time now = 0;
  std::array<Time, 2> port{};  // when its next message may leave
  Place place;
};

// Ranks that can go on, as a tree of bits. A word of the lowest level has a bit for each of 16
// ranks. A word of another level has a bit for each of 16 words below that are not zero.
class ReadyRanks {
 public:
  explicit ReadyRanks(int ranks) {
    auto count = static_cast<std::size_t>(ranks);
    do {
      count = (count + kWidth - 1) / kWidth;
      levels_.emplace_back(count);
    } while (count > 1);
  }

  void add(int rank) {
    auto place = static_cast<std::size_t>(rank);
    for (auto& level : levels_) {
      Word& word = level[place / kWidth];
      const bool known = word != 0;
      word |= bit(place % kWidth);
      if (known) return;  // the levels above have it
      place /= kWidth;
    }
  }

  // Takes ranks until there are none. advance(rank) may add others. All ranks of a word, and of a
  // word above it, go as far as they can before those of the next word. So the ranks of a word at
  // any level, whose memory some cache holds, exchange their messages while it is there.
  template <typename Advance>
  void drain(const Advance& advance) {
    drain(levels_.size() - 1, 0, advance);
  }

 private:
  using Word = std::uint16_t;
  static constexpr std::size_t kWidth = std::numeric_limits<Word>::digits;

  static Word bit(std::size_t number) { return static_cast<Word>(Word{1} << number); }

  template <typename Advance>
  void drain(std::size_t level, std::size_t number, const Advance& advance) {
    Word& word = levels_[level][number];
    while (word != 0) {
      // From the first to the last, also those that are added meanwhile.
      std::size_t next = 0;
      for (Word rest = word; rest != 0;
           rest = static_cast<Word>(next < kWidth ? word >> next << next : 0)) {
        const auto first = static_cast<std::size_t>(std::countr_zero(rest));
        const std::size_t place = number * kWidth + first;
        next = first + 1;
        if (level > 0) drain(level - 1, place, advance);
        word &= static_cast<Word>(~bit(first));
        if (level == 0) advance(static_cast<int>(place));
      }
    }
  }

  std::vector<std::vector<Word>> levels_;
};

template <class Arrivals>
class RankSweep {
 public:
  RankSweep(const ProgramSet& programs, std::span<const Time> skew)
      : programs_(programs),
        ranks_(base::index(programs.ranks())),
        arrivals_(programs),
        ready_(programs.ranks()) {
    for (int rank = 0; rank < programs.ranks(); ++rank) {
      ready_.add(rank);
      at(rank).now = programs.start_up() + (skew.empty() ? 0 : skew[base::index(rank)]);
      at(rank).place = programs.program(rank).begin();
    }
  }

  SimulationResult run() && {
    ready_.drain([&](int rank) { advance(rank); });
    SimulationResult outcome;
    outcome.by_rank.reserve(ranks_.size());
    for (int rank = 0; rank < programs_.ranks(); ++rank) {
      UNISONO_CHECK(at(rank).place.is_end(), "schedules that deadlock");
      outcome.by_rank.push_back(at(rank).now);
    }
    outcome.finish = *std::ranges::max_element(outcome.by_rank);
    outcome.steps = programs_.step_count();
    outcome.messages = messages_;
    return outcome;
  }

 private:
  SweptRank& at(int rank) { return ranks_[base::index(rank)]; }

  // Until it waits for a message that is not there.
  void advance(int number) {
    SweptRank rank = at(number);
    std::array<Time, 2> left{};  // when the last message left, by port
    programs_.go_on(rank.place, [&](const Step& step) {
      const StepCost& cost = programs_.cost(step);
      switch (step.kind) {
        case StepKind::send:
          rank.now += cost.occupied;
          left[step.port] = std::max(rank.now, rank.port[step.port]);
          rank.port[step.port] = left[step.port] + cost.gap;
          [[fallthrough]];
        case StepKind::follow:  // No wait is between it and its send.
          deliver(programs_.peer(number, step), step.slot, left[step.port] + cost.flight);
          break;
        case StepKind::wait: {
          const Time arrival = arrivals_.take(number, step.slot);
          if (arrival == kUnfilled) return false;
          rank.now = std::max(rank.now, arrival) + cost.occupied;
          break;
        }
        case StepKind::work:
          rank.now += cost.occupied;
          break;
      }
      return true;
    });
    at(number) = rank;
  }

  void deliver(int peer, std::int32_t slot, Time arrival) {
    ++messages_;
    if (arrivals_.fill(peer, slot, arrival)) ready_.add(peer);
  }

  const ProgramSet& programs_;
  BigVector<SweptRank> ranks_;
  Arrivals arrivals_;
  ReadyRanks ready_;
  std::int64_t messages_ = 0;
};

// One program for all ranks: each step for all of them, over arrays. Slots that are under way have
// an array of the times at which their messages arrive, by sender.
class StepSweep {
 public:
  StepSweep(const ProgramSet& programs, std::span<const Time> skew)
      : programs_(programs), now_(static_cast<std::size_t>(programs.ranks()), programs.start_up()) {
    for (std::size_t rank = 0; rank < skew.size(); ++rank) now_[rank] += skew[rank];
    for (auto& port : port_) port.assign(now_.size(), 0);
    const Program& program = programs.program(0);
    under_way_.resize(program.slots);
  }

  SimulationResult run() && {
    SimulationResult outcome;
    programs_.for_each_step(programs_.program(0), [&](const Step& step) {
      const StepCost& cost = programs_.cost(step);
      switch (step.kind) {
        case StepKind::send:
          send(step, cost);
          break;
        case StepKind::follow:
          follow(step, cost);
          break;
        case StepKind::wait:
          wait(step, cost);
          break;
        case StepKind::work:
          spent_ += cost.occupied;
          break;
      }
      if (step.kind == StepKind::send || step.kind == StepKind::follow) {
        outcome.messages += programs_.ranks();
      }
    });
    for (Time& now : now_) now += spent_;
    outcome.finish = *std::ranges::max_element(now_);
    outcome.steps = programs_.step_count();
    outcome.by_rank = std::move(now_);
    return outcome;
  }

 private:
  using Times = std::vector<Time>;

  Times take_array() {
    if (idle_.empty()) return Times(now_.size());
    Times array = std::move(idle_.back());
    idle_.pop_back();
    return array;
  }

  void send(const Step& step, const StepCost& cost) {
    // The time that all ranks spend alike is one number.
    spent_ += cost.occupied;
    Times arrivals = take_array();
    Time* const arrival = arrivals.data();
    Time* const port = port_[step.port].data();
    const Time* const now = now_.data();
    const std::size_t count = now_.size();
    const Time spent = spent_, flight = cost.flight, gap = cost.gap;
    if (!port_used_[step.port] && gap == 0) {
      // A port without a gap never delays a message.
      for (std::size_t i = 0; i < count; ++i) arrival[i] = now[i] + spent + flight;
    } else {
      port_used_[step.port] = true;
      for (std::size_t i = 0; i < count; ++i) {
        const Time ready = now[i] + spent;
        const Time left = ready > port[i] ? ready : port[i];
        port[i] = left + gap;
        arrival[i] = left + flight;
      }
    }
    last_send_[step.port] = &cost;
    under_way_[static_cast<std::size_t>(step.slot)] = std::move(arrivals);
    last_slot_[step.port] = step.slot;
  }

  // The last message of the port left so much before its slot's times.
  void follow(const Step& step, const StepCost& cost) {
    Times arrivals = take_array();
    const Times& first = under_way_[static_cast<std::size_t>(last_slot_[step.port])];
    const Time later = cost.flight - last_send_[step.port]->flight;
    for (std::size_t i = 0; i < arrivals.size(); ++i) arrivals[i] = first[i] + later;
    under_way_[static_cast<std::size_t>(step.slot)] = std::move(arrivals);
  }

  void wait(const Step& step, const StepCost& cost) {
    Times arrivals = std::move(under_way_[static_cast<std::size_t>(step.slot)]);
    UNISONO_CHECK(arrivals.size() == now_.size(), "a uniform program waits for what is not sent");
    // If the sender of slot s is rank + d, ranks form two runs of neighbours. With rank xor d, they
    // form runs of the length of its lowest bit.
    const auto ranks = static_cast<std::size_t>(programs_.ranks());
    const auto distance = static_cast<std::size_t>(step.peer);
    if (programs_.coding() == Coding::shift) {
      take(0, distance, ranks - distance, arrivals);
      take(ranks - distance, 0, distance, arrivals);
    } else if (const std::size_t run = distance & (0 - distance); run >= kShortRun) {
      for (std::size_t i = 0; i < ranks; i += run) take(i, i ^ distance, run, arrivals);
    } else {
      for (std::size_t i = 0; i < ranks; ++i) take(i, i ^ distance, 1, arrivals);
    }
    spent_ += cost.occupied;
    idle_.push_back(std::move(arrivals));
  }

  void take(std::size_t rank, std::size_t sender, std::size_t count, const Times& arrivals) {
    Time* const now = now_.data() + rank;
    const Time* const arrival = arrivals.data() + sender;
    const Time spent = spent_;
    for (std::size_t i = 0; i < count; ++i) {
      const Time arrived = arrival[i] - spent;
      now[i] = now[i] > arrived ? now[i] : arrived;
    }
  }

  static constexpr std::size_t kShortRun = 8;

  const ProgramSet& programs_;
  Times now_;  // less what all ranks have spent alike
  Time spent_ = 0;
  std::array<Times, 2> port_;
  std::array<bool, 2> port_used_{};
  std::array<const StepCost*, 2> last_send_{};
  std::array<std::int32_t, 2> last_slot_{};
  std::vector<Times> under_way_;  // by slot
  std::vector<Times> idle_;
};

}  // namespace

SimulationResult sweep_ranks(const ProgramSet& programs, std::span<const Time> skew) {
  if (have_like_slots(programs)) return RankSweep<ArrivalsBySlot>(programs, skew).run();
  return RankSweep<ArrivalsByRank>(programs, skew).run();
}

SimulationResult sweep_steps(const ProgramSet& programs, std::span<const Time> skew) {
  UNISONO_CHECK(programs.uniform(), "ranks with different programs, step by step");
  return StepSweep(programs, skew).run();
}

SimulationResult sweep(const ProgramSet& programs, std::span<const Time> skew) {
  return programs.uniform() ? sweep_steps(programs, skew) : sweep_ranks(programs, skew);
}

}  // namespace unisono::sim
