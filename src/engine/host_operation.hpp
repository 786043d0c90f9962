// SPDX-License-Identifier: BSD-3-Clause
// HostOperation: the state of a collective that this host's processes execute, and its steps.
// step() goes as far as it can without waiting; its caller decides when and how often. The inline
// engine executes this rank's program only. With the helping engine, a blocked rank executes the
// published programs of the ranks it waits for, and a rank that has sent something executes those
// of its receivers. So any awake rank does the ready steps, and a rank that has contributed and is
// not scheduled delays no other. One thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/interpreter.hpp"
#include "engine/lane.hpp"
#include "plan/plan.hpp"

namespace unisono::engine {

struct Launch;

class HostOperation {
 public:
  // Takes its sequence numbers and, where there is room, writes the call's record now; steps come
  // later. Launch::history goes into the flags: ranks whose calls differed find out at their next
  // message, if not at this one.
  void start(const plan::Plan& plan, Lane& lane, const Launch& launch);
  // helps: by the helping engine. A plan is for one of the two.
  template <bool helps>
  Outcome step(const Machine& machine);

  // The sequence number of its current part.
  std::uint64_t sequence() const { return sequence_; }
  bool entered() const { return entered_; }
  const Lane& lane() const { return *lane_; }
  // The rank whose message it waits for; -1 if it waits for credit.
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

 private:
  const plan::Step* awaited_step() const;
  void enter();
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

  const std::vector<plan::Program>& programs() const;
  const plan::Program& program() const {
    return programs()[static_cast<std::size_t>(lane_->rank())];
  }
  // The frame in which any rank executes the published program of `rank`.
  Frame shared_frame(const plan::Program& program) const;

  const plan::Plan* plan_ = nullptr;
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
