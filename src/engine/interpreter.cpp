// SPDX-License-Identifier: BSD-3-Clause
#include "engine/interpreter.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "engine/size_queue.hpp"

namespace unisono::engine {
namespace {

using plan::kAhead;
using plan::kLinePayload;
using plan::Multicast;
using plan::Place;
using plan::Program;
using plan::Space;
using plan::Step;
using plan::StepKind;
using plan::wait_segment_bit;

std::byte* address(const Frame& frame, const Place& place) {
  return frame.bases[static_cast<int>(place.space)] + place.offset;
}

inline std::uint64_t load_flag(const Frame& frame, std::int64_t flag) {
  auto* word = reinterpret_cast<std::uint64_t*>(
      frame.bases[static_cast<int>(Space::receive_buffers)] + flag);
  return std::atomic_ref(*word).load(std::memory_order_acquire);
}

inline void ring(const Program& program, const Step& step, const Machine& machine) {
  if (step.woken_count == 0 || !machine.doorbells->anyone_asleep()) [[likely]]
    return;
  for (std::int32_t i = 0; i < step.woken_count; ++i) {
    const int rank = program.woken[static_cast<std::size_t>(step.first_woken + i)];
    machine.doorbells->wake(machine.job_ranks[rank]);
  }
}

// A message's length lies before its flag.
constexpr std::int64_t kLengthHeaderBytes = 8;

void put_length_header(const Step& step, const Frame& frame, const Machine& machine) {
  machine.router.put({.target = machine.job_ranks[step.peer],
                      .source = reinterpret_cast<const std::byte*>(&step.length_header),
                      .place = frame.bases[static_cast<int>(Space::receive_buffers)] + step.flag -
                               kLengthHeaderBytes,
                      .bytes = kLengthHeaderBytes,
                      .flag = nullptr});
}

inline void count_multicast(const Step& step, const Machine& machine, int stagings) {
  if (step.multicast == Multicast::no) [[likely]]
    return;
  machine.counters->multicasts += step.multicast == Multicast::first ? 1 : 0;
  machine.counters->stagings += stagings;
}

// Whether every rank of the host has the bytes in its memory.
inline bool in_job_memory(const Machine& machine, const std::byte* place, std::int64_t bytes) {
  const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(place) -
                                reinterpret_cast<std::uintptr_t>(machine.job_memory);
  return offset < machine.job_memory_bytes &&
         static_cast<std::uintptr_t>(bytes) <= machine.job_memory_bytes - offset;
}

// The line of a later message comes to this core while the receiver still reads those before. So
// the later store does not wait for it: on cores far apart that takes longer than a call.
inline void prefetch_later_line(const Step& step, const Frame& frame) {
  if (frame.later_buffers == 0 || step.flag < 0 || step.bytes > kLinePayload) [[likely]]
    return;
  const std::byte* const line =
      frame.bases[static_cast<int>(Space::receive_buffers)] + step.flag + frame.later_buffers;
#if defined(__x86_64__)
  // For writing, which the builtin does for some processors only. Others take it as no operation.
  asm volatile("prefetchw %0" : : "m"(*line));
#else
  __builtin_prefetch(line, 1);
#endif
}

// The whole line of a message with a length header. Between hosts that is one packet, where header
// and payload would be two.
struct HeadedLine {
  static constexpr std::int64_t kMostPayload = kLinePayload - kLengthHeaderBytes;

  HeadedLine(const Step& step, const std::byte* source, std::int64_t count) {
    // An empty block may have no source.
    if (count > 0) std::memcpy(bytes, source, static_cast<std::size_t>(count));
    std::memcpy(bytes + kMostPayload, &step.length_header, sizeof step.length_header);
  }
  static bool pays(const Step& step, const Machine& machine) {
    return step.length_header >= 0 && step.target.space == Space::receive_buffers &&
           step.target.offset == step.flag - kLinePayload && machine.router.leads_elsewhere();
  }

