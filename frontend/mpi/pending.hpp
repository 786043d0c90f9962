// SPDX-License-Identifier: BSD-3-Clause
// Calls of a communicator that have been started and not ended, and nonblocking collectives by
// Unisono. For those the program holds a generalized request of its MPI, so it
// waits for it together with requests of messages. The host MPI calls the drop-in while it
// progresses: Open MPI and MPICH 4.3 in every call that waits; other MPICHs only in MPI_Wait and
// MPI_Test of the request, so there a thread of the drop-in carries on the calls of a rank that is
// blocked elsewhere. Requests of a communicator complete in the order of their calls.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <optional>

#include "host/functions.hpp"

namespace unisono::mpi {

class Call;
struct Communicator;
struct PendingCall;

// The pending calls of a communicator. The program's thread that calls a collective and the threads
// that progress use its job in turn.
class PendingCalls {
 public:
  bool empty() const { return count_.load(std::memory_order_acquire) == 0; }
  // Whether the program holds requests, of which calls may be complete.
  bool has_requests() const { return requests_.load(std::memory_order_acquire) != 0; }
  // Starts the call, which belongs to `own`. An error of Unisono's.
  int start(Communicator& own, PendingCall& call);
  // Ends the calls that are complete, up to the first that is not. Gives their number: 0 also if
  // another thread uses the job. It does not wait.
  int progress() noexcept;
  // Lets the calls go on, without ending them. It does not wait. For any thread.
  void carry() noexcept;
  // Whether the request is that of a pending call. nullopt: another thread uses the calls.
  std::optional<bool> have(Handle request) noexcept;
  // The program has got a request, and has used it for the last time.
  void hold() { requests_.fetch_add(1, std::memory_order_relaxed); }
  void release() { requests_.fetch_sub(1, std::memory_order_release); }

  // While one exists no other thread uses the job.
  class Turn {
   public:
    // Without pending calls no other thread does, as of MPI.
    explicit Turn(PendingCalls& calls) : calls_(calls.empty() ? nullptr : &calls) {
      if (calls_ != nullptr) calls_->lock();
    }
    ~Turn() {
      if (calls_ != nullptr) calls_->unlock();
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    PendingCalls* calls_;
  };

 private:
  void lock();
  bool try_lock() { return !is_used_.test_and_set(std::memory_order_acquire); }
  void unlock() { is_used_.clear(std::memory_order_release); }

  // Ends the first call if it is complete.
  bool end_first() noexcept;

  std::deque<PendingCall*> calls_;
  std::atomic<int> count_{0};  // of calls_
  std::atomic<int> requests_{0};
  std::atomic_flag is_used_;
};

// Starts the call and gives the program a request of its MPI. An MPI error code.
int start_nonblocking(Communicator& own, std::unique_ptr<Call> call, Handle* request);

// Whether there may be a call of which report_failed_call() has to report something: two loads.
bool may_report();
// Reports the error of a request's call, if it has one, after the host has completed the request on
// this thread. Returns the MPI error code. 0: none.
int report_failed_call(Handle request);

// Whether any communicator has pending calls: one load.
bool has_pending_calls();
// Whether the request is that of a nonblocking collective by Unisono that has not ended.
bool is_pending(Handle request);
// Ends those that are complete, of all communicators. Gives their number. It does not wait.
int progress_calls();

// Before the communicator, without pending calls, is destroyed.
void forget_calls(const Communicator& own);

// Before the host's MPI_Finalize, for MPICH 5 waits there until it has nothing more to poll.
void end_polling();
// With all communicators: ends the thread.
void end_calls();

}  // namespace unisono::mpi
