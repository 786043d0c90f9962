// SPDX-License-Identifier: BSD-3-Clause
#include "communicator.hpp"

#include <nanobind/stl/string.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstring>
#include <set>
#include <thread>
#include <utility>

namespace unisono::python {

namespace nb = nanobind;

bool has_orphans = false;

namespace {

unsigned forks = 0;
bool joined = false;

// The thread that ends the interpreter, once it does.
std::atomic<std::thread::id> ending{};
// Calls of other threads end until then. They ask within a fifth of UNISONO_DETECT_TIMEOUT.
constexpr std::chrono::seconds kLeaving{5};
constexpr std::chrono::milliseconds kPause{1};

// The library refuses shorter limits of a start, too. These milliseconds fit its integer.
constexpr double kMostSeconds = 1e12;

int visits = 0;

// With the GIL. Python ends a thread that takes it later, in the middle of C++ functions.
[[noreturn]] void stay_without_gil() {
  PyEval_SaveThread();
  for (;;) pause();
}

// Calls the library without the GIL, where nothing can end the call early.
template <class Call>
int without_gil(const Call& call) {
  PyThreadState* const state = PyEval_SaveThread();
  const int code = call();
  while (has_lost_python()) pause();
  PyEval_RestoreThread(state);
  return code;
}

// All of this process. The set outlives the interpreter on purpose.
std::set<Communicator*>& living() {
  static auto* const all = new std::set<Communicator*>;
  return *all;
}

// Frees it then. A call by the function of an operator gets no answer, so it frees nothing.
bool has_ended(Abandoned& abandoned) {
  int done = 0;
  const nb::gil_scoped_release release;
  if (abandoned.plan == nullptr) {
    unisono_test(&abandoned.request, &done);
    return abandoned.request == nullptr;
  }
  if (unisono_plan_test(abandoned.plan, &done) == UNISONO_OK && done == 0) return false;
  return unisono_plan_free(abandoned.plan) == UNISONO_OK;
}

// Other threads may add to it while the library is called.
void drop_ended(std::vector<Abandoned>& all) {
  std::vector<Abandoned> mine = std::exchange(all, {}), dropped;
  for (Abandoned& abandoned : mine) {
    (has_ended(abandoned) ? dropped : all).push_back(std::move(abandoned));
  }
}

// Communicators that nobody has any more while operations on them are under way, with the arrays of
// these. Later calls on any communicator progress and end them; at the latest they end with the
// job.
struct Orphan {
  unisono_comm_t handle;
  std::vector<Abandoned> operations;
};

std::vector<Orphan>& orphans() {
  static auto* const all = new std::vector<Orphan>;
  return *all;
}

void add_orphan(unisono_comm_t handle, std::vector<Abandoned> operations) {
  orphans().push_back({handle, std::move(operations)});
  has_orphans = true;
}

// False while the caller has a request on it.
bool has_been_freed(unisono_comm_t handle) {
  int rank = 0;
  const nb::gil_scoped_release release;
  return unisono_comm_free(handle) == UNISONO_OK || unisono_comm_rank(handle, &rank) != UNISONO_OK;
}

// Other threads may come while the library is called, so each works on a list of its own.
void end_orphans() {
  if (!has_orphans) return;
  has_orphans = false;
  std::vector<Orphan> mine = std::exchange(orphans(), {});
  for (Orphan& orphan : mine) {
    drop_ended(orphan.operations);
    if (!orphan.operations.empty() || !has_been_freed(orphan.handle)) {
      add_orphan(orphan.handle, std::move(orphan.operations));
    }
  }
}

// The state of an exchange of unisono_init_with.
struct Exchange {
  nb::callable allgather;
  int size;
  nb::object error;

