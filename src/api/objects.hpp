// SPDX-License-Identifier: BSD-3-Clause
// The objects behind the C API's handles. A Rank owns its communicators. Requests and plans belong
// to a communicator and lose it when it ends. Each object is used by one thread at a time.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "api/handles.hpp"
#include "comm/communicator.hpp"
#include "job/job.hpp"
#include "memory/job_memory.hpp"
#include "plan/operator_failure.hpp"
#include "unisono/unisono.h"

namespace unisono::api {

class LastBlockCall;
struct Rank;
struct Request;
struct PersistentPlan;

// The arrays of a collective with blocks of different lengths, one number a rank. They are the
// caller's, and read during the call only.
struct BlockArray {
  const std::int64_t* counts = nullptr;
  const std::int64_t* displacements = nullptr;  // null: packed
  const char* prefix = "";                      // of the arrays' names, for messages
  const unisono_type_t* types = nullptr;        // if each block has its own type
};
// The counts that a rank gives: those of all ranks' blocks, or local counts. With local counts each
// block may have its own type; displacements are then in bytes.
enum class CountScope : std::uint8_t { of_all, of_own, of_own_typed };
struct BlockArrays {
  BlockArray output;              // of_all: the one array there is
  const int* receives = nullptr;  // null: everyone does
  CountScope scope = CountScope::of_all;
  BlockArray input{};
};

// The arguments of a collective as they came through the C API.
struct Arguments {
  const char* function = "";  // for messages
  schedule::Collective collective = schedule::Collective::barrier;
  const void* input = nullptr;  // UNISONO_IN_PLACE where allowed
  void* output = nullptr;       // likewise
  std::int64_t count = 0;
  unisono_type_t type = UNISONO_BYTE;
  unisono_op_t op = -1;
  int root = 0;
  unisono_comm_t comm = nullptr;
  const BlockArrays* blocks = nullptr;  // null: blocks of `count` elements
};

// The argument that is UNISONO_IN_PLACE; input and output then both lie in the other argument's
// buffer.
enum class InPlace : std::uint8_t { none, input, output };

// A quick check of a call's buffers. accepts() rejects all wrong buffers and accepts most right
// ones. The others go through check(), which has the messages.
struct BufferRule {
  std::uintptr_t input_bytes = 0, output_bytes = 0;  // in place, one is 0 and one is of both
  std::uintptr_t misaligned = 0;                     // these bits of an address have to be zero
  InPlace in_place = InPlace::none;
  std::int64_t input_offset = 0, output_offset = 0;  // in place: in the one buffer, bytes

  bool accepts(const void* input, const void* output) const {
    const auto in = reinterpret_cast<std::uintptr_t>(input);
    const auto out = reinterpret_cast<std::uintptr_t>(output);
    constexpr std::uintptr_t kHighest = UINTPTR_MAX >> 1;
    if ((input == UNISONO_IN_PLACE) != (in_place == InPlace::input)) return false;
    if ((output == UNISONO_IN_PLACE) != (in_place == InPlace::output)) return false;
    if (output_bytes != 0 && (out == 0 || out > kHighest || (out & misaligned) != 0)) return false;
    if (input_bytes == 0) return true;
    if (in == 0 || in > kHighest || (in & misaligned) != 0) return false;
    return in + input_bytes <= out || out + output_bytes <= in || output_bytes == 0;
  }

  // Where input and output begin.
  const void* input(const Arguments& call) const {
    if (in_place == InPlace::none) [[likely]]
      return call.input;
    return moved(one_buffer(call), input_offset);
  }
  void* output(const Arguments& call) const {
    if (in_place == InPlace::none) [[likely]]
      return call.output;
    return moved(one_buffer(call), output_offset);
  }

