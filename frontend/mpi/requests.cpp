// SPDX-License-Identifier: BSD-3-Clause
#include "requests.hpp"

#include <sched.h>

#include <cstddef>
#include <cstring>
#include <vector>

#include "communicator.hpp"
#include "host/host.hpp"
#include "host/persistent_calls.hpp"
#include "host/probes.hpp"
#include "host/progress.hpp"
#include "pending.hpp"
#include "persistent.hpp"

namespace unisono::mpi::ours {
namespace {

// Whether the drop-in has to do the waiting.
bool waits_here() { return !host().calls_back() && has_pending_calls() && !is_carrying_host_on(); }

// Tests until the test is done. `test` gives an MPI error code and sets a flag.
template <class Test>
int wait_by(const Test& test) {
  for (int flag = 0;;) {
    progress_calls();
    const int error = test(&flag);
    if (error != 0 || flag != 0) return error;
    sched_yield();  // other ranks may need this core
  }
}

void progress_before_test() {
  if (waits_here()) progress_calls();
}

// MPICH's MPI_Testall ends programs with persistent collectives, its own ones too. It also gives
// errors to requests without one. The cause: MPIR_Request_get_error reads the errors of carriers,
// which may never have been set.
bool tests_apart() {
  return !host().calls_back() && (has_persistent() || has_persistent_by_host());
}

// Requests of an array, and their statuses, beside each other.
class Chosen {
 public:
  Chosen(const std::vector<int>& places, void* requests, void* statuses)
      : places_(places),
        requests_(requests),
        statuses_(statuses),
        handles_(places.size() * host().handle_bytes),
        found_(wants() ? places.size() * host().constants.status_ints : 0) {
    copy([](std::byte* own, std::byte* programs, std::size_t bytes) {
      std::memcpy(own, programs, bytes);
    });
  }
  // MPI_Testall of them. An MPI error code.
  int test(int* flag) {
    *flag = 1;
    if (places_.empty()) return 0;
    const int error = host().Testall(static_cast<int>(places_.size()), handles_.data(), flag,
                                     wants() ? found_.data() : statuses_);
    copy([](std::byte* own, std::byte* programs, std::size_t bytes) {
      std::memcpy(programs, own, bytes);
    });
    return error;
  }

 private:
  bool wants() const { return statuses_ != host().constants.statuses_ignore; }
  template <class Copy>
  void copy(const Copy& copy) {
    const std::size_t handle_bytes = host().handle_bytes;
    const std::size_t status_bytes = host().constants.status_ints * sizeof(int);
    const auto each = [&](std::byte* own, void* programs, std::size_t bytes) {
      for (std::size_t i = 0; i < places_.size(); ++i) {
        const auto place = static_cast<std::size_t>(places_[i]);
        copy(own + i * bytes, static_cast<std::byte*>(programs) + place * bytes, bytes);
      }
    };
    each(handles_.data(), requests_, handle_bytes);
    if (wants()) each(reinterpret_cast<std::byte*>(found_.data()), statuses_, status_bytes);
  }

