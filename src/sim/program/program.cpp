// SPDX-License-Identifier: BSD-3-Clause
#include "sim/program/program.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>
#include <set>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "schedule/spares.hpp"
#include "sim/program/number_table.hpp"

namespace unisono::sim {

struct CostHash {
  std::size_t operator()(const StepCost& cost) const {
    std::uint64_t hash = 0;
    for (const double part : {cost.occupied, cost.gap, cost.flight, cost.on_wire, cost.streamed,
                              static_cast<double>(cost.bytes)}) {
      hash = (hash ^ static_cast<std::uint64_t>(part)) * 0x9e3779b97f4a7c15U;
      hash ^= hash >> 29;
    }
    return hash;
  }
};

namespace {

using schedule::Op;
using schedule::OpKind;
using schedule::Range;
using schedule::Schedule;

// The contents of a range: the range, and how often its memory had been written.
using Content = std::tuple<schedule::Memory, schedule::SlotId, std::int64_t, std::int64_t, int>;

class Contents {
 public:
  Content of(const Range& source) const {
    return {source.memory, source.slot, source.offset, source.count,
            writes_[static_cast<std::size_t>(source.memory)]};
  }
  void note_write(const Range& target) { ++writes_[static_cast<std::size_t>(target.memory)]; }

 private:
  std::array<int, schedule::kMemoryCount> writes_{};
};

std::uint64_t mixed(std::uint64_t hash, std::uint64_t low, std::uint64_t high) {
  hash ^= low;
  hash = (hash ^ hash >> 32) * 0x9e3779b97f4a7c15U;
  hash += high * 0xbf58476d1ce4e5b9U;
  return hash ^ hash >> 29;
}

std::uint64_t hash_of(std::span<const Step> steps) {
  std::uint64_t hash = steps.size();
  for (const Step& step : steps) {
    const auto [low, high] = std::bit_cast<std::array<std::uint64_t, 2>>(step);
    hash = mixed(hash, low, high);
  }
  return hash;
}

bool equal(std::span<const Step> a, std::span<const Step> b) {
  static_assert(std::has_unique_object_representations_v<Step>);
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

// A fragment with fewer steps would take more memory for its number than for them.
constexpr std::size_t kLeastOfFragment = 8;

// Whether a fragment of so many steps ends between two steps: before a rank sends again. Each step
// of a grid, a cube or a circulant graph begins so, and many ranks have it in common.
bool ends_between(std::size_t count, const Step& before, const Step& after) {
  const bool has_sent = before.kind == StepKind::send || before.kind == StepKind::follow;
  return count >= kLeastOfFragment && after.kind == StepKind::send && !has_sent;
}

}  // namespace

Time to_time(double ns) { return std::round(ns * 1e3); }

class ProgramCompiler {
 public:
  ProgramCompiler(int ranks, const model::Machine& machine, const model::Work& work)
      : ranks_(ranks), machine_(machine), work_(work) {
    set_.ranks_ = ranks;
  }

  base::Result<ProgramSet> compile(const ScheduleOf& schedule_of) {
    UNISONO_TRY(choose_coding(schedule_of));
    set_.program_of_.resize(static_cast<std::size_t>(ranks_));
    std::vector<Step> steps;
    // Costs do not depend on the order of steps.
    schedule::Spares spares;
    const schedule::Spares::Use use(spares, schedule::Spares::Order::left_out);
    for (int rank = 0; rank < ranks_; ++rank) {
      UNISONO_ASSIGN(Schedule schedule, schedule_of(rank));
      translate(schedule, set_.coding_, steps);
      set_.step_count_ += static_cast<std::int64_t>(steps.size());
      set_.program_of_[static_cast<std::size_t>(rank)] =
          number_of(steps, static_cast<std::uint32_t>(schedule.slots.size()));
      spares.keep(std::move(schedule));
    }
    return std::move(set_);
  }

  ProgramSet compile_traces(std::span<const Trace> traces) {
    schedule::Shape shape;
    shape.ranks = ranks_;
    costs_.emplace(machine_, work_, shape);
    set_.start_up_ = to_time(costs_->start_up().sum());
    std::vector<Step> steps;
    for (int rank = 0; rank < ranks_; ++rank) {
      std::uint32_t slots = 0;
      steps.clear();
      for (const TraceStep& each : traces[static_cast<std::size_t>(rank)]) {
        slots += each.kind == StepKind::wait ? 1 : 0;
        steps.push_back(translate(rank, each));
      }
      set_.step_count_ += static_cast<std::int64_t>(steps.size());
      set_.program_of_.push_back(number_of(steps, slots));
    }
    return std::move(set_);
  }

