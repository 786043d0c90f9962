// SPDX-License-Identifier: BSD-3-Clause
// Communicator: some ranks of a job, in an order, and the collectives among them. It owns the order
// of operations, the two lanes through which they run (small and bulk), and the plans. Its shared
// segment is reserved when it is made; the buffers become real memory at the first collective that
// needs them, and are bounded. One thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/lane.hpp"
#include "engine/operation.hpp"
#include "group/agreement.hpp"
#include "group/call.hpp"
#include "group/consent.hpp"
#include "group/ends.hpp"
#include "group/failure.hpp"
#include "group/failure_news.hpp"
#include "group/job.hpp"
#include "group/nic_path.hpp"
#include "group/plan_cache.hpp"
#include "group/query.hpp"
#include "group/remote_calls.hpp"

namespace unisono::group {

// How a communicator's segment is divided; offsets from its start. Its leader decides, the other
// members take it from there, so that settings which differ between ranks cannot pull them apart.
// On every host of its members it lies at the same place of the host's memory.
struct SegmentLayout {
  engine::LaneGeometry small, bulk;
  std::int64_t notices, farewells, ends, members, calls, small_control, bulk_control;
  std::int64_t small_windows, bulk_windows;  // from here on memory only where it is needed
  std::int64_t agreement, answers, failure_answers, host_reduction, bytes;
  std::uint64_t first_sequence;
};

// A number that tells whether two ranks divide their memory alike (JobDescription::memory_layout).
std::uint64_t memory_layout(const base::Settings& settings);

// At the start of a communicator's segment.
struct CommunicatorHeader {
  SegmentLayout layout;
  FailureRecord failure;
  alignas(64) std::atomic<std::uint32_t> credit_sleepers;  // ranks that sleep until one completes
  std::atomic<std::uint32_t> freed;       // members of this host that have ended it, or died
  std::atomic<std::uint64_t> derivation;  // the last one's number and outcome (derive.cpp)
};

// What the leader of a new communicator tells its members.
struct Grant {
  std::int64_t offset = -1;  // -1: there was no memory
  SegmentLayout layout{};
};

// "it finalized, or left, ..."
const char* how_it_went(RankState state);

// An operation that was started and not yet collected by its owner.
struct Pending {
  enum class State : std::uint8_t { running, complete, failed };
  engine::Operation operation;
  State state = State::running;
  std::int64_t started_ns = 0;  // when it was first seen to wait; 0: never
  std::uint32_t looks = 0;      // thorough ones, at what it waits for
  std::int64_t staging = 0;     // of the plan's staging_bytes in job memory; 0: none
};

struct CommunicatorStatistics {
  std::int64_t buffer_bytes = 0;  // committed windows, all ranks together
  std::int64_t operations = 0;
  std::int64_t in_nic = 0;  // of these, in the NIC path
  std::int64_t sleeps = 0;
  std::int64_t helped_steps = 0;
  engine::Counters engine;
  const CachedPlan* last_plan = nullptr;  // PlanCache::last_used
};

class Communicator {
 public:
  static base::Result<std::unique_ptr<Communicator>> create_world(Job& job);
  // Pure.
  static SegmentLayout plan_layout(int ranks, const base::Settings& settings);
  // Tells the members on other hosts which operations this rank has completed, before it goes, and
  // leaves the NIC path.
  void publish_progress();
  // Collective. nullptr for a rank that takes no part.
  base::Result<std::unique_ptr<Communicator>> duplicate();
  base::Result<std::unique_ptr<Communicator>> split(int color, int key);
  base::Result<std::unique_ptr<Communicator>> from_list(std::span<const int> members);

  // Collective over the members that live: those of them that all agree on, in their order. It ends
  // this communicator, and can be done once. Before: no operation is pending (shrink.cpp).
  base::Result<std::unique_ptr<Communicator>> shrink();
  // The same in turns, for who drives several ranks: begin_shrink(), then step_shrink() until it
  // gives something.
  base::Status begin_shrink();
  base::Result<std::optional<std::unique_ptr<Communicator>>> step_shrink();

