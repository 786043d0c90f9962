// SPDX-License-Identifier: BSD-3-Clause
#include "schedule/cost.hpp"

#include <algorithm>
#include <tuple>

#include "base/check.hpp"

namespace unisono::schedule {
namespace {

bool crosses(const topology::HostMap& hosts, int source, int target) {
  return !hosts.share(source, target);
}

// Executes the set without data. Each rank executes its ops in order up to a wait for an empty
// slot; the rank that fills this slot lets it continue.
class Walk {
 public:
  // The messages that make a path longer.
  enum class Counted : std::uint8_t { all, between_hosts };

  explicit Walk(std::span<const Schedule> set, Counted counted = Counted::all)
      : set_(set), counted_(counted), ranks_(set.size()) {
    std::size_t ops = 0, slots = 0;
    for (std::size_t r = 0; r < set.size(); ++r) {
      ranks_[r].first_op = ops;
      ranks_[r].first_slot = slots;
      ops += set[r].ops.size();
      slots += set[r].slots.size();
      ready_.push_back(r);
    }
    op_path_.resize(ops);
    slot_path_.assign(slots, kUnfilled);
  }

  // visit(message) for all of them, in the order in which the walk reaches them.
  template <class Visit>
  void run(const Visit& visit) && {
    while (!ready_.empty()) {
      const std::size_t rank = ready_.back();
      ready_.pop_back();
      advance(rank, visit);
    }
    for (std::size_t r = 0; r < set_.size(); ++r) {
      UNISONO_CHECK(ranks_[r].next == set_[r].ops.size(), "the cost of schedules that deadlock");
    }
  }

 private:
  static constexpr int kUnfilled = -1;

  struct Rank {
    std::size_t next = 0;                      // op
    std::size_t first_op = 0, first_slot = 0;  // in op_path_ and slot_path_
    SlotId awaited = -1;                       // the slot for which the rank waits
  };

  template <class Visit>
  void advance(std::size_t r, const Visit& visit) {
    const Schedule& schedule = set_[r];
    Rank& rank = ranks_[r];
    int* const op_path = op_path_.data() + rank.first_op;
    const int* const slot_path = slot_path_.data() + rank.first_slot;
    rank.awaited = -1;
    for (; rank.next < schedule.ops.size(); ++rank.next) {
      const Op& op = schedule.ops[rank.next];
      int path = 0;
      for (const OpId before : schedule.after_of(op)) path = std::max(path, op_path[before]);
      if (op.kind == OpKind::wait) {
        const int arrived = slot_path[op.slot];
        if (arrived == kUnfilled) {
          rank.awaited = op.slot;
          return;
        }
        path = std::max(path, arrived);
      }
      for (const Target& target : schedule.targets_of(op)) {
        const int step = path + (counts(schedule, target) ? 1 : 0);
        visit(Message{schedule.rank, target.peer, step, op.left.count});
        fill(target, step);
      }
      op_path[rank.next] = path;
    }
  }

  bool counts(const Schedule& schedule, const Target& target) const {
    return counted_ == Counted::all || crosses(schedule.shape.hosts, schedule.rank, target.peer);
  }

  void fill(const Target& target, int path) {
    Rank& peer = ranks_[static_cast<std::size_t>(target.peer)];
    slot_path_[peer.first_slot + static_cast<std::size_t>(target.slot)] = path;
    if (peer.awaited != target.slot) return;
    peer.awaited = -1;
    ready_.push_back(static_cast<std::size_t>(target.peer));
  }

  std::span<const Schedule> set_;
  Counted counted_;
  std::vector<Rank> ranks_;
  std::vector<int> op_path_;    // by op of each rank: the messages on the longest path to its end
  std::vector<int> slot_path_;  // by slot: the messages on the longest path that fills it
  std::vector<std::size_t> ready_;
};

std::int64_t sent(const Schedule& schedule) {
  std::int64_t elements = 0;
  for (const Op& op : schedule.ops) {
    if (op.kind == OpKind::send || op.kind == OpKind::multicast) elements += op.left.count;
  }
  return elements;
}

}  // namespace

Cost cost(std::span<const Schedule> set) {
  Cost result;
  Walk(set).run(
      [&](const Message& message) { result.steps = std::max(result.steps, message.step); });
  for (const Schedule& schedule : set) result.elements = std::max(result.elements, sent(schedule));
  return result;
}

Cost cost_of_alike(const Schedule& any) {
  Cost result{.steps = 0, .elements = sent(any)};
  std::vector<int> op_path(any.ops.size());
  std::vector<int> slot_path(any.slots.size());
  for (std::size_t i = 0; i < any.ops.size(); ++i) {
    const Op& op = any.ops[i];
    int path = 0;
    for (const OpId before : any.after_of(op)) {
      path = std::max(path, op_path[static_cast<std::size_t>(before)]);
    }
    if (op.kind == OpKind::wait) {
      path = std::max(path, slot_path[static_cast<std::size_t>(op.slot)]);
    }
    for (const Target& target : any.targets_of(op)) {
      slot_path[static_cast<std::size_t>(target.slot)] = path + 1;
      result.steps = std::max(result.steps, path + 1);
    }
    op_path[i] = path;
  }
  return result;
}

CostBetweenHosts cost_between_hosts_of_alike(const Schedule& any) {
  CostBetweenHosts result{.steps = cost_of_alike(any).steps};
  for (const Op& op : any.ops) {
    if (op.target_count == 0) continue;
    ++result.sends;
    result.messages += op.target_count;
    result.elements += op.target_count * op.left.count;
  }
  result.messages *= any.shape.ranks;
  result.sends *= any.shape.ranks;
  result.elements *= any.shape.ranks;
  return result;
}

CostBetweenHosts cost_between_hosts(std::span<const Schedule> set) {
  CostBetweenHosts result;
  Walk(set, Walk::Counted::between_hosts).run([&](const Message& message) {
    result.steps = std::max(result.steps, message.step);
    if (!crosses(set.front().shape.hosts, message.source, message.target)) return;
    ++result.messages;
    result.elements += message.elements;
  });
  for (const Schedule& schedule : set) {
    for (const Op& op : schedule.ops) {
      const auto leaves = [&](const Target& target) {
        return crosses(schedule.shape.hosts, schedule.rank, target.peer);
      };
      if (std::ranges::any_of(schedule.targets_of(op), leaves)) ++result.sends;
    }
  }
  return result;
}

std::vector<Message> messages(std::span<const Schedule> set) {
  std::vector<Message> result;
  Walk(set).run([&](const Message& message) { result.push_back(message); });
  std::ranges::sort(result, {}, [](const Message& m) {
    return std::tuple(m.step, m.source, m.target, m.elements);
  });
  return result;
}

}  // namespace unisono::schedule
