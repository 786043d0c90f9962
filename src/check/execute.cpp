// SPDX-License-Identifier: BSD-3-Clause
#include "check/execute.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/index.hpp"
#include "check/definition.hpp"
#include "check/symbol.hpp"
#include "schedule/text.hpp"

namespace unisono::check {
namespace {

using base::index;

using schedule::Memory;
using schedule::OpKind;
using schedule::Shape;

struct RankMemory {
  Layout layout;
  Region input, output, scratch;
  std::vector<Region> slots;
};

class Execution {
 public:
  Execution(std::span<const Schedule> set, Placement placement, Values& values, Report& report);
  void run(OpAt at);
  void compare_outputs();

 private:
  Region& region(const Schedule& schedule, const Range& placed_range);
  void read(const Schedule& schedule, OpId id, const Range& range,
            std::vector<SymbolRange>& pieces);
  void read_operand(const Schedule& schedule, OpId id, const Range& range,
                    std::vector<SymbolRange>& pieces);
  void write(const Schedule& schedule, OpId id, const Range& range,
             std::vector<SymbolRange>& pieces);
  void compare(int rank, const SymbolRange& piece);
  void compare_single(int rank, const SymbolRange& piece, const Definition& wanted);
  void compare_joined(int rank, const SymbolRange& piece, const Definition& wanted);
  void compare_contributors(int rank, const SymbolRange& piece, const Definition& wanted);