  base::Result<ProgramSet> compile_alike(const ScheduleOf& schedule_of) {
    UNISONO_TRY(choose_coding(schedule_of));
    UNISONO_ASSIGN(const Schedule schedule, schedule_of(0));
    std::vector<Step> steps;
    translate(schedule, set_.coding_, steps);
    number_of(steps, static_cast<std::uint32_t>(schedule.slots.size()));
    set_.step_count_ = static_cast<std::int64_t>(steps.size()) * ranks_;
    return std::move(set_);
  }

 private:
  using CostNumber = std::optional<std::uint32_t>;

  static constexpr std::size_t kStepsOfPool = std::size_t{1} << 20;

  // The coding in which the fewest programs differ, by a sample of ranks.
  base::Status choose_coding(const ScheduleOf& schedule_of) {
    constexpr int kSamples = 33;
    std::set<int> sample{0, ranks_ - 1};
    for (int i = 0; i < kSamples; ++i) {
      sample.insert(std::min(i, ranks_ - 1));
      sample.insert(static_cast<int>(std::int64_t{ranks_ - 1} * i / kSamples));
    }
    std::array<std::set<std::uint64_t>, 2> programs;
    std::vector<Step> steps;
    for (const int rank : sample) {
      UNISONO_ASSIGN(const Schedule schedule, schedule_of(rank));
      if (!costs_) {
        costs_.emplace(machine_, work_, schedule.shape);
        set_.start_up_ = to_time(costs_->start_up().sum());
        stages_ = costs_->message(true, 1).can_be_staged;
      }
      for (const Coding coding : {Coding::shift, Coding::exclusive_or}) {
        translate(schedule, coding, steps);
        programs[static_cast<std::size_t>(coding)].insert(hash_of(steps));
      }
    }
    if (programs[1].size() < programs[0].size()) set_.coding_ = Coding::exclusive_or;
    set_.regular_ = std::min(programs[0].size(), programs[1].size()) == 1;
    return base::success();
  }

  std::int32_t relative(int rank, int peer, Coding coding) const {
    if (coding == Coding::exclusive_or) return rank ^ peer;
    return peer >= rank ? peer - rank : peer - rank + ranks_;
  }

  void translate(const Schedule& schedule, Coding coding, std::vector<Step>& steps) {
    steps.clear();
    count_copies(schedule);
    Contents contents;
    for (const Op& op : schedule.ops) {
      switch (op.kind) {
        case OpKind::send:
        case OpKind::multicast:
          send(schedule, op, contents, coding, steps);
          break;
        case OpKind::wait: {
          const schedule::Slot& slot = schedule.slots[static_cast<std::size_t>(op.slot)];
          const bool crosses = costs_->crosses_hosts(schedule.rank, slot.source);
          steps.push_back({relative(schedule.rank, slot.source, coding), op.slot,
                           reception(crosses, slot.count), StepKind::wait});
          break;
        }
        case OpKind::reduce:
          work(reduction(op.target.count), steps);
          contents.note_write(op.target);
          break;
        case OpKind::sum:
          for (std::int32_t i = 1; i < op.operand_count; ++i) {
            work(reduction(op.target.count), steps);
          }
          contents.note_write(op.target);
          break;
        case OpKind::copy:
          if (op.left != op.target) work(copy(op.target.count), steps);
          contents.note_write(op.target);
          break;
      }
    }
  }

  Step translate(int rank, const TraceStep& trace) {
    if (trace.kind == StepKind::work) return {0, -1, number_of({trace.work}), StepKind::work};
    const model::MessageCost& message = costs_->message(true, trace.bytes);
    const bool sends = trace.kind == StepKind::send;
    StepCost cost = message_cost(message, trace.bytes, false, false);
    if (!sends) cost = {to_time(message.reception.sum()), 0, 0, trace.bytes};
    const auto port = static_cast<std::uint8_t>(sends ? 1 : 0);
    return {relative(rank, trace.peer, Coding::shift), trace.slot, number_of(cost), trace.kind,
            port};
  }

  static void work(CostNumber cost, std::vector<Step>& steps) {
    if (cost) steps.push_back({0, -1, *cost, StepKind::work});
  }