  static int call(const void* input, void* output, std::size_t bytes, void* user) {
    const nb::gil_scoped_acquire gil;
    auto& self = *static_cast<Exchange*>(user);
    try {
      const nb::object all = self.allgather(nb::bytes(static_cast<const char*>(input), bytes));
      const nb::bytes text(all);
      if (text.size() != bytes * static_cast<std::size_t>(self.size)) {
        raise(UNISONO_ERROR_ARGUMENT, "allgather returned " + std::to_string(text.size()) +
                                          " bytes, not " + std::to_string(bytes) + " of each of " +
                                          std::to_string(self.size) + " ranks");
      }
      std::memcpy(output, text.c_str(), text.size());
      return 0;
    } catch (nb::python_error& error) {
      self.error = nb::borrow(error.value());
      return 1;
    } catch (const std::exception&) {
      return 1;
    }
  }
};

}  // namespace

bool has_lost_python() {
  const std::thread::id thread = ending.load(std::memory_order_relaxed);
  return thread != std::thread::id() && thread != std::this_thread::get_id();
}

Visit::Visit() {
  if (has_lost_python()) stay_without_gil();
  ++visits;
}

Visit::~Visit() { --visits; }

Communicator::Communicator(unisono_comm_t handle, const Communicator* world)
    : handle_(handle), world_(world == nullptr ? this : world), forks_(forks) {
  check(unisono_comm_rank(handle, &rank_));
  check(unisono_comm_size(handle, &size_));
  check(unisono_set_interrupt(handle, &asks_to_stop, this));
  living().insert(this);
}

// A forked child leaves everything as it is: it belongs to the parent.
Communicator::~Communicator() {
  const Visit visit;
  living().erase(this);
  std::string unheard;
  if (is_open()) end(unheard);
  if (!is_own()) return;
  if (!abandoned_.empty()) add_orphan(nullptr, std::move(abandoned_));
  end_orphans();
}

int Communicator::end(std::string& why) {
  const unisono_comm_t handle = std::exchange(handle_, nullptr);
  int code = UNISONO_OK;
  {
    const nb::gil_scoped_release release;
    code = is_world() ? unisono_finalize(handle) : unisono_comm_free(handle);
    if (code != UNISONO_OK) why = unisono_last_error();
  }
  if (code != UNISONO_ERROR_STATE || is_world()) {
    drop_completed();
    return code;
  }
  if (abandoned_.empty()) {
    handle_ = handle;  // the caller has what is under way, and may wait for it
    return code;
  }
  {
    const nb::gil_scoped_release release;
    unisono_set_interrupt(handle, nullptr, nullptr);
  }
  add_orphan(handle, std::exchange(abandoned_, {}));
  return UNISONO_OK;
}

void Communicator::close() {
  if (handle_ == nullptr) return;
  if (!is_own()) {  // a forked child has nothing to end
    handle_ = nullptr;
    return;
  }
  const Visit visit;
  {
    const Use use(*this);
    require_no_other_thread();
    std::string why;
    if (const int code = end(why); code != UNISONO_OK) raise(code, why);
  }
  end_orphans();
}

void Communicator::require_no_other_thread() const {
  for (const Communicator* const each : living()) {
    if (each == this || each->world_ != this || !each->is_in_use_) continue;
    raise(UNISONO_ERROR_STATE,
          "another thread is in a call on a communicator of this job; wait for that thread first");
  }
}

void Communicator::stay() {
  stays_ = true;
  for (;;) pause();
}

bool Communicator::is_any_in_a_call() {
  return std::ranges::any_of(living(), [](const Communicator* each) {
    return each->is_own() && each->is_in_use_ && !each->stays_;
  });
}

bool Communicator::is_own() const { return forks_ == forks; }

void Communicator::require_open() const {
  if (!is_own()) {
    raise(UNISONO_ERROR_STATE,
          "this communicator belongs to the parent process; a forked child has no part in the job");
  }
  if (handle_ == nullptr) raise(UNISONO_ERROR_STATE, "the communicator has been closed");
}

void Communicator::Use::prepare() {
  if (has_lost_python()) stay_without_gil();
  communicator_.require_open();
  if (communicator_.is_in_use_) {
    raise(UNISONO_ERROR_STATE,
          "another thread, or an operator of this call, is in a call on this communicator; give "
          "each thread a dup() of its own");
  }
  // Other threads may come while it is without the GIL.
  communicator_.is_in_use_ = true;
  communicator_.drop_completed();
  end_orphans();
}

void Communicator::raise_failure(int code) {
  const std::string message = unisono_last_error();
  int rank = -1;
  {
    const nb::gil_scoped_release release;
    unisono_comm_failed_rank(handle_, &rank);
  }
  if (interrupt_.is_valid()) raise(std::exchange(interrupt_, nb::object()));
  raise(code, message, rank);
}

void Communicator::refuse_because_of(const std::string& why) {
  const Visit visit;
  const nb::gil_scoped_release release;
  unisono_refuse(handle_, why.c_str());
}

void Communicator::refuse(const char* function, const BadArgument& why) {
  const std::string what = std::string(function) + ": " + why.what();
  refuse_because_of(what);
  raise(why.code(), "rank " + std::to_string(rank_) + ": " + what, rank_);
}

void Communicator::keep(Abandoned abandoned) { abandoned_.push_back(std::move(abandoned)); }

void Communicator::drop_completed() { drop_ended(abandoned_); }

std::unique_ptr<Communicator> Communicator::adopt(unisono_comm_t handle) const {
  if (handle == nullptr) return nullptr;
  return std::make_unique<Communicator>(handle, world_);
}

void Communicator::set_timeout(double seconds) {
  if (!(seconds >= 0)) {
    raise(UNISONO_ERROR_ARGUMENT, "timeout: a number of seconds is not negative; 0 is no limit");
  }
  // A call in progress has noted no time if there was no limit when it began.
  if (timeout_s_ == 0) begin_ = std::chrono::steady_clock::now();
  timeout_s_ = seconds;
}

// On a thread that waits in the library. Python handles signals on its main thread only.
int Communicator::asks_to_stop(void* communicator) {
  if (has_lost_python()) return 1;
  auto& self = *static_cast<Communicator*>(communicator);
  const nb::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() != 0) {
    const nb::python_error error;
    self.interrupt_ = nb::borrow(error.value());
    return 1;
  }
  const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - self.begin_;
  const bool is_late = self.timeout_s_ > 0 && waited.count() >= self.timeout_s_;
  return is_late ? UNISONO_INTERRUPT_LATE : 0;
}

