// SPDX-License-Identifier: BSD-3-Clause
// Operation: one collective in progress at this rank. step() carries it on as far as it goes
// without waiting; who calls it, and how often, is the caller's business. With the inline engine it
// runs this rank's program only. With the helping engine, a rank that is blocked runs the published
// programs of the ranks it waits for, and a rank that has sent something those of its receivers:
// whoever is awake does whatever is ready, so a rank that has given its part and is not scheduled
// holds nobody up. One thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/interpreter.hpp"
#include "engine/lane.hpp"
#include "engine/program.hpp"

namespace unisono::engine {

// Everything about a call that does not change from one time to the next. Immutable.
struct Plan {
  std::int32_t collective = 0;  // the caller's number, for records
  std::int32_t type = 0, op = -1, root = 0;
  std::int64_t count = 0;
  std::uint32_t digest = 0;
  bool helping = false;
  bool bulk = false;  // which lane

  // The vector goes in `segments` segments, each `input_stride`/`output_stride` bytes after the one
  // before. Neighbouring segments that are alike are a part: they run the same programs.
  struct Part {
    std::int64_t end = 1;           // its last segment's number + 1
    std::vector<Program> programs;  // by rank
  };
  std::int64_t segments = 1;
  std::int64_t input_stride = 0, output_stride = 0;
  std::span<const Part> parts;     // other plans may have the same
  std::int64_t staging_bytes = 0;  // that this rank needs of job memory for each operation

  arith::Kernel kernel = nullptr;
  const void* kernel_context = nullptr;
};

class Operation {
 public:
  // Takes its sequence numbers now; steps come later.
  // `history` is a digest of this call and all before it on the communicator, which goes into the
  // flags: ranks whose calls differed find out at their next message, if not at this one.
  void begin(const Plan& plan, Lane& lane, const void* input, void* output, std::uint64_t index,
             std::uint32_t history);

  // Before the first step, where the plan has staging_bytes.
  void set_staging(std::byte* staging) { frame_.bases[static_cast<int>(Space::staging)] = staging; }

  Outcome step(const Machine& machine);

  const Plan& plan() const { return *plan_; }
  std::uint64_t index() const { return index_; }
  // The part it stands at.
  std::uint64_t sequence() const { return sequence_; }
  bool entered() const { return entered_; }
  const Lane& lane() const { return *lane_; }
  // Whose message it waits for; -1 if it waits to be entered.
  int awaited() const;
  // Whether that one comes by multicast from another host.
  bool awaits_multicast() const;
  // After Outcome::wrong_length: what this rank expected of awaited(), and what that sent; bytes.
  struct Lengths {
    std::int64_t expected, sent;
  };
  Lengths lengths() const;
  std::int64_t helped_steps() const { return helped_steps_; }

 private:
  const Step* awaited_step() const;
  void enter();
  Outcome advance(const Machine& machine);
  Outcome run_private(const Machine& machine);
  Outcome run_shared(const Machine& machine);
  bool help(const Machine& machine, Outcome& outcome);
  void feed(const Machine& machine, int rank, int depth);
  std::int64_t run_claimed(const Machine& machine, int rank, Outcome& outcome);
  void publish();
  void stage_input();
  void deliver();

  const std::vector<Program>& programs() const { return plan_->parts[part_].programs; }
  const Program& program() const { return programs()[static_cast<std::size_t>(lane_->rank())]; }
  // The frame in which a published program of `rank` is run, by whomever.
  Frame shared_frame(const Program& program) const;

  const Plan* plan_ = nullptr;
  Lane* lane_ = nullptr;
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
  bool published_ = false;
  bool moved_ = false;  // since feed() was called
  Frame frame_;
};

}  // namespace unisono::engine
