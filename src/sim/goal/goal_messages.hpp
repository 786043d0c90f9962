// SPDX-License-Identifier: BSD-3-Clause
// GoalMessages: the operations of a GOAL file, text or binary, become traces. The k-th send of a
// sender, a receiver and a tag meets the k-th reception of these. A file is refused if a message
// has one end only, or if ranks wait for each other. Control path; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string_view>
#include <tuple>
#include <vector>

#include "sim/program/program.hpp"

namespace unisono::sim {

// Limits of what a simulation can hold.
inline constexpr std::int64_t kMostGoalRanks = 1 << 20, kMostGoalBytes = std::int64_t{1} << 50;
inline constexpr std::int64_t kMostGoalNs = 1'000'000'000'000;  // a quarter of an hour
inline constexpr std::int64_t kMostGoalTag = 1'000'000'000;

struct GoalOperation {
  StepKind kind = StepKind::work;  // send, wait or work
  int peer = 0;
  std::int64_t amount = 0;  // bytes of a message, nanoseconds of work
  std::int64_t tag = 0;
  std::int64_t place = 0;  // in the file, for errors
};

class GoalMessages {
 public:
  // The error at a place of the file; 0: of the whole file.
  using Fail = std::function<base::Error(std::int64_t place, std::string_view what)>;

  explicit GoalMessages(int ranks)
      : traces_(static_cast<std::size_t>(ranks)), slots_(static_cast<std::size_t>(ranks)) {}

  // Behind those of the rank that were added before.
  void add(int rank, const GoalOperation& operation);
  // By rank. They end: a set that deadlocks is refused.
  base::Result<std::vector<Trace>> traces(const Fail& fail);

 private:
  // Source, target and tag of messages.
  using Channel = std::tuple<std::int64_t, std::int64_t, std::int64_t>;
  struct End {
    std::size_t rank = 0, step = 0;
    std::int64_t place = 0;
  };

  base::Status match(const Fail& fail);
  base::Status ends(const Fail& fail) const;

  std::vector<Trace> traces_;
  std::vector<std::int32_t> slots_;
  std::map<Channel, std::vector<End>> sends_, receptions_;
};

}  // namespace unisono::sim
