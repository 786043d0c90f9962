// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/two_level.hpp"

#include <algorithm>

#include "algorithm/pattern/fan_in.hpp"
#include "base/check.hpp"
#include "schedule/spares.hpp"

namespace unisono::algorithm::two_level {
namespace {

using schedule::Memory;
using schedule::Op;
using schedule::OpKind;

std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

// A host's scan needs the sum of the hosts before it, without its own.
Collective inner_collective(Collective outer) {
  return outer == Collective::scan ? Collective::exscan : outer;
}

const Algorithm& inner_row(Collective collective, const Parameters& parameters) {
  const Algorithm* outer = find(collective, "two-level");
  UNISONO_CHECK(outer != nullptr, "a collective without two levels");
  const Algorithm* inner =
      find(inner_collective(collective), outer->parameters[0].names[at(parameters.values[0])]);
  UNISONO_CHECK(inner != nullptr, "an inner algorithm that the table does not have");
  return *inner;
}

// Copies ops of an inner schedule into a Builder.
class Embedding {
 public:
  Embedding(Builder& b, const Schedule& inner, const InnerBuffers& buffers, const Cast& cast)
      : b_(b), inner_(inner), buffers_(buffers), cast_(cast) {}

  std::vector<OpId> run() {
    slots_ = cast_.first_slot(inner_.rank);
    for (std::size_t i = 0; !cast_.has_slots && i < inner_.slots.size(); ++i) {
      const schedule::Slot& slot = inner_.slots[i];
      const SlotId made = b_.slot(cast_.rank(slot.source), slot.count);
      UNISONO_CHECK(made == slots_ + static_cast<SlotId>(i),
                    "slots out of step with their senders");
    }
    scratch_ = b_.scratch(inner_.scratch_count);
    if (schedule::Spares::leave_out_order()) {
      for (const Op& op : inner_.ops) {
        if (!touches_nothing(op)) append(op);
      }
      return {};
    }
    std::vector<bool> is_last(inner_.ops.size(), true);
    ends_.reserve(inner_.ops.size());
    outer_.reserve(inner_.ops.size());
    std::vector<OpId> before;
    for (const Op& op : inner_.ops) {
      find_before(op, before);
      if (touches_nothing(op)) {
        outer_.insert(outer_.end(), before.begin(), before.end());
      } else {
        outer_.push_back(append(op));
        b_.also_after(before);
      }
      ends_.push_back(outer_.size());
      for (const OpId id : inner_.after_of(op)) is_last[at(id)] = false;
    }
    std::vector<OpId> last;
    for (std::size_t i = 0; i < ends_.size(); ++i) {
      if (!is_last[i]) continue;
      const std::span<const OpId> ids = outer_of(i);
      last.insert(last.end(), ids.begin(), ids.end());
    }
    return last;
  }

 private:
  OpId append(const Op& op) {
    switch (op.kind) {
      case OpKind::send: {
        const schedule::Target to = target(inner_.targets_of(op)[0]);
        return b_.send(to.peer, to.slot, range(op.left));
      }
      case OpKind::multicast: {
        const OpId sent = b_.multicast({}, range(op.left));
        for (const schedule::Target& to : inner_.targets_of(op)) b_.also_to(target(to));
        return sent;
      }
      case OpKind::wait:
        return b_.wait(slots_ + op.slot);
      case OpKind::reduce:
        return b_.reduce(range(op.target), range(op.left), range(op.right));
      case OpKind::copy:
        return b_.copy(range(op.target), range(op.left));
      case OpKind::sum: {
        std::vector<Range> operands;
        for (const Range& operand : inner_.operands_of(op)) operands.push_back(range(operand));
        return b_.sum(range(op.target), operands);
      }
    }
    return Builder::kNone;
  }

  bool touches_nothing(const Op& op) const {
    return op.kind == OpKind::copy && (op.left.count == 0 || range(op.target) == range(op.left));
  }

  // The predecessors of an inner op. If all of its inner predecessors are waits, it comes after all
  // of `ready` as well; later ops follow from that.
  void find_before(const Op& op, std::vector<OpId>& before) const {
    before.clear();
    bool is_ready = op.kind == OpKind::wait;
    for (const OpId id : inner_.after_of(op)) {
      const std::span<const OpId> ids = outer_of(at(id));
      before.insert(before.end(), ids.begin(), ids.end());
      is_ready = is_ready || inner_.ops[at(id)].kind != OpKind::wait;
    }
    if (!is_ready) before.insert(before.end(), buffers_.ready.begin(), buffers_.ready.end());
  }

  // The outer op of an inner one or, if it is left out, the predecessors of that.
  std::span<const OpId> outer_of(std::size_t inner) const {
    const std::size_t begin = inner == 0 ? 0 : ends_[inner - 1];
    return std::span(outer_).subspan(begin, ends_[inner] - begin);
  }