  // The word of this rank that the others' queries see; 0 before the first call (query.cpp).
  void publish(std::uint64_t value);
  // Whether `word how value` holds for the word that each member has, at some time during the call.
  // rank_lost if a member is gone. The same in turns: begin_query(), then step_query().
  base::Result<bool> query(Comparison how, std::uint64_t value);
  base::Status begin_query();
  base::Result<std::optional<bool>> step_query(Comparison how, std::uint64_t value);

  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(job_ranks_.size()); }
  Job& job() { return job_; }
  const std::vector<int>& members_of_job() const { return job_ranks_; }

  // The plan of a call, prepared: buffers are there. Local.
  base::Result<CachedPlan*> plan(const Call& call);

  // Blocking; the second with a plan of this communicator.
  base::Status run(const Call& call, const void* input, void* output);
  base::Status run(CachedPlan& plan, const void* input, void* output);
  // Split phase: `pending` is the caller's and stays where it is until it is complete or failed, or
  // withdrawn.
  base::Status start(CachedPlan& plan, const void* input, void* output, Pending& pending);
  void withdraw(Pending& pending);

  // Carries all operations on; true if any ended.
  bool progress();
  // Where there is an agent, it carries on what is under way while this thread does something else:
  // at once, or if this thread does not come back within a moment.
  void lend(bool at_once) { lend_when(at_once ? Agent::When::at_once : Agent::When::later); }
  // It leaves this communicator alone again, so that operations and their state may be looked at.
  // All functions do that themselves; start(), and a run() beside others, lend at their end.
  void take_back() {
    if (lent_) [[unlikely]]
      take_back_lent();
  }
  // For the agent: false if nothing is left to do.
  bool carry_on();
  // Waits until one of `awaited` has ended, the communicator's own ones included. `communicators`
  // are those that have to make progress for it, all of this rank.
  static void wait_any(std::span<Communicator* const> communicators,
                       std::span<Pending* const> awaited);
  // Why a failed operation failed; from now on the caller has been told.
  base::Error failure();
  bool failed() {
    take_back();
    return failure_.has_value();
  }
  // Whether the next operation fails. Those before the failed one are begun still: the others may
  // have begun them, and would wait.
  bool begins_no_more() {
    take_back();
    return failure_ && failure_->index <= next_index_;
  }

  // For a call that this rank cannot make and the others would wait for, whatever the reason: ends
  // the communicator for all from that call on, and gives the error for the caller. All failures
  // before an operation begins go through here. `what` begins with the function's name.
  base::Error refuse(base::Code code, const std::string& what);
  // Ends the communicator for all, from operation `index` on, and tells why.
  void fail_all(base::Code code, const std::string& message, std::uint64_t index);
  // Whether the caller has been told of the failure.
  bool failure_told() const { return told_; }
  // Carries all operations on without waiting, and now and then looks for what may be wrong, as who
  // waits does: for a rank that polls.
  void look();
  // Looks for a failure that this rank has not run into.
  void look_for_failure();
  // Whether something has happened that ends what is pending; the same in a turn of a wait, which
  // looks thoroughly when it has lasted.
  void examine(bool waited_long);

  const CommunicatorStatistics& statistics() {
    take_back();
    statistics_.last_plan = plans_.last_used();
    return statistics_;
  }
  PlanCache& plans() { return plans_; }

 private:
  friend class Derivation;

  bool advance();
  bool lend_when(Agent::When when);
  void take_back_lent();
  void end_lending();
  static base::Result<std::int64_t> reserve(Job& job, int ranks);

  // Commits what the members of this host share, where another host's rank has reserved it.
  static base::Status adopt(Job& job, std::int64_t offset, const SegmentLayout& layout);

  Communicator(Job& job, std::vector<int> job_ranks, int rank, std::int64_t offset,
               const SegmentLayout& layout, bool is_world);

