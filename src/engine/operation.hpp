// SPDX-License-Identifier: BSD-3-Clause
// Plan: everything about a call that does not change from one time to the next. Operation: one
// collective in progress at this rank, with the engine that carries it out (engine.hpp) and that
// engine's state. Plans are immutable; an operation is used by one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "arith/kernel.hpp"
#include "engine/host_operation.hpp"
#include "engine/nic/nic_group.hpp"
#include "engine/program.hpp"

namespace unisono::engine {

// Who runs a plan's operations: the calling rank, any rank of the host that is awake, or the
// program in the NIC path.
enum class EngineKind : std::uint8_t { inline_, helping, nic };
inline constexpr int kEngineCount = 3;
constexpr const char* engine_name(EngineKind engine) {
  constexpr const char* kNames[] = {"inline", "helping", "nic"};
  return kNames[static_cast<int>(engine)];
}

struct Plan {
  std::int32_t collective = 0;  // the caller's number, for records
  std::int32_t type = 0, op = -1, root = 0;
  std::int64_t count = 0;
  std::uint32_t digest = 0;
  EngineKind engine = EngineKind::inline_;
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
  std::optional<NicCall> nic;  // where the engine is the NIC path
};

class Engine;

// What is asked for when an operation starts.
struct Launch {
  const void* input = nullptr;
  void* output = nullptr;
  std::uint64_t index = 0;       // of the operation in its communicator
  std::uint32_t history = 0;     // digest of this call and all before it on the communicator
  std::byte* staging = nullptr;  // where the plan has staging_bytes
};

// State of the NIC engine.
struct NicOperation {
  NicCall call;
  const void* input = nullptr;
  void* output = nullptr;
  std::uint32_t history = 1;       // Launch::history
  bool is_posted = false;          // this rank's contribution is in the NIC path
  bool has_looked = false;         // a step has looked for the result
  std::int64_t examined_ns = 0;    // the last thorough look
  std::int64_t nap_ns = 0;         // how long the next sleep is; 0: the rank has not slept for it
  std::int64_t owed_since_ns = 0;  // since when all that it lacks was seen to be sent; 0: not yet
  std::int64_t left_since_ns = 0;  // since when a member was seen to have left; 0: none was
};

struct Operation {
  const Plan* plan = nullptr;
  Engine* engine = nullptr;
  std::uint64_t index = 0;
  HostOperation host;  // of the inline and the helping engine
  NicOperation nic;
};

}  // namespace unisono::engine