 private:
  void* one_buffer(const Arguments& call) const {
    return in_place == InPlace::input ? call.output : const_cast<void*>(call.input);
  }
  // An empty call may have no buffer.
  static void* moved(void* buffer, std::int64_t bytes) {
    return buffer == nullptr ? nullptr : static_cast<std::byte*>(buffer) + bytes;
  }
};

// A blocking call that was checked and planned: one like it needs neither.
struct LastCall {
  std::int64_t count = 0;
  unisono_type_t type = UNISONO_BYTE;
  unisono_op_t op = -1;
  int root = 0;
  BufferRule buffers;
  const plan::Plan* plan = nullptr;  // belongs to the cache's generation
  std::uint64_t generation = 0;

  bool fits(const Arguments& call) const {
    return call.count == count && call.type == type && call.op == op && call.root == root &&
           buffers.accepts(call.input, call.output);
  }
};

struct Comm {
  Comm();
  ~Comm();

  Rank* owner = nullptr;
  std::unique_ptr<comm::Communicator> communicator;
  std::set<Request*> requests;
  std::set<PersistentPlan*> plans;
  LastCall last_calls[schedule::kCollectiveCount];  // the last call of each, blocks equal
  std::unique_ptr<LastBlockCall> last_block_calls[schedule::kCollectiveCount];  // with block arrays
};

// A request or plan is in its communicator's set until it ends.
struct Request {
  ~Request() {
    if (comm != nullptr) comm->requests.erase(this);
  }
  Comm* comm = nullptr;  // null: it ended before the request did
  comm::Pending pending;
};

struct PersistentPlan {
  ~PersistentPlan() {
    if (comm != nullptr) comm->plans.erase(this);
  }
  Comm* comm = nullptr;
  std::shared_ptr<const plan::Plan> plan;
  const void* input = nullptr;
  void* output = nullptr;
  bool active = false;
  comm::Pending pending;
};

// One rank of a job, from init to finalize.
struct Rank {
  std::optional<base::Settings> settings;  // if they differ from the process's; the job uses them
  bootstrap::JobInfo info;
  std::unique_ptr<job::Job> job;
  std::mutex mutex;  // for `comms`: threads make communicators from different ones at once
  std::set<unisono_comm_t> comms;
  unisono_comm_t world = nullptr;
};

// A job of threads, which its ranks enter one by one.
struct ThreadJob {
  int ranks = 0;
  std::shared_ptr<memory::JobMemory> memory;
  std::mutex mutex;
  std::vector<bool> taken;
};
using ThreadJobTable = HandleTable<ThreadJob, unisono_threads_t, 1 << 10>;

HandleTable<Comm, unisono_comm_t>& make_comms();
inline HandleTable<Comm, unisono_comm_t>& comms() {
  static HandleTable<Comm, unisono_comm_t>& made = make_comms();
  return made;
}
HandleTable<Request, unisono_request_t>& requests();
HandleTable<PersistentPlan, unisono_plan_t>& plans();
ThreadJobTable& thread_jobs();

// A handle for a communicator that does not exist yet; resources error if there are too many. It is
// returned by comms().remove(), or filled by add_comm().
base::Result<unisono_comm_t> reserve_comm(Rank& rank);
void add_comm(unisono_comm_t handle, std::unique_ptr<comm::Communicator> communicator);
// Ends it: its requests and plans lose it.
void end_comm(Rank& rank, unisono_comm_t handle);

// Null for a bad handle, and for calls by the function of an operator. It runs in the middle of an
// operation, which has to end before another one.
inline Comm* find_comm(unisono_comm_t comm) {
  return plan::running_function == nullptr ? comms().get(comm) : nullptr;
}
// The error where find_comm() has found none: the communicator has ended, the call comes before
// init, or from the function of an operator.
base::Error bad_comm(const char* function, unisono_comm_t comm);
// The error of a call by the function of an operator.
base::Error called_by_operator(const char* function);

// Whether this process is a child that a rank has forked. Its locks may be held for ever.
bool is_forked_child();

// Whether unisono_init may be called, and the release of that claim. Several threads may race.
bool claim_process_init();
void release_process_init();

}  // namespace unisono::api
