// SPDX-License-Identifier: BSD-3-Clause
// Learner: replaces the algorithms of a communicator's blocking calls by faster ones, from the
// times of the calls themselves (UNISONO_LEARN). It holds a Lesson for each kind of call. At an
// epoch, the ranks exchange the medians of the lessons that are ready, by an allgather of the
// communicator before the next call, and decide alike. Between epochs it adds no message and no
// wait. All ranks reach the same epochs, since they make the same calls. Once a lesson has settled,
// the plan cache has its outcome, and such calls no longer come here. One thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.hpp"
#include "plan/plan.hpp"
#include "plan/plan_cache.hpp"
#include "profile/profile.hpp"
#include "select/lesson.hpp"

namespace unisono::comm {

// The parts of its communicator, as functions.
struct LearnerContext {
  int rank = 0;
  int ranks = 1;
  plan::PlanCache* plans = nullptr;
  profile::Profile* profile = nullptr;  // null: none
  std::int64_t most_operations = 0;     // then the choices are frozen; 0: never
  // The number of the next operation.
  std::function<std::uint64_t()> next_operation = {};
  // A collective: `bytes` of each rank, gathered at all.
  std::function<base::Status(std::int32_t digest, const void* own, void* all, std::int64_t bytes)>
      exchange = {};
  // Executes a plan, after it has prepared the buffers. The learner does not take this call.
  std::function<base::Status(const plan::Plan&, const void* input, void* output)> execute = {};
};

class Learner {
 public:
  // Epochs are at least so many operations apart.
  static constexpr std::uint64_t kOperationsOfEpoch = 1024;
  // Kinds of calls beyond these keep their algorithm.
  static constexpr std::size_t kMostKinds = 64;

  explicit Learner(LearnerContext context);
  Learner(const Learner&) = delete;
  Learner& operator=(const Learner&) = delete;

  // It leaves alone the calls that it makes itself.
  bool takes_calls() const { return !is_executing_; }
  // A blocking call of a plan that learns; the cache has this plan for it. The plan stays.
  base::Status run(const plan::Plan& plan, const void* input, void* output);

  // In sentences, oldest first; the same on all ranks.
  const std::vector<std::string>& decisions() const { return decisions_; }
  std::int64_t trials() const { return trials_; }
  std::int64_t calls() const { return calls_; }  // that came to it
  // For tests: the time of a plan's call in place of the measured one.
  void measure_by(std::function<std::int64_t(const plan::Plan&)> time_of) {
    time_of_ = std::move(time_of);
  }

 private:
  // The part of a call that all ranks know.
  struct Key {
    std::uint32_t digest = 0;
    std::int32_t collective = 0, type = 0, op = 0, root = 0;
    std::int64_t count = 0;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const {
      return key.digest * std::size_t{0x9e3779b97f4a7c15U} + static_cast<std::size_t>(key.count);
    }
  };
  struct Kind {
    std::string call;                                      // for people
    std::vector<plan::Alternative> alternatives;           // by candidate; 0 is the usual choice
    std::vector<std::shared_ptr<const plan::Plan>> plans;  // the same; null: not made yet
    select::Lesson lesson{1};
    bool is_open = false;  // its alternatives are known
    bool has_settled() const { return is_open && lesson.has_settled(); }
  };
  using Kinds = std::unordered_map<Key, std::unique_ptr<Kind>, Hash>;

  Kind* find_kind(const plan::Plan& plan);
  // A call whose algorithm stays; the next ones no longer come here.
  base::Status run_settled(Kind* kind, const plan::Plan& usual, const void* input, void* output);
  base::Status execute(const plan::Plan& plan, const void* input, void* output);
  void open(Kind& kind, const plan::Plan& plan);
  // The plan of a candidate; null: it cannot be made, and is dropped.
  const plan::Plan* plan_of(Kind& kind, const plan::Plan& usual, std::size_t candidate);
  base::Status hold_epoch(std::uint64_t operation);
  void report(const Kind& kind, const select::Lesson::Decision& decision, std::uint64_t operation);

  LearnerContext context_;
  bool is_executing_ = false;
  std::uint64_t next_epoch_ = kOperationsOfEpoch;
  Kinds kinds_;
  std::vector<Kind*> in_order_;  // of their first calls
  Key last_key_;
  Kind* last_ = nullptr;  // of last_key_
  std::vector<std::string> decisions_;
  std::int64_t trials_ = 0, calls_ = 0;
  std::function<std::int64_t(const plan::Plan&)> time_of_;
};

}  // namespace unisono::comm
