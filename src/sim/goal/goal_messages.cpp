// SPDX-License-Identifier: BSD-3-Clause
#include "sim/goal/goal_messages.hpp"

#include <utility>

namespace unisono::sim {

void GoalMessages::add(int rank, const GoalOperation& operation) {
  const auto which = static_cast<std::size_t>(rank);
  TraceStep step{.kind = operation.kind, .peer = operation.peer};
  const End end{which, traces_[which].size(), operation.place};
  if (operation.kind == StepKind::work) {
    step.work = to_time(static_cast<double>(operation.amount));
  } else {
    step.bytes = operation.amount;
    if (operation.kind == StepKind::send) {
      sends_[{rank, operation.peer, operation.tag}].push_back(end);
    } else {
      receptions_[{operation.peer, rank, operation.tag}].push_back(end);
      step.slot = slots_[which]++;
    }
  }
  traces_[which].push_back(step);
}

base::Result<std::vector<Trace>> GoalMessages::traces(const Fail& fail) {
  UNISONO_TRY(match(fail));
  UNISONO_TRY(ends(fail));
  return std::move(traces_);
}

base::Status GoalMessages::match(const Fail& fail) {
  for (const auto& [channel, receptions] : receptions_) {
    const auto sent = sends_.find(channel);
    const std::size_t count = sent == sends_.end() ? 0 : sent->second.size();
    if (count < receptions.size()) {
      return fail(receptions[count].place, "expected a send to this reception");
    }
  }
  for (const auto& [channel, sent] : sends_) {
    const auto received = receptions_.find(channel);
    const std::size_t count = received == receptions_.end() ? 0 : received->second.size();
    if (count < sent.size()) return fail(sent[count].place, "expected a reception of this send");
    for (std::size_t i = 0; i < count; ++i) {
      const End& to = received->second[i];
      traces_[sent[i].rank][sent[i].step].slot = traces_[to.rank][to.step].slot;
    }
  }
  return base::success();
}

// Runs all ranks without times.
base::Status GoalMessages::ends(const Fail& fail) const {
  const std::vector<Trace>& traces = traces_;
  std::vector<std::size_t> next(traces.size());
  std::vector<std::vector<bool>> arrived(traces.size());
  for (std::size_t rank = 0; rank < traces.size(); ++rank) {
    arrived[rank].resize(traces[rank].size());
  }
  std::vector<std::int32_t> awaited(traces.size(), -1);
  std::vector<std::size_t> ready(traces.size());
  for (std::size_t rank = 0; rank < ready.size(); ++rank) ready[rank] = rank;
  std::size_t ended = 0;
  while (!ready.empty()) {
    const std::size_t rank = ready.back();
    ready.pop_back();
    awaited[rank] = -1;
    for (; next[rank] < traces[rank].size(); ++next[rank]) {
      const TraceStep& step = traces[rank][next[rank]];
      const auto slot = static_cast<std::size_t>(step.slot);
      const auto peer = static_cast<std::size_t>(step.peer);
      if (step.kind == StepKind::wait && !arrived[rank][slot]) {
        awaited[rank] = step.slot;
        break;
      }
      if (step.kind != StepKind::send) continue;
      arrived[peer][slot] = true;
      if (awaited[peer] != step.slot) continue;
      awaited[peer] = -1;
      ready.push_back(peer);
    }
    if (next[rank] == traces[rank].size()) ++ended;
  }
  if (ended == traces.size()) return base::success();
  return fail(0, "expected ranks that end; some wait for each other");
}

}  // namespace unisono::sim
