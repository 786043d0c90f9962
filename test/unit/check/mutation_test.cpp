// SPDX-License-Identifier: BSD-3-Clause
// Mutation test: right schedule sets are damaged in every way we can think of, at every place where
// the damage applies, and prove() has to find each. Where a mutant can be as right as its base, the
// kind says why, and the mutants that prove() accepts are run in many orders to see it.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>

#include "bases.hpp"
#include "check/check.hpp"
#include "harness/scale.hpp"
#include "trial.hpp"

namespace unisono::check::mutation_test {
namespace {

using schedule::Memory;
using schedule::Op;
using schedule::OpId;
using schedule::OpKind;
using schedule::Range;
using schedule::Schedule;
using schedule::Target;
using Set = std::vector<Schedule>;
using Mutants = std::vector<Set>;

struct Mutation {
  std::string_view name;
  std::vector<Rule> rules;  // the first violation has to be of one of these
  std::function<Mutants(const Set&)> mutants;
  std::string_view harmless_when = {};  // empty: every mutant is wrong
};

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

// ---- Tools of the mutations ----

// One mutant for each op for which `damage` says that it applied.
Mutants at_ops(const Set& base, const std::function<bool(Set&, Schedule&, OpId)>& damage) {
  Mutants mutants;
  for (std::size_t rank = 0; rank < base.size(); ++rank) {
    for (std::size_t id = 0; id < base[rank].ops.size(); ++id) {
      Set copy = base;
      if (damage(copy, copy[rank], static_cast<OpId>(id))) mutants.push_back(std::move(copy));
    }
  }
  return mutants;
}

Mutants at_ranks(const Set& base, const std::function<bool(Set&, Schedule&)>& damage) {
  Mutants mutants;
  for (std::size_t rank = 0; rank < base.size(); ++rank) {
    Set copy = base;
    if (damage(copy, copy[rank])) mutants.push_back(std::move(copy));
  }
  return mutants;
}

bool is_send(const Op& op) { return op.kind == OpKind::send || op.kind == OpKind::multicast; }

void set_after(Schedule& s, Op& op, const std::vector<OpId>& after) {
  op.first_after = static_cast<std::int32_t>(s.after.size());
  op.after_count = static_cast<std::int32_t>(after.size());
  s.after.insert(s.after.end(), after.begin(), after.end());
}

std::vector<OpId> after_of(const Schedule& s, const Op& op) {
  const auto after = s.after_of(op);
  return {after.begin(), after.end()};
}

Target& first_target(Schedule& s, const Op& op) { return s.targets[at(op.first_target)]; }

// Ops that came after it come after nothing instead.
void remove_op(Schedule& s, OpId id) {
  s.ops.erase(s.ops.begin() + id);
  for (Op& op : s.ops) {
    std::vector<OpId> after = after_of(s, op);
    std::erase(after, id);
    for (OpId& a : after) a -= a > id ? 1 : 0;
    set_after(s, op, after);
  }
}

// After everything that is there.
Op& append(Schedule& s, OpKind kind, const Range& target, const Range& left) {
  std::vector<OpId> after(s.ops.size());
  for (std::size_t i = 0; i < after.size(); ++i) after[i] = static_cast<OpId>(i);
  Op op;
  op.kind = kind;
  op.target = target;
  op.left = left;
  set_after(s, op, after);
  s.ops.push_back(op);
  return s.ops.back();
}

// New places for ops: order[i] is the old number of the new i-th.
void reorder(Schedule& s, const std::vector<OpId>& order) {
  std::vector<OpId> new_id(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) new_id[at(order[i])] = static_cast<OpId>(i);
  std::vector<Op> ops;
  for (const OpId id : order) {
    Op op = s.ops[at(id)];
    std::vector<OpId> after = after_of(s, op);
    for (OpId& a : after) a = new_id[at(a)];
    set_after(s, op, after);
    ops.push_back(op);
  }
  s.ops = std::move(ops);
}

Mutants drop_ops(const Set& base, const std::function<bool(const Op&)>& which) {
  return at_ops(base, [&](Set&, Schedule& s, OpId id) {
    if (!which(s.ops[at(id)])) return false;
    remove_op(s, id);
    return true;
  });
}

Mutants with_targets(const Set& base, const std::function<bool(Set&, Schedule&, Target&)>& damage) {
  return at_ops(base, [&](Set& set, Schedule& s, OpId id) {
    const Op& op = s.ops[at(id)];
    return is_send(op) && op.target_count > 0 && damage(set, s, first_target(s, op));
  });
}

// ---- Messages ----

Mutants drop_send(const Set& base) { return drop_ops(base, is_send); }

Mutants drop_wait(const Set& base) {
  return drop_ops(base, [](const Op& op) { return op.kind == OpKind::wait; });
}

Mutants duplicate_send(const Set& base) {
  return at_ops(base, [](Set&, Schedule& s, OpId id) {
    if (!is_send(s.ops[at(id)]) || s.ops[at(id)].target_count == 0) return false;
    s.ops.push_back(s.ops[at(id)]);
    return true;
  });
}

Mutants send_to_other_peer(const Set& base) {
  return with_targets(base, [](Set& set, Schedule& s, Target& target) {
    const int ranks = static_cast<int>(set.size());
    if (ranks < 3) return false;
    do {
      target.peer = (target.peer + 1) % ranks;
    } while (target.peer == s.rank);
    return true;
  });
}

Mutants send_to_other_slot(const Set& base) {
  return with_targets(base, [](Set& set, Schedule&, Target& target) {
    const auto slots = static_cast<std::int32_t>(set[at(target.peer)].slots.size());
    if (slots < 2) return false;
    target.slot = (target.slot + 1) % slots;
    return true;
  });
}

Mutants send_to_itself(const Set& base) {
  return with_targets(base, [](Set&, Schedule& s, Target& target) {
    target.peer = s.rank;
    return true;
  });
}

Mutants send_to_nobody(const Set& base) {
  return with_targets(base, [](Set& set, Schedule&, Target& target) {
    target.peer = static_cast<std::int32_t>(set.size());
    return true;
  });
}

Mutants send_to_no_slot(const Set& base) {
  return with_targets(base, [](Set& set, Schedule&, Target& target) {
    target.slot = static_cast<std::int32_t>(set[at(target.peer)].slots.size());
    return true;
  });
}

// Two sends of a rank to one peer and of one size change slots.
Mutants exchange_messages(const Set& base) {
  Mutants mutants;
  for (std::size_t rank = 0; rank < base.size(); ++rank) {
    const Schedule& s = base[rank];
    for (std::size_t a = 0; a < s.ops.size(); ++a) {
      for (std::size_t b = a + 1; b < s.ops.size(); ++b) {
        if (s.ops[a].kind != OpKind::send || s.ops[b].kind != OpKind::send) continue;
        if (s.ops[a].left.count != s.ops[b].left.count) continue;
        Set copy = base;
        Target& x = first_target(copy[rank], s.ops[a]);
        Target& y = first_target(copy[rank], s.ops[b]);
        if (x.peer != y.peer) continue;
        std::swap(x, y);
        mutants.push_back(std::move(copy));
      }
    }
  }
  return mutants;
}

Mutants send_less(const Set& base) {
  return at_ops(base, [](Set&, Schedule& s, OpId id) {
    Op& op = s.ops[at(id)];
    if (!is_send(op) || op.target_count == 0 || op.left.count == 0) return false;
    --op.left.count;
    return true;
  });
}

Mutants send_next_range(const Set& base) {
  return at_ops(base, [](Set&, Schedule& s, OpId id) {
    Op& op = s.ops[at(id)];
    if (!is_send(op) || op.target_count == 0 || op.left.count == 0) return false;
    ++op.left.offset;
    return true;
  });
}

// The own input, where the partial result was meant.
Mutants send_stale_data(const Set& base) {
  return at_ops(base, [](Set&, Schedule& s, OpId id) {
    Op& op = s.ops[at(id)];
    if (!is_send(op) || op.left.count == 0 || op.left.memory == Memory::input) return false;
    op.left = schedule::input(0, op.left.count);
    return true;
  });
}

// ---- Slots and waits ----

Mutants slot_too_small(const Set& base) {
  return at_ranks(base, [](Set&, Schedule& s) {
    if (s.slots.empty() || s.slots.back().count == 0) return false;
    --s.slots.back().count;
    return true;
  });
}

// Any rank may be the source of an unused empty slot.
Mutants slot_of_other_source(const Set& base) {
  return at_ranks(base, [](Set& set, Schedule& s) {
    const auto last = static_cast<int>(s.slots.size()) - 1;
    const auto waits = [last](const Op& op) { return op.kind == OpKind::wait && op.slot == last; };
    if (std::ranges::none_of(s.ops, waits)) return false;
    s.slots.back().source = (s.slots.back().source + 1) % static_cast<int>(set.size());
    return true;
  });
}

Mutants slot_nobody_fills(const Set& base) {
  return at_ranks(base, [](Set& set, Schedule& s) {
    if (set.size() < 2) return false;
    s.slots.push_back({s.rank == 0 ? 1 : 0, 1});
    return true;
  });
}

Mutants wait_for_other_slot(const Set& base) {
  return at_ops(base, [](Set&, Schedule& s, OpId id) {
    Op& op = s.ops[at(id)];
    if (op.kind != OpKind::wait || s.slots.size() < 2) return false;
    op.slot = (op.slot + 1) % static_cast<int>(s.slots.size());
    return true;
  });
}

Mutants wait_for_no_slot(const Set& base) {
  return at_ops(base, [](Set&, Schedule& s, OpId id) {
    Op& op = s.ops[at(id)];
    if (op.kind != OpKind::wait) return false;
    op.slot = static_cast<int>(s.slots.size());
    return true;
  });
}

// The slot's reader comes after nothing.
Mutants read_before_wait(const Set& base) {
  return at_ops(base, [](Set&, Schedule& s, OpId id) {
    Op& op = s.ops[at(id)];
    const bool reads = (op.left.memory == Memory::slot && op.left.count > 0) ||
                       (op.right.memory == Memory::slot && op.right.count > 0);
    if (!reads) return false;
    set_after(s, op, {});
    return true;
  });
}

// ---- Order ----

Mutants drop_predecessor(const Set& base) {
  Mutants mutants;
  for (std::size_t rank = 0; rank < base.size(); ++rank) {
    for (std::size_t id = 0; id < base[rank].ops.size(); ++id) {
      const auto after = after_of(base[rank], base[rank].ops[id]);
      for (std::size_t i = 0; i < after.size(); ++i) {
        auto fewer = after;
        fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
        Set copy = base;
        set_after(copy[rank], copy[rank].ops[id], fewer);
        mutants.push_back(std::move(copy));
      }
    }
  }
  return mutants;
}

Mutants signal_too_early(const Set& base) {
  if (base.front().shape.collective != schedule::Collective::barrier) return {};
  return at_ops(base, [](Set&, Schedule& s, OpId id) {
    Op& op = s.ops[at(id)];
    if (!is_send(op) || op.after_count == 0) return false;
    set_after(s, op, {});
    return true;
  });
}

Mutants come_after_itself(const Set& base) {
  return at_ops(base, [](Set&, Schedule& s, OpId id) {
    set_after(s, s.ops[at(id)], {id});
    return true;
  });
}

Mutants come_after_a_later_op(const Set& base) {
  return at_ops(base, [](Set&, Schedule& s, OpId id) {
    if (at(id) + 1 >= s.ops.size()) return false;
    set_after(s, s.ops[at(id)], {id + 1});
    return true;
  });
}

Mutants come_after_no_op(const Set& base) {
  return at_ops(base, [](Set&, Schedule& s, OpId id) {
    set_after(s, s.ops[at(id)], {-1});
    return true;
  });
}

// Every rank's waits first, its sends last; a send that a wait was to come after is forgotten.
Mutants wait_before_sending(const Set& base) {
  Set copy = base;
  for (Schedule& s : copy) {
    for (Op& op : s.ops) {
      if (op.kind == OpKind::wait) set_after(s, op, {});
    }
    std::vector<OpId> order;
    for (const bool waits : {true, false}) {
      for (std::size_t id = 0; id < s.ops.size(); ++id) {
        if ((s.ops[id].kind == OpKind::wait) == waits) order.push_back(static_cast<OpId>(id));
      }
    }
    reorder(s, order);
  }
  return {copy};
}

// ---- Memory ----

Mutants shrink_scratch(const Set& base) {
  return at_ranks(base, [](Set&, Schedule& s) {
    if (s.scratch_count == 0) return false;
    --s.scratch_count;
    return true;
  });
}

// A new copy of the source to scratch, and back while the send may still read it.
Mutants rewrite_while_sending(const Set& base) {
  return at_ops(base, [](Set&, Schedule& s, OpId id) {
    const Op op = s.ops[at(id)];
    const bool writable = op.left.memory == Memory::output || op.left.memory == Memory::scratch;
    if (!is_send(op) || !writable || op.left.count == 0) return false;
    const Range kept = schedule::scratch(s.scratch_count, op.left.count);
    s.scratch_count += op.left.count;
    const auto saved = static_cast<OpId>(s.ops.size());
    set_after(s, append(s, OpKind::copy, kept, op.left), after_of(s, op));
    set_after(s, append(s, OpKind::copy, op.left, kept), {saved});
    return true;
  });
}

Mutants overlapping_copy(const Set& base) {
  return at_ranks(base, [](Set&, Schedule& s) {
    const std::int64_t count = schedule::output_count(s.shape, s.rank);
    if (count < 3) return false;
    append(s, OpKind::copy, schedule::output(1, count - 1), schedule::output(0, count - 1));
    return true;
  });
}

Mutants write_the_input(const Set& base) {
  return at_ranks(base, [](Set&, Schedule& s) {
    const std::int64_t count = schedule::input_count(s.shape, s.rank);
    if (count == 0) return false;
    append(s, OpKind::copy, schedule::input(0, count), schedule::input(0, count));
    return true;
  });
}

Mutants write_a_slot(const Set& base) {
  return at_ranks(base, [](Set&, Schedule& s) {
    if (s.slots.empty()) return false;
    const Range slot = schedule::slot_range(0, 0, s.slots[0].count);
    append(s, OpKind::copy, slot, slot);
    return true;
  });
}

Mutants shorter_target(const Set& base) {
  return at_ops(base, [](Set&, Schedule& s, OpId id) {
    Op& op = s.ops[at(id)];
    if (!schedule::writes_range(op) || op.target.count == 0) return false;
    --op.target.count;
    return true;
  });
}

Mutants target_at_next_element(const Set& base) {
  return at_ops(base, [](Set&, Schedule& s, OpId id) {
    Op& op = s.ops[at(id)];
    if (!schedule::writes_range(op) || op.target.count == 0) return false;
    ++op.target.offset;
    return true;
  });
}

// The first range that an op reads.
Range& first_read(Schedule& s, Op& op) {
  return op.kind == OpKind::sum ? s.operands[at(op.first_operand)] : op.left;
}

Mutants negative_offset(const Set& base) {
  return at_ops(base, [](Set&, Schedule& s, OpId id) {
    Op& op = s.ops[at(id)];
    if (op.kind == OpKind::wait) return false;
    first_read(s, op).offset = -1;
    return true;
  });
}

Mutants overflowing_range(const Set& base) {
  return at_ops(base, [](Set&, Schedule& s, OpId id) {
    Op& op = s.ops[at(id)];
    if (op.kind == OpKind::wait) return false;
    first_read(s, op).offset = std::numeric_limits<std::int64_t>::max();
    return true;
  });
}

Mutants source_in_no_slot(const Set& base) {
  return at_ops(base, [](Set&, Schedule& s, OpId id) {
    Op& op = s.ops[at(id)];
    if (op.kind == OpKind::wait) return false;
    Range& source = first_read(s, op);
    source = schedule::slot_range(static_cast<int>(s.slots.size()), 0, source.count);
    return true;
  });
}

// ---- Arithmetic ----

// Equal operands have no sides, and a reduction of nothing has none either.
Mutants reverse_operands(const Set& base) {
  if (!base.front().shape.ordered) return {};
  return at_ops(base, [](Set&, Schedule& s, OpId id) {
    Op& op = s.ops[at(id)];
    if (op.kind != OpKind::reduce || op.target.count == 0) return false;
    std::swap(op.left, op.right);
    return true;
  });
}

Mutants drop_reduce(const Set& base) {
  return drop_ops(base,
                  [](const Op& op) { return op.kind == OpKind::reduce && op.target.count > 0; });
}

Mutants drop_copy(const Set& base) {
  return drop_ops(base,
                  [](const Op& op) { return op.kind == OpKind::copy && op.target.count > 0; });
}

Mutants lose_right_operand(const Set& base) {
  return at_ops(base, [](Set&, Schedule& s, OpId id) {
    Op& op = s.ops[at(id)];
    if (op.kind != OpKind::reduce || op.target.count == 0) return false;
    op.kind = OpKind::copy;
    return true;
  });
}

Mutants lose_operand(const Set& base) {
  return at_ops(base, [](Set&, Schedule& s, OpId id) {
    Op& op = s.ops[at(id)];
    if (op.kind != OpKind::sum || op.target.count == 0 || op.operand_count < 2) return false;
    --op.operand_count;
    return true;
  });
}

Mutants repeat_operand(const Set& base) {
  return at_ops(base, [](Set&, Schedule& s, OpId id) {
    const Op& op = s.ops[at(id)];
    if (op.kind != OpKind::sum || op.target.count == 0 || op.operand_count < 2) return false;
    s.operands[at(op.first_operand)] = s.operands[at(op.first_operand + 1)];
    return true;
  });
}

// Where partial sums are not allowed.
Mutants sum_a_sum(const Set& base) {
  if (!base.front().shape.exact) return {};
  return at_ops(base, [](Set&, Schedule& s, OpId id) {
    const Op op = s.ops[at(id)];
    if (op.kind != OpKind::sum || op.target.count == 0 || op.operand_count < 2) return false;
    append(s, OpKind::sum, op.target, {});
    s.ops.back().first_operand = static_cast<std::int32_t>(s.operands.size());
    s.ops.back().operand_count = 1;
    s.operands.push_back(op.target);
    return true;
  });
}

Mutants reduce_twice(const Set& base) {
  return at_ops(base, [](Set&, Schedule& s, OpId id) {
    const Op op = s.ops[at(id)];
    if (op.kind != OpKind::reduce || op.target.memory != Memory::output) return false;
    if (op.target.count == 0) return false;
    append(s, OpKind::reduce, op.target, op.target).right = op.right;
    return true;
  });
}

Mutants reduce_without_operator(const Set& base) {
  if (schedule::is_reduction(base.front().shape.collective)) return {};
  return at_ops(base, [](Set&, Schedule& s, OpId id) {
    Op& op = s.ops[at(id)];
    if (op.kind != OpKind::copy) return false;
    op.kind = OpKind::reduce;
    op.right = op.left;
    return true;
  });
}

// ---- Fields that make no sense ----

Mutants drop_schedule(const Set& base) {
  Set copy = base;
  copy.pop_back();
  return {copy};
}

Mutants swap_schedules(const Set& base) {
  if (base.size() < 2) return {};
  Set copy = base;
  std::swap(copy.front(), copy.back());
  return {copy};
}

Mutants other_shape(const Set& base) {
  return at_ranks(base, [](Set& set, Schedule& s) {
    if (set.size() < 2) return false;
    ++s.shape.count;
    return true;
  });
}

Mutants for_all_shapes(const Set& base, const std::function<void(schedule::Shape&)>& damage) {
  Set copy = base;
  for (Schedule& s : copy) damage(s.shape);
  return {copy};
}

Mutants root_out_of_range(const Set& base) {
  return for_all_shapes(base, [](auto& shape) { shape.root = shape.ranks; });
}

Mutants negative_count(const Set& base) {
  return for_all_shapes(base, [](auto& shape) { shape.count = -1; });
}

Mutants hosts_of_more_ranks(const Set& base) {
  return for_all_shapes(base, [](auto& shape) { shape.hosts = pairs_on_hosts(shape.ranks + 2); });
}

// The lengths of two blocks of a pair of ranks, or of two ranks, the wrong way round.
Mutants exchange_lengths(const Set& base) {
  const schedule::Shape& shape = base.front().shape;
  if (!shape.blocks.given()) return {};
  const bool pairs = shape.blocks.are_pairs();
  std::vector<std::int64_t> counts;
  for (int from = 0; from < shape.ranks; ++from) {
    if (!pairs) counts.push_back(shape.blocks.of(from).count);
    for (int to = 0; to < shape.ranks && pairs; ++to) {
      counts.push_back(shape.blocks.sent(from, to).count);
    }
  }
  std::vector<bool> receivers;
  for (int rank = 0; rank < shape.ranks && !pairs; ++rank) {
    receivers.push_back(shape.blocks.receives(rank));
  }
  Mutants mutants;
  for (std::size_t i = 0; i + 1 < counts.size(); ++i) {
    auto exchanged = counts;
    std::swap(exchanged[i], exchanged[i + 1]);
    if (exchanged == counts) continue;
    const auto blocks = pairs ? schedule::Blocks::of_pairs(shape.ranks, exchanged)
                              : schedule::Blocks::of_ranks(exchanged, receivers);
    for (Set& mutant : for_all_shapes(base, [&](auto& s) { s.blocks = *blocks; })) {
      mutants.push_back(std::move(mutant));
    }
  }
  return mutants;
}

// Somebody else receives, too, or does not any more.
Mutants other_receivers(const Set& base) {
  const schedule::Shape& shape = base.front().shape;
  if (shape.collective != schedule::Collective::many_to_many || !shape.blocks.given()) return {};
  if (shape.blocks.total() == 0) return {};
  std::vector<std::int64_t> counts;
  std::vector<bool> receivers;
  for (int rank = 0; rank < shape.ranks; ++rank) {
    counts.push_back(shape.blocks.of(rank).count);
    receivers.push_back(shape.blocks.receives(rank));
  }
  Mutants mutants;
  for (std::size_t rank = 0; rank < receivers.size(); ++rank) {
    auto others = receivers;
    others[rank] = !others[rank];
    const auto blocks = schedule::Blocks::of_ranks(counts, others);
    for (Set& mutant : for_all_shapes(base, [&](auto& s) { s.blocks = *blocks; })) {
      mutants.push_back(std::move(mutant));
    }
  }
  return mutants;
}

// A scan that leaves the own part out, an exclusive one that does not.
Mutants other_scan(const Set& base) {
  using schedule::Collective;
  const schedule::Shape& shape = base.front().shape;
  const bool exclusive = shape.collective == Collective::exscan;
  if ((!exclusive && shape.collective != Collective::scan) || shape.count == 0) return {};
  return for_all_shapes(
      base, [&](auto& s) { s.collective = exclusive ? Collective::scan : Collective::exscan; });
}

Mutants negative_scratch(const Set& base) {
  return at_ranks(base, [](Set&, Schedule& s) {
    s.scratch_count = -1;
    return true;
  });
}

Mutants unknown_kind(const Set& base) {
  return at_ops(base, [](Set&, Schedule& s, OpId id) {
    s.ops[at(id)].kind = static_cast<OpKind>(schedule::kOpKindCount);
    return true;
  });
}

Mutants unknown_memory(const Set& base) {
  return at_ops(base, [](Set&, Schedule& s, OpId id) {
    if (s.ops[at(id)].kind == OpKind::wait) return false;
    first_read(s, s.ops[at(id)]).memory = static_cast<Memory>(schedule::kMemoryCount);
    return true;
  });
}

Mutants broken_pool(const Set& base) {
  return at_ops(base, [](Set&, Schedule& s, OpId id) {
    s.ops[at(id)].first_after = static_cast<std::int32_t>(s.after.size());
    s.ops[at(id)].after_count = 1;
    return true;
  });
}

Mutants send_without_target(const Set& base) {
  return at_ops(base, [](Set&, Schedule& s, OpId id) {
    if (s.ops[at(id)].kind != OpKind::send) return false;
    s.ops[at(id)].target_count = 0;
    return true;
  });
}

constexpr std::string_view kOrderImplied =
    "the order that the predecessor gave also follows from others, or the two ops touch nothing in "
    "common";
// Ranks of a mock-up may compute what they drop: a mutant of that does no harm, which is tried out.
bool drops_results(const Base& base) { return base.name.find(" mock-") != std::string::npos; }

std::vector<Mutation> all_mutations() {
  using enum Rule;
  return {
      {"drop a send", {never_filled}, drop_send},
      {"drop a wait", {never_waited}, drop_wait},
      {"send twice", {filled_twice}, duplicate_send},
      {"send to another peer",
       {bad_peer, wrong_source, wrong_size, filled_twice},
       send_to_other_peer},
      {"send to another slot", {wrong_source, wrong_size, filled_twice}, send_to_other_slot},
      {"send to itself", {bad_peer}, send_to_itself},
      {"send to a rank that does not exist", {bad_peer}, send_to_nobody},
      {"send to a slot that does not exist", {bad_peer}, send_to_no_slot},
      {"exchange two messages",
       {misplaced, missing, doubled, out_of_order, deadlock, race, partial_sum},
       exchange_messages,
       "two signals, or two messages with the same content, are exchanged"},
      {"send one element less", {wrong_size}, send_less},
      {"send the range one further",
       {bounds, misplaced, race, undefined_read, missing},
       send_next_range},
      {"send the own input for a partial result",
       {bounds, missing, doubled, misplaced, race},
       send_stale_data,
       "all that was gathered is the own input, because the other blocks are empty"},
      {"slot too small", {wrong_size, bounds}, slot_too_small},
      {"slot of another source", {wrong_source, bad_peer}, slot_of_other_source},
      {"slot that nobody fills", {never_filled}, slot_nobody_fills},
      {"wait for another slot", {never_waited, never_filled}, wait_for_other_slot},
      {"wait for a slot that does not exist", {bounds}, wait_for_no_slot},
      {"read a slot before its wait", {unwaited_read}, read_before_wait},
      {"drop a predecessor", {race, unwaited_read, missing}, drop_predecessor, kOrderImplied},
      {"signal too early",
       {missing},
       signal_too_early,
       "the ranks that the signal was to vouch for also reach the receiver on another way"},
      {"come after itself", {bad_predecessor}, come_after_itself},
      {"come after a later op", {bad_predecessor}, come_after_a_later_op},
      {"come after an op that does not exist", {bad_predecessor}, come_after_no_op},
      {"wait before sending",
       {deadlock, bad_predecessor, race, unwaited_read, missing},
       wait_before_sending,
       "some rank has nothing to wait for and sets the others going"},
      {"scratch too small", {bounds}, shrink_scratch},
      {"rewrite memory while it is sent", {race}, rewrite_while_sending},
      {"copy between overlapping ranges", {overlap}, overlapping_copy},
      {"write the input", {malformed}, write_the_input},
      {"write a slot", {malformed}, write_a_slot},
      {"operands of unequal length", {wrong_size}, shorter_target},
      {"write the range one further",
       {bounds, overlap, race, missing, misplaced, doubled, undefined_read},
       target_at_next_element},
      {"negative offset", {bounds}, negative_offset},
      {"range that overflows", {bounds}, overflowing_range},
      {"read a slot that does not exist", {bounds}, source_in_no_slot},
      {"reverse the operands of an ordered reduction", {out_of_order}, reverse_operands},
      {"drop a reduce", {undefined_read, missing, race, unwaited_read}, drop_reduce},
      {"drop a copy", {undefined_read, missing, race, unwaited_read}, drop_copy},
      {"lose the right operand", {missing}, lose_right_operand},
      {"lose an operand of a sum", {missing}, lose_operand},
      {"sum an operand twice", {missing, doubled}, repeat_operand},
      {"sum a sum", {partial_sum, race}, sum_a_sum},
      {"reduce twice", {doubled}, reduce_twice},
      {"reduce without an operator", {bad_operand}, reduce_without_operator},
      {"drop a schedule", {malformed}, drop_schedule},
      {"exchange two schedules", {malformed}, swap_schedules},
      {"another shape at one rank", {malformed}, other_shape},
      {"root out of range", {malformed}, root_out_of_range},
      {"negative count", {malformed}, negative_count},
      {"hosts of more ranks", {malformed}, hosts_of_more_ranks},
      {"exchange the lengths of two blocks", {bounds, misplaced, missing}, exchange_lengths},
      {"other receivers", {bounds, missing}, other_receivers},
      {"a scan for an exclusive one", {bounds, missing}, other_scan},
      {"negative scratch", {malformed}, negative_scratch},
      {"unknown kind of op", {malformed}, unknown_kind},
      {"unknown memory", {malformed, bounds}, unknown_memory},
      {"predecessors outside their pool", {malformed}, broken_pool},
      {"send without target", {malformed}, send_without_target},
  };
}

// At most this many mutants of a kind are proved for each base, evenly chosen.
constexpr std::int64_t kMutantsPerBase = 24;
constexpr int kOrders = 20;

TEST(Mutation, ThereAreAtLeastTwentyKinds) {
  std::set<std::string_view> names;
  for (const Mutation& mutation : all_mutations()) names.insert(mutation.name);
  EXPECT_EQ(names.size(), all_mutations().size());
  EXPECT_EQ(names.size(), 57u);
}

TEST(Mutation, EveryMutantIsFound) {
  const auto bases = all_bases();
  Trial::Random random(2024);
  for (const Mutation& mutation : all_mutations()) {
    std::size_t found = 0;
    for (const Base& base : bases) {
      const Mutants mutants = mutation.mutants(base.set);
      const std::size_t stride = mutants.size() / at(harness::scaled(kMutantsPerBase)) + 1;
      for (std::size_t i = 0; i < mutants.size(); i += stride) {
        SCOPED_TRACE(testing::Message()
                     << mutation.name << ", mutant " << i << " of " << base.name);
        const auto violations = prove(mutants[i]);
        if (!violations.empty()) {
          ++found;
          EXPECT_TRUE(std::ranges::count(mutation.rules, violations.front().rule) > 0)
              << rule_name(violations.front().rule) << ": " << violations.front().message;
          continue;
        }
        ASSERT_TRUE(!mutation.harmless_when.empty() || drops_results(base))
            << "not found:\n"
            << schedule::print(mutants[i]);
        const std::string wrong = try_out(mutants[i], kOrders, random);
        ASSERT_EQ(wrong, "") << "not found:\n" << schedule::print(mutants[i]);
      }
    }
    EXPECT_GT(found, 0u) << mutation.name << " never did any harm";
  }
}

}  // namespace
}  // namespace unisono::check::mutation_test