  std::byte bytes[kLinePayload] = {};
};

[[gnu::noinline]] void put_headed_line(const Program& program, const Step& step, const Frame& frame,
                                       const Machine& machine, const std::byte* source,
                                       std::int64_t bytes) {
  const HeadedLine line(step, source, bytes);
  machine.router.put({.target = machine.job_ranks[step.peer],
                      .source = line.bytes,
                      .place = address(frame, step.target),
                      .bytes = sizeof line.bytes,
                      .flag = reinterpret_cast<std::uint64_t*>(
                          frame.bases[static_cast<int>(Space::receive_buffers)] + step.flag),
                      .flag_value = frame.tag});
  ring(program, step, machine);
}

inline void put_bytes(const Program& program, const Step& step, const Frame& frame,
                      const Machine& machine, const std::byte* source, std::int64_t bytes) {
  std::byte* place = address(frame, step.target);
  std::uint64_t* flag =
      step.flag < 0 ? nullptr
                    : reinterpret_cast<std::uint64_t*>(
                          frame.bases[static_cast<int>(Space::receive_buffers)] + step.flag);
  if (step.length_header >= 0) [[unlikely]] {
    if (HeadedLine::pays(step, machine)) {
      return put_headed_line(program, step, frame, machine, source, bytes);
    }
    put_length_header(step, frame, machine);
  }
  count_multicast(step, machine, 1);
  const transport::Put message{.target = machine.job_ranks[step.peer],
                               .source = source,
                               .place = place,
                               .bytes = static_cast<std::size_t>(bytes),
                               .flag = flag,
                               .flag_value = frame.tag,
                               .long_round = frame.long_round};
  if (step.to_all) [[unlikely]] {
    machine.router.put_to_all(message);
  } else {
    machine.router.put(message);
  }
  prefetch_later_line(step, frame);
  ring(program, step, machine);
}

inline void put(const Program& program, const Step& step, const Frame& frame,
                const Machine& machine) {
  put_bytes(program, step, frame, machine, address(frame, step.left), step.bytes);
}

// Those of the line of a flag.
plan::ReferenceWords& reference_words(const Frame& frame, std::int64_t flag) {
  return *reinterpret_cast<plan::ReferenceWords*>(
      frame.bases[static_cast<int>(Space::receive_buffers)] + flag - kLinePayload +
      plan::kReferenceWords);
}

// Where an operand lies: in its slot, or where a reference says. The receive buffers and the source
// are at the same distance in each process, because both lie in the job's memory.
std::byte* referred(const Frame& frame, const Place& place) {
  std::byte* const in_slot = address(frame, place);
  if (place.line < 0) return in_slot;
  const std::int64_t flag = place.line * plan::kLineBytes + kLinePayload;
  const std::uint64_t displacement =
      std::atomic_ref(reference_words(frame, flag).displacement).load(std::memory_order_relaxed);
  return reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(in_slot) + displacement);
}

// The operands of a sum step, wherever they lie.
struct SumOperands {
  const Frame& frame;
  const Place* places;