  schedule::Target target(const schedule::Target& inner) const {
    return {cast_.rank(inner.peer), cast_.first_slot(inner.peer) + inner.slot};
  }

  Range range(Range inner) const {
    if (inner.memory == Memory::slot) {
      inner.slot += slots_;
      return inner;
    }
    Range outer = inner.memory == Memory::input    ? buffers_.input
                  : inner.memory == Memory::output ? buffers_.output
                                                   : scratch_;
    outer.offset += inner.offset;
    outer.count = inner.count;
    return outer;
  }

  Builder& b_;
  const Schedule& inner_;
  const InnerBuffers& buffers_;
  const Cast& cast_;
  SlotId slots_ = 0;
  Range scratch_;
  std::vector<OpId> outer_;        // outer_of() of all inner ops, one after another
  std::vector<std::size_t> ends_;  // by inner op: where those of the next one begin
};

}  // namespace

int Levels::size(int host) const {
  return shape_.hosts.given() ? static_cast<int>(shape_.hosts.members(host).size()) : shape_.ranks;
}

int Levels::member(int host, int place) const {
  return shape_.hosts.given() ? shape_.hosts.members(host)[at(place)] : place;
}

int Levels::leader_place(int host) const {
  if (lead_ == Lead::highest) return size(host) - 1;
  const bool has_root = lead_ == Lead::root && schedule::is_rooted(shape_.collective) &&
                        this->host(shape_.root) == host;
  return has_root ? place(shape_.root) : 0;
}

Branch branch(const Shape& shape, const Levels& levels, int rank, int fan_in) {
  const int host = levels.host(rank);
  const int size = levels.size(host);
  const int top = levels.leader_place(host);
  const int own = levels.place(rank);
  Branch result;
  if (shape.ordered && top > 0) {
    if (own != top) {
      result.parent = levels.member(host, top);
      result.child_number = slot_of(own, top);
      return result;
    }
    for (int place = 0; place < size; ++place) {
      if (place != top) result.children.push_back(levels.member(host, place));
    }
    result.lower = top;
    return result;
  }
  const pattern::FnomialTree tree(size, std::min(fan_in, std::max(size - 1, 1)) + 1, top);
  const pattern::TreeNode node = tree.node(own);
  if (node.parent >= 0) result.parent = levels.member(host, node.parent);
  result.child_number = node.child_number;
  for (int child = 0; child < node.children; ++child) {
    result.children.push_back(levels.member(host, tree.child(own, child)));
  }
  return result;
}

Value combine(Builder& b, Value own, Range target, const Branch& branch, SlotId first) {
  const Range scratch = branch.lower > 1 ? b.scratch(target.count) : Range{};
  const int children = static_cast<int>(branch.children.size());
  return combine_around(b, own, target, scratch, first, branch.lower, children - branch.lower);
}

Schedule inner_schedule(const Shape& shape, const Parameters& parameters, const Levels& levels,
                        Shape inner, int host) {
  inner.collective = inner_collective(shape.collective);
  inner.ranks = levels.hosts();
  inner.root = schedule::is_rooted(shape.collective) ? levels.host(shape.root) : 0;
  inner.ordered = shape.ordered;
  const Algorithm& row = inner_row(shape.collective, parameters);
  return row.build(inner, default_parameters(row, inner), host);
}

std::vector<OpId> embed(Builder& b, const Schedule& inner, const InnerBuffers& buffers,
                        const Cast& cast) {
  return Embedding(b, inner, buffers, cast).run();
}

std::vector<OpId> embed(Builder& b, const Schedule& inner, const InnerBuffers& buffers,
                        const Levels& levels, const std::function<SlotId(int host)>& first_slot) {
  return embed(b, inner, buffers,
               {.rank = [&](int host) { return levels.leader(host); }, .first_slot = first_slot});
}

void release(Builder& b, const Levels& levels, int leader, Range value, std::span<const OpId> after,
             int except) {
  const int host = levels.host(leader);
  std::vector<schedule::Target> targets;
  for (int place = 0; place < levels.size(host); ++place) {
    const int rank = levels.member(host, place);
    if (rank != leader && rank != except) targets.push_back({rank, 0});
  }
  if (targets.empty()) return;
  send_to_each(b, static_cast<int>(targets.size()), {value}, [&](int i) { return targets[at(i)]; });
  for (const OpId before : after) b.also_after(before);
}

const char* breaks_order(const Shape& shape, const Parameters& parameters) {
  if (!shape.ordered || !shape.hosts.given()) return nullptr;
  if (!shape.hosts.are_neighbours()) {
    return "the operator does not commute, and a host's ranks do not follow one another";
  }
  if (!inner_row(shape.collective, parameters).keeps_order) {
    return "the operator does not commute, and the inner algorithm does not keep the order of "
           "ranks";
  }
  return nullptr;
}

}  // namespace unisono::algorithm::two_level
