// SPDX-License-Identifier: BSD-3-Clause
// Call: one call of a collective by Unisono: the program's buffers in the form that Unisono takes,
// the call itself, and the return of results to the program. Each collective is a class (moves.hpp,
// reductions.hpp). It has one more function, with MPI's parameters:
//     bool take(const Communicator& own, ...)
// False: the host MPI does the call, or reports an argument that is invalid. With the same
// parameters, block_bytes() says how long a rank's block or vector is, if all ranks know it.
#pragma once

#include <cstdint>
#include <optional>

#include "calls/last_call.hpp"
#include "communicator.hpp"
#include "unisono/unisono.h"

namespace unisono::mpi {

enum class Uses : std::uint8_t { once, many };

class Call {
 public:
  // Not constexpr, as a defaulted one is: GCC then clears the whole object first, most of which are
  // unused places for block numbers.
  Call() {}
  virtual ~Call() = default;
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  static constexpr std::int64_t kUnknown = -1;
  template <class... Arguments>
  static std::int64_t block_bytes(const Ranks&, const Arguments&...) {
    return kUnknown;
  }

  // Whether the call can go on in another thread, after the program's call. The same at all ranks.
  virtual bool may_start() const { return true; }
  // Keeps what the program may free between the start and the end, or with many uses, after the
  // program's first call. An MPI error code.
  virtual int keep(Uses) { return 0; }
  // Before each use: the contents of the buffers. An MPI error code.
  virtual int load() { return 0; }
  // Calls Unisono. `request` null: until it is complete; else it is only started. An error of
  // Unisono's.
  virtual int call(const Communicator& own, unisono_request_t* request) = 0;
  // The part that a call like this one may use again. A class that has one also has kRepeats and
  // again(), which calls Unisono with buffers that LastCall accepts. `root`: 0 without one.
  static constexpr bool kRepeats = false;
  std::optional<LastCall::Kept> kept() const { return std::nullopt; }

  // After a call without error: results reach the program's buffers. An MPI error code.
  virtual int finish() = 0;
};

// The function of Unisono or its counterpart `_start`.
template <class Blocking, class Starting, class... Arguments>
int invoke(unisono_request_t* request, Blocking blocking, Starting start, Arguments... arguments) {
  return request == nullptr ? blocking(arguments...) : start(arguments..., request);
}

}  // namespace unisono::mpi