  // The costs of an operation on so many elements. Remembered: a schedule of a million ranks has
  // some hundred million steps, but few numbers of elements.
  CostNumber reduction(std::int64_t elements) {
    return reduction_costs_.find(elements,
                                 [&] { return work_number(costs_->reduction(elements)); });
  }
  CostNumber copy(std::int64_t elements) {
    return copy_costs_.find(elements, [&] { return work_number(costs_->copy(elements)); });
  }
  std::uint32_t reception(bool crosses, std::int64_t elements) {
    return reception_costs_[crosses ? 1 : 0].find(elements, [&] {
      StepCost cost{to_time(costs_->message(crosses, elements).reception.sum())};
      cost.bytes = bytes_of(elements);
      return number_of(cost);
    });
  }
  std::uint32_t departure(bool crosses, std::int64_t elements, bool once, bool staged) {
    const std::size_t kind = (crosses ? 4U : 0U) | (once ? 2U : 0U) | (staged ? 1U : 0U);
    return departure_costs_[kind].find(elements, [&] {
      return number_of(message_cost(costs_->message(crosses, elements), elements, once, staged));
    });
  }

  // Work that takes no time is no step.
  CostNumber work_number(const model::Parts& parts) {
    const Time time = to_time(parts.sum());
    return time > 0 ? CostNumber(number_of({time})) : std::nullopt;
  }

  void send(const Schedule& schedule, const Op& op, const Contents& contents, Coding coding,
            std::vector<Step>& steps) {
    std::array<bool, 2> multicast{};
    for (const schedule::Target& target : schedule.targets_of(op)) {
      const bool crosses = costs_->crosses_hosts(schedule.rank, target.peer);
      const std::size_t port = crosses ? 1 : 0;
      const bool once =
          op.kind == OpKind::multicast && costs_->message(crosses, op.left.count).multicasts;
      const bool follows = multicast[port];
      const bool staged = !follows && crosses && stages_ && stage(op.left, contents, steps);
      steps.push_back({relative(schedule.rank, target.peer, coding), target.slot,
                       departure(crosses, op.left.count, once, staged),
                       follows ? StepKind::follow : StepKind::send,
                       static_cast<std::uint8_t>(port)});
      multicast[port] = once;
    }
  }

  // Whether the message is sent from staged memory; its first copy is brought there.
  bool stage(const Range& source, const Contents& contents, std::vector<Step>& steps) {
    const model::MessageCost& cost = costs_->message(true, source.count);
    if (!cost.can_be_staged) return false;
    Copies& copies = copies_[contents.of(source)];
    if (copies.count > 1 && !copies.staged) {
      work(work_number(cost.staging), steps);
      copies.staged = true;
    }
    return copies.count > 1;
  }

  StepCost message_cost(const model::MessageCost& cost, std::int64_t elements, bool once,
                        bool staged) const {
    const model::Parts& occupies = staged ? cost.occupies_staged : cost.occupies;
    const model::Parts& gap = staged ? cost.gap_staged : cost.gap;
    const model::Parts& flight =
        once ? cost.multicast_flight : (staged ? cost.flight_staged : cost.flight);
    return {to_time(occupies.sum()),
            to_time(gap.sum()),
            to_time(flight.sum()),
            bytes_of(elements),
            to_time(occupies.bytes + flight.bytes),
            to_time(flight.bytes)};
  }

  std::int64_t bytes_of(std::int64_t elements) const {
    return elements * static_cast<std::int64_t>(arith::type_size(work_.type));
  }

  void count_copies(const Schedule& schedule) {
    if (!stages_) return;
    copies_.clear();
    Contents contents;
    for (const Op& op : schedule.ops) {
      for (const schedule::Target& target : schedule.targets_of(op)) {
        if (costs_->crosses_hosts(schedule.rank, target.peer)) {
          ++copies_[contents.of(op.left)].count;
        }
      }
      if (schedule::writes_range(op)) contents.note_write(op.target);
    }
  }

  std::uint32_t number_of(const StepCost& cost) {
    const auto [found, added] =
        cost_numbers_.emplace(cost, static_cast<std::uint32_t>(set_.costs_.size()));
    if (added) set_.costs_.push_back(cost);
    return found->second;
  }

  // The program of these steps. Chains are made from their ends, which more programs share.
  std::uint32_t number_of(std::span<const Step> steps, std::uint32_t slots) {
    cuts_.assign(1, 0);
    for (std::size_t i = 1; i < steps.size(); ++i) {
      if (ends_between(i - cuts_.back(), steps[i - 1], steps[i])) cuts_.push_back(i);
    }
    std::uint32_t chain = Place::kEnd;
    std::size_t end = steps.size();
    for (; end > 0; cuts_.pop_back()) {
      const std::size_t begin = cuts_.back();
      chain = chain_of(fragment_of(steps.subspan(begin, end - begin)), chain);
      end = begin;
    }
    const Program program{chain, static_cast<std::uint32_t>(steps.size()), slots};
    auto& programs = set_.programs_;
    return program_table_.find(
        mixed(0, chain, slots), [&](std::uint32_t known) { return programs[known] == program; },
        [&] {
          programs.push_back(program);
          return static_cast<std::uint32_t>(programs.size() - 1);
        });
  }

