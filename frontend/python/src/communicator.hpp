// SPDX-License-Identifier: BSD-3-Clause
// Communicator: a communicator of the library, and what Python adds to it: errors of a thread that
// comes while another one is in a call, of a forked child, and after the end; Ctrl-C in a wait; and
// arrays that outlive a request which nobody waits for. Callers hold the GIL.
#pragma once

#include <nanobind/nanobind.h>
#include <unisono/unisono.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "errors.hpp"

namespace unisono::python {

// A started operation that nobody will wait for: a request, or the start of a plan.
struct Abandoned {
  unisono_request_t request = nullptr;
  std::shared_ptr<void> arrays;
  unisono_plan_t plan = nullptr;
};

// Whether another thread ends the interpreter.
bool has_lost_python();

// A thread that is in the library beside the calls of a Communicator::Use, under the GIL at first
// and at last. The end of the interpreter waits for it, and later ones stay.
class Visit {
 public:
  Visit();
  ~Visit();
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;
};

// Operations are under way on communicators that nobody has any more. Under the GIL.
extern bool has_orphans;

class Communicator {
 public:
  // `world`: of its job; nullptr if it is that one itself.
  Communicator(unisono_comm_t handle, const Communicator* world);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  // It has not ended, and is of this process.
  bool is_open() const { return handle_ != nullptr && is_own(); }
  // Not of the parent process.
  bool is_own() const;
  // Throws StateError after its end, and in a forked child.
  void require_open() const;
  // Ends this rank's part: finalizes the job, for its world communicator. Throws StateError while
  // the caller holds a request or plan that has not ended. A world also throws it while another
  // thread is in a call on a communicator of its job.
  void close();
  unisono_comm_t handle() const { return handle_; }
  bool is_world() const { return world_ == this; }
  // By this thread or another one.
  bool is_in_use() const { return is_in_use_; }

  // One call of the library. A Use exists from the look at the arguments until the end.
  class Use {
   public:
    // Throws StateError.
    explicit Use(Communicator& communicator) : communicator_(communicator) {
      if (!communicator.is_ready()) [[unlikely]]
        prepare();
      communicator.is_in_use_ = true;
    }
    ~Use() { communicator_.is_in_use_ = false; }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

    // Runs `call`, which returns the library's code, without the GIL. Raises its error.
    template <class Call>
    void run(const Call& call) {
      if (communicator_.timeout_s_ > 0) communicator_.begin_ = std::chrono::steady_clock::now();
      PyThreadState* const state = PyEval_SaveThread();
      const int code = call();
      if (has_lost_python()) [[unlikely]]
        communicator_.stay();
      PyEval_RestoreThread(state);
      if (code != UNISONO_OK) [[unlikely]]
        communicator_.raise_failure(code);
    }

   private:
    void prepare();

    Communicator& communicator_;
  };

  // Seconds that a call may wait before it ends the communicator for all ranks; 0: no limit. A new
  // value holds for a call in progress, too.
  double timeout() const { return timeout_s_; }
  void set_timeout(double seconds);

  // This rank cannot make its call. Tells the others, and raises ArgumentError or DatatypeError.
  [[noreturn]] void refuse(const char* function, const BadArgument& why);
  // The same, for an exception that the caller passes on.
  void refuse_because_of(const std::string& why);
  // Keeps the arrays of a request until it has ended.
  void keep(Abandoned abandoned);

  // A communicator that came of this one; nullptr for a rank outside it.
  std::unique_ptr<Communicator> adopt(unisono_comm_t handle) const;

 private:
  // Most often there is nothing to look at before a call.
  bool is_ready() const {
    return is_open() && !is_in_use_ && abandoned_.empty() && !has_orphans && !has_lost_python();
  }
  [[noreturn]] void raise_failure(int code);
  void drop_completed();
  // Ends the handle, or leaves it to later calls while abandoned operations use their arrays.
  // Returns the library's code, and says why it is an error.
  int end(std::string& why);
  // The world of this one ends with all its communicators.
  void require_no_other_thread() const;
  // The calling thread stays until the process ends: Python ends threads that then take the GIL in
  // the middle of C++ functions.
  [[noreturn]] void stay();
  static bool is_any_in_a_call();
  friend void end_of_interpreter();
  static int asks_to_stop(void* communicator);

  unisono_comm_t handle_;
  int rank_ = 0, size_ = 0;
  const Communicator* world_;  // only compared
  unsigned forks_;             // of this process, when it was made
  bool is_in_use_ = false;
  std::atomic<bool> stays_ = false;  // the thread that uses it
  double timeout_s_ = 0;
  std::chrono::steady_clock::time_point begin_;  // of the last call with a timeout
  nanobind::object interrupt_;                   // raised by a handler of signals in a wait
  std::vector<Abandoned> abandoned_;
};

// Joins the job of the environment, or makes one over an allgather of the caller's.
std::unique_ptr<Communicator> init();
// Whether this process, or one that it was forked from, has called init() or init_with().
bool has_joined();
// The kernel ends this process when the thread that forked it ends. False: `parent` has ended.
bool end_with_parent(int parent);
std::unique_ptr<Communicator> init_with(int rank, int size, const nanobind::callable& allgather,
                                        double timeout);
// Ends all worlds.
void close_all();
// The same at the interpreter's end. Calls of other threads end before, and these threads stay.
// Threads that call later stay as well: the job ends meanwhile.
void end_of_interpreter();
// Counts forks, so that a child does not use what is its parent's.
void watch_forks();

}  // namespace unisono::python
