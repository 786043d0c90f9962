// SPDX-License-Identifier: BSD-3-Clause
// The event simulation: what the sweep leaves out. Messages contend for the links of a fat tree,
// the system takes cores away, ranks start apart, messages are lost and repaired, and a barrier may
// follow every few messages. Without any of it, it agrees with the sweep to the last bit.
// Deterministic by seed. Pure; any thread.
#pragma once

#include <functional>

#include "sim/network.hpp"
#include "sim/noise.hpp"
#include "sim/program/program.hpp"

namespace unisono::sim {

// A rank's step, for timelines.
struct Activity {
  int rank = 0;
  StepKind kind = StepKind::send;
  int peer = -1;
  Time begin = 0, end = 0;
};

struct EventOptions {
  // With contention: rank r's node. It must outlive the call.
  const topology::fat_tree::Placement* placement = nullptr;
  NetworkParameters network;
  Noise noise;
  Time skew = 0;          // ranks start at random times up to this
  double loss = 0;        // share of messages that are lost, those that repair a loss included
  Time repair = 0;        // from a loss until the message is sent again
  int barrier_after = 0;  // messages that a rank receives; 0: no barriers
  Time barrier = 0;       // what a barrier takes from the last rank on
  std::uint64_t seed = 1;
  std::function<void(const Activity&)> observe = {};
};

struct EventOutcome {
  SimulationResult outcome;
  std::int64_t events = 0;
  std::int64_t lost = 0;
  std::int64_t held_up = 0;  // messages that others delayed on a link
  std::int64_t barriers = 0;

  bool operator==(const EventOutcome&) const = default;
};

// An error: the ranks do not receive alike, so that barriers never end.
base::Result<EventOutcome> simulate_events(const ProgramSet& programs, const EventOptions& options);

}  // namespace unisono::sim
