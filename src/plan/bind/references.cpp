// SPDX-License-Identifier: BSD-3-Clause
#include "plan/bind/references.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "plan/bind/pulls.hpp"

namespace unisono::plan {
namespace {

using schedule::Memory;
using schedule::Op;
using schedule::OpId;
using schedule::OpKind;
using schedule::Schedule;
using schedule::SlotId;
using schedule::Target;

// Decides about single messages of a set.
class ReferenceFinder {
 public:
  ReferenceFinder(std::span<const Schedule> set, std::int64_t from_count)
      : set_(set), from_count_(from_count) {
    for (const Schedule& each : set) fillers_.emplace_back(each.slots.size(), OpId{-1});
    for (const Schedule& each : set) {
      for (std::size_t i = 0; i < each.ops.size(); ++i) {
        for (const Target& target : each.targets_of(each.ops[i])) {
          fillers_[static_cast<std::size_t>(target.peer)][static_cast<std::size_t>(target.slot)] =
              static_cast<OpId>(i);
        }
      }
    }
  }

  // -1: none, of a slot that stays empty.
  OpId filler(int rank, SlotId slot) const {
    return fillers_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(slot)];
  }

  Reference of(int rank, OpId id) const {
    const Schedule& schedule = at(rank);
    const Op& op = schedule.ops[static_cast<std::size_t>(id)];
    if (op.kind != OpKind::send || op.left.count < from_count_) return Reference::no;
    if (op.left.memory != Memory::input && op.left.memory != Memory::output) return Reference::no;
    const auto writers = overwriters(schedule, id, schedule::in_place(schedule.shape, rank));
    if (writers.empty()) return Reference::released;
    const Target& target = schedule.targets_of(op).front();
    const std::vector<OpId> readers = readers_of(target);
    if (readers.empty()) return Reference::no;
    const bool are_late = std::ranges::all_of(
        writers, [&](OpId writer) { return comes_after(rank, writer, target.peer, readers); });
    return are_late ? Reference::ordered : Reference::no;
  }

 private:
  const Schedule& at(int rank) const { return set_[static_cast<std::size_t>(rank)]; }

  std::vector<OpId> readers_of(const Target& target) const {
    std::vector<OpId> readers;
    const auto& ops = at(target.peer).ops;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      bool reads = false;
      schedule::for_each_read(at(target.peer), ops[i], [&](const schedule::Range& range) {
        reads = reads || (range.memory == Memory::slot && range.slot == target.slot);
      });
      if (reads) readers.push_back(static_cast<OpId>(i));
    }
    return readers;
  }

  // Whether an op can begin only after all of these of a peer: back along predecessors, and from
  // waits to the sends of their messages.
  bool comes_after(int rank, OpId op, int peer, const std::vector<OpId>& before) const {
    std::vector<std::vector<bool>> seen(set_.size());
    std::vector<std::pair<int, OpId>> open;
    std::size_t missing = before.size();
    const auto visit = [&](int r, OpId id) {
      std::vector<bool>& of_rank = seen[static_cast<std::size_t>(r)];
      if (of_rank.empty()) of_rank.resize(at(r).ops.size());
      if (of_rank[static_cast<std::size_t>(id)]) return;
      of_rank[static_cast<std::size_t>(id)] = true;
      open.emplace_back(r, id);
      if (r == peer && std::ranges::find(before, id) != before.end()) --missing;
    };
    visit(rank, op);
    while (missing > 0 && !open.empty()) {
      const auto [r, id] = open.back();
      open.pop_back();
      const Op& from = at(r).ops[static_cast<std::size_t>(id)];
      for (const OpId earlier : at(r).after_of(from)) visit(r, earlier);
      if (from.kind != OpKind::wait) continue;
      visit(at(r).slots[static_cast<std::size_t>(from.slot)].source, filler(r, from.slot));
    }
    return missing == 0;
  }

  std::span<const Schedule> set_;
  std::int64_t from_count_;
  std::vector<std::vector<OpId>> fillers_;  // by rank and slot
};

}  // namespace

References::References(std::span<const Schedule> set, int rank, std::int64_t from_count) {
  if (std::ssize(set) > kMostRanks) return;
  const ReferenceFinder finder(set, from_count);
  const Schedule& own = set[static_cast<std::size_t>(rank)];
  const auto add = [this](std::vector<Reference>& list, Reference reference) {
    list.push_back(reference);
    any_ = any_ || reference != Reference::no;
  };
  for (OpId op = 0; op < std::ssize(own.ops); ++op) add(sent_, finder.of(rank, op));
  for (SlotId slot = 0; slot < std::ssize(own.slots); ++slot) {
    const int source = own.slots[static_cast<std::size_t>(slot)].source;
    const OpId filler = finder.filler(rank, slot);
    add(received_, filler < 0 ? Reference::no : finder.of(source, filler));
  }
}

}  // namespace unisono::plan
