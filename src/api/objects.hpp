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

struct Comm {
  Rank* owner = nullptr;
  std::unique_ptr<group::Communicator> group;
  std::set<Request*> requests;
  std::set<PersistentPlan*> plans;
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
