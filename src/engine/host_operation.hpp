// SPDX-License-Identifier: BSD-3-Clause
// HostOperation: the state of a collective that this host's processes execute, and its steps.
// step() goes as far as it can without waiting; its caller decides when and how often. The inline
// engine executes this rank's program only. With the helping engine, a blocked rank executes the
// published programs of the ranks it waits for, and a rank that has sent something executes those
// of its receivers. So any awake rank does the ready steps, and a rank that has contributed and is
// not scheduled delays no other. One thread at a time.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/interpreter.hpp"
#include "engine/size_queue.hpp"
#include "plan/plan.hpp"

namespace unisono::engine {

// The arguments of an operation's start.
struct Launch {
  const void* input = nullptr;
  void* output = nullptr;
  std::uint64_t index = 0;       // of the operation in its communicator
  std::uint32_t history = 0;     // digest of this call and all before it on the communicator
  std::byte* staging = nullptr;  // where the plan has staging_bytes
};

class HostOperation {
 public:
  // Takes its sequence numbers and, where there is room, writes the call's record now; steps come
  // later. Launch::history goes into the flags: ranks whose calls differed find out at their next
  // message, if not at this one.
  void start(const plan::Plan& plan, SizeQueue& size_queue, const Launch& launch);
  // helps: by the helping engine. A plan is for one of the two.
  template <bool helps>
  Outcome step(const Machine& machine);
  // step<false>() in place, for an operation that has just been started: most end at once.
  [[gnu::always_inline]] Outcome first_step(const Machine& machine) {
    if (entered_ && senders_know_) [[likely]] {
      const Outcome outcome = run_own(machine);
      if (outcome != Outcome::finished) {
        size_queue_->note_wait();
        return outcome;
      }
      if (end_segment(machine)) [[likely]]
        return Outcome::finished;
    }
    return step<false>(machine);
  }

  // Before this rank sleeps: does the steps of later segments that need no late message, as far as
  // there are receive buffers. The others then find those messages, and wake this rank less often.
  template <bool helps>
  void begin_later_segments(const Machine& machine);

  // It has failed, and may be gone before what it expects has come.
  void give_up(const Machine& machine) const;

  // The sequence number of its current part.
  std::uint64_t sequence() const { return sequence_; }
  bool entered() const { return entered_; }
  const SizeQueue& size_queue() const { return *size_queue_; }
  // The rank whose message it waits for. While it may not be entered, the rank of another host
  // that keeps it from that; -1: none.
  int awaited() const;
  // Whether that message comes by multicast from another host.
  bool awaits_multicast() const;
  // After Outcome::wrong_length: the bytes that this rank expected of awaited(), and those that it
  // sent.
  struct Lengths {
    std::int64_t expected, sent;
  };
  Lengths lengths() const;
  std::int64_t helped_steps() const { return helped_steps_; }
  // The segments behind the current one that have begun.
  int later_segments() const { return later_count_; }

 private:
  // A segment that has begun before it is the current one.
  struct Later {
    Position at;
    bool published = false, staged = false;
  };
  static constexpr int kMostLater = 7;

  const plan::Step* awaited_step() const;
  // begun: where the current segment goes on, if it has begun before; null: it begins.
  void enter(const Later* begun = nullptr);
  bool end_segment(const Machine& machine);
  void begin_segment();
  template <bool helps>
  Outcome advance(const Machine& machine);
  Outcome run_own(const Machine& machine);
  Outcome run_private(const Machine& machine);
  Outcome run_shared(const Machine& machine);
  bool help(const Machine& machine, Outcome& outcome);
  void feed(const Machine& machine, int rank, int depth);
  std::int64_t run_claimed(const Machine& machine, int rank, Outcome& outcome);
  void publish();
  void stage_input();
  void deliver();

  const std::vector<plan::Program>& programs() const { return plan_->parts[part_].programs; }
  const plan::Program& program() const { return *program_; }
  void take_program() { program_ = &programs()[static_cast<std::size_t>(size_queue_->rank())]; }