  static const void* at(const void* self, std::int32_t number) {
    const auto& operands = *static_cast<const SumOperands*>(self);
    return referred(operands.frame, operands.places[number]);
  }
};

// With an operator that is not rounded exactly: one operand after another. An operand in the place
// of the target comes first, before it is overwritten.
void combine_one_by_one(const Step& step, const Frame& frame, const arith::Operands& operands,
                        std::byte* target) {
  std::int32_t first = 0;
  for (std::int32_t i = 1; i < operands.count; ++i) {
    if (operands[i] == target) first = i;
  }
  const void* sum = operands[first];
  for (std::int32_t i = 0; i < operands.count; ++i) {
    if (i == first) continue;
    frame.kernel(target, sum, operands[i], step.count, frame.kernel_context);
    sum = target;
  }
  if (sum != target) std::memcpy(target, sum, static_cast<std::size_t>(step.bytes));
}

[[gnu::noinline]] void sum(const Program& program, const Step& step, const Frame& frame) {
  const SumOperands all{frame, program.operands.data() + step.first_operand};
  const arith::Operands operands{SumOperands::at, &all, step.operand_count};
  std::byte* const target = address(frame, step.target);
  if (frame.sum != nullptr) {
    frame.sum(target, operands, step.count);
  } else {
    combine_one_by_one(step, frame, operands, target);
  }
}

bool is_in_place(const Frame& frame) {
  return frame.bases[static_cast<int>(Space::input)] ==
         frame.bases[static_cast<int>(Space::output)];
}

bool may_refer(const Step& step, const Frame& frame) {
  if (step.count == static_cast<int>(plan::Refer::always)) return true;
  return step.count == static_cast<int>(plan::Refer::unless_in_place) && !is_in_place(frame);
}

void put_or_refer(const Program& program, const Step& step, const Frame& frame,
                  const Machine& machine) {
  const std::byte* const source = referred(frame, step.left);
  std::int64_t bytes = step.bytes;
  if (step.count != static_cast<int>(plan::Refer::resolve)) {
    std::uint64_t displacement = 0;
    if (may_refer(step, frame) && in_job_memory(machine, source, bytes)) {
      displacement = reinterpret_cast<std::uintptr_t>(source) -
                     reinterpret_cast<std::uintptr_t>(address(frame, step.target));
      bytes = 0;
    }
    plan::ReferenceWords& words = reference_words(frame, step.flag);
    std::atomic_ref(words.released).store(0, std::memory_order_relaxed);
    std::atomic_ref(words.displacement).store(displacement, std::memory_order_relaxed);
  }
  put_bytes(program, step, frame, machine, source, bytes);
}

// While the message of a wait has not come: it may go straight to where it would be copied.
// False: it was expected before, or does not land.
[[gnu::noinline]] bool expect(const Step& step, const Frame& frame, const Machine& machine) {
  if (step.count != 0 && is_in_place(frame)) return false;
  const std::atomic_ref expected(reference_words(frame, step.flag).released);
  if (expected.load(std::memory_order_relaxed) == frame.tag) return false;
  expected.store(frame.tag, std::memory_order_relaxed);
  machine.router.landings()->expect({.source = machine.job_ranks[step.peer],
                                     .place = address(frame, step.left),
                                     .target = address(frame, step.target),
                                     .bytes = static_cast<std::size_t>(step.bytes)});
  return true;
}

// Before the first step: while this rank sends, it reads as well.
[[gnu::noinline]] void expect_all(const Program& program, const Frame& frame,
                                  const Machine& machine) {
  for (const Program::Expected& each : program.expected) {
    const Step& wait = program.steps[static_cast<std::size_t>(each.step)];
    if (each.apart && is_in_place(frame)) continue;
    if (!expect(wait, frame, machine)) return;  // nor are the others new
  }
}

// It has come. From here on its readers know where it is.
[[gnu::noinline]] void note_landing(const Step& step, const Frame& frame, const Machine& machine) {
  plan::ReferenceWords& words = reference_words(frame, step.flag);
  std::byte* const place = address(frame, step.left);
  const bool is_expected =
      std::atomic_ref(words.released).load(std::memory_order_relaxed) == frame.tag;
  std::uint64_t displacement = 0;
  if (is_expected && machine.router.landings()->has_landed(place)) {
    displacement = reinterpret_cast<std::uintptr_t>(address(frame, step.target)) -
                   reinterpret_cast<std::uintptr_t>(place);
  }
  std::atomic_ref(words.displacement).store(displacement, std::memory_order_relaxed);
}

bool is_reference(const plan::ReferenceWords& words) {
  // An atomic_ref takes no const object before C++26.
  auto& displacement = const_cast<std::uint64_t&>(words.displacement);
  return std::atomic_ref(displacement).load(std::memory_order_relaxed) != 0;
}

void release(const Program& program, const Step& step, const Frame& frame, const Machine& machine) {
  plan::ReferenceWords& words = reference_words(frame, step.flag);
  if (!is_reference(words)) return;
  std::atomic_ref(words.released).store(frame.tag, std::memory_order_release);
  ring(program, step, machine);
}

bool is_released(const Step& step, const Frame& frame) {
  plan::ReferenceWords& words = reference_words(frame, step.flag);
  return !is_reference(words) ||
         std::atomic_ref(words.released).load(std::memory_order_acquire) == frame.tag;
}

// As a put without a flag: the reader's core may hold the lines of an earlier block.
void stage(const Step& step, const Frame& frame, const Machine& machine) {
  transport::store({.target = machine.job_ranks[step.peer],
                    .source = address(frame, step.left),
                    .place = address(frame, step.target),
                    .bytes = static_cast<std::size_t>(step.bytes)});
}

// An advertisement of job memory is an offset in it, with the highest bit set, which addresses of a
// process never have.
constexpr std::uint64_t kInJobMemory = std::uint64_t{1} << 63;

// Sends the source's address instead of its bytes, as a number, because its receivers read it from
// another process.
void advertise(const Program& program, const Step& step, const Frame& frame,
               const Machine& machine) {
  const std::byte* place = address(frame, step.left);
  const std::uint64_t source =
      step.left.space == Space::staging || in_job_memory(machine, place, 1)
          ? kInJobMemory | static_cast<std::uint64_t>(place - machine.job_memory)
          : reinterpret_cast<std::uint64_t>(place);
  if (HeadedLine::pays(step, machine)) {
    return put_headed_line(program, step, frame, machine,
                           reinterpret_cast<const std::byte*>(&source), sizeof source);
  }
  if (step.length_header >= 0) put_length_header(step, frame, machine);
  count_multicast(step, machine, 0);
  machine.router.put({.target = machine.job_ranks[step.peer],
                      .source = reinterpret_cast<const std::byte*>(&source),
                      .place = address(frame, step.target),
                      .bytes = sizeof source,
                      .flag = reinterpret_cast<std::uint64_t*>(
                          frame.bases[static_cast<int>(Space::receive_buffers)] + step.flag),
                      .flag_value = frame.tag});
  ring(program, step, machine);
}

// The progress of a get, stored in the line of the advertisement. The line belongs to the receiver
// until the next operation of its slot index. It lies before the length header, and never in a flag
// of another operation.
struct Getting {
  std::uint64_t advertised;
  std::uint64_t tag;    // of its operation
  std::uint64_t asked;  // bytes, the piece under way included
  std::uint64_t done;
  std::uint64_t arrived;  // raised by the sender when the requested bytes have arrived
};
static_assert(sizeof(Getting) <= kLinePayload - kLengthHeaderBytes);

// One piece after another: ask, wait until it is there, copy it to where it belongs.
Outcome get(const Step& step, const Frame& frame, const Machine& machine) {
  auto& getting = *reinterpret_cast<Getting*>(address(frame, step.left));
  const auto arrived = std::atomic_ref(getting.arrived);
  if (getting.tag != frame.tag) {
    getting.asked = getting.done = 0;
    getting.tag = frame.tag;
  }
  const auto bytes = static_cast<std::uint64_t>(step.bytes);
  for (;;) {
    if (getting.asked != getting.done) {
      if (arrived.load(std::memory_order_acquire) != getting.asked) return Outcome::blocked;
      std::memcpy(address(frame, step.target) + getting.done, address(frame, step.right),
                  getting.asked - getting.done);
      getting.done = getting.asked;
    }
    if (getting.done == bytes) return Outcome::finished;
    arrived.store(0, std::memory_order_relaxed);
    const std::uint64_t piece =
        std::min(bytes - getting.done, static_cast<std::uint64_t>(step.count));
    getting.asked = getting.done + piece;
    machine.router.get({.source = machine.job_ranks[step.peer],
                        .offset = (getting.advertised & ~kInJobMemory) + getting.done,
                        .place = address(frame, step.right),
                        .bytes = static_cast<std::size_t>(piece),
                        .flag = &getting.arrived,
                        .flag_value = getting.asked});
  }
}

Outcome pull(const Step& step, const Frame& frame, const Machine& machine) {
  std::uint64_t source = 0;
  std::memcpy(&source, address(frame, step.left), sizeof source);
  if ((source & kInJobMemory) != 0) {
    const auto offset = static_cast<std::int64_t>(source & ~kInJobMemory) + step.count;
    std::memcpy(address(frame, step.target), machine.job_memory + offset,
                static_cast<std::size_t>(step.bytes));
    return Outcome::finished;
  }
  switch (machine.router.pull({.source = machine.job_ranks[step.peer],
                               .address = source + static_cast<std::uint64_t>(step.count),
                               .target = address(frame, step.target),
                               .bytes = static_cast<std::size_t>(step.bytes)})) {
    case transport::Pulled::done:
      return Outcome::finished;
    case transport::Pulled::gone:
      return Outcome::blocked;  // until the job notices that the peer has ended
    case transport::Pulled::failed:
      break;
  }
  return Outcome::unreadable;
}

}  // namespace