bool has_joined() { return joined; }

bool end_with_parent(int parent) {
  return prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent;
}

std::unique_ptr<Communicator> init() {
  joined = true;
  unisono_comm_t world = nullptr;
  check(without_gil([&world] { return unisono_init(&world); }));
  return std::make_unique<Communicator>(world, nullptr);
}

std::unique_ptr<Communicator> init_with(int rank, int size, const nb::callable& allgather,
                                        double timeout) {
  if (!(timeout >= 0)) {
    raise(UNISONO_ERROR_ARGUMENT, "init_with: timeout is a number of seconds that is not negative");
  }
  joined = true;
  Exchange exchange{allgather, size, {}};
  const unisono_exchange_t callbacks{&Exchange::call, &exchange, 0};
  unisono_init_options_t options{};
  options.size = sizeof options;
  options.timeout_ms = static_cast<std::int64_t>(std::ceil(std::min(timeout, kMostSeconds) * 1000));
  unisono_comm_t world = nullptr;
  const int code =
      without_gil([&] { return unisono_init_with(rank, size, &callbacks, &options, &world); });
  if (exchange.error.is_valid()) raise(exchange.error);
  check(code);
  return std::make_unique<Communicator>(world, nullptr);
}

void close_all() {
  for (Communicator* const each : std::set<Communicator*>(living())) {
    if (!living().contains(each) || !each->is_world() || !each->is_open()) continue;
    try {
      each->close();
    } catch (const nb::python_error&) {
      // The process ends; nobody would hear of it.
    }
  }
}

void end_of_interpreter() {
  ending = std::this_thread::get_id();
  const auto limit = std::chrono::steady_clock::now() + kLeaving;
  const auto is_any_in_library = [] { return visits > 0 || Communicator::is_any_in_a_call(); };
  while (is_any_in_library() && std::chrono::steady_clock::now() < limit) {
    const nb::gil_scoped_release release;
    std::this_thread::sleep_for(kPause);
  }
  // A thread that stays uses nothing any more.
  for (Communicator* const each : living()) {
    if (each->stays_) each->is_in_use_ = false;
  }
  close_all();
}

void watch_forks() {
  pthread_atfork(nullptr, nullptr, [] {
    ++forks;
    living().clear();
  });
}

}  // namespace unisono::python
