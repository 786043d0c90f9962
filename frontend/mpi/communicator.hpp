// SPDX-License-Identifier: BSD-3-Clause
// Communicator: what the drop-in keeps for a communicator of the program, as an attribute of it. At
// the first blocking collective all its ranks agree on the collectives that Unisono does, and make
// a Unisono communicator over the host's allgather (home.hpp). If that fails, it fails on all
// ranks, and the host MPI does all collectives of the communicator. The attribute's deletion ends
// the Unisono communicator, once no request is left. As of MPI, one thread at a time calls its
// collectives.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "calls/last_call.hpp"
#include "home.hpp"
#include "host/functions.hpp"
#include "host/host.hpp"
#include "pending.hpp"
#include "ranges/host_ranges.hpp"
#include "ranges/trials.hpp"
#include "selection.hpp"
#include "unisono/unisono.h"

namespace unisono::mpi {

struct Ranks {
  int rank = 0;  // this one
  int size = 0;
};

struct Communicator : Ranks {
  Handle handle = 0;
  const Communicator* of = nullptr;  // that of the program, if this is for a persistent call
  const char* why_host = "";         // without a Unisono communicator: why
  std::uint32_t collectives = 0;     // bits of Collective: those that Unisono does
  bool does_persistent = false;      // Unisono, persistent calls too
  bool may_be_revoked = false;       // by the program
  bool is_measured = false;          // compared with the host MPI before the first call
  int allgathers = 0;                // of the host MPI, to make it
  std::int64_t exchange_from = 0;    // bytes from which on two ranks exchange by an allgatherv
  HostRanges host_ranges;            // in which the host MPI does blocking calls of these
  std::unique_ptr<Trials> trials;    // who does blocking calls outside of these; null: Unisono
  UnisonoComm unisono;
  PendingCalls pending;
  std::array<LastCall, kCollectives> last_calls;  // blocking ones, by Collective

  LastCall& last_call(Collective collective) {
    return last_calls[static_cast<std::size_t>(collective)];
  }
  bool does(Collective collective) const {
    return (collectives >> static_cast<unsigned>(collective) & 1U) != 0;
  }
};

// The communicators that a thread used last, by their handles: programs take turns with a few.
struct LastUsed {
  static constexpr unsigned kBits = 3;

  Handle handle = 0;
  std::uint64_t generation = 0;
  Communicator* comm = nullptr;
};
constinit inline thread_local std::array<LastUsed, std::size_t{1} << LastUsed::kBits> last_used{};
// Grows when a communicator ends: its handle may then be another's. That is after its attributes
// are gone, for the program's attribute functions may do collectives on it while it ends.
constinit inline std::atomic<std::uint64_t> communicator_generation{1};

inline void forget_last_used() { communicator_generation.fetch_add(1); }

inline LastUsed& last_used_of(Handle handle) {
  constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;
  return last_used[static_cast<std::size_t>((handle * kGolden) >> (64 - LastUsed::kBits))];
}

// `makes`: a communicator that has none of ours gets one. It is collective.
Communicator* look_for_communicator(Handle comm, Collective collective, bool makes);
inline Communicator* find_communicator(Handle comm, Collective collective, bool makes) {
  const Handle handle = host().handle(comm);
  const LastUsed& last = last_used_of(handle);
  const std::uint64_t now = communicator_generation.load(std::memory_order_acquire);
  if (last.handle != handle || last.generation != now) [[unlikely]] {
    return look_for_communicator(handle, collective, makes);
  }
  return last.comm->does(collective) ? last.comm : nullptr;
}
// Null: the host MPI does the call, as outside of MPI_Init and MPI_Finalize.
inline Communicator* find_communicator(Handle comm, Collective collective) {
  return find_communicator(comm, collective, true);
}
// The same for a nonblocking call, which cannot make one of Unisono: no rank waits for another in
// it.
inline Communicator* find_made_communicator(Handle comm, Collective collective) {
  return find_communicator(comm, collective, false);
}

// After these two have given none: the host's error code, if it has refused the communicator on
// this thread. It has then called the program's error handler. 0: it has not.
int take_refusal();

// Why the host MPI does a call on the communicator for which these two give none; for people.
const char* why_host(Handle comm);

// Ends all that Unisono does, once. From then on the host MPI does all calls.
void end_communicators();
// Right after the host's MPI_Init: sets an attribute of MPI_COMM_SELF, whose deletion does that.
// The host's MPI_Finalize first deletes these attributes, the last one first. So the program's, set
// later, go before, and their functions may do collectives.
void prepare_end();
// Before the host's MPI_Finalize: ends all now if there is no such attribute.
void end_before_host();

// Whether the program has revoked it. Then Unisono's calls end, and the host MPI reports the error.
bool has_been_revoked(const Communicator& comm);
// Lets waits in it end then.
void watch_revocation(const Communicator& comm);

// Reports an error of Unisono by the error handler of the program's communicator. Gives the MPI
// error code, if the handler returns.
int report_error(Handle comm, int error, const std::string& text);
// The same with a class of MPI's.
int report_class(Handle comm, int error_class, const std::string& text);

}  // namespace unisono::mpi
