// SPDX-License-Identifier: BSD-3-Clause
#include "pending.hpp"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "communicator.hpp"
#include "host/host.hpp"
#include "host/probes.hpp"
#include "host/progress.hpp"
#include "library.hpp"
#include "log.hpp"
#include "pending_call.hpp"

namespace unisono::mpi {

bool PendingCall::look() {
  if (started == nullptr) return true;
  int done = 0;
  // The wait ends soon: it asks watch_revocation()'s function.
  error = has_been_revoked(*own) ? library().wait(&started) : library().test(&started, &done);
  if (error != UNISONO_OK) text = library().last_error();
  return started == nullptr;
}

namespace {

// The communicators with pending calls, and who lets their calls go on.
struct Busy {
  std::mutex mutex;
  std::vector<Communicator*> all;
  std::atomic<std::size_t> count{0};
  bool is_served = false;
  std::thread carrier;                 // where the host MPI does not call the drop-in often enough
  std::atomic<bool> is_polled{false};  // MPICH calls poll_async()
  std::atomic<bool> ends_polling{false};
  std::condition_variable changed;
  std::atomic<bool> ends{false};  // changes with the mutex
};

Busy& busy() {
  static Busy* const kept = new Busy;  // never destroyed: MPI may end after static objects
  return *kept;
}

// With the mutex.
void drop_idle(Busy& known) {
  std::erase_if(known.all, [](const Communicator* own) { return own->pending.empty(); });
  known.count = known.all.size();
}

// The carrier: looks at the calls of a rank now and then, for the rank may be blocked.
void carry_all(Busy& known) {
  constexpr std::chrono::milliseconds kPause{1};
  std::unique_lock lock(known.mutex);
  while (!known.ends) {
    if (known.all.empty()) {
      known.changed.wait(lock, [&known] { return known.ends.load() || !known.all.empty(); });
      continue;
    }
    known.changed.wait_for(lock, kPause, [&known] { return known.ends.load(); });
    for (Communicator* const own : known.all) own->pending.carry();
    drop_idle(known);
  }
}

// Whether this thread lets calls go on: the end of a call may let the host progress, which calls
// the drop-in back.
thread_local bool is_inside = false;

// MPICH calls it in every call that waits, with locks of its own. So it lets calls go on, which
// needs nothing of MPICH, and ends none: that is for the functions on requests.
int poll_async(void*) {
  Busy& known = busy();
  if (is_inside || (!has_pending_calls() && !known.ends_polling)) return Host::kAsyncNoProgress;
  const std::unique_lock lock(known.mutex, std::try_to_lock);
  if (!lock.owns_lock()) return Host::kAsyncNoProgress;
  if (known.ends_polling) {
    known.is_polled = false;
    return Host::kAsyncDone;
  }
  if (is_carrying_host_on()) return Host::kAsyncNoProgress;
  is_inside = true;
  for (Communicator* const own : known.all) own->pending.carry();
  drop_idle(known);
  is_inside = false;
  return Host::kAsyncNoProgress;
}

// Its signals are the program's business.
std::thread start_carrier(Busy& known) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread started;
  try {
    started = std::thread([&known] { carry_all(known); });
  } catch (const std::system_error& error) {
    log_warning("no thread for nonblocking collectives, they go on only while this rank waits: %s",
                error.what());
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

// With the mutex.
void serve(Busy& known) {
  if (known.is_served) return;
  const Host& mpi = host();
  known.is_served = true;
  if (mpi.calls_back()) {
    mpi.progress_register(progress_calls);
  } else if (mpi.start_async != nullptr && !known.ends_polling &&
             mpi.start_async(poll_async, nullptr, Host::kNoStream) == 0) {
    known.is_polled = true;
  } else {
    known.carrier = start_carrier(known);
  }
}

void note_busy(Communicator& own) {
  Busy& known = busy();
  const std::lock_guard lock(known.mutex);
  if (std::find(known.all.begin(), known.all.end(), &own) == known.all.end()) {
    known.all.push_back(&own);
  }
  known.count = known.all.size();
  serve(known);
  known.changed.notify_one();
}

// Calls that have failed, and the program has not waited for.
std::atomic<int> failed_calls{0};

// One that the host has asked for, in the program's current function on requests.
struct Failure {
  Handle request, comm;
  int error;
  std::string text;
};
// Null: none. No object: the program may use requests after the main thread's objects have ended.
thread_local std::vector<Failure>* failures = nullptr;

void drop_failures_of(Handle request) {
  if (failures == nullptr) return;
  std::erase_if(*failures, [request](const Failure& each) { return each.request == request; });
  if (failures->empty()) delete std::exchange(failures, nullptr);
}

// The program asks for the status of a complete request. To the host a failed one is no error: it
// would call the error handler of MPI_COMM_WORLD. Our functions on requests report it.
int query(void* extra, void* status) {
  const Host& mpi = host();
  auto& pending = *static_cast<PendingCall*>(extra);
  if (pending.error != UNISONO_OK && !pending.is_reported) {
    pending.is_reported = true;
    failed_calls.fetch_sub(1, std::memory_order_relaxed);
    if (failures == nullptr) failures = new std::vector<Failure>;
    failures->push_back({pending.request, pending.own->handle, pending.error, pending.text});
  }
  mpi.Status_set_elements(status, mpi.constants.byte, 0);
  mpi.Status_set_cancelled(status, 0);
  return pending.code;
}

int poll(void* extra, void*) {
  if (!is_carrying_host_on()) static_cast<PendingCall*>(extra)->own->pending.progress();
  return 0;
}

// MPICH's MPI_Wait and MPI_Waitall leave the waiting to this function.
int wait(int count, void** extras, double, void*) {
  const Host& mpi = host();
  for (int i = 0; i < count; ++i) {
    auto& pending = *static_cast<PendingCall*>(extras[i]);
    for (int is_complete = 0;;) {
      if (!is_carrying_host_on()) pending.own->pending.progress();
      // Lets the host's messages go on.
      mpi.Request_get_status(pending.request, &is_complete, mpi.constants.status_ignore);
      if (is_complete != 0) break;
      sched_yield();  // MPICH's ranks would not, and other ranks may need this core
    }
  }
  return 0;
}

int release(void* extra) {
  const std::unique_ptr<PendingCall> pending(static_cast<PendingCall*>(extra));
  pending->own->pending.release();
  return 0;
}

// MPI does not allow to cancel a collective. MPI_Cancel reports the error.
int cancel(void*, int) { return host().constants.error_request; }

// The program may end the request from now on.
void complete(PendingCall& pending) {
  const Handle request = pending.request;
  if (pending.error != UNISONO_OK) failed_calls.fetch_add(1, std::memory_order_relaxed);
  pending.call.reset();  // here, for MPICH allows no calls while it frees a request
  host().Grequest_complete(request);
}

int make_request(PendingCall& pending, Handle* request) {
  const Host& mpi = host();
  const int error = mpi.start_polled != nullptr
                        ? mpi.start_polled(query, release, cancel, poll, wait, &pending, request)
                        : mpi.Grequest_start(query, release, cancel, &pending, request);
  if (error != 0) return error;
  pending.request = mpi.handle_at(request);
  drop_failures_of(pending.request);  // MPICH uses a request's number again
  return 0;
}

// An error of Unisono's start: the request ends before the program has it, which gets a null one.
int give_up(PendingCall& pending, int error, Handle* request) {
  const Host& mpi = host();
  const std::string text = library().last_error();
  const Handle comm = pending.own->handle;
  pending.call.reset();  // as in complete()
  mpi.Grequest_complete(pending.request);
  mpi.Wait(request, mpi.constants.status_ignore);
  return report_error(comm, error, text);  // last: the program's error handler may throw
}

}  // namespace

int start_nonblocking(Communicator& own, std::unique_ptr<Call> call, Handle* request) {
  auto pending = std::make_unique<PendingCall>(own, std::move(call), complete);
  if (const int error = make_request(*pending, request); error != 0) return error;
  PendingCall& kept = *pending.release();  // the request owns it
  own.pending.hold();
  const int error = own.pending.start(own, kept);
  return error == UNISONO_OK ? 0 : give_up(kept, error, request);
}

bool may_report() {
  return has_pending_calls() || failed_calls.load(std::memory_order_relaxed) != 0 ||
         failures != nullptr;
}

int report_failed_call(Handle request) {
  if (failures == nullptr) return 0;
  const auto found = std::find_if(failures->begin(), failures->end(),
                                  [&](const Failure& each) { return each.request == request; });
  if (found == failures->end()) return 0;
  const Failure failure = std::move(*found);
  drop_failures_of(request);
  return report_error(failure.comm, failure.error, failure.text);
}

bool has_pending_calls() { return busy().count.load(std::memory_order_relaxed) != 0; }

// PendingCalls::start() takes the locks in the other order, so this one waits with neither.
bool is_pending(Handle request) {
  Busy& known = busy();
  for (; has_pending_calls(); sched_yield()) {
    const std::lock_guard lock(known.mutex);
    bool is_sure = true;
    for (Communicator* const own : known.all) {
      const auto found = own->pending.have(request);
      if (found.value_or(false)) return true;
      is_sure = is_sure && found;
    }
    if (is_sure) break;
  }
  return false;
}

// Open MPI calls it wherever it waits, often.
int progress_calls() {
  Busy& known = busy();
  // A blocking call of Unisono lets the host's messages go on, and may not be entered again.
  if (!has_pending_calls() || is_inside || is_carrying_host_on()) return 0;
  const std::unique_lock lock(known.mutex, std::try_to_lock);
  if (!lock.owns_lock()) return 0;
  is_inside = true;
  int completed = 0;
  for (Communicator* const own : known.all) completed += own->pending.progress();
  drop_idle(known);
  is_inside = false;
  return completed;
}

void forget_calls(const Communicator& own) {
  Busy& known = busy();
  const std::lock_guard lock(known.mutex);
  std::erase(known.all, &own);
  known.count = known.all.size();
}

// The carrier does that for calls of the program that come later.
void end_polling() {
  constexpr int kMostTurns = 1000;  // the first one does it, unless another thread is in the lock
  Busy& known = busy();
  known.ends_polling = true;
  for (int i = 0; known.is_polled && i < kMostTurns; ++i) carry_host_on();
  const std::lock_guard lock(known.mutex);
  if (known.is_polled || host().calls_back() || known.carrier.joinable()) return;
  known.is_served = false;
  if (!known.all.empty()) serve(known);
}

void end_calls() {
  Busy& known = busy();
  {
    const std::lock_guard lock(known.mutex);
    known.all.clear();
    known.count = 0;
    known.ends = true;
  }
  known.changed.notify_one();
  if (known.carrier.joinable()) known.carrier.join();
}

void PendingCalls::lock() {
  while (!try_lock()) sched_yield();
}

// All that may fail for lack of memory comes before the call.
int PendingCalls::start(Communicator& own, PendingCall& pending) {
  lock();
  int error = UNISONO_OK;
  try {
    calls_.push_back(&pending);
    count_.fetch_add(1, std::memory_order_relaxed);
    note_busy(own);
    error = pending.call->call(own, &pending.started);
  } catch (const std::exception& thrown) {
    error = library().refuse(own.unisono.get(), thrown.what());  // the other ranks wait for it
  }
  const bool is_there = !calls_.empty() && calls_.back() == &pending;
  if (error != UNISONO_OK && is_there) {
    calls_.pop_back();
    count_.fetch_sub(1, std::memory_order_release);
  }
  unlock();
  return error;
}

int PendingCalls::progress() noexcept {
  int completed = 0;
  while (end_first()) ++completed;
  return completed;
}

bool PendingCalls::end_first() noexcept {
  if (empty() || !try_lock()) return false;
  PendingCall* const first = calls_.empty() ? nullptr : calls_.front();
  const bool has_ended = first != nullptr && first->look();
  if (has_ended) {
    if (first->error == UNISONO_OK) first->code = first->call->finish();
    calls_.pop_front();
    count_.fetch_sub(1, std::memory_order_release);
  }
  unlock();
  if (has_ended) {
    note_collective();
    first->ended(*first);
  }
  return has_ended;
}

std::optional<bool> PendingCalls::have(Handle request) noexcept {
  if (!try_lock()) return std::nullopt;
  const bool found = std::any_of(calls_.begin(), calls_.end(), [request](const PendingCall* each) {
    return each->request == request;
  });
  unlock();
  return found;
}

void PendingCalls::carry() noexcept {
  if (empty() || !try_lock()) return;
  for (PendingCall* const pending : calls_) {
    if (!pending->look()) break;
  }
  unlock();
}

}  // namespace unisono::mpi