  bool is_remote(int rank) const {
    return !job_.hosts().is_here(job_ranks_[static_cast<std::size_t>(rank)]);
  }
  RankState state_of(int rank) const {
    return job_.state(job_ranks_[static_cast<std::size_t>(rank)]);
  }
  std::vector<int> find_remote() const;
  std::vector<std::vector<int>> remote_by_host() const;
  std::vector<int> hosts_of_members() const;
  std::vector<bool> find_group() const;
  bool count_end();
  void say_farewell(bool last_here);
  void tell_end();
  // Takes no part in a shrink: it has ended the communicator without one.
  bool has_ended_before_shrink(int rank) const;
  PlanContext plan_context() const;
  std::optional<Failure> known_failure() const { return news_.earliest(); }
  void ask_for_failure();
  MemberRecord* members() const {
    return reinterpret_cast<MemberRecord*>(job_.memory().at(offset_ + layout_.members));
  }
  FailureNotice* notices() const {
    return reinterpret_cast<FailureNotice*>(job_.memory().at(offset_ + layout_.notices));
  }

  base::Status prepare(bool bulk);
  base::Status stage(const CachedPlan& plan, Pending& pending);
  void give_back_staging(Pending& pending);
  void tell_awaited(const engine::Operation& operation);
  void begin(CachedPlan& plan, const void* input, void* output, Pending& pending);
  void note_call(std::uint32_t digest);
  std::uint32_t flag_history() const;
  base::Status finish(Pending& pending);
  base::Status exchange(Purpose purpose, std::int32_t digest, const void* own, void* all,
                        std::int64_t bytes);

  // The NIC path: how it comes (nic_setup.cpp), and what goes by it (nic_path.cpp).
  struct NicOperation;
  base::Status agree_on_nic();
  engine::NicGroupOptions nic_options(const topology::HostMap& hosts) const;
  base::Result<std::unique_ptr<engine::NicGroup>> join_nic(
      const topology::HostMap& hosts, std::span<const engine::NicOffer> offers) const;
  base::Result<std::optional<int>> find_without(bool goes_along);
  void tell_of_nic(const std::string& why_not) const;
  base::Status run_in_nic(CachedPlan& plan, const void* input, void* output);
  base::Status await_nic(NicOperation& operation);
  void sleep_in_nic(NicOperation& operation, bool at_once);
  bool has_failed_by(std::uint64_t index) const;
  bool is_being_told() const;
  bool may_have_known(int rank);
  int cause_of_loss(int rank) const;
  base::Error give_up_nic();
  base::Error fail_in_nic(const NicOperation& operation, const base::Error& why);
  void tell_difference(const NicOperation& operation, int other);
  void examine_nic(NicOperation& operation);
  void examine_members_in_nic(NicOperation& operation);
  void examine_standings(NicOperation& operation);
  void examine_ends_in_nic(const NicOperation& operation);
  void ask_for_failure_in_nic();
  void examine_nic_deadline(const NicOperation& operation);
  NicStanding standing() const;
  void publish_standing(bool ended = false);
  std::optional<NicStanding> farewell_of(int rank) const;
  std::optional<NicStanding> standing_of(const NicPath::Neighbour& next) const;
  bool awaits_answer(const NicPath::Neighbour& next) const;
  bool is_owed_by(const NicPath::Neighbour& next, const NicStanding& own,
                  const std::optional<NicStanding>& other) const;
  void await_silence_in_nic();
  template <class Which>
  void ask_for_standings(const Which& which);
  bool may_leave_nic() const;
  void leave_nic();

  base::Error lost_in_shrink(const base::Error& why) const;
  base::Error late_in_shrink(std::int64_t limit_ns) const;
  std::vector<std::byte> offer_segment(const std::vector<int>& members);
  base::Error refused_in_shrink(int by);
  base::Error excluded_in_shrink();
  base::Status take(Agreement::Decision decision);
  base::Result<std::unique_ptr<Communicator>> follow();
  base::Error end_shrink_without(std::span<const int> missing, std::unique_ptr<Communicator> made);
  std::unique_ptr<Communicator> build_shrunk(const Grant& grant);
  QueryAnswer& query_answer(int member) const;
  std::optional<base::Error> lost_member() const;
  void ask_for_words();
  // A wait for what is no operation: turn() until it gives something.
  template <class Turn>
  auto wait_for(const Turn& turn) -> decltype(turn());

