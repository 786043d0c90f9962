// SPDX-License-Identifier: BSD-3-Clause
#include "sim/collapse.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <unordered_map>

#include "base/check.hpp"

namespace unisono::sim {
namespace {

// The hash is spread before it meets the value. So equal ones do not cancel each other, as those of
// a rank and of a sender of its class would, and zeros count.
std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash = (hash + 0x9e3779b97f4a7c15U) * 0xbf58476d1ce4e5b9U;
  hash ^= hash >> 32;
  hash = (hash ^ value) * 0x94d049bb133111ebU;
  return hash ^ hash >> 29;
}

// A rank's clock, as in the sweep.
struct Clock {
  Time now = 0;
  std::array<Time, 2> port{}, left{};

  // When the message of the step arrives.
  Time send(const Step& step, const StepCost& cost) {
    if (step.kind == StepKind::send) {
      now += cost.occupied;
      left[step.port] = std::max(now, port[step.port]);
      port[step.port] = left[step.port] + cost.gap;
    }
    return left[step.port] + cost.flight;
  }
};

bool sends(const Step& step) {
  return step.kind == StepKind::send || step.kind == StepKind::follow;
}

// The step and rank that fill each slot.
struct Origin {
  int rank = -1;
  std::uint32_t step = 0;
};

class Senders {
 public:
  explicit Senders(const ProgramSet& programs) {
    std::size_t slots = 0;
    for (int rank = 0; rank < programs.ranks(); ++rank) {
      first_.push_back(slots);
      slots += programs.program(rank).slots;
    }
    origins_.resize(slots);
    for (int rank = 0; rank < programs.ranks(); ++rank) {
      std::uint32_t number = 0;
      programs.for_each_step(programs.program(rank), [&](const Step& step) {
        if (sends(step)) origins_[place(programs.peer(rank, step), step.slot)] = {rank, number};
        ++number;
      });
    }
  }

  const Origin& of(int rank, std::int32_t slot) const { return origins_[place(rank, slot)]; }

 private:
  std::size_t place(int rank, std::int32_t slot) const {
    return first_[static_cast<std::size_t>(rank)] + static_cast<std::size_t>(slot);
  }

  std::vector<std::size_t> first_;
  std::vector<Origin> origins_;
};

using Colours = std::vector<std::uint64_t>;

std::size_t distinct(const Colours& colours) {
  Colours sorted = colours;
  std::ranges::sort(sorted);
  return sorted.size() - std::ranges::unique(sorted).size();
}

// The program of a rank, independent of its peers.
Colours first_colours(const ProgramSet& programs, std::span<const Time> skew) {
  std::vector<std::uint64_t> of_program(programs.distinct());
  std::vector<bool> known(programs.distinct());
  Colours colours;
  for (int rank = 0; rank < programs.ranks(); ++rank) {
    const std::size_t number = programs.program_number(rank);
    if (!known[number]) {
      std::uint64_t hash = 0;
      programs.for_each_step(programs.program(rank), [&](const Step& step) {
        hash = mix(hash, step.cost | static_cast<std::uint64_t>(step.kind) << 32 |
                             static_cast<std::uint64_t>(step.port) << 40);
      });
      of_program[number] = hash;
      known[number] = true;
    }
    const Time start = skew.empty() ? 0 : skew[static_cast<std::size_t>(rank)];
    colours.push_back(mix(of_program[number], std::bit_cast<std::uint64_t>(start)));
  }
  return colours;
}

RankClasses classes_of(const ProgramSet& programs, const Senders& senders,
                       std::span<const Time> skew) {
  Colours colours = first_colours(programs, skew);
  std::size_t count = distinct(colours);
  for (std::size_t before = 0; before != count;) {
    before = count;
    Colours finer = colours;
    for (int rank = 0; rank < programs.ranks(); ++rank) {
      std::uint64_t& colour = finer[static_cast<std::size_t>(rank)];
      programs.for_each_step(programs.program(rank), [&](const Step& step) {
        if (step.kind != StepKind::wait) return;
        const Origin& origin = senders.of(rank, step.slot);
        UNISONO_CHECK(origin.rank >= 0, "a slot that nobody fills");
        colour = mix(colour, colours[static_cast<std::size_t>(origin.rank)]);
        colour = mix(colour, origin.step);
      });
    }
    colours = std::move(finer);
    count = distinct(colours);
  }
  RankClasses classes;
  std::unordered_map<std::uint64_t, std::uint32_t> numbers;
  for (int rank = 0; rank < programs.ranks(); ++rank) {
    const auto [found, added] = numbers.emplace(colours[static_cast<std::size_t>(rank)],
                                                static_cast<std::uint32_t>(numbers.size()));
    if (added) classes.first_rank.push_back(rank);
    classes.of_rank.push_back(found->second);
  }
  return classes;
}

// The first rank of each class, with the messages of the first ranks of other classes.
class ClassRun {
 public:
  ClassRun(const ProgramSet& programs, const Senders& senders, const RankClasses& classes,
           std::span<const Time> skew)
      : programs_(programs), senders_(senders), classes_(classes) {
    for (const int rank : classes.first_rank) {
      const Program& program = programs.program(rank);
      State state;
      state.clock.now =
          programs.start_up() + (skew.empty() ? 0 : skew[static_cast<std::size_t>(rank)]);
      state.place = program.begin();
      state.arrivals.assign(program.count, kUnfilled);
      states_.push_back(std::move(state));
    }
  }