  const std::vector<int>& places_;
  void* requests_;
  void* statuses_;
  std::vector<std::byte> handles_;
  std::vector<int> found_;
};

// Whether MPI_Testall may not get the request, and whether it is complete, if that is so.
int look_apart(Handle request, bool* is_apart, int* is_complete) {
  const auto is_active = is_persistent_active(request);
  *is_apart = is_active || is_persistent_by_host(request);
  *is_complete = is_active.value_or(false) ? 0 : 1;
  if (is_active || !*is_apart) return 0;
  return host().Request_get_status(request, is_complete, host().constants.status_ignore);
}

// Completes those that look_apart() has found complete, after the others, which gave `error`.
int complete_apart(int count, const std::vector<int>& apart, void* requests, void* statuses,
                   int error) {
  const Host& mpi = host();
  const Constants& values = mpi.constants;
  const bool wants = statuses != values.statuses_ignore;
  const auto status_at = [&](int i) {
    return static_cast<int*>(statuses) + static_cast<std::size_t>(i) * values.status_ints;
  };
  for (const int i : apart) {
    int code = 0;
    // A carrier's message to this rank is on its way.
    for (int is_complete = 0; is_complete == 0 && code == 0;) {
      code = mpi.Test(mpi.place_at(requests, i), &is_complete,
                      wants ? static_cast<void*>(status_at(i)) : values.status_ignore);
    }
    if (code != 0 && error == 0) {
      error = values.error_in_status_class;
      for (int j = 0; j < count && wants; ++j) status_at(j)[values.error_in_status] = 0;
    }
    if (wants && error != 0) status_at(i)[values.error_in_status] = code;
  }
  return error;
}

// MPI_Testall with the persistent collectives apart: all complete together, or none. Messages stay
// together: MPICH 5 and Intel MPI lose the status of a persistent one after MPI_Request_get_status.
int test_apart(int count, void* requests, int* flag, void* statuses) {
  std::vector<int> apart, others;
  *flag = 0;
  for (int i = 0; i < count; ++i) {
    bool is_apart = false;
    int is_complete = 0;
    const int error = look_apart(host().handle_at(requests, i), &is_apart, &is_complete);
    if (error == 0 && is_complete == 0) carry_host_on();  // another rank may need it before
    if (error != 0 || is_complete == 0) return error;
    (is_apart ? apart : others).push_back(i);
  }
  const int error = Chosen(others, requests, statuses).test(flag);
  if (*flag == 0 || (error != 0 && error != host().constants.error_in_status_class)) return error;
  return complete_apart(count, apart, requests, statuses, error);
}

constexpr int kUndefined = -32766;  // MPI_UNDEFINED of all MPIs

// The functions of MPI 4.1 for an MPI that lacks them. A program that looks for them by name, as
// mpi4py does, finds those of the drop-in. They ask for one request after another.
class Asked {
 public:
  Asked(int count, const void* requests, void* statuses)
      : count_(count), requests_(requests), statuses_(statuses) {}

  // `complete`: those that are, and are no null requests. An MPI error code.
  int find(std::vector<int>* complete) {
    for (int i = 0; i < count_; ++i) {
      const Handle request = host().handle_at(requests_, i);
      if (request == host().constants.no_request) continue;
      ++given_;
      int is_complete = 0;
      if (const int error = ask(i, &is_complete, nullptr); error != 0) return error;
      if (is_complete != 0) complete->push_back(i);
    }
    return 0;
  }
  // The number of requests that are not null.
  int given() const { return given_; }
  // Writes the status of request `i` to this place of the array.
  int tell(int i, int place) {
    int is_complete = 0;
    const bool wants = statuses_ != host().constants.statuses_ignore;
    return wants ? ask(i, &is_complete, status_at(place)) : 0;
  }

 private:
  void* status_at(int place) const {
    return static_cast<int*>(statuses_) +
           static_cast<std::size_t>(place) * host().constants.status_ints;
  }
  int ask(int i, int* is_complete, void* status) const {
    return host().Request_get_status(host().handle_at(requests_, i), is_complete,
                                     status != nullptr ? status : host().constants.status_ignore);
  }

  int count_, given_ = 0;
  const void* requests_;
  void* statuses_;
};

// The program's requests before the host completes them, of which some may be of failed calls of
// Unisono. The host does not know of those failures.
class Watched {
 public:
  Watched(int count, const void* requests) {
    if ((!may_report() && !has_persistent()) || requests == nullptr) return;
    for (int i = 0; i < count; ++i) requests_.push_back(host().handle_at(requests, i));
  }

