// SPDX-License-Identifier: BSD-3-Clause
// Interpreter: the one place that carries out steps. It runs a program from a step on until it
// ends or a message has not arrived; then what further on does not need that message (decision 11).
// Data path: no allocation, lock, log or system call but the transport's and, if somebody sleeps, a
// wake-up.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "arith/kernel.hpp"
#include "engine/program.hpp"
#include "transport/transport.hpp"
#include "wait/doorbells.hpp"

namespace unisono::engine {

// unreadable: a peer's memory could not be read (Transport::pull_error says why).
// wrong_length: a message is not as long as its receiver expects. failed: the engine says why.
enum class Outcome : std::uint8_t { finished, blocked, mismatch, unreadable, wrong_length, failed };

// What this rank has done, for itself or for others.
struct Counters {
  std::int64_t multicasts = 0;  // messages to several ranks
  std::int64_t stagings = 0;    // times that one was written for its receivers to read
};

// What stays the same for all operations of a communicator.
struct Machine {
  transport::Transport* transport = nullptr;
  bool direct = false;                      // Capabilities::direct
  transport::Transport* network = nullptr;  // to the members on other hosts; null: there are none
  wait::Doorbells* doorbells = nullptr;
  const int* job_ranks = nullptr;  // by rank of the communicator
  int ranks = 0;
  std::byte* job_memory = nullptr;  // where Space::staging lies
  // How many members sleep until somebody completes an operation (Lane::may_enter).
  std::atomic<std::uint32_t>* credit_sleepers = nullptr;
  Counters* counters = nullptr;
};

// What a program needs of one operation.
struct Frame {
  std::byte* bases[kSpaceCount] = {};
  std::uint64_t tag = 0;
  std::int64_t next_channel = 0;  // bytes from this operation's windows to the next one's
  arith::Kernel kernel = nullptr;
  const void* kernel_context = nullptr;
};

// How far a program has come: all steps before pc are done, and some strands further on.
struct Position {
  std::int32_t pc = 0;
  std::uint64_t ahead = 0;  // strand_bit() of those strands

  bool operator==(const Position&) const = default;
};

// Carries steps before `end`, which is the end of a strand, out and moves `at`. blocked: pc stands
// at the step that has to be repeated, and nothing else can be done. mismatch: the awaited message
// belongs to another call. unreadable: pc stands at the pull.
Outcome run(const Program& program, const Frame& frame, const Machine& machine, Position& at,
            std::int32_t end);

// Whether run() would do something, from the first of all strands that are not done.
bool can_run(const Program& program, const Frame& frame, std::int32_t strand, std::uint64_t ahead,
             std::int32_t end);

// How long the sender of a wait step's message says it is; the message is there.
std::int64_t noted_length(const Step& step, const Frame& frame);

// Whether the message of a wait step is there (or a wrong one, which run() will find).
bool has_arrived(const Step& step, const Frame& frame);

}  // namespace unisono::engine