  const plan::Plan* plan_ = nullptr;
  const plan::Program* program_ = nullptr;  // this rank's, of the part
  SizeQueue* size_queue_ = nullptr;
  std::byte* input_ = nullptr;
  std::byte* output_ = nullptr;
  std::uint64_t index_ = 0;
  std::uint32_t history_ = 0;
  std::uint64_t sequence_ = 0;
  std::int64_t segment_ = 0;
  std::size_t part_ = 0;
  std::int64_t helped_steps_ = 0;
  Position at_;  // not while published
  bool entered_ = false;
  bool senders_know_ = true;  // of other hosts, that they may write to this rank
  bool published_ = false;
  bool moved_ = false;  // since feed() was called
  int later_count_ = 0;
  Frame frame_;
  std::array<Later, kMostLater> later_;
};

// The functions in place are those of every call: a call of a few bytes takes little longer than
// calls of functions do.

inline void write_record(CallRecord& record, const plan::Plan& plan, std::uint64_t sequence,
                         std::uint64_t index) {
  // Each store is a release, so that no reader sees new contents under the old sequence.
  constexpr auto release = std::memory_order_release;
  record.sequence.store(0, release);
  record.index.store(index, release);
  record.count.store(plan.count, release);
  record.digest.store(plan.digest, release);
  record.root.store(plan.root, release);
  record.type.store(plan.type, release);
  record.op.store(plan.op, release);
  record.collective.store(plan.collective, release);
  record.sequence.store(sequence, release);
}

// After a completion: wakes ranks that wait for credit.
void wake_for_credit(const Machine& machine);
// Informs these members on other hosts of this rank's progress.
void tell_progress(const Machine& machine, SizeQueue& size_queue,
                   std::span<const std::int32_t> ranks);

[[gnu::always_inline]] inline void HostOperation::start(const plan::Plan& plan,
                                                        SizeQueue& size_queue,
                                                        const Launch& launch) {
  plan_ = &plan;
  size_queue_ = &size_queue;
  input_ = const_cast<std::byte*>(static_cast<const std::byte*>(launch.input));
  output_ = static_cast<std::byte*>(launch.output);
  index_ = launch.index;
  history_ = launch.history;
  frame_.bases[static_cast<int>(plan::Space::staging)] = launch.staging;
  sequence_ = size_queue.take(plan.segments);
  segment_ = 0;
  part_ = 0;
  later_count_ = 0;
  take_program();
  helped_steps_ = 0;
  senders_know_ = program().remote_senders.empty();
  entered_ = size_queue.may_enter(sequence_, plan.ahead, program());
  if (entered_) [[likely]]
    enter();
}

[[gnu::always_inline]] inline void HostOperation::enter(const Later* begun) {
  published_ = begun != nullptr && begun->published;
  at_ = begun != nullptr ? begun->at : Position{};
  if (begun == nullptr) {
    write_record(size_queue_->record(sequence_, size_queue_->rank()), *plan_, sequence_, index_);
  }
  const plan::Program& own = program();
  size_queue_->note_entry(sequence_, own);
  std::byte* receive_buffers = size_queue_->buffers_of(sequence_);
  std::byte* data = receive_buffers + data_offset(plan_->rotation, sequence_);
  frame_.bases[static_cast<int>(plan::Space::input)] = input_;
  frame_.bases[static_cast<int>(plan::Space::output)] =
      own.stages_output ? data + own.staged_output : output_;
  frame_.bases[static_cast<int>(plan::Space::receive_buffers)] = receive_buffers;
  frame_.bases[static_cast<int>(plan::Space::data)] = data;
  frame_.next_buffers = size_queue_->buffers_of(sequence_ + 1) - receive_buffers;
  frame_.later_buffers = size_queue_->runs_ahead(plan_->ahead)
                             ? size_queue_->later_buffers_of(sequence_) - receive_buffers
                             : 0;
  frame_.tag = make_tag(sequence_, history_);
  frame_.long_round = plan_->rotation.is_long;
  frame_.kernel = plan_->kernel;
  frame_.kernel_context = &plan_->user;
  frame_.sum = plan_->sum;
  moved_ = false;
  if (begun != nullptr) {
    if (begun->staged) frame_.bases[static_cast<int>(plan::Space::input)] = data + own.staged_input;
  } else if (own.gathers_input) [[unlikely]] {
    stage_input();
  }
}

// The rest of this rank's program.
[[gnu::always_inline]] inline Outcome HostOperation::run_own(const Machine& machine) {
  const plan::Program& own = program();
  const Outcome outcome =
      run(own, frame_, machine, at_, static_cast<std::int32_t>(own.steps.size()));
  // Memory that is used again may also be unreadable.
  const bool has_looked = outcome == Outcome::finished || outcome == Outcome::unreadable;
  if (has_looked && own.callers_memory_is_read && machine.may_be_reused(index_)) [[unlikely]]
    return Outcome::overtaken;
  if (outcome != Outcome::finished) return outcome;
  if (own.stages_output) [[unlikely]]
    deliver();
  return outcome;
}

// This rank's part of a segment is over. True: it was the last one.
[[gnu::always_inline]] inline bool HostOperation::end_segment(const Machine& machine) {
  size_queue_->complete(sequence_);
  if (machine.doorbells->anyone_asleep()) [[unlikely]]
    wake_for_credit(machine);
  if (machine.router.leads_elsewhere()) [[unlikely]]
    tell_progress(machine, *size_queue_,
                  size_queue_->told().take_due(size_queue_->done(), program().remote_senders));
  if (++segment_ == plan_->segments) [[likely]]
    return true;
  begin_segment();
  return false;
}

}  // namespace unisono::engine
