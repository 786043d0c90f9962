// SPDX-License-Identifier: BSD-3-Clause
// HostOperation: the state of a collective that this host's processes carry out, and its steps.
// step() goes as far as it can without waiting; its caller decides when and how often. Inline, it
// runs this rank's program only. Helping, a rank that is blocked runs the published programs of the
// ranks it waits for, and a rank that has sent something runs those of its receivers. So whoever is
// awake does whatever is ready, and a rank that has given its part and is not scheduled holds up
// nobody. One thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/interpreter.hpp"
#include "engine/lane.hpp"
#include "engine/program.hpp"

namespace unisono::engine {

struct Plan;
struct Launch;

class HostOperation {
 public:
  // Takes its sequence numbers now; steps come later. Launch::history goes into the flags: ranks
  // whose calls differed find out at their next message, if not at this one.
  void start(const Plan& plan, Lane& lane, const Launch& launch);
  // helps: by the helping engine. A plan is for one of the two.
  template <bool helps>
  Outcome step(const Machine& machine);

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
  template <bool helps>
  Outcome advance(const Machine& machine);
  Outcome run_private(const Machine& machine);
  Outcome run_shared(const Machine& machine);
  bool help(const Machine& machine, Outcome& outcome);
  void feed(const Machine& machine, int rank, int depth);
  std::int64_t run_claimed(const Machine& machine, int rank, Outcome& outcome);
  void publish();
  void stage_input();
  void deliver();

  const std::vector<Program>& programs() const;
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
