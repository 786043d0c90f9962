// SPDX-License-Identifier: BSD-3-Clause
// Nonblocking collectives by Unisono. The program holds a generalized request of its MPI, so it
// waits for it together with requests of messages. The host MPI calls the drop-in while it
// progresses: Open MPI in every call that waits; MPICH only in MPI_Wait and MPI_Test of the
// request, so there a thread of the drop-in carries on the calls of a rank that is blocked
// elsewhere. Requests of a communicator complete in the order of their calls.
#pragma once

#include <atomic>
#include <deque>
#include <memory>

#include "host/functions.hpp"

namespace unisono::mpi {

class Call;
struct Communicator;
struct Pending;

// The pending calls of a communicator. The program's thread that calls a collective and the threads
// that progress use its job in turn.
class PendingCalls {
 public:
  bool empty() const { return count_.load(std::memory_order_acquire) == 0; }
  // Whether the program holds requests, of which calls may be complete.
  bool has_requests() const { return requests_.load(std::memory_order_acquire) != 0; }
  // Starts the call and gives the program a request. An MPI error code.
  int start(Communicator& own, std::unique_ptr<Call> call, Handle* request);
  // Completes the requests whose calls are complete, up to the first that is not. Gives their
  // number: 0 also if another thread uses the job. It does not wait.
  int progress() noexcept;
  // Lets the calls go on, without completing requests. It does not wait. For any thread.
  void carry() noexcept;
  // The program's last use of a request has ended.
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

  // Completes the first call's request if the call is complete.
  bool complete_first() noexcept;

  std::deque<Pending*> calls_;
  std::atomic<int> count_{0};  // of calls_
  std::atomic<int> requests_{0};
  std::atomic_flag is_used_;
};

// Whether the host MPI has a way to progress them.
bool has_nonblocking();

// Before the communicator, without pending calls, is destroyed.
void forget_calls(const Communicator& own);

// Before the host's MPI_Finalize: ends the thread.
void end_calls();

}  // namespace unisono::mpi
