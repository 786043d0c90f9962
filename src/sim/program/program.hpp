// SPDX-License-Identifier: BSD-3-Clause
// Programs: what simulations run. A schedule's ops with their costs on a machine, compiled one rank
// at a time and then forgotten, so that a million ranks fit. Peers are written relative to the
// rank, so ranks whose schedules are alike share one program. Others have parts in common: a
// program is a chain of fragments, and equal fragments and equal ends of chains are stored once.
// Costs have the meaning of model/price.hpp, with a core for each rank. A value; any thread may
// read it.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "model/costs.hpp"
#include "schedule/schedule.hpp"

namespace unisono::sim {

// Picoseconds. All times are whole numbers, so that sums are exact (up to 2.5 hours) and all tiers
// agree to the last bit.
using Time = double;
constexpr Time kUnfilled = -1;  // the time of what has not happened
Time to_time(double ns);
inline double to_ns(Time time) { return time / 1e3; }

enum class StepKind : std::uint8_t {
  send,    // occupies the rank, then leaves as soon as the port is free
  follow,  // another target of the last send of this port, which the network copies
  wait,    // for the own slot
  work,    // reduces, copies, stages
};

struct Step {
  std::int32_t peer = 0;  // relative; of a wait: the sender
  std::int32_t slot = -1;
  std::uint32_t cost = 0;
  StepKind kind = StepKind::send;
  std::uint8_t port = 0;      // of a send: 0 within the host, 1 between hosts
  std::uint16_t padding = 0;  // so that a step is two words

  bool operator==(const Step&) const = default;
};

// For wait and work only `occupied` counts.
struct StepCost {
  Time occupied = 0, gap = 0, flight = 0;
  std::int64_t bytes = 0;  // of a message
  // The time in which the message is on the links of its network. A part of it passes before the
  // message has left its sender, the streamed part afterwards.
  Time on_wire = 0, streamed = 0;

  bool operator==(const StepCost&) const = default;
};

// How peers are written: as a difference modulo the number of ranks, or by exclusive or.
enum class Coding : std::uint8_t { shift, exclusive_or };

// Where a rank is in its program: before this step of the first fragment of a chain.
struct Place {
  static constexpr std::uint32_t kEnd = std::numeric_limits<std::uint32_t>::max();

  std::uint32_t chain = kEnd, step = 0;

  bool is_end() const { return chain == kEnd; }
  bool operator==(const Place&) const = default;
};

struct Program {
  std::uint32_t chain = Place::kEnd;
  std::uint32_t count = 0;  // of steps
  std::uint32_t slots = 0;

  Place begin() const { return {chain, 0}; }
  bool operator==(const Program&) const = default;
};

// A rank's operations without costs, where there is no schedule: in files of other simulators.
struct TraceStep {
  StepKind kind = StepKind::work;  // send, wait or work
  int peer = 0;
  std::int32_t slot = -1;  // the receiver's
  std::int64_t bytes = 0;
  Time work = 0;

  bool operator==(const TraceStep&) const = default;
};
using Trace = std::vector<TraceStep>;

using ScheduleOf = std::function<base::Result<schedule::Schedule>(int rank)>;

class ProgramSet {
 public:
  // `schedule_of` is asked for each rank in turn, and for some of them before.
  static base::Result<ProgramSet> compile(int ranks, const ScheduleOf& schedule_of,
                                          const model::Machine& machine, const model::Work& work);

  // For ranks whose schedules are alike (algorithm::ranks_are_alike): only some are asked for.
  static base::Result<ProgramSet> compile_alike(int ranks, const ScheduleOf& schedule_of,
                                                const model::Machine& machine,
                                                const model::Work& work);

  // The traces have to end; each rank is on a host of its own.
  static ProgramSet compile_traces(std::span<const Trace> traces, const model::Machine& machine);

  int ranks() const { return ranks_; }
  std::int64_t step_count() const { return step_count_; }  // of all ranks
  std::size_t distinct() const { return programs_.size(); }
  std::size_t stored_steps() const;
  // All ranks run the same steps at the same time, with peers at the same distances.
  bool uniform() const { return programs_.size() == 1 && regular_; }
  // All ranks run the same steps at the same time, with whatever peers.
  bool alike() const { return programs_.size() == 1; }
  Coding coding() const { return coding_; }
  Time start_up() const { return start_up_; }

  const Program& program(int rank) const { return programs_[program_number(rank)]; }
  std::uint32_t program_number(int rank) const {
    return program_of_.empty() ? 0 : program_of_[static_cast<std::size_t>(rank)];
  }
  // visit(step) for each step from `place` on, until it is false. `place` goes along: it stays at a
  // step for which that was false.
  template <class Visit>
  void go_on(Place& place, const Visit& visit) const {
    while (!place.is_end()) {
      const Chain& chain = chains_[place.chain];
      const std::span<const Step> steps = steps_of(fragments_[chain.fragment]);
      for (; place.step < steps.size(); ++place.step) {
        if (!visit(steps[place.step])) return;
      }
      place = {chain.next, 0};
    }
  }
  template <class Visit>
  void for_each_step(const Program& program, const Visit& visit) const {
    Place place = program.begin();
    go_on(place, [&](const Step& step) {
      visit(step);
      return true;
    });
  }
  std::vector<Step> steps(const Program& program) const;
  const StepCost& cost(const Step& step) const { return costs_[step.cost]; }
  int peer(int rank, const Step& step) const {
    if (coding_ == Coding::exclusive_or) return rank ^ step.peer;
    const int sum = rank + step.peer;
    return sum < ranks() ? sum : sum - ranks();
  }

 private:
  friend class ProgramCompiler;

  struct Fragment {
    std::uint32_t pool = 0, first = 0, count = 0;  // steps
  };
  // A fragment and what follows it.
  struct Chain {
    std::uint32_t fragment = 0, next = Place::kEnd;
  };

  std::span<const Step> steps_of(const Fragment& fragment) const {
    return {pools_[fragment.pool].data() + fragment.first, fragment.count};
  }

  int ranks_ = 0;
  Coding coding_ = Coding::shift;
  bool regular_ = true;
  Time start_up_ = 0;
  std::int64_t step_count_ = 0;
  std::vector<std::vector<Step>> pools_;  // none grows, since copies would take new memory
  std::vector<Fragment> fragments_;
  std::vector<Chain> chains_;
  std::vector<StepCost> costs_;
  std::vector<Program> programs_;
  std::vector<std::uint32_t> program_of_;  // empty: all run the first
};

// The result of a simulation. by_rank is empty if one rank stands for all.
struct SimulationResult {
  Time finish = 0;  // of the last rank
  std::vector<Time> by_rank;
  std::int64_t steps = 0;     // simulated
  std::int64_t messages = 0;  // of all ranks

  bool operator==(const SimulationResult&) const = default;
};

}  // namespace unisono::sim
