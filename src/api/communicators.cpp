// SPDX-License-Identifier: BSD-3-Clause
// Entry points that make, ask and end communicators.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <string_view>

#include "api/error.hpp"
#include "api/objects.hpp"

namespace unisono::api {
namespace {

static_assert(UNISONO_EQUAL == static_cast<int>(group::Comparison::equal));
static_assert(UNISONO_LESS == static_cast<int>(group::Comparison::less));
static_assert(UNISONO_GREATER_EQUAL + 1 == group::kComparisonCount);

using base::Code;
using base::Error;
using base::Result;

int finish_derived(Comm& parent, Result<std::unique_ptr<group::Communicator>> made,
                   unisono_comm_t* result) {
  if (!made) return fail(made.error());
  if (*made == nullptr) return UNISONO_OK;  // this rank takes no part
  const auto handle = add_comm(*parent.owner, std::move(*made));
  if (!handle) return fail(handle.error());
  *result = *handle;
  return UNISONO_OK;
}

// The communicator of a call that makes another one from it.
Result<Comm*> find_parent(const char* function, unisono_comm_t comm, unisono_comm_t* result) {
  Comm* parent = comms().get(comm);
  if (parent == nullptr) return bad_comm(function, comm);
  if (result != nullptr) {
    *result = nullptr;
    return parent;
  }
  return parent->group->refuse(Code::argument, fmt::format("{}: result is NULL", function));
}

// Empty if no request or start of a plan is outstanding.
std::optional<Error> busy(const char* function, const Comm& comm) {
  const bool active_plan =
      std::ranges::any_of(comm.plans, [](const PersistentPlan* plan) { return plan->active; });
  if (comm.requests.empty() && !active_plan) return std::nullopt;
  return Error{
      Code::state,
      fmt::format("rank {}: {}: {} requests are outstanding; complete them first",
                  comm.group->rank(), function, comm.requests.size() + (active_plan ? 1U : 0U))};
}

std::optional<std::string> wrong_list(const int* ranks, int count, int size) {
  if (count < 0 || (ranks == nullptr && count > 0)) {
    return fmt::format("a list of {} ranks at NULL, or of a negative number", count);
  }
  std::set<int> seen;
  for (int i = 0; i < count; ++i) {
    if (ranks[i] < 0 || ranks[i] >= size) {
      return fmt::format("ranks[{}] is {}; it must be in 0 .. {}", i, ranks[i], size - 1);
    }
    if (!seen.insert(ranks[i]).second) return fmt::format("rank {} is listed twice", ranks[i]);
  }
  return std::nullopt;
}

}  // namespace
}  // namespace unisono::api