namespace {

// Steps [pc, end) one after another. In place, so that a call whose messages have all come has one
// stack frame here.
[[gnu::always_inline]] inline Outcome run_in_order(const Program& program, const Frame& frame,
                                                   const Machine& machine, std::int32_t& pc,
                                                   std::int32_t end) {
  const Step* const steps = program.steps.data();
  for (; pc < end; ++pc) {
    const Step& step = steps[pc];
    switch (step.kind) {
      case StepKind::wait: {
        const std::uint64_t flag = load_flag(frame, step.flag);
        if (flag == frame.tag) [[likely]] {
          // Its sender may be ahead: this fetches the next operation's message in advance.
          __builtin_prefetch(frame.bases[static_cast<int>(Space::receive_buffers)] + step.flag +
                             frame.next_buffers);
          if (step.length_header >= 0 && received_length(step, frame) != step.length_header)
              [[unlikely]]
            return Outcome::wrong_length;
          if (step.bytes != 0) [[unlikely]]
            note_landing(step, frame, machine);
          break;
        }
        if (same_operation(flag, frame.tag)) return Outcome::mismatch;
        if (step.bytes != 0) [[unlikely]]
          expect(step, frame, machine);
        return Outcome::blocked;
      }
      case StepKind::put:
        put(program, step, frame, machine);
        break;
      case StepKind::advertise:
        advertise(program, step, frame, machine);
        break;
      case StepKind::pull:
        if (const Outcome outcome = pull(step, frame, machine); outcome != Outcome::finished) {
          return outcome;
        }
        break;
      case StepKind::get:
        if (const Outcome outcome = get(step, frame, machine); outcome != Outcome::finished) {
          return outcome;
        }
        break;
      case StepKind::reduce:
        frame.kernel(address(frame, step.target), address(frame, step.left),
                     address(frame, step.right), step.count, frame.kernel_context);
        break;
      case StepKind::copy:
        transport::copy_bytes(address(frame, step.target), address(frame, step.left),
                              static_cast<std::size_t>(step.bytes));
        break;
      case StepKind::stage:
        stage(step, frame, machine);
        break;
      case StepKind::sum:
        sum(program, step, frame);
        break;
      case StepKind::put_or_refer:
        put_or_refer(program, step, frame, machine);
        break;
      case StepKind::reduce_referred:
        frame.kernel(address(frame, step.target), referred(frame, step.left),
                     referred(frame, step.right), step.count, frame.kernel_context);
        break;
      case StepKind::copy_referred:
        transport::copy_bytes(address(frame, step.target), referred(frame, step.left),
                              static_cast<std::size_t>(step.bytes));
        break;
      case StepKind::release:
        release(program, step, frame, machine);
        break;
      case StepKind::await_release:
        if (!is_released(step, frame)) return Outcome::blocked;
        break;
    }
  }
  return Outcome::finished;
}

bool may_begin(const Program& program, const Frame& frame, std::int32_t wait_segment) {
  const Step& first = program.steps[static_cast<std::size_t>(program.begin_of(wait_segment))];
  return first.kind != StepKind::wait || has_arrived(first, frame);
}

// The end of the wait segments that may be checked while `wait_segment` is blocked.
std::int32_t horizon(const Program& program, std::int32_t wait_segment) {
  return std::min(wait_segment + kAhead, static_cast<std::int32_t>(program.wait_segments.size()));
}

// While `wait_segment` is blocked: executes every later wait segment that is ready. Returns true if
// there was one.
bool run_ready(const Program& program, const Frame& frame, const Machine& machine, Position& at,
               std::int32_t wait_segment, std::int32_t end, Outcome& outcome) {
  bool any = false;
  std::uint64_t undone = wait_segment_bit(wait_segment);
  for (std::int32_t s = wait_segment + 1; s < horizon(program, wait_segment); ++s) {
    std::int32_t pc = program.begin_of(s);
    if (pc >= end) break;
    const std::uint64_t bit = wait_segment_bit(s);
    if ((at.ahead & bit) != 0) continue;
    const std::uint64_t needs = program.wait_segments[static_cast<std::size_t>(s)].needs;
    const bool is_free = (needs & undone) == 0;
    if (!is_free || !may_begin(program, frame, s)) {
      const Step& first = program.steps[static_cast<std::size_t>(pc)];
      if (is_free && first.bytes != 0 && first.kind == StepKind::wait) {
        expect(first, frame, machine);
      }
      undone |= bit;
      continue;
    }
    outcome = run_in_order(program, frame, machine, pc, std::min(program.begin_of(s + 1), end));
    if (outcome != Outcome::finished) {  // a message of another call
      at.pc = pc;
      return false;
    }
    at.ahead |= bit;
    any = true;
  }
  return any;
}

// In order, without those done out of order; and out of order where that is blocked.
[[gnu::noinline]] Outcome run_ahead(const Program& program, const Frame& frame,
                                    const Machine& machine, Position& at, std::int32_t end) {
  std::int32_t wait_segment = program.wait_segment_at(at.pc);
  for (;;) {
    Outcome outcome = Outcome::finished;
    while (at.pc < end && outcome == Outcome::finished) {
      const std::int32_t stop = std::min(program.begin_of(wait_segment + 1), end);
      outcome = run_in_order(program, frame, machine, at.pc, stop);
      if (outcome != Outcome::finished) break;
      ++wait_segment;
      for (; (at.ahead & wait_segment_bit(wait_segment)) != 0; ++wait_segment)
        at.ahead &= ~wait_segment_bit(wait_segment);
      at.pc = program.begin_of(wait_segment);
    }
    if (outcome != Outcome::blocked) return outcome;
    if (!run_ready(program, frame, machine, at, wait_segment, end, outcome)) return outcome;
  }
}

}  // namespace

