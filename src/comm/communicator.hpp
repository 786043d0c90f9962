// SPDX-License-Identifier: BSD-3-Clause
// Communicator: some ranks of a job, in an order, and the collectives among them. It is a facade
// over its parts: the ranks (Members), the shared memory (Segment), the operations in their order
// (OperationQueue), the failure (FailureState). Watchdog and CallCheck look for reasons why
// operations do not end. There are queries, and the ways to new communicators (Derivation, Shrink).
// One thread at a time; between two calls the agent may progress its operations.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "comm/agreement/shrink.hpp"
#include "comm/failure/ends.hpp"
#include "comm/failure/failure_state.hpp"
#include "comm/learning/learner.hpp"
#include "comm/members.hpp"
#include "comm/nic/nic_engine.hpp"
#include "comm/operations/agent_loan.hpp"
#include "comm/operations/operation_queue.hpp"
#include "comm/segment.hpp"
#include "comm/watch/call_check.hpp"
#include "comm/watch/query.hpp"
#include "comm/watch/watchdog.hpp"
#include "job/job.hpp"
#include "plan/call.hpp"
#include "plan/plan_cache.hpp"

namespace unisono::comm {

struct CommunicatorStatistics {
  std::int64_t buffer_bytes = 0;  // committed buffers, all ranks together
  std::int64_t operations = 0;
  std::int64_t in_nic = 0;  // of these, by the NIC path
  std::int64_t sleeps = 0;
  std::int64_t helped_steps = 0;
  engine::Counters engine;
  const plan::Plan* last_plan = nullptr;  // PlanCache::last_used
};

class Communicator {
 public:
  using Made = base::Result<std::unique_ptr<Communicator>>;

  static Made create_world(job::Job& job);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const { return members_.rank(); }
  int size() const { return members_.size(); }
  const Members& members() const { return members_; }

  // The plan of a call, prepared: buffers are there. Local.
  base::Result<const plan::Plan*> plan(const plan::Call& call);
  plan::PlanCache& plans() { return plans_; }

  // Blocking; the second with a plan of this communicator.
  base::Status run(const plan::Call& call, const void* input, void* output);
  base::Status run(const plan::Plan& plan, const void* input, void* output);
  // Split phase: `pending` is the caller's and stays where it is until it is complete or failed.
  base::Status start(const plan::Plan& plan, const void* input, void* output, Pending& pending);
  // Carries all operations on; true if any ended.
  bool progress();
  // The same, and now and then checks for failures, as a waiting rank does: for a rank that polls.
  void look();
  // Waits until one of `awaited` has ended. `communicators`, all of this rank, have to make
  // progress for it.
  static void wait_any(std::span<Communicator* const> communicators,
                       std::span<Pending* const> awaited);

  // Collective. nullptr for a rank that takes no part.
  Made duplicate();
  Made split(int color, int key);
  Made from_list(std::span<const int> members);
  // Collective over the living members; the new one has those on which all agree, in their order.
  // It ends this communicator, and can be called once. No operation may be pending.
  Made shrink();
  // The same in turns, for a caller that drives several ranks: begin_shrink(), then step_shrink()
  // until it returns a communicator.
  base::Status begin_shrink();
  base::Result<std::optional<std::unique_ptr<Communicator>>> step_shrink();

  // The word of each member that all can ask for (query.hpp), in turns or blocking.
  Query& words();
  base::Result<bool> query(Comparison how, std::uint64_t value);

  // The failure of this communicator, and how this rank ends it for all.
  FailureState& failures() {
    loan_.take_back();
    return failures_;
  }
  Watchdog& watchdog() { return watchdog_; }
  const CommunicatorStatistics& statistics();

  // Before this rank leaves: informs the members on other hosts which operations it has completed,
  // and leaves the NIC path.
  void publish_progress();
  // Lends the operations to the agent, and takes them back. All functions here take them back;
  // start(), and a run() beside others, lend at their end.
  AgentLoan& loan() { return loan_; }

 private:
  friend class Derivation;
  friend class ListDerivation;
  friend class CommunicatorWait;
  friend class LearnedCalls;
  friend class Successor;

  Communicator(job::Job& job, std::vector<int> job_ranks, int rank, const Grant& grant,
               bool is_world);
  base::Status exchange(plan::Purpose purpose, std::int32_t digest, const void* own, void* all,
                        std::int64_t bytes);
  bool advance();
  base::Status join_nic();

  job::Job& job_;
  Members members_;
  Segment segment_;
  engine::SizeQueues& size_queues_;
  const bool is_world_;
  OperationQueue queue_;
  FailureState failures_;
  CallCheck calls_;
  Ends ends_;  // which members have ended it
  Watchdog watchdog_;
  Query query_;
  plan::PlanCache plans_;
  std::unique_ptr<Learner> learner_;  // null: algorithms are not learned
  std::unique_ptr<NicEngine> nic_;    // null: there is no NIC path
  std::unique_ptr<Shrink> shrink_;
  Pending blocking_;         // of the blocking call; there is one at a time
  std::vector<int> absent_;  // members that never had the memory of this communicator
  CommunicatorStatistics statistics_;
  AgentLoan loan_;
};

// While it exists, the agent does not touch the communicator; at its end, the agent continues the
// started operations. For entry points; null: no communicator.
class AgentPause {
 public:
  struct ForLook {};

  explicit AgentPause(Communicator* communicator) : communicator_(communicator) {
    if (communicator != nullptr) communicator->loan().take_back();
  }
  // For a look, which may come from a thread with locks: it does not wait for the program's own
  // functions. has_it() is false if another thread calls them just now, and carries on.
  AgentPause(Communicator* communicator, ForLook)
      : communicator_(communicator),
        has_it_(communicator == nullptr || communicator->loan().try_to_take_back()) {}
  ~AgentPause() {
    if (communicator_ != nullptr && has_it_) communicator_->loan().lend(at_once_);
  }
  AgentPause(const AgentPause&) = delete;
  AgentPause& operator=(const AgentPause&) = delete;

  bool has_it() const { return has_it_; }
  // The caller only polls, and may come back within a moment.
  void is_of_a_look() { at_once_ = false; }

 private:
  Communicator* communicator_;
  bool has_it_ = true;
  bool at_once_ = true;
};

}  // namespace unisono::comm
