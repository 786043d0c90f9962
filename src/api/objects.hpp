// SPDX-License-Identifier: BSD-3-Clause
// What the C API's handles stand for. A Rank owns its communicators; requests and plans belong to a
// communicator and lose it when it ends. Each object is used by one thread at a time.
#pragma once

#include <memory>
#include <set>

#include "api/handles.hpp"
#include "group/communicator.hpp"
#include "group/job.hpp"
#include "unisono/unisono.h"

namespace unisono::api {

struct Rank;
struct Request;
struct PersistentPlan;

// The arguments of a collective as they came through the C API.
struct Arguments {
  const char* function = "";  // for messages
  schedule::Collective collective = schedule::Collective::barrier;
  const void* input = nullptr;  // UNISONO_IN_PLACE where allowed
  void* output = nullptr;
  std::int64_t count = 0;
  unisono_type_t type = UNISONO_BYTE;
  unisono_op_t op = -1;
  int root = 0;
  unisono_comm_t comm = nullptr;
};

// A blocking call that was checked and planned: the same call again needs neither.
struct Repeat {
  Arguments arguments;
  group::CachedPlan* plan = nullptr;  // of the cache's generation
  std::uint64_t generation = 0;
  const void* input = nullptr;
  void* output = nullptr;

  bool is(const Arguments& other) const {
    return arguments.input == other.input && arguments.output == other.output &&
           arguments.count == other.count && arguments.type == other.type &&
           arguments.op == other.op && arguments.root == other.root;
  }
};

struct Comm {
  Rank* owner = nullptr;
  std::unique_ptr<group::Communicator> group;
  std::set<Request*> requests;
  std::set<PersistentPlan*> plans;
  Repeat repeats[schedule::kCollectiveCount];  // the last call of each collective
};

struct Request {
  Comm* comm = nullptr;  // null: it ended before the request did
  group::Pending pending;
};

struct PersistentPlan {
  Comm* comm = nullptr;
  group::CachedPlan* cached = nullptr;
  const void* input = nullptr;
  void* output = nullptr;
  bool active = false;
  group::Pending pending;
};

// One rank of a job, from init to finalize.
struct Rank {
  group::Seat seat;
  std::unique_ptr<group::Job> job;
  std::mutex mutex;  // of comms: threads make communicators from different ones at once
  std::set<unisono_comm_t> comms;
  unisono_comm_t world = nullptr;
  bool of_process = false;  // by unisono_init
};

HandleTable<Comm, unisono_comm_t>& comms();
HandleTable<Request, unisono_request_t>& requests();
HandleTable<PersistentPlan, unisono_plan_t>& plans();

// Registers a communicator with its rank; resources error if there are too many.
base::Result<unisono_comm_t> add_comm(Rank& rank, std::unique_ptr<group::Communicator> group);
// Ends it: its requests and plans lose it.
void end_comm(Rank& rank, unisono_comm_t handle);

// What a bad communicator handle means: one that has ended, or a call before init.
base::Error bad_comm(const char* function, unisono_comm_t comm);

// Whether unisono_init may be called, and the end of it. Several threads may race.
bool claim_process_init();
void release_process_init();

}  // namespace unisono::api
