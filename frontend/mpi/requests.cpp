// SPDX-License-Identifier: BSD-3-Clause
#include "requests.hpp"

#include <sched.h>

#include <cstddef>
#include <cstring>
#include <optional>
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

constexpr int kUndefined = -32766;  // MPI_UNDEFINED of all MPIs

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

// The program's array of statuses, which may be absent.
class Statuses {
 public:
  explicit Statuses(void* statuses) : statuses_(statuses) {}
  // That of a request which is null, inactive or of a collective. MPI_Test writes it.
  void empty(int i) const {
    Handle none = host().constants.no_request;
    int flag = 0;
    if (wants()) host().Test(&none, &flag, at(i));
  }
  // Request `i` has ended with `code`, after `others` statuses have been written. `error`: the
  // function's code until now. Gives the one from now on.
  int add(int i, int code, int error, int others) const {
    if (code != 0 && error == 0) {
      error = host().constants.error_in_status_class;
      for (int j = 0; j < others && wants(); ++j) error_at(j) = 0;
    }
    if (wants() && error != 0) error_at(i) = code;
    return error;
  }
  void* at(int i) const {
    if (!wants()) return host().constants.status_ignore;
    return static_cast<int*>(statuses_) +
           static_cast<std::size_t>(i) * host().constants.status_ints;
  }

 private:
  bool wants() const { return statuses_ != host().constants.statuses_ignore; }
  int& error_at(int i) const { return static_cast<int*>(at(i))[host().constants.error_in_status]; }

  void* statuses_;
};

// MPI_Test of a persistent collective that the host does. nullopt: the request is none.
std::optional<int> test_by_host(Handle request, int* flag, void* status) {
  const auto stage = look_at_persistent_by_host(request);
  if (!stage) return std::nullopt;
  *flag = *stage == Stage::active ? 0 : 1;
  if (*flag == 0) return 0;
  if (status != host().constants.status_ignore) Statuses(status).empty(0);
  return *stage == Stage::ended ? take_ended_by_host(request) : 0;
}

// The program's array of requests without the persistent collectives that the host does: there it
// has null requests, so all others keep their places.
class Sifted {
 public:
  Sifted(int count, void* requests)
      : count_(count),
        requests_(requests),
        handles_(static_cast<std::size_t>(count) * host().handle_bytes) {
    std::memcpy(handles_.data(), requests, handles_.size());
    for (int i = 0; i < count; ++i) {
      const auto stage = look_at_persistent_by_host(host().handle_at(requests, i));
      if (!stage) continue;
      has_active_ = has_active_ || *stage != Stage::inactive;
      if (*stage == Stage::ended) ended_.push_back(i);
      apart_.push_back(i);
      put(handles_.data(), i, host().constants.no_request);
    }
  }

  int test_any(int* index, int* flag, void* status) {
    if (!ended_.empty()) {
      *index = ended_.front();
      return *test_by_host(host().handle_at(requests_, *index), flag, status);
    }
    const int error = host().Testany(count_, handles_.data(), index, flag, status);
    copy_back();
    if (error == 0 && *flag != 0 && *index == kUndefined && has_active_) *flag = 0;
    return error;
  }

  int test_some(int* done, int* indices, void* statuses) {
    int error = host().Testsome(count_, handles_.data(), done, indices, statuses);
    copy_back();
    if (error != 0 && error != host().constants.error_in_status_class) return error;
    if (*done == kUndefined && has_active_) *done = 0;
    const Statuses found(statuses);
    for (const int i : ended_) {
      indices[*done] = i;
      found.empty(*done);
      const int code = take_ended_by_host(host().handle_at(requests_, i));
      error = found.add(*done, code, error, *done);
      ++*done;
    }
    return error;
  }

 private:
  static void put(void* array, int i, Handle handle) {
    std::memcpy(host().place_at(array, i), &handle, host().handle_bytes);
  }
  void copy_back() {
    for (const int i : apart_) put(handles_.data(), i, host().handle_at(requests_, i));
    std::memcpy(requests_, handles_.data(), handles_.size());
  }

  int count_;
  void* requests_;
  std::vector<std::byte> handles_;
  std::vector<int> apart_, ended_;
  bool has_active_ = false;
};

