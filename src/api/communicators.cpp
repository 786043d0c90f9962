// SPDX-License-Identifier: BSD-3-Clause
// Entry points that make, ask and end communicators.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <string_view>

#include "api/error.hpp"
#include "api/launch.hpp"
#include "api/objects.hpp"
#include "bootstrap/exchange/exchange_rounds.hpp"
#include "comm/list_derivation.hpp"
#include "model/machine.hpp"
#include "wait/background.hpp"

namespace unisono::api {
namespace {

static_assert(UNISONO_EQUAL == static_cast<int>(comm::Comparison::equal));
static_assert(UNISONO_LESS == static_cast<int>(comm::Comparison::less));
static_assert(UNISONO_GREATER_EQUAL + 1 == comm::kComparisonCount);

static_assert(UNISONO_RANK_PRESENT == static_cast<int>(comm::MemberState::Kind::present));
static_assert(UNISONO_RANK_LEFT == static_cast<int>(comm::MemberState::Kind::left));
static_assert(UNISONO_RANK_LOST == static_cast<int>(comm::MemberState::Kind::lost));

using base::Code;
using base::Error;
using base::Result;
using comm::AgentPause;

using Made = Result<std::unique_ptr<comm::Communicator>>;

// A call that makes a communicator from another one. `make` is called once there is a handle for
// what it makes: a rank that has none left would else be missing in it.
template <class Make>
int derive(const char* function, unisono_comm_t comm, unisono_comm_t* result,
           const Make& make) try {
  if (result != nullptr) *result = nullptr;
  Comm* const parent = find_comm(comm);
  if (parent == nullptr) return fail(bad_comm(function, comm));
  const AgentPause pause(parent->communicator.get());
  if (result == nullptr) {
    return refuse(*parent, Code::argument, fmt::format("{}: result is NULL", function));
  }
  const auto handle = reserve_comm(*parent->owner);
  if (!handle) {
    return refuse(*parent, handle.error().code,
                  fmt::format("{}: {}", function, handle.error().message));
  }
  HandleGuard guard(comms(), *handle);
  Made made = make(*parent->communicator);
  if (!made) return fail(made.error());
  if (*made == nullptr) return UNISONO_OK;  // this rank takes no part
  add_comm(*handle, std::move(*made));
  *result = guard.keep();
  return UNISONO_OK;
} catch (const std::exception& thrown) {
  return fail_thrown(comms().get(comm), function, thrown);
}

// Empty if no request or start of a plan is outstanding.
std::optional<Error> busy(const char* function, const Comm& comm) {
  const bool active_plan =
      std::ranges::any_of(comm.plans, [](const PersistentPlan* plan) { return plan->active; });
  if (comm.requests.empty() && !active_plan) return std::nullopt;
  return Error{Code::state,
               fmt::format("rank {}: {}: {} requests are outstanding; complete them first",
                           comm.communicator->rank(), function,
                           comm.requests.size() + (active_plan ? 1U : 0U))};
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
using unisono::comm::AgentPause;
using unisono::comm::Communicator;

int unisono_comm_rank(unisono_comm_t comm, int* rank) try {
  Comm* found = comms().get(comm);
  if (found == nullptr) return fail(bad_comm("unisono_comm_rank", comm));
  if (rank == nullptr) return fail(Code::argument, "unisono_comm_rank: rank is NULL");
  *rank = found->communicator->rank();
  return UNISONO_OK;
} catch (const std::exception& thrown) {
  return fail("unisono_comm_rank", thrown);
}

int unisono_comm_size(unisono_comm_t comm, int* size) try {
  Comm* found = comms().get(comm);
  if (found == nullptr) return fail(bad_comm("unisono_comm_size", comm));
  if (size == nullptr) return fail(Code::argument, "unisono_comm_size: size is NULL");
  *size = found->communicator->size();
  return UNISONO_OK;
} catch (const std::exception& thrown) {
  return fail("unisono_comm_size", thrown);
}

int unisono_comm_dup(unisono_comm_t comm, unisono_comm_t* result) {
  return derive("unisono_comm_dup", comm, result,
                [](Communicator& communicator) { return communicator.duplicate(); });
}

int unisono_comm_split(unisono_comm_t comm, int color, int key, unisono_comm_t* result) {
  return derive("unisono_comm_split", comm, result,
                [=](Communicator& communicator) { return communicator.split(color, key); });
}

int unisono_comm_from_list(unisono_comm_t comm, const int* ranks, int count,
                           unisono_comm_t* result) {
  return derive("unisono_comm_from_list", comm, result, [=](Communicator& communicator) -> Made {
    if (const auto wrong = wrong_list(ranks, count, communicator.size())) {
      return communicator.failures().refuse(Code::argument,
                                            fmt::format("unisono_comm_from_list: {}", *wrong));
    }
    return communicator.from_list({ranks, static_cast<std::size_t>(count)});
  });
}

int unisono_comm_from_list_with(unisono_comm_t comm, const int* ranks, int count,
                                const unisono_exchange_t* exchange, unisono_comm_t* result) try {
  constexpr const char* kName = "unisono_comm_from_list_with";
  if (result != nullptr) *result = nullptr;
  Comm* const parent = find_comm(comm);
  if (parent == nullptr) return fail(bad_comm(kName, comm));
  const auto& members = parent->communicator->members();
  if (exchange == nullptr || exchange->allgather == nullptr) {
    return fail(Code::argument, fmt::format("{}: exchange or its allgather is NULL", kName));
  }
  if (const auto wrong = wrong_list(ranks, count, members.size())) {
    return fail(Code::argument, fmt::format("{}: {}", kName, *wrong));
  }
  using Failures = unisono::bootstrap::ExchangeRounds::Failures;
  const std::vector<int> list(ranks, ranks + count);
  const auto place = std::ranges::find(list, members.rank());
  if (place == list.end()) {
    return fail(Code::argument,
                fmt::format("{}: the calling rank {} is not listed", kName, members.rank()));
  }
  unisono::bootstrap::ExchangeRounds rounds(
      [exchange](const void* input, void* output, std::size_t bytes) {
        return exchange->allgather(input, output, bytes, exchange->user);
      },
      static_cast<int>(place - list.begin()), count,
      exchange->fails_everywhere != 0 ? Failures::everywhere : Failures::at_some_ranks);
  auto handle = reserve_comm(*parent->owner);
  HandleGuard guard(comms(), handle ? *handle : nullptr);
  if (result == nullptr) handle = Error{Code::argument, "result is NULL"};
  unisono::comm::ListDerivation derivation(members, list, rounds);
  Made made =
      derivation.make(handle ? unisono::base::success() : unisono::base::Status(handle.error()));
  if (!made) return fail(kName, made.error());
  add_comm(*handle, std::move(*made));
  *result = guard.keep();
  return UNISONO_OK;
} catch (const std::exception& thrown) {
  return fail("unisono_comm_from_list_with", thrown);
}

int unisono_comm_free(unisono_comm_t comm) try {
  Comm* found = find_comm(comm);
  if (found == nullptr) return fail(bad_comm("unisono_comm_free", comm));
  if (found->owner->world == comm) {
    return fail(Code::argument,
                "unisono_comm_free: this is the world communicator; it ends with unisono_finalize");
  }
  if (const auto error = busy("unisono_comm_free", *found)) return fail(*error);
  end_comm(*found->owner, comm);
  return UNISONO_OK;
} catch (const std::exception& thrown) {
  return fail("unisono_comm_free", thrown);
}

int unisono_shrink(unisono_comm_t comm, unisono_comm_t* result) try {
  if (result != nullptr) *result = nullptr;
  Comm* found = find_comm(comm);
  if (found == nullptr) return fail(bad_comm("unisono_shrink", comm));
  // These errors can be corrected and the call repeated, so the other ranks keep waiting for it.
  if (result == nullptr) return fail(Code::argument, "unisono_shrink: result is NULL");
  if (const auto error = busy("unisono_shrink", *found)) return fail(*error);
  const auto handle = reserve_comm(*found->owner);
  if (!handle) return fail("unisono_shrink", handle.error());
  HandleGuard guard(comms(), *handle);
  auto made = found->communicator->shrink();
  if (!made) return fail(made.error());
  add_comm(*handle, std::move(*made));
  *result = guard.keep();
  return UNISONO_OK;
} catch (const std::exception& thrown) {
  return fail_thrown(comms().get(comm), "unisono_shrink", thrown);
}

int unisono_publish(unisono_comm_t comm, uint64_t value) try {
  Comm* found = find_comm(comm);
  if (found == nullptr) return fail(bad_comm("unisono_publish", comm));
  AgentPause pause(found->communicator.get());
  found->communicator->words().publish(value);
  return UNISONO_OK;
} catch (const std::exception& thrown) {
  return fail("unisono_publish", thrown);
}

int unisono_query(unisono_comm_t comm, unisono_compare_t how, uint64_t value, int* result) try {
  using unisono::comm::Comparison;
  Comm* found = find_comm(comm);
  if (found == nullptr) return fail(bad_comm("unisono_query", comm));
  if (result == nullptr) return fail(Code::argument, "unisono_query: result is NULL");
  *result = 0;
  if (how < 0 || how >= unisono::comm::kComparisonCount) {
    return fail(Code::argument, fmt::format("unisono_query: how is {}; it must be one of "
                                            "UNISONO_EQUAL .. UNISONO_GREATER_EQUAL, 0 .. {}",
                                            how, unisono::comm::kComparisonCount - 1));
  }
  AgentPause pause(found->communicator.get());
  pause.is_of_a_look();
  const auto holds = found->communicator->query(static_cast<Comparison>(how), value);
  if (!holds) return fail(holds.error());
  *result = *holds ? 1 : 0;
  return UNISONO_OK;
} catch (const std::exception& thrown) {
  return fail_thrown(comms().get(comm), "unisono_query", thrown);
}

int unisono_comm_info(unisono_comm_t comm, unisono_comm_info_t* info) try {
  Comm* found = find_comm(comm);
  if (found == nullptr) return fail(bad_comm("unisono_comm_info", comm));
  if (info == nullptr || info->size < sizeof(size_t)) {
    return fail(Code::argument, "unisono_comm_info: info is NULL, or its size is not set");
  }
  const AgentPause pause(found->communicator.get());
  const auto& statistics = found->communicator->statistics();
  unisono_comm_info_t full{};
  full.size = std::min(info->size, sizeof full);
  full.buffer_bytes = statistics.buffer_bytes;
  full.operations = statistics.operations;
  full.sleeps = statistics.sleeps;
  full.helped_steps = statistics.helped_steps;
  if (statistics.last_plan != nullptr) {
    const auto& plan = *statistics.last_plan;
    plan.algorithm.copy(full.algorithm, sizeof full.algorithm - 1);
    const std::string engine = unisono::select::engine_name(plan.engine);
    const bool pulls = plan.single_copy && plan.engine == unisono::select::EngineKind::inline_;
    (pulls ? engine + ", pull" : engine).copy(full.engine, sizeof full.engine - 1);
  }
  full.multicasts = statistics.engine.multicasts;
  full.stagings = statistics.engine.stagings;
  std::memcpy(info, &full, full.size);
  return UNISONO_OK;
} catch (const std::exception& thrown) {
  return fail("unisono_comm_info", thrown);
}

int unisono_comm_failed_rank(unisono_comm_t comm, int* rank) try {
  Comm* const found = find_comm(comm);
  if (found == nullptr) return fail(bad_comm("unisono_comm_failed_rank", comm));
  if (rank == nullptr) return fail(Code::argument, "unisono_comm_failed_rank: rank is NULL");
  const AgentPause pause(found->communicator.get());
  const unisono::comm::FailureState& failures = found->communicator->failures();
  *rank = failures.has_failed() ? failures.failure().rank : -1;
  return UNISONO_OK;
} catch (const std::exception& thrown) {
  return fail("unisono_comm_failed_rank", thrown);
}

int unisono_comm_rank_state(unisono_comm_t comm, int rank, unisono_rank_state_t* state) try {
  constexpr const char* kName = "unisono_comm_rank_state";
  Comm* const found = find_comm(comm);
  if (found == nullptr) return fail(bad_comm(kName, comm));
  if (state == nullptr || state->size < sizeof(size_t)) {
    return fail(Code::argument, fmt::format("{}: state is NULL, or its size is not set", kName));
  }
  if (rank < 0 || rank >= found->communicator->size()) {
    return fail(Code::argument, fmt::format("{}: rank is {}; it must be in 0 .. {}", kName, rank,
                                            found->communicator->size() - 1));
  }
  AgentPause pause(found->communicator.get());
  pause.is_of_a_look();
  Communicator& communicator = *found->communicator;
  const auto asked = communicator.words().ask_for_sign(rank);
  const unisono::comm::MemberState known = communicator.watchdog().state_of(rank);
  communicator.loan().lend(false);  // the started operations continue
  if (!asked) return fail(kName, asked.error());
  unisono_rank_state_t full{};
  full.size = std::min(state->size, sizeof full);
  full.state = static_cast<int32_t>(known.kind);
  known.why.copy(full.why, sizeof full.why - 1);
  std::memcpy(state, &full, full.size);
  return UNISONO_OK;
} catch (const std::exception& thrown) {
  return fail("unisono_comm_rank_state", thrown);
}

int unisono_refuse(unisono_comm_t comm, const char* why) try {
  Comm* const found = find_comm(comm);
  if (found == nullptr) return fail(bad_comm("unisono_refuse", comm));
  const AgentPause pause(found->communicator.get());
  return refuse(*found, Code::argument, why == nullptr ? "no reason given" : why);
} catch (const std::exception& thrown) {
  return fail("unisono_refuse", thrown);
}

int unisono_comm_hosts(unisono_comm_t comm, int* hosts) try {
  Comm* const found = find_comm(comm);
  if (found == nullptr) return fail(bad_comm("unisono_comm_hosts", comm));
  if (hosts == nullptr) return fail(Code::argument, "unisono_comm_hosts: hosts is NULL");
  *hosts = found->communicator->members().hosts().hosts();
  return UNISONO_OK;
} catch (const std::exception& thrown) {
  return fail("unisono_comm_hosts", thrown);
}

int unisono_faster_by_mpi(unisono_comm_t comm, const char* library, unisono_range_found_t found,
                          void* user) try {
  Comm* const asked = find_comm(comm);
  if (asked == nullptr) return fail(bad_comm("unisono_faster_by_mpi", comm));
  if (library == nullptr || found == nullptr) {
    return fail(Code::argument, "unisono_faster_by_mpi: library or found is NULL");
  }
  const unisono::comm::Members& members = asked->communicator->members();
  const unisono::model::HostMpi* const measured = unisono::model::find_host_mpi(
      members.job().machine(), library, members.size(), members.hosts().hosts());
  if (measured == nullptr) return UNISONO_OK;
  for (const unisono::model::ByteRange& range : measured->faster) {
    found(range.collective.c_str(), range.from_bytes, range.up_to_bytes, user);
  }
  return UNISONO_OK;
} catch (const std::exception& thrown) {
  return fail("unisono_faster_by_mpi", thrown);
}

int unisono_machine_bytes(unisono_comm_t comm, const char* key, int64_t* bytes) try {
  Comm* const asked = find_comm(comm);
  if (asked == nullptr) return fail(bad_comm("unisono_machine_bytes", comm));
  if (key == nullptr || bytes == nullptr) {
    return fail(Code::argument, "unisono_machine_bytes: key or bytes is NULL");
  }
  const auto rows = unisono::model::constant_rows();
  const auto row =
      std::ranges::find(rows, std::string_view(key), &unisono::model::ConstantRow::name);
  if (row == rows.end() || row->quantity != unisono::model::Quantity::bytes) {
    return fail(
        Code::argument,
        fmt::format("unisono_machine_bytes: no number of bytes of a machine has the key {}", key));
  }
  *bytes =
      unisono::model::constant_of(asked->communicator->members().job().machine(), row->id).count();
  return UNISONO_OK;
} catch (const std::exception& thrown) {
  return fail("unisono_machine_bytes", thrown);
}

int unisono_set_background_thread(int is_background) {
  unisono::wait::set_background_thread(is_background != 0);
  return UNISONO_OK;
}

static_assert(unisono::comm::Interrupt::kLate == UNISONO_INTERRUPT_LATE);

int unisono_set_interrupt(unisono_comm_t comm, unisono_interrupt_t interrupt, void* user) try {
  Comm* const found = find_comm(comm);
  if (found == nullptr) return fail(bad_comm("unisono_set_interrupt", comm));
  const AgentPause pause(found->communicator.get());
  found->communicator->failures().set_interrupt({interrupt, user});
  return UNISONO_OK;
} catch (const std::exception& thrown) {
  return fail("unisono_set_interrupt", thrown);
}

}  // extern "C"