  // The code to return after one request has completed; `error` is the host's code.
  int result_of_one(int error, int index = 0) const {
    if (error != 0 || index < 0 || static_cast<std::size_t>(index) >= requests_.size()) {
      return error;
    }
    return code_of(index);
  }
  // The same for several requests, which have a status each. `indices` null: for all.
  int result(int error, int completed, const int* indices, void* statuses) const {
    if (error != 0 || requests_.empty() || completed < 0) return error;
    std::vector<int> codes;
    bool has_failed = false;
    for (int i = 0; i < completed; ++i) {
      codes.push_back(code_of(indices == nullptr ? i : indices[i]));
      has_failed = has_failed || codes.back() != 0;
    }
    if (!has_failed) return 0;
    const Constants& values = host().constants;
    for (int i = 0; i < completed && statuses != values.statuses_ignore; ++i) {
      const auto at = static_cast<std::size_t>(i) * values.status_ints + values.error_in_status;
      static_cast<int*>(statuses)[at] = codes[static_cast<std::size_t>(i)];
    }
    return values.error_in_status_class;
  }
  int size() const { return static_cast<int>(requests_.size()); }

 private:
  int code_of(int index) const {
    const Handle request = requests_[static_cast<std::size_t>(index)];
    const int code = report_failed_call(request);
    return code != 0 ? code : report_failed_persistent(request);
  }