bool sifts(int count, const void* requests) {
  return has_persistent_by_host() && count > 0 && requests != nullptr;
}

int test_one(Handle* request, int* flag, void* status) {
  if (sifts(1, request)) {
    const auto code = test_by_host(host().handle_at(request), flag, status);
    if (code) return *code;
  }
  return host().Test(request, flag, status);
}

int test_any(int count, void* requests, int* index, int* flag, void* status) {
  if (!sifts(count, requests)) return host().Testany(count, requests, index, flag, status);
  return Sifted(count, requests).test_any(index, flag, status);
}

int test_some(int count, void* requests, int* done, int* indices, void* statuses) {
  if (!sifts(count, requests)) return host().Testsome(count, requests, done, indices, statuses);
  return Sifted(count, requests).test_some(done, indices, statuses);
}

// Whether MPI_Testall may not get the request, and whether it is complete, if that is so.
void look_apart(Handle request, bool* is_apart, bool* is_complete) {
  const auto is_active = is_persistent_active(request);
  const auto stage = is_active ? std::nullopt : look_at_persistent_by_host(request);
  *is_apart = is_active || stage;
  *is_complete = !is_active.value_or(stage == Stage::active);
}

// Completes those that look_apart() has found complete, after the others, which gave `error`.
int complete_apart(int count, const std::vector<int>& apart, void* requests, void* statuses,
                   int error) {
  const Statuses found(statuses);
  for (const int i : apart) {
    int is_complete = 0;
    auto code = test_by_host(host().handle_at(requests, i), &is_complete, found.at(i));
    // A carrier's message to this rank is on its way.
    while (is_complete == 0 && code.value_or(0) == 0) {
      code = host().Test(host().place_at(requests, i), &is_complete, found.at(i));
    }
    error = found.add(i, code.value_or(0), error, count);
  }
  return error;
}

// MPI_Testall with the persistent collectives apart: all complete together, or none. Messages stay
// together: MPICH 5 and Intel MPI lose the status of a persistent one after MPI_Request_get_status.
int test_apart(int count, void* requests, int* flag, void* statuses) {
  std::vector<int> apart, others;
  *flag = 0;
  for (int i = 0; i < count; ++i) {
    bool is_apart = false, is_complete = false;
    look_apart(host().handle_at(requests, i), &is_apart, &is_complete);
    if (!is_complete) {
      carry_host_on();  // another rank may need it before
      return 0;
    }
    (is_apart ? apart : others).push_back(i);
  }
  const int error = Chosen(others, requests, statuses).test(flag);
  if (*flag == 0 || (error != 0 && error != host().constants.error_in_status_class)) return error;
  return complete_apart(count, apart, requests, statuses, error);
}

// MPI_Waitall by MPI_Test, one request after another. MPICH's MPI_Testall fails for files and for
// partitioned messages too, for which its MPI_Waitall does not.
int wait_for_each(int count, void* requests, void* statuses) {
  const Statuses found(statuses);
  int error = 0;
  for (int i = 0; i < count; ++i) {
    Handle* const request = host().place_at(requests, i);
    const int code = wait_by([&](int* flag) { return test_one(request, flag, found.at(i)); });
    error = found.add(i, code, error, count);
  }
  return error;
}

// MPI_Waitall by the host. The persistent collectives that it does are inactive from then on.
int wait_all_by_host(int count, void* requests, void* statuses) {
  int error = host().Waitall(count, requests, statuses);
  if (error != 0 || !sifts(count, requests)) return error;
  const Statuses found(statuses);
  for (int i = 0; i < count; ++i) {
    const Handle request = host().handle_at(requests, i);
    if (is_persistent_by_host(request)) {
      error = found.add(i, take_ended_by_host(request), error, count);
    }
  }
  return error;
}

