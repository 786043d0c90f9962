// SPDX-License-Identifier: BSD-3-Clause
// A small executor for the tests. It executes the schedules of all ranks in a random legal order,
// with expressions instead of numbers. A result like "((0 1) 2)" shows the combined ranks, their
// order and the brackets. Independent of src/check on purpose.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/prng.hpp"
#include "schedule/schedule.hpp"

namespace unisono::algorithm::test {

struct Outcome {
  std::vector<std::vector<std::string>> outputs;  // of every rank
  int longest_path = 0;                           // in messages
};

class Executor {
 public:
  Executor(const std::vector<schedule::Schedule>& set, std::uint64_t seed, bool in_place);
  // Runs to the end. Fails the test on a deadlock.
  Outcome run();

 private:
  struct Rank {
    std::vector<std::string> input, output, scratch;
    std::vector<std::vector<std::string>> slots;
    std::vector<int> slot_path;               // the messages behind a filled slot; -1: not filled
    std::vector<int> op_path;                 // the messages behind a finished op; -1: not finished
    std::optional<schedule::InPlace> shared;  // input and output are parts of `output`
  };

  std::string& at(int rank, const schedule::Range& range, std::int64_t element);
  std::vector<std::string> read(int rank, const schedule::Range& range);
  bool runnable(int rank, const schedule::Op& op) const;
  void perform(int rank, const schedule::Op& op);

