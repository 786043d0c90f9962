// SPDX-License-Identifier: BSD-3-Clause
#include "engine/engine.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "engine/call_record.hpp"

namespace unisono::engine {

base::Error Engine::error(const Operation& operation) const {
  static_cast<void>(operation);
  return {base::Code::system, "the operation failed"};
}

bool Engine::sleeps_at_once(std::int64_t now_ns) const {
  static_cast<void>(now_ns);
  return false;
}

SleepTarget Engine::prepare_sleep(Operation& operation, std::int64_t limit_ns) {
  static_cast<void>(operation);
  return {.limit_ns = limit_ns};
}

void Engine::after_sleep(Operation& operation, bool was_woken) {
  static_cast<void>(operation);
  static_cast<void>(was_woken);
}

int HostEngine::awaited(const Operation& operation) const { return operation.host.awaited(); }

bool HostEngine::completed_by(const Operation& operation, int rank) const {
  return operation.host.size_queue().completed_by(rank, operation.host.sequence());
}

Stall HostEngine::describe_stall(const Operation& operation) const {
  const HostOperation& host = operation.host;
  const SizeQueue& size_queue = host.size_queue();
  Stall stall;
  if (!host.entered()) stall.late = host.awaited();
  for (int r = 0; r < size_queue.geometry().ranks; ++r) {
    if (r == size_queue.rank()) continue;
    // Long calls have a record for each of their segments.
    const auto is_of_it = [&](const RecordCopy& each) { return each.index >= operation.index; };
    if (std::ranges::none_of(read_records(size_queue, r), is_of_it)) stall.not_called.push_back(r);
  }
  return stall;
}

base::Error InlineEngine::error(const Operation& operation) const {
  return {base::Code::peer_argument,
          fmt::format("the operator failed on rank {}: {}", operation.host.size_queue().rank(),
                      operator_failure_)};
}

// The operation is given up where the caller hears of the failure.
Outcome InlineEngine::note(const plan::OperatorFailure& failure) {
  operator_failure_ = failure.what();
  return Outcome::failed;
}

Outcome HelpingEngine::step(Operation& operation) {
  return operation.host.step<true>(parts_.machine);
}

SleepTarget HelpingEngine::prepare_sleep(Operation& operation, std::int64_t limit_ns) {
  operation.host.begin_later_segments<true>(parts_.machine);
  return Engine::prepare_sleep(operation, limit_ns);
}

}  // namespace unisono::engine
