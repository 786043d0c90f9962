// SPDX-License-Identifier: BSD-3-Clause
#include "comm/learning/learner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "arith/type.hpp"
#include "base/clock.hpp"
#include "base/log.hpp"
#include "plan/call.hpp"
#include "plan/digest.hpp"

namespace unisono::comm {
namespace {

using base::Status;

// The lessons of one epoch; others wait for the next one. All epochs exchange equally many bytes,
// so that they have one plan.
constexpr std::size_t kLessonsOfEpoch = 8;
constexpr std::size_t kNumbers = kLessonsOfEpoch * select::kMostLearned;
// Any number: that the place of a trial among the operations is not known to programs.
constexpr std::uint64_t kTrialSeed = 0x756e69736f6e6fU;

// While it exists, calls are the learner's own. They may throw.
class Executing {
 public:
  explicit Executing(bool& flag) : flag_(flag) { flag = true; }
  ~Executing() { flag_ = false; }
  Executing(const Executing&) = delete;
  Executing& operator=(const Executing&) = delete;

 private:
  bool& flag_;
};

plan::Call call_of(const plan::Plan& plan) {
  plan::Call call;
  call.collective = static_cast<schedule::Collective>(plan.collective);
  call.count = plan.count;
  call.type = plan.type;
  call.op = plan.op;
  call.root = plan.root;
  call.element_bytes =
      static_cast<std::int64_t>(arith::type_size(static_cast<arith::Type>(plan.type)));
  return call;
}

}  // namespace

Learner::Learner(LearnerContext context) : context_(std::move(context)) {}

Learner::Kind* Learner::find_kind(const plan::Plan& plan) {
  const Key key{plan.digest, plan.collective, plan.type, plan.op, plan.root, plan.count};
  if (last_ != nullptr && key == last_key_) return last_;
  auto found = kinds_.find(key);
  if (found == kinds_.end()) {
    if (kinds_.size() == kMostKinds) return nullptr;
    found = kinds_.emplace(key, std::make_unique<Kind>()).first;
    in_order_.push_back(found->second.get());
  }
  last_key_ = key;
  last_ = found->second.get();
  return last_;
}

// At its first trial, which is late enough that calls which are made a few times only cost nothing.
void Learner::open(Kind& kind, const plan::Plan& plan) {
  kind.is_open = true;
  kind.call = plan::describe_call(plan.collective, plan.count, plan.type, plan.op, plan.root);
  kind.alternatives = context_.plans->alternatives(call_of(plan));
  if (!kind.alternatives.empty() && kind.alternatives.front().name != plan.algorithm) {
    kind.alternatives.clear();  // not the call that we have taken it for
  }
  const std::size_t candidates = std::max<std::size_t>(1, kind.alternatives.size());
  kind.plans.resize(candidates);
  kind.lesson = select::Lesson(candidates);
}

const plan::Plan* Learner::plan_of(Kind& kind, const plan::Plan& usual, std::size_t candidate) {
  if (candidate == 0) return &usual;
  auto& plan = kind.plans[candidate];
  if (plan == nullptr) {
    auto made = context_.plans->make_as(call_of(usual), kind.alternatives[candidate]);
    if (!made) {
      base::log(base::LogLevel::info, "learn", "{}: {} is left out: {}", kind.call,
                kind.alternatives[candidate].name, made.error().message);
      kind.lesson.drop(candidate);
      return nullptr;
    }
    plan = *std::move(made);
  }
  return plan.get();
}

Status Learner::execute(const plan::Plan& plan, const void* input, void* output) {
  const Executing executing(is_executing_);
  return context_.execute(plan, input, output);
}

Status Learner::run_settled(Kind* kind, const plan::Plan& usual, const void* input, void* output) {
  const bool is_usual = kind == nullptr || kind->lesson.current() == 0;
  const plan::Plan& settled = is_usual ? usual : *kind->plans[kind->lesson.current()];
  context_.plans->settle(usual, settled);
  return execute(settled, input, output);
}

// All ranks make the same calls here, and settle the same kinds before the same operation. So they
// still reach the same epochs.
Status Learner::run(const plan::Plan& usual, const void* input, void* output) {
  ++calls_;
  Kind* const kind = find_kind(usual);
  const std::uint64_t operation = context_.next_operation();
  const auto most = static_cast<std::uint64_t>(context_.most_operations);
  const bool is_frozen = most != 0 && operation >= most;
  if (kind == nullptr || kind->has_settled() || is_frozen) {
    return run_settled(kind, usual, input, output);
  }
  if (operation >= next_epoch_) UNISONO_TRY(hold_epoch(operation));
  const bool is_trial = select::is_trial(kTrialSeed, context_.next_operation());
  if (is_trial && !kind->is_open) open(*kind, usual);
  if (!kind->is_open) return execute(usual, input, output);
  const select::Lesson::Turn turn = kind->lesson.next(is_trial);
  const plan::Plan* const plan = plan_of(*kind, usual, turn.candidate);
  if (plan == nullptr) return execute(usual, input, output);
  if (!turn.is_measured) return execute(*plan, input, output);
  trials_ += turn.candidate != kind->lesson.current() ? 1 : 0;
  const std::int64_t begun_ns = base::now_ns();
  UNISONO_TRY(execute(*plan, input, output));
  kind->lesson.add(turn.candidate, time_of_ ? time_of_(*plan) : base::now_ns() - begun_ns);
  return base::success();
}

// A lesson is ready after so many calls, so all ranks find the same ones ready. Without any, they
// exchange nothing.
Status Learner::hold_epoch(std::uint64_t operation) {
  next_epoch_ = (operation / kOperationsOfEpoch + 1) * kOperationsOfEpoch;
  std::vector<Kind*> ready;
  plan::Digest digest{plan::Call{}};
  for (std::size_t i = 0; i < in_order_.size() && ready.size() < kLessonsOfEpoch; ++i) {
    Kind& kind = *in_order_[i];
    if (!kind.is_open || !kind.lesson.is_ready()) continue;
    ready.push_back(&kind);
    digest.add(i);
  }
  if (ready.empty()) return base::success();
  std::array<std::int64_t, kNumbers> own{};
  for (std::size_t i = 0; i < ready.size(); ++i) {
    for (std::size_t c = 0; c < ready[i]->plans.size(); ++c) {
      own[i * select::kMostLearned + c] = ready[i]->lesson.median_ns(c);
    }
  }
  std::vector<std::int64_t> all(kNumbers * static_cast<std::size_t>(context_.ranks));
  const Executing executing(is_executing_);
  UNISONO_TRY(context_.exchange(static_cast<std::int32_t>(digest.folded()), own.data(), all.data(),
                                sizeof own));
  for (std::size_t i = 0; i < ready.size(); ++i) {
    const auto medians = std::span<const std::int64_t>(all).subspan(i * select::kMostLearned);
    report(*ready[i], ready[i]->lesson.decide(medians, kNumbers), operation);
    if (!ready[i]->has_settled()) continue;
    base::log(base::LogLevel::debug, "learn", "{}: settled from operation {} on", ready[i]->call,
              operation);
  }
  return base::success();
}

void Learner::report(const Kind& kind, const select::Lesson::Decision& decision,
                     std::uint64_t operation) {
  if (decision.dropped > 0) {
    base::log(base::LogLevel::debug, "learn", "{}: {} candidates are far slower than {}", kind.call,
              decision.dropped, kind.alternatives[decision.after].name);
  }
  if (decision.before == decision.after) {
    base::log(base::LogLevel::debug, "learn", "{}: {} stays, {:.2f} us", kind.call,
              kind.alternatives[decision.after].name, decision.after_ns / 1000);
    return;
  }
  std::string text =
      fmt::format("{}: {} in place of {} from operation {} on: {:.2f} us, not {:.2f}", kind.call,
                  kind.alternatives[decision.after].name, kind.alternatives[decision.before].name,
                  operation, decision.after_ns / 1000, decision.before_ns / 1000);
  base::log(context_.rank == 0 ? base::LogLevel::info : base::LogLevel::debug, "learn", "{}", text);
  if (context_.profile != nullptr) context_.profile->add_learned(text);
  decisions_.push_back(std::move(text));
}

}  // namespace unisono::comm
