// SPDX-License-Identifier: BSD-3-Clause
// Calls that are left to the host MPI, for the profile (UNISONO_PROFILE): what they were, how long
// they took, and why they were left. Any thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>
#include <type_traits>

#include "calls/call.hpp"
#include "calls/integers.hpp"
#include "calls/moves.hpp"
#include "calls/reductions.hpp"
#include "communicator.hpp"
#include "selection.hpp"
#include "unisono/unisono.h"

namespace unisono::mpi {

// The forms in which the program makes a call. The time of a started call is that of its start. The
// time of an initialized call is that of its initialization; its starts are not counted.
enum class CallForm : std::uint8_t { blocking, started, initialized };

// Whether they are counted.
bool counts_left_calls();

struct LeftCall {
  Collective collective;
  CallForm form;
  Handle comm = 0;
  const Communicator* own = nullptr;  // null: Unisono does not do this collective of `comm`
  const char* reason = nullptr;       // null: that
  unisono_type_t type = UNISONO_PROFILE_NONE;
  unisono_op_t op = UNISONO_PROFILE_NONE;
  std::int64_t bytes = 0;
  std::int64_t ns = 0;

  void count() const;
};

// The ranks by which the lengths of the call's buffers are known. False: its buffers mean nothing
// at this rank, or it is not known whether they do.
bool find_ranks(const LeftCall& call, std::optional<int> root, Ranks* ranks);
void set_reduction(LeftCall& call, std::int64_t elements, Handle type, Handle op);

inline std::int64_t elements_of(const Ranks&, LargeCount count) { return count; }
std::int64_t elements_of(const Ranks& ranks, Integers counts);  // the average

// With the arguments of the blocking call, after the host has taken them.
template <class Kind, class... Arguments>
void set_lengths(LeftCall& call, Arguments... arguments) {
  const std::tuple all(arguments...);
  std::optional<int> root;
  if constexpr (sizeof...(Arguments) > 1) {
    constexpr std::size_t kRoot = sizeof...(Arguments) - 2;
    const auto& last = std::get<kRoot>(all);
    if constexpr (std::is_same_v<decltype(last), const int&>) root = last;
  }
  Ranks ranks;
  if (!find_ranks(call, root, &ranks)) return;
  if constexpr (std::is_base_of_v<ReductionCall, Kind>) {
    set_reduction(call, elements_of(ranks, std::get<2>(all)), std::get<3>(all), std::get<4>(all));
  } else {
    call.bytes = std::max<std::int64_t>(0, Kind::block_bytes(ranks, arguments...));
  }
}

// Lets the host do the call by `by_host`. `arguments`: of the blocking call.
template <class Kind, class ByHost, class... Arguments>
int leave(LeftCall call, const ByHost& by_host, Arguments... arguments) {
  if (!counts_left_calls()) [[likely]]
    return by_host();
  const auto begin = std::chrono::steady_clock::now();
  const int code = by_host();
  if (code != 0) return code;  // its arguments may mean nothing
  call.ns = std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count();
  call.comm = std::get<sizeof...(Arguments) - 1>(std::tuple(arguments...));
  set_lengths<Kind>(call, arguments...);
  call.count();
  return code;
}

}  // namespace unisono::mpi