  std::span<const Schedule> set_;
  Report& report_;
  const Shape& shape_;
  Values& values_;
  std::vector<RankMemory> memories_;
  std::vector<SymbolRange> left_, right_, joined_;  // of the op being executed
};

void join(Values& values, std::span<const SymbolRange> left, std::span<const SymbolRange> right,
          std::vector<SymbolRange>& joined);

}  // namespace

void check_outputs(std::span<const Schedule> set, std::span<const OpAt> run, Placement placement,
                   Values& values, Report& report) {
  const auto shares = [](const Schedule& s) { return Layout(s, Placement::in_place).shares(); };
  if (placement == Placement::in_place && std::ranges::none_of(set, shares)) return;
  Execution execution(set, placement, values, report);
  for (const OpAt at : run) execution.run(at);
  execution.compare_outputs();
}

void check_barrier(std::span<const Schedule> set, const Links& links, std::span<const OpAt> run,
                   Report& report) {
  const BitMatrix ends = end_after_begin(set, links, run);
  for (std::size_t r = 0; r < set.size(); ++r) {
    std::vector<int> unknown;
    for (std::size_t s = 0; s < set.size(); ++s) {
      if (!ends.test(r, s)) unknown.push_back(static_cast<int>(s));
    }
    if (unknown.empty()) continue;
    report.add(Rule::missing, static_cast<int>(r), -1,
               fmt::format("may leave the barrier before {} {} entered it", name_ranks(unknown),
                           unknown.size() == 1 ? "has" : "have"));
  }
}

namespace {

Execution::Execution(std::span<const Schedule> set, Placement placement, Values& values,
                     Report& report)
    : set_(set), report_(report), shape_(set.front().shape), values_(values) {
  memories_.reserve(set.size());
  for (const Schedule& schedule : set) {
    const std::int64_t inputs = schedule::input_count(shape_, schedule.rank);
    const Layout layout(schedule, placement);
    RankMemory memory = {layout,
                         Region(layout.input_size()),
                         Region(layout.output_size()),
                         Region(schedule.scratch_count),
                         {}};
    memory.slots.reserve(schedule.slots.size());
    for (const auto& slot : schedule.slots) memory.slots.emplace_back(slot.count);
    memories_.push_back(std::move(memory));
    left_ = {{0, inputs, Values::input_of(schedule.rank), 0, -1}};
    write(schedule, -1, schedule::input(0, inputs), left_);
  }
}

void Execution::run(OpAt at) {
  const Schedule& schedule = set_[index(at.rank)];
  const Op& op = schedule.ops[index(at.op)];
  switch (op.kind) {
    case OpKind::wait:
      return;
    case OpKind::send:
    case OpKind::multicast: {
      read(schedule, at.op, op.left, left_);
      for (const auto& [peer, slot] : schedule.targets_of(op)) {
        memories_[index(peer)].slots[index(slot)].write(0, left_);
      }
      return;
    }
    case OpKind::copy:
      read(schedule, at.op, op.left, left_);
      write(schedule, at.op, op.target, left_);
      return;
    case OpKind::reduce:
      read(schedule, at.op, op.left, left_);
      read(schedule, at.op, op.right, right_);
      join(values_, left_, right_, joined_);
      write(schedule, at.op, op.target, joined_);
      return;
    case OpKind::sum: {
      const auto operands = schedule.operands_of(op);
      read_operand(schedule, at.op, operands.front(), left_);
      for (const Range& operand : operands.subspan(1)) {
        read_operand(schedule, at.op, operand, right_);
        join(values_, left_, right_, joined_);
        std::swap(left_, joined_);
      }
      write(schedule, at.op, op.target, left_);
      return;
    }
  }
}

void Execution::compare_outputs() {
  for (std::size_t rank = 0; rank < memories_.size(); ++rank) {
    const RankMemory& memory = memories_[rank];
    const std::int64_t outputs = schedule::output_count(shape_, set_[rank].rank);
    const Range output = memory.layout(schedule::output(0, outputs));
    memory.output.read(output.offset, output.count, left_);
    for (const SymbolRange& piece : left_) {
      if (report_.full()) return;
      compare(static_cast<int>(rank), piece);
    }
  }
}

Region& Execution::region(const Schedule& schedule, const Range& placed_range) {
  RankMemory& memory = memories_[index(schedule.rank)];
  switch (placed_range.memory) {
    case Memory::input:
      return memory.input;
    case Memory::output:
      return memory.output;
    case Memory::scratch:
      return memory.scratch;
    case Memory::slot:
      break;
  }
  return memory.slots[index(placed_range.slot)];
}

// An undefined element is reported here, once; values made of it are refused without a report.
void Execution::read(const Schedule& schedule, OpId id, const Range& range,
                     std::vector<SymbolRange>& pieces) {
  const Range place = memories_[index(schedule.rank)].layout(range);
  region(schedule, place).read(place.offset, place.count, pieces);
  for (SymbolRange& piece : pieces) {
    if (piece.value != kUndefined) continue;
    piece.value = kRefused;
    const Range part = {range.memory, range.slot, range.offset + piece.begin,
                        piece.end - piece.begin};
    report_.add(Rule::undefined_read, schedule.rank, id,
                fmt::format("reads {}, which nothing has written", schedule::print_range(part)));
  }
}

// An operand of a sum. In an exact shape it has to be one contribution, as it came from its rank.
void Execution::read_operand(const Schedule& schedule, OpId id, const Range& range,
                             std::vector<SymbolRange>& pieces) {
  read(schedule, id, range, pieces);
  if (!shape_.exact) return;
  for (const SymbolRange& piece : pieces) {
    if (piece.value < 0) continue;
    const auto runs = values_.runs(piece.value);
    if (runs.size() == 1 && runs.front().first == runs.front().last) continue;
    report_.add(
        Rule::partial_sum, schedule.rank, id,
        fmt::format("{} is a sum already, which has been rounded", schedule::print_range(range)));
    return;
  }
}

void Execution::write(const Schedule& schedule, OpId id, const Range& range,
                      std::vector<SymbolRange>& pieces) {
  if (range.count == 0) return;
  for (SymbolRange& piece : pieces) piece.writer = id;
  const Range place = memories_[index(schedule.rank)].layout(range);
  region(schedule, place).write(place.offset, pieces);
}

void Execution::compare(int rank, const SymbolRange& piece) {
  if (piece.value == kRefused) return;
  if (piece.value == kUndefined) {
    report_.add(Rule::missing, rank, -1,
                fmt::format("{} is never written", schedule::print_range(schedule::output(
                                                       piece.begin, piece.end - piece.begin))));
    return;
  }
  for (std::int64_t begin = piece.begin; begin < piece.end;) {
    const Definition wanted = definition(shape_, rank, begin);
    const std::int64_t end = std::min(piece.end, wanted.end);
    if (schedule::is_reduction(shape_.collective)) {
      compare_joined(rank, cut(piece, begin, end), wanted);
    } else {
      compare_single(rank, cut(piece, begin, end), wanted);
    }
    begin = end;
  }
}

std::string name_place(const SymbolRange& piece) {
  return schedule::print_range(schedule::output(piece.begin, piece.end - piece.begin));
}

// "element 4 of rank 2", or "elements 4-7 of rank 2"
std::string name_elements(std::int64_t element, std::int64_t count, int rank) {
  return count == 1 ? fmt::format("element {} of rank {}", element, rank)
                    : fmt::format("elements {}-{} of rank {}", element, element + count - 1, rank);
}

// Without an operator a value is one contribution: one run of one rank.
void Execution::compare_single(int rank, const SymbolRange& piece, const Definition& wanted) {
  const Run& run = values_.runs(piece.value).front();
  if (run.first == wanted.first && piece.base == wanted.element) return;
  const std::int64_t count = piece.end - piece.begin;
  report_.add(Rule::misplaced, rank, piece.writer,
              fmt::format("{} holds {}, where {} should be", name_place(piece),
                          name_elements(piece.base, count, run.first),
                          name_elements(wanted.element, count, wanted.first)));
}

void Execution::compare_joined(int rank, const SymbolRange& piece, const Definition& wanted) {
  const auto runs = values_.runs(piece.value);
  const bool whole =
      runs.size() == 1 && runs[0].first == wanted.first && runs[0].last == wanted.last;
  if (whole && piece.base == wanted.element) return;
  for (const Run& run : runs) {
    if (const std::int64_t element = piece.base + run.element; element != wanted.element) {
      report_.add(Rule::misplaced, rank, piece.writer,
                  fmt::format("{} holds {}, where element {} should be", name_place(piece),
                              name_elements(element, 1, run.first), wanted.element));
      return;
    }
  }
  compare_contributors(rank, piece, wanted);
}

// The elements are right, but the ranks or their order are wrong.
void Execution::compare_contributors(int rank, const SymbolRange& piece, const Definition& wanted) {
  const auto runs = values_.runs(piece.value);
  std::vector<int> times(index(shape_.ranks), 0);
  for (const Run& run : runs) {
    for (std::int32_t r = run.first; r <= run.last; ++r) ++times[index(r)];
  }
  std::vector<int> missing, doubled, foreign;
  for (int r = 0; r < shape_.ranks; ++r) {
    const bool belongs = r >= wanted.first && r <= wanted.last;
    if (times[index(r)] == 0 && belongs) missing.push_back(r);
    if (times[index(r)] > 1 && belongs) doubled.push_back(r);
    if (times[index(r)] > 0 && !belongs) foreign.push_back(r);
  }
  const auto complain = [&](Rule rule, std::string_view what, const std::vector<int>& ranks,
                            std::string_view how) {
    if (ranks.empty()) return;
    report_.add(rule, rank, piece.writer,
                fmt::format("{} {} {}{}", name_place(piece), what, name_ranks(ranks), how));
  };
  complain(Rule::missing, "lacks", missing, "");
  complain(Rule::doubled, "holds", doubled, " more than once");
  complain(Rule::misplaced, "holds", foreign,
           fmt::format(", beyond rank {}, the last that belongs there", wanted.last));
  if (!missing.empty() || !doubled.empty() || !foreign.empty()) return;
  std::string order;
  for (const Run& run : runs) {
    order += fmt::format("{}{}", order.empty() ? "" : ", ", run.first);
    if (run.last != run.first) order += fmt::format("-{}", run.last);
  }
  report_.add(Rule::out_of_order, rank, piece.writer,
              fmt::format("{} joins the ranks in the order {}", name_place(piece), order));
}

// Joins element by element; pieces are cut where either side has a border.
void join(Values& values, std::span<const SymbolRange> left, std::span<const SymbolRange> right,
          std::vector<SymbolRange>& joined) {
  joined.clear();
  std::int64_t begin = 0;
  for (std::size_t l = 0, r = 0; l < left.size() && r < right.size();) {
    const std::int64_t end = std::min(left[l].end, right[r].end);
    joined.push_back(values.join(cut(left[l], begin, end), cut(right[r], begin, end)));
    if (left[l].end == end) ++l;
    if (right[r].end == end) ++r;
    begin = end;
  }
}

}  // namespace
}  // namespace unisono::check
