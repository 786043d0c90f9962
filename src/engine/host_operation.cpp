// SPDX-License-Identifier: BSD-3-Clause
#include "engine/host_operation.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace unisono::engine {
namespace {

using plan::kAhead;
using plan::Program;
using plan::Space;
using plan::Step;
using plan::StepKind;
using plan::wait_segment_bit;

// Between a store and a load that must not change places. An owner publishes and then checks flags;
// a sender raises a flag and then checks whether its receiver has published.
void fence_stores() {
  static thread_local std::atomic<std::uint32_t> word{0};
  word.fetch_add(1, std::memory_order_seq_cst);
}

// How far along a chain of ranks one makes the next ready.
constexpr int kMostHops = 256;

// The position that is published, and back; with the claim.
Position position_of(const Task& task, const Program& program) {
  return {program.begin_of(task.wait_segment.load(std::memory_order_relaxed)),
          task.ahead.load(std::memory_order_relaxed)};
}
void set_position(Task& task, const Program& program, const Position& at) {
  task.wait_segment.store(program.wait_segment_at(at.pc), std::memory_order_relaxed);
  task.ahead.store(at.ahead, std::memory_order_relaxed);
}

std::int64_t steps_done(const Program& program, const Position& at) {
  std::int64_t done = at.pc;
  for (std::int32_t s = program.wait_segment_at(at.pc), most = s + kAhead; s < most; ++s) {
    if ((at.ahead & wait_segment_bit(s)) != 0)
      done += program.begin_of(s + 1) - program.begin_of(s);
  }
  return done;
}

// The frame in which any rank executes a published program.
Frame shared_frame(const Frame& own, const Program& program) {
  Frame frame = own;
  std::byte* data = own.bases[static_cast<int>(Space::data)];
  frame.bases[static_cast<int>(Space::input)] = data + program.staged_input;
  frame.bases[static_cast<int>(Space::output)] = data + program.staged_output;
  return frame;
}

}  // namespace

void wake_for_credit(const Machine& machine) {
  if (machine.credit_sleepers->load(std::memory_order_relaxed) == 0) return;
  for (int r = 0; r < machine.ranks; ++r) machine.doorbells->wake(machine.job_ranks[r]);
}

void tell_progress(const Machine& machine, SizeQueue& size_queue,
                   std::span<const std::int32_t> ranks) {
  for (const std::int32_t rank : ranks) {
    machine.router.put({.target = machine.job_ranks[rank],
                        .flag = size_queue.done_word(),
                        .flag_value = size_queue.done(),
                        .forward = true});
    size_queue.told().note_told(rank, size_queue.done());
  }
}

template <bool helps>
Outcome HostOperation::step(const Machine& machine) {
  for (;;) {
    if (!senders_know_) {
      // This rank may have to complete earlier operations before they may enter this one.
      const std::vector<std::int32_t>& senders = program().remote_senders;
      ToldProgress& told = size_queue_->told();
      tell_progress(machine, *size_queue_,
                    told.take_needed(size_queue_->done(), sequence_, senders));
      senders_know_ = told.know_enough(sequence_, senders);
    }
    if (!entered_) {
      if (!size_queue_->may_enter(sequence_, plan_->ahead, program())) {
        return Outcome::blocked;
      }
      entered_ = true;
      enter();
    }
    const Outcome outcome = advance<helps>(machine);
    if (outcome != Outcome::finished) {
      size_queue_->note_wait();
      return outcome;
    }
    if (end_segment(machine)) return Outcome::finished;
  }
}

void HostOperation::give_up(const Machine& machine) const {
  transport::Landings* const landings = machine.router.landings();
  if (!entered_ || landings == nullptr) return;
  const plan::ReceiveGeometry& geometry = size_queue_->geometry();
  landings->withdraw(frame_.bases[static_cast<int>(Space::receive_buffers)] +
                         geometry.rank_stride() * size_queue_->rank(),
                     static_cast<std::size_t>(geometry.receive_buffer_bytes()));
}

void HostOperation::begin_segment() {
  if (segment_ == plan_->parts[part_].end) {
    ++part_;
    take_program();
  }
  ++sequence_;
  input_ += plan_->input_stride;
  output_ += plan_->output_stride;
  senders_know_ = program().remote_senders.empty();
  entered_ = false;
  if (later_count_ == 0) return;
  entered_ = true;
  enter(&later_.front());
  std::shift_left(later_.begin(), later_.end(), 1);
  --later_count_;
}