  std::vector<Handle> requests_;
};

}  // namespace

int Start(Handle* request) {
  int error = 0;
  return start_persistent(request, &error) ? error : host().Start(request);
}

int Startall(int count, void* requests) {
  const Host& mpi = host();
  if (!has_persistent() || count < 0 || requests == nullptr) return mpi.Startall(count, requests);
  for (int i = 0; i < count; ++i) {
    if (const int error = Start(mpi.place_at(requests, i)); error != 0) return error;
  }
  return 0;
}

// MPI does not allow to free the request of a nonblocking collective. The host would free what the
// call still needs.
int Request_free(Handle* request) {
  if (request != nullptr) {
    const Handle handle = host().handle_at(request);
    if (is_pending(handle)) {
      return report_class(host().constants.comm_world, host().constants.error_request,
                          "MPI_Request_free: the request is that of a nonblocking collective that "
                          "is not complete; wait for it");
    }
    forget_persistent(handle);
    forget_persistent_by_host(handle);
  }
  return host().Request_free(request);
}

int Request_get_status(Handle request, int* flag, void* status) {
  progress_before_test();
  return host().Request_get_status(request, flag, status);
}

// Those of MPI 4.1. The program asks again and again, so the calls have to go on here.
int Request_get_status_all(int count, const void* requests, int* flag, void* statuses) {
  progress_before_test();
  const Host& mpi = host();
  if (mpi.Request_get_status_all != nullptr) {
    return mpi.Request_get_status_all(count, requests, flag, statuses);
  }
  Asked asked(count, requests, statuses);
  std::vector<int> complete;
  if (const int error = asked.find(&complete); error != 0) return error;
  *flag = static_cast<int>(complete.size()) == asked.given() ? 1 : 0;
  for (int i = 0; i < count && *flag != 0; ++i) {
    if (const int error = asked.tell(i, i); error != 0) return error;
  }
  return 0;
}

int Request_get_status_any(int count, const void* requests, int* index, int* flag, void* status) {
  progress_before_test();
  const Host& mpi = host();
  if (mpi.Request_get_status_any != nullptr) {
    return mpi.Request_get_status_any(count, requests, index, flag, status);
  }
  const bool wants = status != mpi.constants.status_ignore;
  Asked asked(count, requests, wants ? status : mpi.constants.statuses_ignore);
  std::vector<int> complete;
  if (const int error = asked.find(&complete); error != 0) return error;
  *flag = !complete.empty() || asked.given() == 0 ? 1 : 0;
  *index = complete.empty() ? kUndefined : complete.front();
  if (!complete.empty()) return asked.tell(complete.front(), 0);
  if (*flag == 0 || !wants) return 0;
  // The empty status, which is that of a null request. Open MPI leaves its error as it was.
  static_cast<int*>(status)[mpi.constants.error_in_status] = 0;
  int is_complete = 0;
  return mpi.Request_get_status(mpi.constants.no_request, &is_complete, status);
}

int Request_get_status_some(int count, const void* requests, int* done, int* indices,
                            void* statuses) {
  progress_before_test();
  const Host& mpi = host();
  if (mpi.Request_get_status_some != nullptr) {
    return mpi.Request_get_status_some(count, requests, done, indices, statuses);
  }
  Asked asked(count, requests, statuses);
  std::vector<int> complete;
  if (const int error = asked.find(&complete); error != 0) return error;
  *done = asked.given() == 0 ? kUndefined : static_cast<int>(complete.size());
  for (int i = 0; i < static_cast<int>(complete.size()); ++i) {
    indices[i] = complete[static_cast<std::size_t>(i)];
    if (const int error = asked.tell(indices[i], i); error != 0) return error;
  }
  return 0;
}

int Wait(Handle* request, void* status) {
  const Host& mpi = host();
  const Watched watched(1, request);
  const int error = waits_here()
                        ? wait_by([&](int* flag) { return mpi.Test(request, flag, status); })
                        : mpi.Wait(request, status);
  return watched.result_of_one(error);
}

int Waitall(int count, void* requests, void* statuses) {
  const Host& mpi = host();
  const Watched watched(count, requests);
  // Decided before: the last call of Unisono may end in the wait.
  const bool apart = tests_apart() && count > 0 && requests != nullptr;
  const bool has_carriers = apart && has_persistent();
  const auto test = [&](int* flag) {
    return apart ? test_apart(count, requests, flag, statuses)
                 : mpi.Testall(count, requests, flag, statuses);
  };
  const bool waits = has_carriers || waits_here();
  const int error = waits ? wait_by(test) : mpi.Waitall(count, requests, statuses);
  return watched.result(error, watched.size(), nullptr, statuses);
}

int Waitany(int count, void* requests, int* index, void* status) {
  const Host& mpi = host();
  const Watched watched(count, requests);
  const int error =
      waits_here()
          ? wait_by([&](int* flag) { return mpi.Testany(count, requests, index, flag, status); })
          : mpi.Waitany(count, requests, index, status);
  return error != 0 ? error : watched.result_of_one(0, *index);
}

int Waitsome(int count, void* requests, int* done, int* indices, void* statuses) {
  const Host& mpi = host();
  const Watched watched(count, requests);
  // MPI_UNDEFINED, if no request is active, is not 0 either.
  const auto test = [&](int* flag) {
    const int error = mpi.Testsome(count, requests, done, indices, statuses);
    *flag = error == 0 ? *done : 1;
    return error;
  };
  const int error =
      waits_here() ? wait_by(test) : mpi.Waitsome(count, requests, done, indices, statuses);
  return error != 0 ? error : watched.result(0, *done, indices, statuses);
}

int Test(Handle* request, int* flag, void* status) {
  progress_before_test();
  const Watched watched(1, request);
  const int error = look_after_collective(flag, [&] { return host().Test(request, flag, status); });
  return error != 0 || *flag == 0 ? error : watched.result_of_one(0);
}

int Testall(int count, void* requests, int* flag, void* statuses) {
  const bool apart = tests_apart() && count > 0 && requests != nullptr && flag != nullptr;
  progress_before_test();
  const Watched watched(count, requests);
  const int error = look_after_collective(flag, [&] {
    return apart ? test_apart(count, requests, flag, statuses)
                 : host().Testall(count, requests, flag, statuses);
  });
  if (error != 0 || *flag == 0) return error;
  return watched.result(0, watched.size(), nullptr, statuses);
}

int Testany(int count, void* requests, int* index, int* flag, void* status) {
  progress_before_test();
  const Watched watched(count, requests);
  const int error = look_after_collective(
      flag, [&] { return host().Testany(count, requests, index, flag, status); });
  return error != 0 || *flag == 0 ? error : watched.result_of_one(0, *index);
}

int Testsome(int count, void* requests, int* done, int* indices, void* statuses) {
  progress_before_test();
  const Watched watched(count, requests);
  const int error = look_after_collective(
      done, [&] { return host().Testsome(count, requests, done, indices, statuses); });
  return error != 0 ? error : watched.result(0, *done, indices, statuses);
}

}  // namespace unisono::mpi::ours
