// SPDX-License-Identifier: BSD-3-Clause
// Plan: everything about a call that does not change from one time to the next. Blocking,
// split-phase and persistent calls share one. Immutable once made; any thread.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "arith/kernel.hpp"
#include "arith/sums/exact_sum.hpp"
#include "plan/call.hpp"
#include "plan/geometry.hpp"
#include "plan/nic_call.hpp"
#include "plan/program.hpp"
#include "profile/profile.hpp"
#include "select/engine_kind.hpp"

namespace unisono::plan {

// An operation's place in the data areas of its slot index. It moves on each time that all slot
// indexes were used. A store waits for a core that has the line in its inner caches. That is mostly
// the one that has read there. After a long round it no longer has it (docs/decisions/0081).
struct Rotation {
  int slot_indexes_log2 = 0;
  std::uint64_t mask = 0;  // the number of places, a power of two, - 1
  std::int64_t bytes = 0;  // from one to the next
  bool is_long = false;  // a round is, so that inner caches no longer hold it when it begins again
};
// With data of `bytes` each. One rank's data goes round at most `round` bytes.
Rotation rotate(const ReceiveGeometry& geometry, std::int64_t bytes, std::int64_t round);

struct Plan : std::enable_shared_from_this<Plan> {
  std::int32_t collective = 0;  // the caller's number, for records
  std::int32_t type = 0, op = -1, root = 0;
  std::int64_t count = 0;
  std::uint32_t digest = 0;
  select::EngineKind engine = select::EngineKind::inline_;
  SizeClass size = SizeClass::small;  // of its receive buffers
  // So much it uses of each of these, lines apart; and of those on other hosts that hold multicasts
  // (-1: none do).
  std::int64_t receive_buffer_bytes = 0, multicast_bytes = -1;
  Rotation rotation;         // of its data in these buffers
  bool single_copy = false;  // long messages are read from their sender's memory

  // The vector goes in `segments` segments, each `input_stride`/`output_stride` bytes after the one
  // before. Equal neighbouring segments form a part: they use the same programs.
  struct Part {
    std::int64_t end = 1;           // its last segment's number + 1
    std::vector<Program> programs;  // by rank
  };
  std::int64_t segments = 1;
  std::int64_t input_stride = 0, output_stride = 0;
  bool overlaps_in_place = false;  // see segments.hpp
  // The last one ends with the last segment. Plans of other types of the same size and of other
  // operators have the same. None where the engine is the NIC path.
  std::shared_ptr<const Part[]> parts;
  std::int64_t staging_bytes = 0;  // job memory that this rank needs for each operation
  bool staging_lasts = false;      // until all members have completed the operation
  // If not 0: it goes round so many bytes, as the data of other operations does (Rotation).
  std::int64_t staging_round = 0;
  // The number of operations, this one included, that the slowest rank of the queue may still have
  // to complete. A rank may set itself a lower limit than the queue's slot indexes.
  std::int64_t ahead = std::numeric_limits<std::int64_t>::max();
  // Whether an operation needs more than the engine: staging, or it multicasts, or it is recorded
  // or learned. So others pay one test for all.
  bool has_extras = false;
  bool multicasts = false;  // this rank sends messages to all other hosts at once
  bool learns = false;      // measured times may still replace its algorithm in blocking calls
  // The plan of blocking calls, where measured times have replaced the algorithm for good. Other
  // calls keep this one.
  std::shared_ptr<const Plan> learned;

  arith::Kernel kernel = nullptr;
  arith::SumKernel sum = nullptr;  // for sum steps; null: `kernel`, again and again
  UserOperator user;               // the kernel's context, for an operator of the user's
  std::optional<NicCall> nic;      // where the engine is the NIC path

  std::string algorithm;  // with its parameters, for people
  profile::Recording recording;
};

}  // namespace unisono::plan
