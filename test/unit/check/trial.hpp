// SPDX-License-Identifier: BSD-3-Clause
// Trials: execute a set element by element in random legal orders and compare with the definition
// of the collective. Written independently of check/ (no pieces, no orders, no rules), to test it:
// no trial may fail on a set that prove() accepts.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <queue>
#include <random>
#include <string>
#include <vector>

#include "schedule/schedule.hpp"

namespace unisono::check {

class Trial {
 public:
  using Set = std::vector<schedule::Schedule>;
  using Random = std::mt19937;

  Trial(const Set& set, bool in_place) : set_(set) {
    for (const auto& s : set) {
      Rank rank;
      const std::int64_t inputs = schedule::input_count(s.shape, s.rank);
      const std::int64_t outputs = schedule::output_count(s.shape, s.rank);
      if (in_place) rank.shared = schedule::in_place(s.shape, s.rank);
      if (rank.shared) {
        rank.output.resize(
            at(std::max(rank.shared->input + inputs, rank.shared->output + outputs)));
      } else {
        rank.output.resize(at(outputs));
        rank.input.resize(at(inputs));
      }
      rank.scratch.resize(at(s.scratch_count));
      for (const auto& slot : s.slots) rank.slots.emplace_back(at(slot.count));
      rank.filled.resize(s.slots.size());
      rank.done.resize(s.ops.size());
      ranks_.push_back(std::move(rank));
      for (std::int64_t i = 0; i < inputs; ++i) {
        element(s, schedule::input(i, 1), 0) = Element{{s.rank, i}};
      }
    }
  }

  // Runs until nothing can run; `kept_out` never begins. The order follows random priorities.
  void run(Random& random, int kept_out = -1) {
    std::priority_queue<Ready> ready;
    std::vector<std::vector<bool>> queued;
    const auto queue_what_may_run = [&](const schedule::Schedule& s, std::size_t from) {
      for (std::size_t op = from; op < s.ops.size(); ++op) {
        if (queued[at(s.rank)][op] || !may_run(s, op)) continue;
        queued[at(s.rank)][op] = true;
        ready.push({static_cast<unsigned>(random()), s.rank, op});
      }
    };
    for (const auto& s : set_) {
      queued.emplace_back(s.ops.size());
      if (s.rank != kept_out) queue_what_may_run(s, 0);
    }
    while (!ready.empty()) {
      const auto [priority, rank, op] = ready.top();
      ready.pop();
      const auto& s = set_[at(rank)];
      execute(s, op);
      queue_what_may_run(s, op + 1);
      for (const auto& target : s.targets_of(s.ops[op])) {
        if (target.peer != kept_out) queue_what_may_run(set_[at(target.peer)], 0);
      }
    }
  }

  // Runs each rank's ops one after another as they stand.
  void run_in_program_order() {
    for (bool moved = true; moved;) {
      moved = false;
      for (const auto& s : set_) {
        std::size_t op = 0;
        while (op < s.ops.size() && ranks_[at(s.rank)].done[op]) ++op;
        while (op < s.ops.size() && may_run(s, op)) {
          execute(s, op++);
          moved = true;
        }
      }
    }
  }

  bool has_ended(int rank) const {
    for (const bool done : ranks_[at(rank)].done) {
      if (!done) return false;
    }
    return true;
  }

  // Empty if all is right.
  std::string complaint() {
    for (const auto& s : set_) {
      if (!has_ended(s.rank)) return fmt::format("rank {} is stuck", s.rank);
      for (std::int64_t i = 0; i < schedule::output_count(s.shape, s.rank); ++i) {
        auto found = element(s, schedule::output(i, 1), 0);
        if (!found) return fmt::format("rank {}, output {} undefined", s.rank, i);
        if (!s.shape.ordered) std::sort(found->begin(), found->end());
        if (*found != expected(s.shape, s.rank, i)) {
          return fmt::format("rank {}, output {} is wrong", s.rank, i);
        }
      }
    }
    return {};
  }

 private:
  using Element = std::vector<std::pair<int, std::int64_t>>;  // contributions: rank, element
  using Elements = std::vector<std::optional<Element>>;

  struct Rank {
    Elements input, output, scratch;
    std::vector<Elements> slots;
    std::vector<bool> filled, done;
    std::optional<schedule::InPlace> shared;  // input and output are parts of `output`
  };

  struct Ready {
    unsigned priority;
    int rank;
    std::size_t op;

    bool operator<(const Ready& other) const { return priority < other.priority; }
  };

  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

  // Blocks one after another in the order of ranks: the rank whose block holds element i, and its
  // offset in it.
  static std::pair<int, std::int64_t> origin(const schedule::Shape& shape, int rank,
                                             std::int64_t i) {
    for (int r = 0;; ++r) {
      const std::int64_t count = shape.collective == schedule::Collective::alltoall
                                     ? schedule::received_block(shape, r, rank).count
                                     : schedule::block(shape, r).count;
      if (i < count) return {r, i};
      i -= count;
    }
  }