extern "C" {

using namespace unisono::api;  // NOLINT: entry points of one namespace
using unisono::base::Code;

int unisono_comm_rank(unisono_comm_t comm, int* rank) {
  Comm* found = comms().get(comm);
  if (found == nullptr) return fail(bad_comm("unisono_comm_rank", comm));
  if (rank == nullptr) return fail(Code::argument, "unisono_comm_rank: rank is NULL");
  *rank = found->group->rank();
  return UNISONO_OK;
}

int unisono_comm_size(unisono_comm_t comm, int* size) {
  Comm* found = comms().get(comm);
  if (found == nullptr) return fail(bad_comm("unisono_comm_size", comm));
  if (size == nullptr) return fail(Code::argument, "unisono_comm_size: size is NULL");
  *size = found->group->size();
  return UNISONO_OK;
}

int unisono_comm_dup(unisono_comm_t comm, unisono_comm_t* result) {
  const auto parent = find_parent("unisono_comm_dup", comm, result);
  if (!parent) return fail(parent.error());
  return finish_derived(**parent, (*parent)->group->duplicate(), result);
}

int unisono_comm_split(unisono_comm_t comm, int color, int key, unisono_comm_t* result) {
  const auto parent = find_parent("unisono_comm_split", comm, result);
  if (!parent) return fail(parent.error());
  return finish_derived(**parent, (*parent)->group->split(color, key), result);
}

int unisono_comm_from_list(unisono_comm_t comm, const int* ranks, int count,
                           unisono_comm_t* result) {
  const auto parent = find_parent("unisono_comm_from_list", comm, result);
  if (!parent) return fail(parent.error());
  auto& group = *(*parent)->group;
  if (const auto wrong = wrong_list(ranks, count, group.size())) {
    return fail(group.refuse(Code::argument, fmt::format("unisono_comm_from_list: {}", *wrong)));
  }
  return finish_derived(**parent, group.from_list({ranks, static_cast<std::size_t>(count)}),
                        result);
}

int unisono_comm_free(unisono_comm_t comm) {
  Comm* found = comms().get(comm);
  if (found == nullptr) return fail(bad_comm("unisono_comm_free", comm));
  if (found->owner->world == comm) {
    return fail(Code::argument,
                "unisono_comm_free: this is the world communicator; it ends with unisono_finalize");
  }
  if (const auto error = busy("unisono_comm_free", *found)) return fail(*error);
  end_comm(*found->owner, comm);
  return UNISONO_OK;
}

int unisono_shrink(unisono_comm_t comm, unisono_comm_t* result) {
  Comm* found = comms().get(comm);
  if (found == nullptr) return fail(bad_comm("unisono_shrink", comm));
  if (result == nullptr) return fail(Code::argument, "unisono_shrink: result is NULL");
  *result = nullptr;
  if (const auto error = busy("unisono_shrink", *found)) return fail(*error);
  return finish_derived(*found, found->group->shrink(), result);
}

int unisono_publish(unisono_comm_t comm, uint64_t value) {
  Comm* found = comms().get(comm);
  if (found == nullptr) return fail(bad_comm("unisono_publish", comm));
  found->group->publish(value);
  return UNISONO_OK;
}

int unisono_query(unisono_comm_t comm, unisono_compare_t how, uint64_t value, int* result) {
  using unisono::group::Comparison;
  Comm* found = comms().get(comm);
  if (found == nullptr) return fail(bad_comm("unisono_query", comm));
  if (result == nullptr) return fail(Code::argument, "unisono_query: result is NULL");
  *result = 0;
  if (how < 0 || how >= unisono::group::kComparisonCount) {
    return fail(Code::argument, fmt::format("unisono_query: how is {}; it must be one of "
                                            "UNISONO_EQUAL .. UNISONO_GREATER_EQUAL, 0 .. {}",
                                            how, unisono::group::kComparisonCount - 1));
  }
  const auto holds = found->group->query(static_cast<Comparison>(how), value);
  if (!holds) return fail(holds.error());
  *result = *holds ? 1 : 0;
  return UNISONO_OK;
}

int unisono_comm_info(unisono_comm_t comm, unisono_comm_info_t* info) {
  Comm* found = comms().get(comm);
  if (found == nullptr) return fail(bad_comm("unisono_comm_info", comm));
  if (info == nullptr || info->size < sizeof(size_t)) {
    return fail(Code::argument, "unisono_comm_info: info is NULL, or its size is not set");
  }
  const auto& statistics = found->group->statistics();
  unisono_comm_info_t full{};
  full.size = std::min(info->size, sizeof full);
  full.buffer_bytes = statistics.buffer_bytes;
  full.operations = statistics.operations;
  full.sleeps = statistics.sleeps;
  full.helped_steps = statistics.helped_steps;
  if (statistics.last_plan != nullptr) {
    const auto& plan = *statistics.last_plan;
    plan.algorithm.copy(full.algorithm, sizeof full.algorithm - 1);
    std::string_view(plan.plan.helping         ? "helping"
                     : plan.bound->single_copy ? "inline, pull"
                                               : "inline")
        .copy(full.engine, sizeof full.engine - 1);
  }
  full.multicasts = statistics.engine.multicasts;
  full.stagings = statistics.engine.stagings;
  std::memcpy(info, &full, full.size);
  return UNISONO_OK;
}

}  // extern "C"