  const std::vector<schedule::Schedule>& set_;
  std::vector<Rank> ranks_;
  base::Prng random_;
};

using schedule::Memory;
using schedule::Op;
using schedule::OpKind;
using schedule::Range;

inline Executor::Executor(const std::vector<schedule::Schedule>& set, std::uint64_t seed,
                          bool in_place)
    : set_(set), random_(seed) {
  for (const schedule::Schedule& program : set) {
    Rank rank;
    const auto inputs =
        static_cast<std::size_t>(schedule::input_count(program.shape, program.rank));
    const auto outputs =
        static_cast<std::size_t>(schedule::output_count(program.shape, program.rank));
    if (in_place) rank.shared = schedule::in_place(program.shape, program.rank);
    rank.output.resize(outputs);
    if (rank.shared) {
      rank.output.resize(std::max(inputs + static_cast<std::size_t>(rank.shared->input),
                                  outputs + static_cast<std::size_t>(rank.shared->output)));
      std::fill_n(rank.output.begin() + rank.shared->input, inputs, std::to_string(program.rank));
    } else {
      rank.input.assign(inputs, std::to_string(program.rank));
    }
    rank.scratch.resize(static_cast<std::size_t>(program.scratch_count));
    for (const schedule::Slot& slot : program.slots) {
      rank.slots.emplace_back(static_cast<std::size_t>(slot.count));
    }
    rank.slot_path.assign(program.slots.size(), -1);
    rank.op_path.assign(program.ops.size(), -1);
    ranks_.push_back(std::move(rank));
  }
}

inline Outcome Executor::run() {
  std::vector<std::pair<int, std::size_t>> waiting;  // rank, op
  for (std::size_t rank = 0; rank < set_.size(); ++rank) {
    for (std::size_t op = 0; op < set_[rank].ops.size(); ++op) {
      waiting.emplace_back(static_cast<int>(rank), op);
    }
  }
  while (!waiting.empty()) {
    std::vector<std::size_t> runnable_now;
    for (std::size_t i = 0; i < waiting.size(); ++i) {
      const auto [rank, op] = waiting[i];
      if (runnable(rank, set_[static_cast<std::size_t>(rank)].ops[op])) runnable_now.push_back(i);
    }
    if (runnable_now.empty()) {
      ADD_FAILURE() << waiting.size() << " ops wait for ever, the first on rank "
                    << waiting[0].first;
      break;
    }
    const std::size_t chosen = runnable_now[random_.below(runnable_now.size())];
    const auto [rank, op] = waiting[chosen];
    perform(rank, set_[static_cast<std::size_t>(rank)].ops[op]);
    waiting[chosen] = waiting.back();
    waiting.pop_back();
  }
  Outcome result;
  for (Rank& rank : ranks_) {
    for (const int path : rank.op_path) result.longest_path = std::max(result.longest_path, path);
    if (rank.shared) {
      const auto begin = rank.output.begin() + rank.shared->output;
      const auto count =
          schedule::output_count(set_.front().shape, static_cast<int>(&rank - ranks_.data()));
      result.outputs.emplace_back(begin, begin + count);
    } else {
      result.outputs.push_back(std::move(rank.output));
    }
  }
  return result;
}

inline bool Executor::runnable(int rank, const Op& op) const {
  const auto r = static_cast<std::size_t>(rank);
  for (const schedule::OpId before : set_[r].after_of(op)) {
    if (ranks_[r].op_path[static_cast<std::size_t>(before)] < 0) return false;
  }
  return op.kind != OpKind::wait || ranks_[r].slot_path[static_cast<std::size_t>(op.slot)] >= 0;
}

inline void Executor::perform(int rank, const Op& op) {
  const auto r = static_cast<std::size_t>(rank);
  int path = 0;
  for (const schedule::OpId before : set_[r].after_of(op)) {
    path = std::max(path, ranks_[r].op_path[static_cast<std::size_t>(before)]);
  }
  switch (op.kind) {
    case OpKind::send:
    case OpKind::multicast: {
      const std::vector<std::string> message = read(rank, op.left);
      for (const schedule::Target& target : set_[r].targets_of(op)) {
        Rank& peer = ranks_[static_cast<std::size_t>(target.peer)];
        const auto slot = static_cast<std::size_t>(target.slot);
        EXPECT_EQ(peer.slot_path[slot], -1) << "a slot is filled twice";
        EXPECT_EQ(peer.slots[slot].size(), message.size());
        peer.slots[slot] = message;
        peer.slot_path[slot] = path + 1;
      }
      break;
    }
    case OpKind::wait:
      path = std::max(path, ranks_[r].slot_path[static_cast<std::size_t>(op.slot)]);
      break;
    case OpKind::reduce: {
      const std::vector<std::string> left = read(rank, op.left);
      const std::vector<std::string> right = read(rank, op.right);
      for (std::size_t i = 0; i < left.size(); ++i) {
        at(rank, op.target, static_cast<std::int64_t>(i)) = "(" + left[i] + " " + right.at(i) + ")";
      }
      break;
    }
    // "[a b c]" of contributions; a sum of one is as it was.
    case OpKind::sum: {
      std::vector<std::string> sums;
      for (const Range& operand : set_[r].operands_of(op)) {
        const std::vector<std::string> terms = read(rank, operand);
        sums.resize(terms.size());
        for (std::size_t i = 0; i < terms.size(); ++i) {
          sums[i] += (sums[i].empty() ? "" : " ") + terms[i];
        }
      }
      for (std::size_t i = 0; i < sums.size(); ++i) {
        at(rank, op.target, static_cast<std::int64_t>(i)) =
            op.operand_count > 1 ? "[" + sums[i] + "]" : sums[i];
      }
      break;
    }
    case OpKind::copy: {
      const std::vector<std::string> source = read(rank, op.left);
      for (std::size_t i = 0; i < source.size(); ++i) {
        at(rank, op.target, static_cast<std::int64_t>(i)) = source[i];
      }
      break;
    }
  }
  const auto index = static_cast<std::size_t>(&op - set_[r].ops.data());
  ranks_[r].op_path[index] = path;
}

inline std::string& Executor::at(int rank, const Range& range, std::int64_t element) {
  Rank& r = ranks_[static_cast<std::size_t>(rank)];
  const auto i = static_cast<std::size_t>(range.offset + element);
  switch (range.memory) {
    case Memory::input:
      return r.shared ? r.output.at(i + static_cast<std::size_t>(r.shared->input)) : r.input.at(i);
    case Memory::output:
      return r.output.at(i + static_cast<std::size_t>(r.shared ? r.shared->output : 0));
    case Memory::scratch:
      return r.scratch.at(i);
    case Memory::slot:
      return r.slots.at(static_cast<std::size_t>(range.slot)).at(i);
  }
  return r.output.at(i);
}

inline std::vector<std::string> Executor::read(int rank, const Range& range) {
  std::vector<std::string> values;
  for (std::int64_t i = 0; i < range.count; ++i) values.push_back(at(rank, range, i));
  return values;
}

}  // namespace unisono::algorithm::test