// The messages of segments are in receive buffers of their own, but staging is one for all. Nor may
// a segment write what those before it still read. A step that fails stays where it is, and fails
// again in its turn. An operator of the user's must not be called twice, so its segments go one by
// one.
template <bool helps>
void HostOperation::begin_later_segments(const Machine& machine) {
  if (!entered_ || segment_ + 1 == plan_->segments) return;
  const bool has_other_memory = plan_->staging_bytes != 0 || machine.router.leads_elsewhere();
  const bool overlap = plan_->overlaps_in_place && input_ == output_;
  if (has_other_memory || overlap || plan_->user.function != nullptr) return;
  HostOperation copy = *this;  // goes from segment to segment
  copy.later_count_ = 0;
  for (std::size_t i = 0; i < later_.size() && ++copy.segment_ < plan_->segments; ++i) {
    copy.begin_segment();
    if (std::cmp_less(i, later_count_)) {
      copy.enter(&later_[i]);
    } else if (size_queue_->may_enter(copy.sequence_, plan_->ahead, copy.program())) {
      copy.enter();
      ++later_count_;
    } else {
      break;
    }
    copy.entered_ = true;
    copy.advance<helps>(machine);
    const bool staged = copy.frame_.bases[static_cast<int>(Space::input)] != copy.input_;
    later_[i] = {copy.at_, copy.published_, staged};
  }
  helped_steps_ = copy.helped_steps_;
}

const Step* HostOperation::awaited_step() const {
  if (!entered_) return nullptr;
  std::int32_t pc = at_.pc;
  if (published_) {
    const Task& task = size_queue_->task(sequence_, size_queue_->rank());
    pc = program().begin_of(task.wait_segment.load(std::memory_order_relaxed));
  }
  const auto& steps = program().steps;
  if (pc < 0 || static_cast<std::size_t>(pc) >= steps.size()) return nullptr;
  return &steps[static_cast<std::size_t>(pc)];
}

int HostOperation::awaited() const {
  if (!entered_) return size_queue_->laggard(sequence_, program().remote_receivers);
  const Step* const step = awaited_step();
  return step == nullptr ? -1 : step->peer;
}

bool HostOperation::awaits_multicast() const {
  const Step* const step = awaited_step();
  return step != nullptr && step->kind == StepKind::wait && step->to_all;
}

HostOperation::Lengths HostOperation::lengths() const {
  const Step& step = program().steps[static_cast<std::size_t>(at_.pc)];
  return {step.length_header, received_length(step, frame_)};
}

template <bool helps>
Outcome HostOperation::advance(const Machine& machine) {
  if constexpr (!helps) return run_own(machine);
  for (;;) {
    Outcome outcome = published_ ? run_shared(machine) : run_private(machine);
    if (outcome == Outcome::blocked && !published_ && at_.pc < program().helpable_end) {
      publish();
      continue;  // messages that arrived in between would have no helper
    }
    if (moved_) feed(machine, size_queue_->rank(), 0);
    moved_ = false;
    if (outcome != Outcome::blocked || !help(machine, outcome)) return outcome;
  }
}

Outcome HostOperation::run_private(const Machine& machine) {
  const Position before = at_;
  const Outcome outcome = run_own(machine);
  moved_ = moved_ || at_ != before;
  return outcome;
}

Outcome HostOperation::run_shared(const Machine& machine) {
  const Program& own = program();
  Task& task = size_queue_->task(sequence_, size_queue_->rank());
  if (!task.try_claim(sequence_)) return Outcome::blocked;
  Outcome outcome = Outcome::blocked;
  do {
    if (outcome != Outcome::blocked) continue;  // marked too late
    Position at = position_of(task, own);
    const Position before = at;
    outcome = run(own, frame_, machine, at, own.helpable_end);
    moved_ = moved_ || at != before;
    set_position(task, own, at);
    if (outcome == Outcome::finished) {
      task.withdraw();
      published_ = false;
      at_ = at;
      return run_private(machine);
    }
  } while (!task.release(sequence_));
  return outcome;
}

// From then on others may execute the program, so its data must lie in the receive buffer.
void HostOperation::publish() {
  const Program& own = program();
  if (own.stages_input && !own.gathers_input) stage_input();
  Task& task = size_queue_->task(sequence_, size_queue_->rank());
  set_position(task, own, at_);
  task.publish(sequence_, frame_.tag);
  published_ = true;
  fence_stores();
}

