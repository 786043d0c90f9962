// SPDX-License-Identifier: BSD-3-Clause
#include "persistent.hpp"

#include <atomic>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "calls/call.hpp"
#include "communicator.hpp"
#include "host/alone.hpp"
#include "host/host.hpp"
#include "library.hpp"
#include "log.hpp"
#include "pending_call.hpp"

namespace unisono::mpi {
namespace {

void complete_carrier(PendingCall& ended);

// The state of one persistent request.
struct Persistent {
  Persistent(Communicator& called, std::unique_ptr<Call> call)
      : of(called), own(), pending(own, std::move(call), complete_carrier) {
    own.rank = called.rank;
    own.size = called.size;
    own.of = &called;
  }

  Communicator& of;  // the program's; it stays while this holds a request of it
  Communicator own;  // for this request alone
  PendingCall pending;
  Handle comm = 0;  // of the carrier's message
  int tag = -1;
  std::atomic<bool> is_active{false};
  std::atomic<bool> has_failed{false};  // and the program has not waited for it
};

// The requests by the carrier's handle.
struct Registry {
  std::mutex mutex;
  int next_tag = 0;
  std::vector<int> free_tags;
  std::unordered_map<Handle, std::unique_ptr<Persistent>> all;
  std::atomic<std::size_t> count{0};
  std::atomic<int> failed{0};  // of those that the program has not waited for
};

Registry& registry() {
  static Registry* const kept = new Registry;  // never destroyed: MPI may end after static objects
  return *kept;
}

Persistent* find(Handle request) {
  Registry& known = registry();
  const std::lock_guard lock(known.mutex);
  const auto found = known.all.find(request);
  return found == known.all.end() ? nullptr : found->second.get();
}

bool make_carrier(Persistent& persistent, Handle* request) {
  constexpr int kMostTags = 32767;  // MPI grants as many
  Registry& known = registry();
  Handle comm = 0;
  if (!find_alone(&comm)) return false;
  const std::lock_guard lock(known.mutex);
  if (known.free_tags.empty()) {
    if (known.next_tag == kMostTags) return false;
    known.free_tags.push_back(known.next_tag++);
  }
  const Host& mpi = host();
  const int tag = known.free_tags.back();
  if (mpi.Recv_init(nullptr, 0, mpi.constants.byte, 0, tag, comm, request) != 0) return false;
  known.free_tags.pop_back();
  persistent.comm = comm;
  persistent.tag = tag;
  persistent.pending.request = mpi.handle_at(request);
  return true;
}

void free_tag(Persistent& persistent) {
  if (persistent.tag < 0) return;
  Registry& known = registry();
  const std::lock_guard lock(known.mutex);
  known.free_tags.push_back(persistent.tag);
}

// By Unisono: the host's ranks may poll for each other without giving up their cores.
int allgather(const void* input, void* output, std::size_t bytes, void* user) {
  auto& programs = *static_cast<Communicator*>(user);
  const PendingCalls::Turn turn(programs.pending);
  return library().allgather(input, output, static_cast<std::int64_t>(bytes), UNISONO_BYTE,
                             programs.unisono.get());
}

void send_to_carrier(const Persistent& persistent) {
  const Host& mpi = host();
  mpi.Send(nullptr, 0, mpi.constants.byte, 0, persistent.tag, persistent.comm);
}

void complete_carrier(PendingCall& ended) {
  Persistent* const persistent = find(ended.request);
  if (persistent == nullptr) return;  // the program has freed an active request, which MPI forbids
  persistent->has_failed = ended.error != UNISONO_OK || ended.code != 0;
  if (persistent->has_failed) registry().failed.fetch_add(1, std::memory_order_relaxed);
  persistent->is_active = false;
  send_to_carrier(*persistent);
}

// The carrier is active, and ends here: the program gets the error of the start.
void end_carrier(Persistent& persistent, Handle* request) {
  send_to_carrier(persistent);
  host().Wait(request, host().constants.status_ignore);
  persistent.is_active = false;
}

int start(Persistent& persistent, Handle* request) {
  PendingCall& pending = persistent.pending;
  if (const int error = host().Start(request); error != 0) return error;
  persistent.is_active = true;
  pending.error = UNISONO_OK;
  pending.code = pending.call->load();
  int error = UNISONO_OK;
  if (pending.code == 0) error = persistent.own.pending.start(persistent.own, pending);
  if (pending.code == 0 && error == UNISONO_OK) return 0;
  const std::string text = library().last_error();
  end_carrier(persistent, request);
  // Last: the program's error handler may throw.
  if (pending.code == 0) pending.code = report_error(persistent.of.handle, error, text);
  return pending.code;
}

}  // namespace

bool make_persistent(Communicator& own, std::unique_ptr<Call> call, bool can, Handle* request) {
  auto made = std::make_unique<Persistent>(own, std::move(call));
  can = can && make_carrier(*made, request);
  const int error = made->own.unisono.make_like(own.unisono, own.size, can, {allgather, &own, 0});
  if (error != UNISONO_OK) {
    log_warning("rank %d of %d: the host MPI does a persistent collective: %s", own.rank, own.size,
                library().last_error());
    if (made->tag >= 0) host().Request_free(request);
    free_tag(*made);
    return false;
  }
  watch_revocation(made->own);
  own.pending.hold();
  Registry& known = registry();
  const std::lock_guard lock(known.mutex);
  const Handle carrier = made->pending.request;
  known.all[carrier] = std::move(made);
  known.count = known.all.size();
  return true;
}

bool has_persistent() { return registry().count.load(std::memory_order_relaxed) != 0; }

bool start_persistent(Handle* request, int* error) {
  Persistent* const found = has_persistent() ? find(host().handle_at(request)) : nullptr;
  if (found == nullptr) return false;
  *error = start(*found, request);
  return true;
}

std::optional<bool> is_persistent_active(Handle request) {
  const Persistent* const found = find(request);
  return found == nullptr ? std::nullopt : std::optional(found->is_active.load());
}

void forget_persistent(Handle request) {
  if (!has_persistent()) return;
  Registry& known = registry();
  std::unique_ptr<Persistent> ended;
  {
    const std::lock_guard lock(known.mutex);
    const auto found = known.all.find(request);
    if (found == known.all.end()) return;
    ended = std::move(found->second);
    known.all.erase(found);
    known.count = known.all.size();
  }
  if (ended->is_active) {
    log_warning("MPI_Request_free of an active persistent collective, which MPI does not allow");
    ended.release();  // the call may still go on
    return;
  }
  forget_calls(ended->own);
  ended->own.unisono.end();
  free_tag(*ended);
  ended->of.pending.release();
}

int report_failed_persistent(Handle request) {
  if (registry().failed.load(std::memory_order_relaxed) == 0) return 0;
  Persistent* const found = find(request);
  if (found == nullptr || !found->has_failed.exchange(false)) return 0;
  registry().failed.fetch_sub(1, std::memory_order_relaxed);
  const PendingCall& pending = found->pending;
  return pending.error == UNISONO_OK ? pending.code
                                     : report_error(found->of.handle, pending.error, pending.text);
}

}  // namespace unisono::mpi