Outcome run(const Program& program, const Frame& frame, const Machine& machine, Position& at,
            std::int32_t end) {
  if (!program.expected.empty() && at.pc == 0) [[unlikely]]
    expect_all(program, frame, machine);
  if (at.ahead == 0) [[likely]] {
    const Outcome outcome = run_in_order(program, frame, machine, at.pc, end);
    if (outcome != Outcome::blocked || !program.looks_ahead) return outcome;
  }
  return run_ahead(program, frame, machine, at, end);
}

bool can_run(const Program& program, const Frame& frame, std::int32_t wait_segment,
             std::uint64_t ahead, std::int32_t end) {
  if (may_begin(program, frame, wait_segment)) return true;
  if (!program.looks_ahead) return false;
  std::uint64_t undone = wait_segment_bit(wait_segment);
  for (std::int32_t s = wait_segment + 1; s < horizon(program, wait_segment); ++s) {
    if (program.begin_of(s) >= end) break;
    if ((ahead & wait_segment_bit(s)) != 0) continue;
    if ((program.wait_segments[static_cast<std::size_t>(s)].needs & undone) == 0 &&
        may_begin(program, frame, s)) {
      return true;
    }
    undone |= wait_segment_bit(s);
  }
  return false;
}

std::int64_t received_length(const Step& step, const Frame& frame) {
  std::int64_t length = 0;
  std::memcpy(
      &length,
      frame.bases[static_cast<int>(Space::receive_buffers)] + step.flag - kLengthHeaderBytes,
      sizeof length);
  return length;
}

bool has_arrived(const Step& step, const Frame& frame) {
  return same_operation(load_flag(frame, step.flag), frame.tag);
}

}  // namespace unisono::engine
