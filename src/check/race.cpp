// SPDX-License-Identifier: BSD-3-Clause
#include "check/race.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/index.hpp"
#include "schedule/text.hpp"

namespace unisono::check {
namespace {

using base::index;

using schedule::Memory;
using schedule::OpKind;

struct Access {
  OpId op = -1;
  bool write = false;
  std::int64_t begin = 0, end = 0;
};

// Checks one rank. The order through messages is computed when it is first needed.
class RankRaces {
 public:
  RankRaces(std::span<const Schedule> set, const Links& links, std::span<const OpAt> run, int rank,
            const Layout& layout, Report& report)
      : set_(set),
        links_(links),
        run_(run),
        schedule_(set[index(rank)]),
        layout_(layout),
        report_(report),
        by_predecessors_(order_by_predecessors(schedule_)) {}

  void check();

 private:
  void note(OpId op, const Range& range, bool write);
  void check_slot_read(OpId op, const Range& range);
  void check_memory(Memory memory, std::vector<Access>& accesses);
  void check_elements(Memory memory, std::int64_t begin, std::int64_t end);
  void check_pair(Memory memory, const Access& a, const Access& b, std::int64_t begin,
                  std::int64_t end);
  bool before(OpId a, OpId b);

  std::span<const Schedule> set_;
  const Links& links_;
  std::span<const OpAt> run_;
  const Schedule& schedule_;
  const Layout& layout_;
  Report& report_;
  BitMatrix by_predecessors_;
  std::optional<BitMatrix> by_messages_;
  std::vector<std::pair<SlotId, OpId>> waits_;  // sorted
  std::vector<Access> scratch_, output_;        // accesses, in the order of ops
  // For the elements being checked: the accesses, and the reads since the last write.
  std::vector<const Access*> active_, reads_;
  std::set<std::pair<OpId, OpId>> reported_;
};

}  // namespace

void check_races(std::span<const Schedule> set, const Links& links, std::span<const OpAt> run,
                 Placement placement, Report& report) {
  for (std::size_t rank = 0; rank < set.size() && !report.full(); ++rank) {
    const Layout layout(set[rank], placement);
    if (placement == Placement::in_place && !layout.shares()) continue;
    RankRaces(set, links, run, static_cast<int>(rank), layout, report).check();
  }
}

namespace {

void RankRaces::check() {
  for (OpId id = 0; std::cmp_less(id, schedule_.ops.size()); ++id) {
    const Op& op = schedule_.ops[index(id)];
    if (op.kind == OpKind::wait) waits_.emplace_back(op.slot, id);
  }
  std::ranges::sort(waits_);
  for (OpId id = 0; std::cmp_less(id, schedule_.ops.size()); ++id) {
    const Op& op = schedule_.ops[index(id)];
    switch (op.kind) {
      case OpKind::send:
      case OpKind::multicast:
        note(id, op.left, false);
        break;
      case OpKind::wait:
        break;
      case OpKind::reduce:
        note(id, op.left, false);
        note(id, op.right, false);
        note(id, op.target, true);
        break;
      case OpKind::sum:
        for (const Range& operand : schedule_.operands_of(op)) note(id, operand, false);
        note(id, op.target, true);
        break;
      case OpKind::copy:
        // A copy onto itself, which happens in place, has no effect: engines skip it.
        if (layout_(op.left) == layout_(op.target)) break;
        note(id, op.left, false);
        note(id, op.target, true);
        break;
    }
  }
  check_memory(Memory::output, output_);
  check_memory(Memory::scratch, scratch_);
}

// No op of this rank writes slots, and no op at all writes the input.
void RankRaces::note(OpId op, const Range& range, bool write) {
  if (range.count == 0) return;
  if (range.memory == Memory::slot) return check_slot_read(op, range);
  const Range in_memory = layout_(range);
  if (in_memory.memory == Memory::input) return;
  auto& accesses = in_memory.memory == Memory::output ? output_ : scratch_;
  accesses.push_back({op, write, in_memory.offset, in_memory.offset + in_memory.count});
}

void RankRaces::check_slot_read(OpId op, const Range& range) {
  const auto waits =
      std::ranges::equal_range(waits_, range.slot, {}, &std::pair<SlotId, OpId>::first);
  for (const auto& [slot, wait] : waits) {
    if (wait < op && before(wait, op)) return;
  }
  report_.add(Rule::unwaited_read, schedule_.rank, op,
              fmt::format("reads {} without coming after a wait for slot {}",
                          schedule::print_range(range), range.slot));
}

// Sweeps over the elements; between two borders the same ops are active.
void RankRaces::check_memory(Memory memory, std::vector<Access>& accesses) {
  std::vector<std::int64_t> borders;
  for (const Access& access : accesses) {
    borders.push_back(access.begin);
    borders.push_back(access.end);
  }
  std::ranges::sort(borders);
  borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
  std::ranges::stable_sort(accesses, {}, &Access::begin);

  // Sorted in the order of ops. An operand that shares elements with its target coincides with it,
  // so the reads of an op were recorded before its write, and stay there.
  const auto earlier = [](const Access* a, const Access* b) {
    return a->op != b->op ? a->op < b->op : a < b;
  };
  active_.clear();
  std::size_t next = 0;
  for (std::size_t i = 0; i + 1 < borders.size() && !report_.full(); ++i) {
    std::erase_if(active_, [&](const Access* access) { return access->end <= borders[i]; });
    for (; next < accesses.size() && accesses[next].begin == borders[i]; ++next) {
      const Access* const begins = &accesses[next];
      active_.insert(std::ranges::upper_bound(active_, begins, earlier), begins);
    }
    check_elements(memory, borders[i], borders[i + 1]);
  }
}

// Comparing neighbours suffices. Writes that are ordered pairwise in a row are all ordered. A read
// between two of them is ordered to the rest through them.
void RankRaces::check_elements(Memory memory, std::int64_t begin, std::int64_t end) {
  const Access* last_write = nullptr;
  reads_.clear();
  for (const Access* const access : active_) {
    if (last_write != nullptr) check_pair(memory, *last_write, *access, begin, end);
    if (!access->write) {
      reads_.push_back(access);
      continue;
    }
    for (const Access* read : reads_) check_pair(memory, *read, *access, begin, end);
    reads_.clear();
    last_write = access;
  }
}

void RankRaces::check_pair(Memory memory, const Access& a, const Access& b, std::int64_t begin,
                           std::int64_t end) {
  if (a.op == b.op || before(a.op, b.op)) return;
  if (!reported_.emplace(a.op, b.op).second) return;
  const Range range = {memory, -1, begin, end - begin};
  report_.add(Rule::race, schedule_.rank, b.op,
              fmt::format("{} {}, which {} {}, and nothing says which comes first",
                          b.write ? "writes" : "reads", schedule::print_range(range),
                          name_op(schedule_, a.op), a.write ? "writes" : "reads"));
}

bool RankRaces::before(OpId a, OpId b) {
  if (by_predecessors_.test(index(b), index(a))) return true;
  if (!by_messages_) {
    by_messages_ = order_by_messages(set_, links_, run_, schedule_.rank);
  }
  return by_messages_->test(index(b), index(a));
}

}  // namespace
}  // namespace unisono::check
