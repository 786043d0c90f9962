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

#include "calls/call.hpp"
#include "communicator.hpp"
#include "host/host.hpp"
#include "host/progress.hpp"
#include "library.hpp"
#include "log.hpp"

namespace unisono::mpi {

// A call between its start and the end of the program's request.
struct Pending {
  Pending(Communicator& called, std::unique_ptr<Call> by) : own(&called), call(std::move(by)) {}

  Communicator* own;
  std::unique_ptr<Call> call;
  unisono_request_t started = nullptr;
  Handle request = 0;  // the program's
  int error = UNISONO_OK;
  std::string text;  // of the error
  int code = 0;      // MPI's of the error, once it is reported

  // Lets the call go on. True once it has ended.
  bool look() {
    if (started == nullptr) return true;
    int done = 0;
    error = library().test(&started, &done);
    if (error != UNISONO_OK) text = library().last_error();
    return started == nullptr;
  }
};

namespace {

// The communicators with pending calls, and who lets their calls go on.
struct Busy {
  std::mutex mutex;
  std::vector<Communicator*> all;
  std::atomic<std::size_t> count{0};
  bool is_served = false;
  std::thread carrier;  // where the host MPI does not call the drop-in often enough
  std::condition_variable changed;
  bool ends = false;
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
      known.changed.wait(lock, [&known] { return known.ends || !known.all.empty(); });
      continue;
    }
    known.changed.wait_for(lock, kPause, [&known] { return known.ends; });
    for (Communicator* const own : known.all) own->pending.carry();
    drop_idle(known);
  }
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

int progress_all();

void note_busy(Communicator& own) {
  const Host& mpi = host();
  Busy& known = busy();
  const std::lock_guard lock(known.mutex);
  if (std::find(known.all.begin(), known.all.end(), &own) == known.all.end()) {
    known.all.push_back(&own);
  }
  known.count = known.all.size();
  if (!known.is_served) {
    known.is_served = true;
    if (mpi.start_polled == nullptr) {
      mpi.progress_register(progress_all);
    } else {
      known.carrier = start_carrier(known);
    }
  }
  known.changed.notify_one();
}

// Open MPI calls it wherever it waits, often: without pending calls it takes one load.
int progress_all() {
  Busy& known = busy();
  if (known.count.load(std::memory_order_relaxed) == 0) return 0;
  // A blocking call of Unisono lets the host's messages go on, and may not be entered again.
  if (is_carrying_host_on()) return 0;
  const std::unique_lock lock(known.mutex, std::try_to_lock);
  if (!lock.owns_lock()) return 0;
  int completed = 0;
  for (Communicator* const own : known.all) completed += own->pending.progress();
  drop_idle(known);
  return completed;
}

// The program asks for the status of a complete request, in a call that may report an error.
int query(void* extra, void* status) {
  const Host& mpi = host();
  auto& pending = *static_cast<Pending*>(extra);
  if (pending.error != UNISONO_OK && pending.code == 0) {
    pending.code = report_error(*pending.own, pending.error, pending.text);
  }
  mpi.Status_set_elements(status, mpi.constants.byte, 0);
  mpi.Status_set_cancelled(status, 0);
  static_cast<int*>(status)[mpi.constants.error_in_status] = pending.code;
  return pending.code;
}

int poll(void* extra, void*) {
  if (!is_carrying_host_on()) static_cast<Pending*>(extra)->own->pending.progress();
  return 0;
}

// MPICH's MPI_Wait and MPI_Waitall leave the waiting to this function.
int wait(int count, void** extras, double, void*) {
  const Host& mpi = host();
  for (int i = 0; i < count; ++i) {
    auto& pending = *static_cast<Pending*>(extras[i]);
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
  const std::unique_ptr<Pending> pending(static_cast<Pending*>(extra));
  pending->own->pending.release();
  return 0;
}

// MPI does not allow to cancel a collective.
int cancel(void*, int) { return 0; }

int make_request(Pending& pending, Handle* request) {
  const Host& mpi = host();
  const int error = mpi.start_polled != nullptr
                        ? mpi.start_polled(query, release, cancel, poll, wait, &pending, request)
                        : mpi.Grequest_start(query, release, cancel, &pending, request);
  if (error == 0) pending.request = mpi.handle_at(request);
  return error;
}

// An error of Unisono's start: the request ends before the program has it.
int give_up(Pending& pending, int error) {
  const Host& mpi = host();
  const int code = report_error(*pending.own, error, library().last_error());
  Handle request = pending.request;
  mpi.Grequest_complete(request);
  mpi.Wait(&request, mpi.constants.status_ignore);
  return code;
}

}  // namespace

bool has_nonblocking() {
  const Host& mpi = host();
  return mpi.start_polled != nullptr || mpi.progress_register != nullptr;
}

void forget_calls(const Communicator& own) {
  Busy& known = busy();
  const std::lock_guard lock(known.mutex);
  std::erase(known.all, &own);
  known.count = known.all.size();
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

int PendingCalls::start(Communicator& own, std::unique_ptr<Call> call, Handle* request) {
  auto pending = std::make_unique<Pending>(own, std::move(call));
  if (const int error = make_request(*pending, request); error != 0) return error;
  Pending* const kept = pending.release();  // the request owns it
  requests_.fetch_add(1, std::memory_order_relaxed);
  lock();
  const int error = kept->call->call(own, &kept->started);
  if (error == UNISONO_OK) {
    calls_.push_back(kept);
    count_.fetch_add(1, std::memory_order_relaxed);
  }
  unlock();
  if (error != UNISONO_OK) return give_up(*kept, error);
  note_busy(own);
  return 0;
}

int PendingCalls::progress() noexcept {
  int completed = 0;
  while (complete_first()) ++completed;
  return completed;
}

bool PendingCalls::complete_first() noexcept {
  if (empty() || !try_lock()) return false;
  Pending* const first = calls_.empty() ? nullptr : calls_.front();
  const bool has_ended = first != nullptr && first->look();
  if (has_ended) {
    if (first->error == UNISONO_OK) first->code = first->call->finish();
    first->call.reset();  // here, for MPICH allows no calls while it frees a request
    calls_.pop_front();
    count_.fetch_sub(1, std::memory_order_release);
  }
  unlock();
  if (!has_ended) return false;
  host().Grequest_complete(first->request);  // the program may now end the request
  return true;
}

void PendingCalls::carry() noexcept {
  if (empty() || !try_lock()) return;
  for (Pending* const pending : calls_) {
    if (!pending->look()) break;
  }
  unlock();
}

}  // namespace unisono::mpi