void HostOperation::stage_input() {
  const Program& own = program();
  std::byte* staged = frame_.bases[static_cast<int>(Space::data)] + own.staged_input;
  for (const Program::Piece& piece : own.input_pieces) {
    std::memcpy(staged + piece.staged, input_ + piece.place, static_cast<std::size_t>(piece.bytes));
  }
  frame_.bases[static_cast<int>(Space::input)] = staged;
}

// Follows the chain of waiting ranks to the first program that can go on, and executes it. Returns
// true if a step was done, so that the caller tries its own program again.
bool HostOperation::help(const Machine& machine, Outcome& outcome) {
  int feeder = awaited();
  for (int hops = 0; feeder >= 0 && hops < size_queue_->geometry().ranks; ++hops) {
    Task& task = size_queue_->task(sequence_, feeder);
    if (feeder == size_queue_->rank() || !task.is_published(frame_.tag)) return false;
    const Program& theirs = programs()[static_cast<std::size_t>(feeder)];
    const std::int32_t wait_segment = task.wait_segment.load(std::memory_order_relaxed);
    const std::int32_t seen = theirs.begin_of(wait_segment);
    if (seen >= theirs.helpable_end) return false;
    if (!can_run(theirs, frame_, wait_segment, task.ahead.load(std::memory_order_relaxed),
                 theirs.helpable_end)) {
      feeder = theirs.steps[static_cast<std::size_t>(seen)].peer;
      continue;
    }
    if (!task.try_claim(sequence_)) return false;
    const bool any = run_claimed(machine, feeder, outcome) > 0;
    if (any) feed(machine, feeder, 0);
    return outcome == Outcome::blocked && any;
  }
  return false;
}

// Executes programs that may have become ready because `rank` has sent something. Their owners may
// not be running, and ranks that wait for them may sleep. Programs of other calls are left to the
// ranks that await them.
void HostOperation::feed(const Machine& machine, int rank, int depth) {
  const std::vector<std::int32_t>& receivers = programs()[static_cast<std::size_t>(rank)].feeds;
  if (receivers.empty() || depth == kMostHops) return;
  fence_stores();
  for (const std::int32_t fed : receivers) {
    if (fed == size_queue_->rank()) continue;
    Task& task = size_queue_->task(sequence_, fed);
    if (!task.is_published(frame_.tag)) continue;
    const Program& theirs = programs()[static_cast<std::size_t>(fed)];
    const std::int32_t wait_segment = task.wait_segment.load(std::memory_order_relaxed);
    if (theirs.begin_of(wait_segment) >= theirs.helpable_end ||
        !can_run(theirs, frame_, wait_segment, task.ahead.load(std::memory_order_relaxed),
                 theirs.helpable_end) ||
        !task.claim_or_mark_contended(sequence_)) {
      continue;
    }
    Outcome outcome = Outcome::blocked;
    if (run_claimed(machine, fed, outcome) > 0) feed(machine, fed, depth + 1);
  }
}

// Executes the ready steps of the program of `rank`, whose claim this holds, and releases the
// claim. Returns the number of steps.
std::int64_t HostOperation::run_claimed(const Machine& machine, int rank, Outcome& outcome) {
  Task& task = size_queue_->task(sequence_, rank);
  const Program& theirs = programs()[static_cast<std::size_t>(rank)];
  const Frame frame = shared_frame(frame_, theirs);
  std::int64_t steps = 0;
  bool over = false;
  do {
    Position at = position_of(task, theirs);
    steps -= steps_done(theirs, at);
    const Outcome theirs_outcome = run(theirs, frame, machine, at, theirs.helpable_end);
    steps += steps_done(theirs, at);
    set_position(task, theirs, at);
    if (theirs_outcome == Outcome::mismatch) outcome = Outcome::mismatch;
    over = at.pc >= theirs.helpable_end;
  } while (!task.release(sequence_));
  helped_steps_ += steps;
  if (over) machine.doorbells->ring(machine.job_ranks[rank]);
  return steps;
}

void HostOperation::deliver() {
  const Program& own = program();
  const std::byte* staged = frame_.bases[static_cast<int>(Space::data)] + own.staged_output;
  for (const Program::Piece& piece : own.output_pieces) {
    std::memcpy(output_ + piece.place, staged + piece.staged,
                static_cast<std::size_t>(piece.bytes));
  }
}

template Outcome HostOperation::step<false>(const Machine& machine);
template Outcome HostOperation::step<true>(const Machine& machine);
template void HostOperation::begin_later_segments<false>(const Machine& machine);
template void HostOperation::begin_later_segments<true>(const Machine& machine);

}  // namespace unisono::engine
