// SPDX-License-Identifier: BSD-3-Clause
#include "collectives.hpp"

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "calls/left_call.hpp"
#include "calls/moves.hpp"
#include "calls/narrowing.hpp"
#include "calls/reductions.hpp"
#include "communicator.hpp"
#include "host/host.hpp"
#include "host/persistent_calls.hpp"
#include "host/probes.hpp"
#include "host/thrown.hpp"
#include "library.hpp"
#include "log.hpp"
#include "persistent.hpp"
#include "ranges/trials.hpp"

namespace unisono::mpi::ours {
namespace {

// MPI's parameters end with the communicator.
template <class... Arguments>
Handle communicator_of(Arguments... arguments) {
  return std::get<sizeof...(Arguments) - 1>(std::tuple(arguments...));
}

// A function of the host MPI, and its counterpart with ints.
template <class Function, class Narrow>
struct ByHost {
  Function* function;
  Narrow* narrow;
};

// `kExtra` arguments follow those of the blocking call: a request, or an info object and a request.
template <std::size_t kExtra, class Narrow, class... Arguments>
std::optional<int> call_narrow(Collective collective, Narrow* narrow, Arguments... arguments) {
  const std::tuple all(arguments...);
  constexpr std::size_t kCommunicator = sizeof...(Arguments) - kExtra - 1;
  int root = 0;
  if constexpr (std::is_same_v<std::tuple_element_t<kCommunicator - 1, decltype(all)>, const int>) {
    root = std::get<kCommunicator - 1>(all);
  }
  Narrowing to_int = narrowing_of(collective, std::get<0>(all), root, std::get<kCommunicator>(all));
  const std::tuple narrowed{to_int(arguments)...};  // in this order, as a call's would not be
  if (!to_int.fits()) return std::nullopt;
  return std::apply(narrow, narrowed);
}

// The host MPI may be one without large counts or persistent collectives. Its program can call such
// a function only because the drop-in has the name.
template <std::size_t kExtra, class Function, class Narrow, class... Arguments>
int call_host(Collective collective, ByHost<Function, Narrow> by_host, Arguments... arguments) {
  if (by_host.function != nullptr) return by_host.function(arguments...);
  if constexpr (!std::is_same_v<Function, Narrow>) {
    if (by_host.narrow != nullptr) {
      const auto code = call_narrow<kExtra>(collective, by_host.narrow, arguments...);
      if (code) return *code;
    }
  }
  log_warning("the host MPI has no such form of MPI_%s, and Unisono does not do this call",
              collective_name(collective));
  return host().constants.error_other;
}

// A rank that runs out of memory before its call of Unisono, for which the other ranks wait: they
// get an error that names it.
int give_up(const Communicator& own, const std::exception& thrown) {
  library().refuse(own.unisono.get(), thrown.what());
  return report_error(own.handle, UNISONO_ERROR_RESOURCES, library().last_error());
}

// A rank that runs out of memory elsewhere.
int report_thrown(const std::exception& thrown) {
  return report_error(host().constants.comm_world, UNISONO_ERROR_RESOURCES,
                      std::string("an MPI call of this rank ran out of memory: ") + thrown.what());
}

// The side that does a call after take().
enum class By : std::uint8_t { unisono, host, nobody };

// `make` gives the call's object. nobody: the call ends with the MPI error code.
template <class Make, class... Arguments>
By prepare(const Make& make, const Communicator& own, bool starts, int* error,
           Arguments... arguments) try {
  auto& call = make();
  if (!call.take(own, arguments...) || (starts && !call.may_start())) return By::host;
  if (starts) *error = call.keep(Uses::once);
  if (*error == 0) *error = call.load();
  if (*error == 0) return By::unisono;
  library().refuse(own.unisono.get(), "the MPI cannot pack its elements");
  return By::nobody;
} catch (const std::exception& thrown) {
  if (!is_own(thrown)) throw;
  *error = give_up(own, thrown);
  return By::nobody;
}

// Why a call is left to the host MPI on a communicator of which Unisono does this collective.
constexpr const char* kFaster = "measured to be faster";
constexpr const char* kTried = "tried";
constexpr const char* kFoundFaster = "tried, and faster";
constexpr const char* kTypeOrOperator = "its type or operator";
constexpr const char* kOfSession = "a session's request";
constexpr const char* kNoRoom = "no room for a persistent call";

template <class... Arguments>
int root_of(Arguments... arguments) {
  const auto& last = std::get<sizeof...(Arguments) - 2>(std::tie(arguments...));
  if constexpr (std::is_same_v<decltype(last), const int&>) return last;
  return 0;
}

// Those of a call that LastCall knows; it has no other pointers.
struct Buffers {
  const void* input;
  void* output;  // null: there is one only
};
template <class... Others>
Buffers buffers_of(void* one, Others...) {
  return {one, nullptr};
}
template <class... Others>
Buffers buffers_of(const void* send, void* receive, Others...) {
  return {send, receive};
}
template <class... Others>
Buffers buffers_of(const void* send, int, Handle, void* receive, Others...) {
  return {send, receive};
}
template <class List, class... Others>
Buffers buffers_of(const void* send, const List*, const List*, Handle, void* receive, Others...) {
  return {send, receive};
}
template <class... Others>
Buffers buffers_of(const void* send, std::int64_t, Handle, void* receive, Others...) {
  return {send, receive};
}

using Clock = std::chrono::steady_clock;

// Says which side does a call, and whether that is a trial.
struct Choice {
  const char* to_host = nullptr;  // why the host MPI does it; null: Unisono does
  bool is_open = false;           // a trial counts the call
  double* ns = nullptr;           // for its time; invalid after an error; null: it is not timed
  Clock::time_point begin{};      // in a trial
};
// Also ends a trial's round, which is collective.
template <class Kind, Collective kCollective, class... Arguments>
Choice choose(Communicator& own, Arguments... arguments) {
  const bool has_ranges = own.host_ranges.have(kCollective);
  const bool is_tried = own.trials != nullptr && own.trials->tries(kCollective);
  if (!has_ranges && !is_tried) return {};
  Clock::time_point begin;
  if (is_tried) begin = Clock::now();
  const std::int64_t bytes = Kind::block_bytes(own, arguments...);
  if (has_ranges && own.host_ranges.contain(kCollective, bytes)) return {.to_host = kFaster};
  if (!is_tried) return {};
  const Trials::Turn turn = own.trials->begin(kCollective, bytes, own);
  const char* const reason = turn.is_open ? kTried : kFoundFaster;
  return {.to_host = turn.is_for_host ? reason : nullptr,
          .is_open = turn.is_open,
          .ns = turn.ns,
          .begin = turn.has_exchanged ? Clock::now() : begin};
}

// A call like the last one. In place, as run() is.
template <class Kind, class... Arguments>
[[gnu::always_inline]] inline int call_again(Communicator& own, const LastCall& last,
                                             const void* input, void* output,
                                             Arguments... arguments) {
  int error = 0;
  {
    const PendingCalls::Turn turn(own.pending);
    error = Kind::again(own, last, input, output, root_of(arguments...));
  }
  note_collective();
  if (error == UNISONO_OK) [[likely]]
    return 0;
  return report_error(own.handle, error, library().last_error());
}

// `own` null: Unisono does not do it. In place, as run() is.
template <class Kind, Collective kCollective, class Function, class Narrow, class... Arguments>
[[gnu::always_inline]] inline int run_chosen(Communicator* own, Choice& choice,
                                             ByHost<Function, Narrow> by_host,
                                             Arguments... arguments) {
  const auto leave_it = [&](const char* reason) {
    const auto to_host = [&] { return call_host<0>(kCollective, by_host, arguments...); };
    return leave<Kind>({.collective = kCollective,
                        .form = CallForm::blocking,
                        .own = own,
                        .reason = own == nullptr ? nullptr : reason},
                       to_host, arguments...);
  };
  if (choice.to_host != nullptr) return leave_it(choice.to_host);
  Kind call;
  int error = 0;
  const auto made = [&call]() -> Kind& { return call; };
  const By by = own == nullptr ? By::host : prepare(made, *own, false, &error, arguments...);
  if (by == By::host) {
    if (choice.ns != nullptr) *std::exchange(choice.ns, nullptr) = Trials::kNotDone;
    return leave_it(kTypeOrOperator);
  }
  if (by == By::nobody) return error;
  {
    const PendingCalls::Turn turn(own->pending);
    error = call.call(*own, nullptr);
  }
  note_collective();
  if (error != UNISONO_OK) return report_error(own->handle, error, library().last_error());
  if constexpr (Kind::kRepeats) {
    if (const auto kept = call.kept()) {
      LastCall& last =
          choice.is_open ? own->trials->last_call(kCollective) : own->last_call(kCollective);
      last.keep(host().handle_mask, *kept, arguments...);
    }
  }
  return call.finish();
}

void note_time(const Choice& choice, Clock::time_point begin) {
  if (choice.ns == nullptr) return;
  *choice.ns = std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
}

// In a trial: a call like the last one that Unisono did goes the way that later ones go, past the
// choice. nullopt: it is not like that.
template <class Kind, Collective kCollective, class... Arguments>
std::optional<int> try_again(Communicator& own, const Choice& choice, Arguments... arguments) {
  const Clock::time_point begin = Clock::now();
  const LastCall& last = own.trials->last_call(kCollective);
  const auto [input, output] = buffers_of(arguments...);
  if (!last.is_like(host().handle_mask, input, output, arguments...)) return std::nullopt;
  const int code = call_again<Kind>(own, last, input, output, arguments...);
  if (code == 0) note_time(choice, begin);
  return code;
}

// In its own function: what it needs beside the arguments would slow down calls that are like the
// last one.
template <class Kind, Collective kCollective, class Function, class Narrow, class... Arguments>
[[gnu::noinline]] int run_anew(Communicator* own, ByHost<Function, Narrow> by_host,
                               Arguments... arguments) try {
  Choice choice;
  if (own == nullptr) {
    if (const int code = take_refusal(); code != 0) return code;
  } else {
    try {
      choice = choose<Kind, kCollective>(*own, arguments...);
    } catch (const std::exception& thrown) {
      if (!is_own(thrown)) throw;
      return give_up(*own, thrown);
    }
  }
  if constexpr (Kind::kRepeats) {
    if (choice.is_open && choice.to_host == nullptr) [[unlikely]] {
      const auto code = try_again<Kind, kCollective>(*own, choice, arguments...);
      if (code) return *code;
    }
  }
  const int code = run_chosen<Kind, kCollective>(own, choice, by_host, arguments...);
  // After an error the trial may be gone: the program's error handler may free the communicator.
  if (code == 0) note_time(choice, choice.begin);
  return code;
} catch (const std::exception& thrown) {
  if (!is_own(thrown)) throw;
  return report_thrown(thrown);
}

// In place, as dispatch() of entries.cpp.
template <class Kind, Collective kCollective, class Function, class Narrow, class... Arguments>
[[gnu::always_inline]] inline int run(ByHost<Function, Narrow> by_host, Arguments... arguments) {
  Communicator* const own = find_communicator(communicator_of(arguments...), kCollective);
  if constexpr (Kind::kRepeats) {
    if (own != nullptr) [[likely]] {
      const LastCall& last = own->last_call(kCollective);
      const auto [input, output] = buffers_of(arguments...);
      if (last.is_like(host().handle_mask, input, output, arguments...)) [[likely]] {
        return call_again<Kind>(*own, last, input, output, arguments...);
      }
    }
  }
  return run_anew<Kind, kCollective>(own, by_host, arguments...);
}

template <class Kind, class Function, class Narrow, class... Arguments>
int start(Collective collective, ByHost<Function, Narrow> by_host, Handle* request,
          Arguments... arguments) {
  Communicator* const own = find_made_communicator(communicator_of(arguments...), collective);
  std::unique_ptr<Kind> call;
  int error = own == nullptr ? take_refusal() : 0;
  if (error != 0) return error;
  const auto make = [&call]() -> Kind& { return *(call = std::make_unique_for_overwrite<Kind>()); };
  const By by = own == nullptr ? By::host : prepare(make, *own, true, &error, arguments...);
  if (by == By::host) {
    const auto to_host = [&] { return call_host<1>(collective, by_host, arguments..., request); };
    return leave<Kind>({.collective = collective,
                        .form = CallForm::started,
                        .own = own,
                        .reason = own == nullptr ? nullptr : kTypeOrOperator},
                       to_host, arguments...);
  }
  if (by == By::nobody) return error;
  return start_nonblocking(*own, std::move(call), request);
}

template <class Kind, class Function, class Narrow, class... Arguments>
int initialize(Collective collective, ByHost<Function, Narrow> by_host, Handle info,
               Handle* request, Arguments... arguments) {
  Communicator* const own = find_communicator(communicator_of(arguments...), collective);
  if (own == nullptr) {
    if (const int code = take_refusal(); code != 0) return code;
  }
  const auto leave_it = [&](const char* reason) {
    const auto to_host = [&] {
      const int code = call_host<2>(collective, by_host, arguments..., info, request);
      if (code == 0) note_persistent_by_host(host().handle_at(request));
      return code;
    };
    return leave<Kind>({.collective = collective,
                        .form = CallForm::initialized,
                        .own = own,
                        .reason = own == nullptr ? nullptr : reason},
                       to_host, arguments...);
  };
  if (own != nullptr) {
    if (!own->does_persistent) return leave_it(kOfSession);
    auto call = std::make_unique_for_overwrite<Kind>();
    bool can = false;
    try {
      if (!call->take(*own, arguments...) || !call->may_start()) {
        return leave_it(kTypeOrOperator);
      }
      can = call->keep(Uses::many) == 0;
    } catch (const std::exception& thrown) {
      if (!is_own(thrown)) throw;
      log_warning("rank %d of %d: %s", own->rank, own->size, thrown.what());
    }
    // The other ranks wait for this one, also if it cannot.
    if (make_persistent(*own, std::move(call), can, request)) return 0;
  }
  return leave_it(kNoRoom);
}

}  // namespace

#define UNISONO_MPI_BY_HOST(of, name) \
  ByHost { of.name, host().name }
#define UNISONO_MPI_DEFINE(of, name, nonblocking, parameters, arguments)                        \
  int name parameters {                                                                         \
    return run<name##Call, Collective::name>(UNISONO_MPI_BY_HOST(of, name),                     \
                                             UNISONO_MPI_UNPACK arguments);                     \
  }                                                                                             \
  int nonblocking(UNISONO_MPI_UNPACK parameters, Handle* request) {                             \
    return start<name##Call>(Collective::name, UNISONO_MPI_BY_HOST(of, nonblocking), request,   \
                             UNISONO_MPI_UNPACK arguments);                                     \
  }                                                                                             \
  int name##_init(UNISONO_MPI_UNPACK parameters, Handle info, Handle* request) {                \
    return initialize<name##Call>(Collective::name, UNISONO_MPI_BY_HOST(of, name##_init), info, \
                                  request, UNISONO_MPI_UNPACK arguments);                       \
  }
#define UNISONO_MPI_DEFINE_NARROW(...) UNISONO_MPI_DEFINE(host(), __VA_ARGS__)
#define UNISONO_MPI_DEFINE_LARGE(...) UNISONO_MPI_DEFINE(host().large, __VA_ARGS__)

namespace narrow {
UNISONO_MPI_COLLECTIVES(UNISONO_MPI_DEFINE_NARROW)
}  // namespace narrow
namespace large {
UNISONO_MPI_COUNTED(UNISONO_MPI_DEFINE_LARGE)
}  // namespace large

#undef UNISONO_MPI_DEFINE_LARGE
#undef UNISONO_MPI_DEFINE_NARROW
#undef UNISONO_MPI_DEFINE
#undef UNISONO_MPI_BY_HOST

}  // namespace unisono::mpi::ours