  static Element expected(const schedule::Shape& shape, int rank, std::int64_t i) {
    Element all;
    const auto join = [&](int ranks, std::int64_t element) {
      for (int r = 0; r < ranks; ++r) all.emplace_back(r, element);
    };
    switch (shape.collective) {
      case schedule::Collective::barrier:
        break;
      case schedule::Collective::broadcast:
        all = {{shape.root, i}};
        break;
      case schedule::Collective::allgather:
      case schedule::Collective::gather:
      case schedule::Collective::many_to_many:
        all = {origin(shape, rank, i)};
        break;
      case schedule::Collective::scatter:
        all = {{shape.root, schedule::block(shape, rank).offset + i}};
        break;
      case schedule::Collective::alltoall: {
        const auto [from, element] = origin(shape, rank, i);
        all = {{from, schedule::sent_block(shape, from, rank).offset + element}};
        break;
      }
      case schedule::Collective::reduce:
      case schedule::Collective::allreduce:
        join(shape.ranks, i);
        break;
      case schedule::Collective::reduce_scatter:
        join(shape.ranks, schedule::block(shape, rank).offset + i);
        break;
      case schedule::Collective::scan:
        join(rank + 1, i);
        break;
      case schedule::Collective::exscan:
        join(rank, i);
        break;
    }
    return all;
  }

  std::optional<Element>& element(const schedule::Schedule& s, const schedule::Range& range,
                                  std::int64_t i) {
    Rank& rank = ranks_[at(s.rank)];
    const std::size_t index = at(range.offset + i);
    switch (range.memory) {
      case schedule::Memory::output:
        return rank.output.at(index + (rank.shared ? at(rank.shared->output) : 0));
      case schedule::Memory::scratch:
        return rank.scratch.at(index);
      case schedule::Memory::slot:
        return rank.slots.at(at(range.slot)).at(index);
      case schedule::Memory::input:
        break;
    }
    return rank.shared ? rank.output.at(index + at(rank.shared->input)) : rank.input.at(index);
  }

  bool may_run(const schedule::Schedule& s, std::size_t id) const {
    const Rank& rank = ranks_[at(s.rank)];
    const schedule::Op& op = s.ops[id];
    if (rank.done[id]) return false;
    for (const auto before : s.after_of(op)) {
      if (!rank.done[at(before)]) return false;
    }
    return op.kind != schedule::OpKind::wait || rank.filled[at(op.slot)];
  }

  void execute(const schedule::Schedule& s, std::size_t id) {
    const schedule::Op& op = s.ops[id];
    ranks_[at(s.rank)].done[id] = true;
    switch (op.kind) {
      case schedule::OpKind::wait:
        return;
      case schedule::OpKind::send:
      case schedule::OpKind::multicast:
        for (const auto& [peer, slot] : s.targets_of(op)) {
          for (std::int64_t i = 0; i < op.left.count; ++i) {
            ranks_[at(peer)].slots.at(at(slot)).at(at(i)) = element(s, op.left, i);
          }
          ranks_[at(peer)].filled[at(slot)] = true;
        }
        return;
      case schedule::OpKind::copy:
        for (std::int64_t i = 0; i < op.target.count; ++i) {
          const auto value = element(s, op.left, i);
          element(s, op.target, i) = value;
        }
        return;
      case schedule::OpKind::sum:
        for (std::int64_t i = 0; i < op.target.count; ++i) {
          std::optional<Element> value;
          for (const schedule::Range& operand : s.operands_of(op)) {
            const auto term = element(s, operand, i);
            if (&operand == &s.operands_of(op).front()) {
              value = term;
            } else if (value && term) {
              value->insert(value->end(), term->begin(), term->end());
            } else {
              value.reset();
            }
          }
          element(s, op.target, i) = value;
        }
        return;
      case schedule::OpKind::reduce:
        for (std::int64_t i = 0; i < op.target.count; ++i) {
          auto value = element(s, op.left, i);
          const auto right = element(s, op.right, i);
          if (value && right) {
            value->insert(value->end(), right->begin(), right->end());
          } else {
            value.reset();
          }
          element(s, op.target, i) = value;
        }
        return;
    }
  }

  const Set& set_;
  std::vector<Rank> ranks_;
};

// The error of the set in one of `orders` random orders, in both placements; empty if there is
// none.
inline std::string try_out(const Trial::Set& set, int orders, Trial::Random& random) {
  for (const bool in_place : {false, true}) {
    Trial sequential(set, in_place);
    sequential.run_in_program_order();
    if (auto wrong = sequential.complaint(); !wrong.empty()) return "in program order, " + wrong;
    for (int i = 0; i < orders; ++i) {
      Trial trial(set, in_place);
      trial.run(random);
      if (auto wrong = trial.complaint(); !wrong.empty()) return wrong;
    }
  }
  if (set.front().shape.collective != schedule::Collective::barrier) return {};
  for (const auto& late : set) {
    Trial trial(set, false);
    trial.run(random, late.rank);
    for (const auto& s : set) {
      if (s.rank != late.rank && trial.has_ended(s.rank)) {
        return fmt::format("rank {} leaves before rank {} enters", s.rank, late.rank);
      }
    }
  }
  return {};
}

}  // namespace unisono::check