// MPI_Request_get_status. After it MPICH 5 and Intel MPI take an active persistent request for
// inactive, so they do not get those of collectives.
int status_of(Handle request, int* flag, void* status) {
  std::optional<Stage> stage;
  if (tests_apart()) {
    stage = look_at_persistent_by_host(host().handle(request));
    const auto is_active = is_persistent_active(host().handle(request));
    // The message of one that has ended is on its way.
    if (is_active) stage = *is_active ? Stage::active : Stage::ended;
  }
  if (!stage) return host().Request_get_status(request, flag, status);
  *flag = *stage == Stage::active ? 0 : 1;
  if (*flag != 0 && status != host().constants.status_ignore) Statuses(status).empty(0);
  return 0;
}

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
      if (look_at_persistent_by_host(request) == Stage::inactive) continue;
      ++given_;
      int is_complete = 0;
      if (const int error = ask(i, &is_complete, nullptr); error != 0) return error;
      if (is_complete != 0) complete->push_back(i);
    }
    return 0;
  }
  // The number of requests that are not null, nor known to be inactive.
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
    return status_of(host().handle_at(requests_, i), is_complete,
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
  if (start_persistent(request, &error)) return error;
  error = host().Start(request);
  if (error == 0) note_start_by_host(host().handle_at(request));
  return error;
}

int Startall(int count, void* requests) {
  const Host& mpi = host();
  const bool has_own = has_persistent() || has_persistent_by_host();
  if (!has_own || count < 0 || requests == nullptr) return mpi.Startall(count, requests);
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
  return status_of(request, flag, status);
}

// Those of MPI 4.1. The program asks again and again, so the calls have to go on here.
int Request_get_status_all(int count, const void* requests, int* flag, void* statuses) {
  progress_before_test();
  const Host& mpi = host();
  if (mpi.Request_get_status_all != nullptr && !sifts(count, requests)) {
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
  if (mpi.Request_get_status_any != nullptr && !sifts(count, requests)) {
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
  if (mpi.Request_get_status_some != nullptr && !sifts(count, requests)) {
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
  const bool waits =
      waits_here() || (sifts(1, request) && is_persistent_by_host(mpi.handle_at(request)));
  const int error = waits ? wait_by([&](int* flag) { return test_one(request, flag, status); })
                          : mpi.Wait(request, status);
  return watched.result_of_one(error);
}

int Waitall(int count, void* requests, void* statuses) {
  const Watched watched(count, requests);
  // Decided before: the last call of Unisono may end in the wait.
  const bool waits = waits_here() || (tests_apart() && has_persistent());
  const int error = waits && count > 0 && requests != nullptr
                        ? wait_for_each(count, requests, statuses)
                        : wait_all_by_host(count, requests, statuses);
  return watched.result(error, watched.size(), nullptr, statuses);
}

int Waitany(int count, void* requests, int* index, void* status) {
  const Host& mpi = host();
  const Watched watched(count, requests);
  const int error =
      waits_here() || sifts(count, requests)
          ? wait_by([&](int* flag) { return test_any(count, requests, index, flag, status); })
          : mpi.Waitany(count, requests, index, status);
  return error != 0 ? error : watched.result_of_one(0, *index);
}

int Waitsome(int count, void* requests, int* done, int* indices, void* statuses) {
  const Host& mpi = host();
  const Watched watched(count, requests);
  // MPI_UNDEFINED, if no request is active, is not 0 either.
  const auto test = [&](int* flag) {
    const int error = test_some(count, requests, done, indices, statuses);
    *flag = error == 0 ? *done : 1;
    return error;
  };
  const int error = waits_here() || sifts(count, requests)
                        ? wait_by(test)
                        : mpi.Waitsome(count, requests, done, indices, statuses);
  return error != 0 ? error : watched.result(0, *done, indices, statuses);
}

int Test(Handle* request, int* flag, void* status) {
  progress_before_test();
  const Watched watched(1, request);
  const int error = look_after_collective(flag, [&] { return test_one(request, flag, status); });
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
  const int error =
      look_after_collective(flag, [&] { return test_any(count, requests, index, flag, status); });
  return error != 0 || *flag == 0 ? error : watched.result_of_one(0, *index);
}

int Testsome(int count, void* requests, int* done, int* indices, void* statuses) {
  progress_before_test();
  const Watched watched(count, requests);
  const int error = look_after_collective(
      done, [&] { return test_some(count, requests, done, indices, statuses); });
  return error != 0 ? error : watched.result(0, *done, indices, statuses);
}

}  // namespace unisono::mpi::ours