  void adopt_failure();
  void examine_after_sleep();
  void examine_now_and_then();
  void examine_members();
  void examine_stops();
  bool examine_ends();
  void fail_without(int rank, const std::string& what, std::uint64_t index);
  void examine_calls();
  void examine_deadline();
  void examine_silence();
  // The first operation, of those whose records are still there, that another rank called
  // otherwise.
  struct Difference;
  std::optional<Difference> find_difference() const;
  void examine_remote_calls();
  bool search_difference();
  void mismatch(const Pending& pending);
  void tell_meeting(const Pending& pending, int other);
  void tell_difference(const Difference& difference);
  void unreadable(const Pending& pending);
  void wrong_length(const Pending& pending);
  void fail_pending(const Failure& failure);
  std::string name_rank(int rank) const;
  // The next two say also on which host it is, if the job has several.
  std::string locate_rank(int rank) const;
  std::string describe_loss(int rank) const;
  std::string missing(const Pending& pending) const;
  bool credit_blocked() const;
  // Also until `other` is readable (-1: there is none).
  bool sleep(std::span<Communicator* const> communicators, std::int64_t limit_ns, int other = -1);
  // What a thread sleeps on.
  struct Bed {
    bool datagrams = false, pipe = false;
    std::uint32_t announced = 0;  // of the bell, if it is neither
    int other = -1;
  };
  Bed announce_sleep();
  Network::Woken sleep_announced(const Bed& bed, std::int64_t limit_ns);
  bool has_rung(Network::Woken woken, const reliable::Reliable::Arrived& before);
  void withdraw_sleep(const Bed& bed);

  Job& job_;
  std::vector<int> job_ranks_;
  std::vector<int> remote_;  // members on other hosts
  bool is_world_;
  int rank_;
  std::int64_t offset_;
  CommunicatorHeader* header_;
  SegmentLayout layout_;
  engine::Lane small_, bulk_;
  CommunicatorStatistics statistics_;
  engine::Machine machine_;
  PlanCache plans_;
  std::vector<Pending*> active_;
  Pending blocking_;  // of the blocking call, of which there is one at a time
  // Staging of operations that failed: others may still read it.
  std::vector<std::pair<std::int64_t, std::int64_t>> stranded_;  // offset, bytes
  std::uint64_t next_index_ = 0;
  std::uint64_t history_ = 1;  // of all calls so far
  std::uint32_t prepared_ = 0;
  std::uint32_t alarm_seen_ = 0;
  bool someone_gone_ = false;
  bool told_ = false;
  bool agent_awaits_credit_ = false;
  bool lent_ = false;             // to the agent; written while it does not carry
  std::int64_t examined_ns_ = 0;  // when it was last looked for what may be wrong
  std::optional<Failure> failure_;
  std::int64_t left_since_ns_ = 0;  // a member of another host that had not done its part; 0: none
  FailureNews news_;
  // Of a shrink: what the members agree on, then whether all have the memory for it.
  std::unique_ptr<Agreement> agreement_;
  std::unique_ptr<Consent> consent_;
  std::optional<Agreement::Decision> decision_;
  base::Status memory_ready_ = base::success();  // for the new communicator
  Grant offered_;                                // which this rank has reserved for it
  bool shrunk_ = false;
  std::vector<int> absent_;  // members that never had the memory of this communicator
  Query query_;
  Ends ends_;                     // of all members
  RemoteCalls remote_calls_;      // of members on other hosts, if there are any
  int searched_ = 0;              // of them, for a call that differs; 0: there is no search
  std::unique_ptr<NicPath> nic_;  // null: there is none
};

// While it exists, the agent leaves the communicator alone; at its end, however it comes to that,
// the agent carries on what is under way. For entry points; null: there is nothing to leave alone.
class AgentPause {
 public:
  explicit AgentPause(Communicator* communicator) : communicator_(communicator) {
    if (communicator != nullptr) communicator->take_back();
  }
  ~AgentPause() {
    if (communicator_ != nullptr) communicator_->lend(at_once_);
  }
  AgentPause(const AgentPause&) = delete;
  AgentPause& operator=(const AgentPause&) = delete;

  // The caller looks now and then, and may come back within a moment.
  void is_of_a_look() { at_once_ = false; }

 private:
  Communicator* communicator_;
  bool at_once_ = true;
};

}  // namespace unisono::group
