// SPDX-License-Identifier: BSD-3-Clause
// Interpreter: the one place that executes steps. It executes a program from a step on until it
// ends or a message has not arrived. Then it executes later steps that do not need that message
// (decision 11). Data path: no allocation, lock, log or system call but the transport's and, if a
// rank sleeps, a wake-up.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "arith/kernel.hpp"
#include "arith/sums/exact_sum.hpp"
#include "network/router.hpp"
#include "plan/program.hpp"
#include "wait/doorbells.hpp"

namespace unisono::engine {

// unreadable: a peer's memory could not be read (Transport::pull_error says why).
// wrong_length: a message is not as long as its receiver expects. overtaken: memory was read, or
// could not be, that another rank may have reused by then (Machine::may_be_reused). failed: the
// engine says why.
enum class Outcome : std::uint8_t {
  finished,
  blocked,
  mismatch,
  unreadable,
  wrong_length,
  overtaken,
  failed
};

// Counts of this rank's work, for itself or for others.
struct Counters {
  std::int64_t multicasts = 0;  // messages to several ranks
  std::int64_t stagings = 0;    // times that one was written for its receivers to read
};

// The data that is the same for all operations of a communicator.
struct Machine {
  network::Router router;
  wait::Doorbells* doorbells = nullptr;
  const int* job_ranks = nullptr;  // by rank of the communicator
  int ranks = 0;
  std::byte* job_memory = nullptr;  // where Space::staging lies
  std::size_t job_memory_bytes = 0;
  // The number of members that sleep until an operation completes (SizeQueue::may_enter).
  std::atomic<std::uint32_t>* credit_sleepers = nullptr;
  Counters* counters = nullptr;
  // The first operation that fails, and the first that a member has left unfinished, each plus 1;
  // 0: none. Ranks of this host write it there before their callers know (job::FailureRecord).
  const std::atomic<std::uint64_t>* failed_from = nullptr;
  const std::atomic<std::uint64_t>* left_from = nullptr;

  // Whether a rank of this host has reported that operation `index` fails, or has left it. Its
  // caller may then reuse its memory. If none has, all that was read there so far is right: by this
  // rank, and by those that it has messages from.
  bool may_be_reused(std::uint64_t index) const {
    std::atomic_thread_fence(std::memory_order_acquire);
    const auto ends = [index](const std::atomic<std::uint64_t>& end) {
      const std::uint64_t from = end.load(std::memory_order_relaxed);
      return from != 0 && from <= index + 1;
    };
    return ends(*failed_from) || ends(*left_from);
  }
};

// The data of one operation that a program needs.
struct Frame {
  std::byte* bases[plan::kSpaceCount] = {};
  std::uint64_t tag = 0;
  // Bytes from this operation's receive buffers to those of the next one, and of a later one; 0:
  // this rank does not run ahead.
  std::int64_t next_buffers = 0, later_buffers = 0;
  bool long_round = false;  // Rotation::is_long
  arith::Kernel kernel = nullptr;
  const void* kernel_context = nullptr;
  arith::SumKernel sum = nullptr;  // of sum steps; null: the kernel combines them one by one
};

// The progress of a program: all steps before pc are done, and some wait segments further on.
struct Position {
  std::int32_t pc = 0;
  std::uint64_t ahead = 0;  // wait_segment_bit() of those wait segments

  bool operator==(const Position&) const = default;
};

// Executes steps before `end`, which is the end of a wait segment, and moves `at`. blocked: pc is
// the step that has to be repeated, and nothing else can be done. mismatch: the awaited message
// belongs to another call. unreadable: pc is the pull.
Outcome run(const plan::Program& program, const Frame& frame, const Machine& machine, Position& at,
            std::int32_t end);

// Whether run() would do something, from the first wait segment that is not done.
bool can_run(const plan::Program& program, const Frame& frame, std::int32_t wait_segment,
             std::uint64_t ahead, std::int32_t end);

// How long the sender of a wait step's message says it is; the message is there.
std::int64_t received_length(const plan::Step& step, const Frame& frame);

// Whether the message of a wait step is there (or a wrong one, which run() will find).
bool has_arrived(const plan::Step& step, const Frame& frame);

}  // namespace unisono::engine