  std::uint32_t chain_of(std::uint32_t fragment, std::uint32_t next) {
    auto& chains = set_.chains_;
    return chain_table_.find(
        mixed(0, fragment, next),
        [&](std::uint32_t known) {
          return chains[known].fragment == fragment && chains[known].next == next;
        },
        [&] {
          chains.push_back({fragment, next});
          return static_cast<std::uint32_t>(chains.size() - 1);
        });
  }

  std::uint32_t fragment_of(std::span<const Step> steps) {
    auto& fragments = set_.fragments_;
    return fragment_table_.find(
        hash_of(steps),
        [&](std::uint32_t known) { return equal(set_.steps_of(fragments[known]), steps); },
        [&] {
          fragments.push_back(store(steps));
          return static_cast<std::uint32_t>(fragments.size() - 1);
        });
  }

  ProgramSet::Fragment store(std::span<const Step> steps) {
    auto& pools = set_.pools_;
    if (pools.empty() || pools.back().capacity() - pools.back().size() < steps.size()) {
      // The first ones are short: most sets have few programs.
      const std::size_t most = std::min(kStepsOfPool, std::size_t{1} << (pools.size() + 6));
      pools.emplace_back().reserve(std::max(most, steps.size()));
    }
    const ProgramSet::Fragment stored{static_cast<std::uint32_t>(pools.size() - 1),
                                      static_cast<std::uint32_t>(pools.back().size()),
                                      static_cast<std::uint32_t>(steps.size())};
    pools.back().insert(pools.back().end(), steps.begin(), steps.end());
    return stored;
  }

  struct Copies {
    int count = 0;
    bool staged = false;
  };
  struct ContentHash {
    std::size_t operator()(const Content& content) const {
      const auto& [memory, slot, offset, count, written] = content;
      std::uint64_t hash = static_cast<std::uint64_t>(offset) * 0x9e3779b97f4a7c15U;
      for (const auto part :
           {static_cast<std::uint64_t>(memory), static_cast<std::uint64_t>(slot),
            static_cast<std::uint64_t>(count), static_cast<std::uint64_t>(written)}) {
        hash = (hash ^ part) * 0xbf58476d1ce4e5b9U;
        hash ^= hash >> 31;
      }
      return hash;
    }
  };

  int ranks_;
  const model::Machine& machine_;
  model::Work work_;
  std::optional<model::Costs> costs_;
  bool stages_ = false;  // messages between hosts
  // Numbers of costs by the number of elements; see departure() for the index.
  model::BySize<CostNumber> reduction_costs_, copy_costs_;
  std::array<model::BySize<std::uint32_t>, 2> reception_costs_;
  std::array<model::BySize<std::uint32_t>, 8> departure_costs_;
  ProgramSet set_;
  std::unordered_map<Content, Copies, ContentHash> copies_;
  std::unordered_map<StepCost, std::uint32_t, CostHash> cost_numbers_;
  NumberTable fragment_table_, chain_table_, program_table_;
  std::vector<std::size_t> cuts_;  // where the fragments of a program begin
};

std::vector<Step> ProgramSet::steps(const Program& program) const {
  std::vector<Step> steps;
  steps.reserve(program.count);
  for_each_step(program, [&](const Step& step) { steps.push_back(step); });
  return steps;
}

std::size_t ProgramSet::stored_steps() const {
  std::size_t steps = 0;
  for (const Fragment& each : fragments_) steps += each.count;
  return steps;
}

ProgramSet ProgramSet::compile_traces(std::span<const Trace> traces,
                                      const model::Machine& machine) {
  const model::Work work{model::Engine::any, arith::Type::byte, std::nullopt, true};
  return ProgramCompiler(static_cast<int>(traces.size()), machine, work).compile_traces(traces);
}

base::Result<ProgramSet> ProgramSet::compile_alike(int ranks, const ScheduleOf& schedule_of,
                                                   const model::Machine& machine,
                                                   const model::Work& work) {
  return ProgramCompiler(ranks, machine, work).compile_alike(schedule_of);
}

base::Result<ProgramSet> ProgramSet::compile(int ranks, const ScheduleOf& schedule_of,
                                             const model::Machine& machine,
                                             const model::Work& work) {
  return ProgramCompiler(ranks, machine, work).compile(schedule_of);
}

}  // namespace unisono::sim
