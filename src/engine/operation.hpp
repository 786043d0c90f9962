// SPDX-License-Identifier: BSD-3-Clause
// Operation: one collective in progress at this rank, with the engine that carries it out
// (engine.hpp) and that engine's state. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/host_operation.hpp"
#include "plan/plan.hpp"

namespace unisono::engine {

class Engine;
class NicFlight;

// State of the NIC engine.
struct NicOperation {
  plan::NicCall call;
  const void* input = nullptr;
  void* output = nullptr;
  std::uint32_t history = 1;       // Launch::history
  std::uint64_t number = 0;        // among the communicator's operations in the NIC path
  NicFlight* flight = nullptr;     // once this rank's contribution is in the NIC path
  bool is_armed = false;           // the program will wake this rank
  bool is_detached = false;        // its call has returned; the programs complete it
  bool has_looked = false;         // a step has looked for the result
  std::int64_t examined_ns = 0;    // the last thorough look
  std::int64_t pause_ns = 0;       // length of the next sleep; 0: the rank has not slept for it
  std::int64_t owed_since_ns = 0;  // since when all that it lacks was seen to be sent; 0: not yet
  std::uint32_t owed_piece = 0;    // of an allgather: the piece that it lacked then
  std::uint32_t said_given = 0;    // ... and so many given pieces others may have seen
  std::int64_t left_since_ns = 0;  // since when a member was seen to have left; 0: none was
};

struct Operation {
  const plan::Plan* plan = nullptr;
  Engine* engine = nullptr;
  std::uint64_t index = 0;
  HostOperation host;  // of the inline and the helping engine
  NicOperation nic;
};

}  // namespace unisono::engine