  SimulationResult run() && {
    for (bool goes_on = true; goes_on;) {
      goes_on = false;
      for (std::size_t i = 0; i < states_.size(); ++i) goes_on |= advance(i);
    }
    SimulationResult outcome;
    for (std::size_t i = 0; i < states_.size(); ++i) {
      const Program& program = programs_.program(classes_.first_rank[i]);
      UNISONO_CHECK(states_[i].next == program.count, "schedules that deadlock");
      outcome.steps += program.count;
      outcome.finish = std::max(outcome.finish, states_[i].clock.now);
    }
    for (const std::uint32_t number : classes_.of_rank) {
      outcome.by_rank.push_back(states_[number].clock.now);
      outcome.messages += states_[number].sent;
    }
    return outcome;
  }

 private:
  struct State {
    Clock clock;
    Place place;
    std::uint32_t next = 0;  // step
    std::int64_t sent = 0;
    std::vector<Time> arrivals;  // of the messages of its steps
  };

  bool advance(std::size_t number) {
    const int rank = classes_.first_rank[number];
    State& state = states_[number];
    const std::uint32_t begin = state.next;
    programs_.go_on(state.place, [&](const Step& step) {
      const StepCost& cost = programs_.cost(step);
      if (sends(step)) {
        state.arrivals[state.next++] = state.clock.send(step, cost);
        ++state.sent;
        return true;
      }
      if (step.kind == StepKind::wait) {
        const Origin& origin = senders_.of(rank, step.slot);
        const std::uint32_t sender = classes_.of_rank[static_cast<std::size_t>(origin.rank)];
        const Time arrival = states_[sender].arrivals[origin.step];
        if (arrival == kUnfilled) return false;
        state.clock.now = std::max(state.clock.now, arrival);
      }
      state.clock.now += cost.occupied;
      ++state.next;
      return true;
    });
    return state.next != begin;
  }

  const ProgramSet& programs_;
  const Senders& senders_;
  const RankClasses& classes_;
  std::vector<State> states_;
};

}  // namespace

SimulationResult collapse_alike(const ProgramSet& programs) {
  UNISONO_CHECK(programs.alike(), "ranks that are not alike, as one");
  Clock clock;
  clock.now = programs.start_up();
  // A message of this rank to a peer's slot stands for the one that it receives in its slot of that
  // number.
  std::vector<Time> arrivals(programs.program(0).slots, kUnfilled);
  SimulationResult outcome;
  programs.for_each_step(programs.program(0), [&](const Step& step) {
    const StepCost& cost = programs.cost(step);
    if (sends(step)) {
      arrivals[static_cast<std::size_t>(step.slot)] = clock.send(step, cost);
      outcome.messages += programs.ranks();
      return;
    }
    if (step.kind == StepKind::wait) {
      const Time arrival = arrivals[static_cast<std::size_t>(step.slot)];
      UNISONO_CHECK(arrival != kUnfilled, "ranks that are not alike");
      clock.now = std::max(clock.now, arrival);
    }
    clock.now += cost.occupied;
  });
  outcome.finish = clock.now;
  outcome.steps = programs.program(0).count;
  return outcome;
}

RankClasses find_classes(const ProgramSet& programs, std::span<const Time> skew) {
  return classes_of(programs, Senders(programs), skew);
}

SimulationResult collapse(const ProgramSet& programs, std::span<const Time> skew) {
  const Senders senders(programs);
  return ClassRun(programs, senders, classes_of(programs, senders, skew), skew).run();
}

}  // namespace unisono::sim
