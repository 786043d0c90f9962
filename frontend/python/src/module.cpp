// SPDX-License-Identifier: BSD-3-Clause
// The extension module unisono._native: the communicator's methods, each blocking, as a start and
// as a plan. unisono/_native.pyi has their types; users see the names of unisono/__init__.py.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "arguments/whole.hpp"
#include "collectives.hpp"
#include "communicator.hpp"
#include "numpy/ndarray.hpp"
#include "request.hpp"
#include "shared_memory.hpp"

namespace unisono::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;  // NOLINT: "name"_a

Communicator& communicator_of(nb::handle self) {
  Communicator* found = nullptr;
  if (!nb::try_cast(self, found) || found == nullptr) [[unlikely]]
    throw nb::type_error("this is a method of unisono.Communicator");
  return *found;
}

// Arguments that do not fit the signature: the other ranks are told, as of any wrong call.
[[noreturn]] void refuse_arguments(nb::handle self, const char* name) {
  Communicator& communicator = communicator_of(self);
  const Communicator::Use use(communicator);
  const std::string what = std::string(name) + ": the arguments do not fit its signature";
  communicator.refuse_because_of(what);
  throw nb::type_error(("rank " + std::to_string(communicator.rank()) + ": " + what +
                        "; see help(comm." + name + ")")
                           .c_str());
}

// Runs what looks at the arguments of `name`; the other ranks are told of an error.
template <class Prepare>
void look_at_arguments(Communicator& communicator, const char* name, const Prepare& prepare) {
  try {
    prepare();
  } catch (const BadArgument& why) {
    communicator.refuse(name, why);
  } catch (nb::python_error& error) {
    const std::string what = std::string(name) + ": " + text_of(error);
    communicator.refuse_because_of(what);
    const int rank = communicator.rank();
    raise_because_of(error, "rank " + std::to_string(rank) + ": " + what, rank);
    throw;
  }
}

// For arguments that fit no signature before it.
void refuse_others(nb::class_<Communicator>& type, const char* name) {
  type.def(name, [name](nb::handle self, const nb::args&, const nb::kwargs&) -> nb::object {
    refuse_arguments(self, name);
  });
}

// The three ways in which the function `prepare_` is called. The communicator is a handle, so that
// requests and plans can keep it.
template <auto prepare_>
struct Ways;

template <class... Arguments, void (*prepare_)(Call&, Arguments...)>
struct Ways<prepare_> {
  static nb::object run(nb::handle self, const char* name, Arguments... arguments) {
    Communicator& communicator = communicator_of(self);
    Communicator::Use use(communicator);
    Call call(communicator);
    prepare(call, name, arguments...);
    run_for(use, call, [&call] { return call.run(); });
    return finish(call);
  }

  template <class Kept>
  static std::unique_ptr<Kept> keep(nb::handle self, const char* name, Arguments... arguments) {
    Communicator& communicator = communicator_of(self);
    auto call = std::make_unique<Call>(communicator);
    {
      const Communicator::Use use(communicator);
      prepare(*call, name, arguments...);
    }
    return std::make_unique<Kept>(nb::borrow(self), std::move(call));
  }

 private:
  static void prepare(Call& call, const char* name, Arguments... arguments) {
    look_at_arguments(call.comm, name, [&] { prepare_(call, arguments...); });
  }
};

// Defines NAME, NAME_start and NAME_plan.
template <auto prepare_, class Signature>
struct Definition;

template <auto prepare_, class... Arguments>
struct Definition<prepare_, void (*)(Call&, Arguments...)> {
  template <class... Extra>
  static void add(nb::class_<Communicator>& type, const char* name, const char* doc,
                  const Extra&... extra) {
    // One of each for each collective; the interpreter may name a function until its very end.
    static const char* const blocking = name;
    static const std::string* const start = new std::string(std::string(name) + "_start");
    static const std::string* const plan = new std::string(std::string(name) + "_plan");
    const std::string start_doc = "Starts " + std::string(name) + "() and returns at once.";
    const std::string plan_doc = "Prepares " + std::string(name) + "() with these arrays.";
    type.def(
        blocking,
        [](nb::handle self, Arguments... a) { return Ways<prepare_>::run(self, blocking, a...); },
        doc, extra...);
    type.def(
        start->c_str(),
        [](nb::handle self, Arguments... a) {
          return Ways<prepare_>::template keep<Request>(self, start->c_str(), a...);
        },
        start_doc.c_str(), extra...);
    type.def(
        plan->c_str(),
        [](nb::handle self, Arguments... a) {
          return Ways<prepare_>::template keep<Plan>(self, plan->c_str(), a...);
        },
        plan_doc.c_str(), extra...);
    for (const char* const any : {blocking, start->c_str(), plan->c_str()})
      refuse_others(type, any);
  }
};

template <auto prepare_, class... Extra>
void define(nb::class_<Communicator>& type, const char* name, const char* doc,
            const Extra&... extra) {
  Definition<prepare_, decltype(prepare_)>::add(type, name, doc, extra...);
}

void define_collectives(nb::class_<Communicator>& type) {
  const auto none = nb::none();
  define<&prepare_barrier>(type, "barrier", "Returns when all ranks have called it.");
  define<&prepare_broadcast>(type, "broadcast",
                             "Copies the root's buffer to every rank's buffer, and returns it.",
                             "buffer"_a, "root"_a = 0);
  define<&prepare_reduce>(
      type, "reduce", "At the root, the elements of all ranks combined by op; None at the others.",
      "send"_a.none(), "recv"_a = none, "op"_a = "sum", "root"_a = 0);
  define<&prepare_allreduce>(
      type, "allreduce",
      "The elements of all ranks combined by op, at every rank, with the same bits.",
      "send"_a.none(), "recv"_a = none, "op"_a = "sum");
  define<&prepare_allgather>(type, "allgather",
                             "The arrays of all ranks, by rank: a new first dimension, or recv.",
                             "send"_a.none(), "recv"_a = none);
  define<&prepare_gather>(type, "gather", "As allgather, at the root; None at the others.",
                          "send"_a.none(), "recv"_a = none, "root"_a = 0);
  define<&prepare_scatter>(
      type, "scatter",
      "Block r of the root's send, at rank r. recv is needed at all ranks but the root.",
      "send"_a.none(), "recv"_a = none, "root"_a = 0);
  define<&prepare_alltoall>(type, "alltoall",
                            "Block s of the result of rank r is block r of the send of rank s.",
                            "send"_a.none(), "recv"_a = none);
  define<&prepare_reduce_scatter>(
      type, "reduce_scatter",
      "The elements of all ranks combined by op; rank r gets block r, of counts[r] elements.",
      "send"_a.none(), "recv"_a = none, "op"_a = "sum", "counts"_a = none);
  define<&prepare_scan>(type, "scan", "The elements of ranks 0 to this one combined by op.",
                        "send"_a.none(), "recv"_a = none, "op"_a = "sum");
  define<&prepare_exscan>(
      type, "exscan",
      "The elements of the ranks before this one combined by op. Rank 0 gets nothing.",
      "send"_a.none(), "recv"_a = none, "op"_a = "sum");
  define<&prepare_allgatherv>(
      type, "allgatherv",
      "As allgather, with counts[r] elements of rank r, at displacements[r] of recv.",
      "send"_a.none(), "recv"_a = none, "counts"_a, "displacements"_a = none);
  define<&prepare_many_to_many>(
      type, "many_to_many",
      "An allgatherv from ranks with a count to ranks whose entry of receives is true.",
      "send"_a.none(), "recv"_a = none, "counts"_a, "receives"_a = none, "displacements"_a = none);
  define<&prepare_gatherv>(
      type, "gatherv", "As allgatherv, at the root, which alone needs counts and displacements.",
      "send"_a.none(), "recv"_a = none, "counts"_a = none, "displacements"_a = none, "root"_a = 0);
  define<&prepare_scatterv>(
      type, "scatterv", "Rank r gets counts[r] elements of the root's send, from displacements[r].",
      "send"_a.none(), "recv"_a = none, "counts"_a = none, "displacements"_a = none, "root"_a = 0);
  define<&prepare_alltoallv>(
      type, "alltoallv",
      "An alltoall with counts and displacements for each pair of ranks, in elements.",
      "send"_a.none(), "send_counts"_a.none(), "recv"_a.none(), "recv_counts"_a,
      "send_displacements"_a = none, "recv_displacements"_a = none);
  define<&prepare_alltoallw>(
      type, "alltoallw", "An alltoallv with a type for each block; displacements are in bytes.",
      "send"_a.none(), "send_counts"_a.none(), "send_displacements"_a.none(), "send_types"_a.none(),
      "recv"_a.none(), "recv_counts"_a, "recv_displacements"_a.none(), "recv_types"_a);
}

std::unique_ptr<Communicator> dup(Communicator& self) {
  Communicator::Use use(self);
  unisono_comm_t made = nullptr;
  use.run([&] { return unisono_comm_dup(self.handle(), &made); });
  return self.adopt(made);
}

std::unique_ptr<Communicator> split(Communicator& self, Whole color, Whole key) {
  Communicator::Use use(self);
  int own_color = 0, own_key = 0;
  look_at_arguments(self, "split", [&] {
    own_color = color.value("color");
    own_key = key.value("key");
  });
  unisono_comm_t made = nullptr;
  use.run([&] { return unisono_comm_split(self.handle(), own_color, own_key, &made); });
  return self.adopt(made);
}

std::unique_ptr<Communicator> subgroup(Communicator& self, nb::handle ranks) {
  Communicator::Use use(self);
  std::vector<int> members;
  look_at_arguments(self, "subgroup", [&] {
    for (const nb::handle rank : ranks) members.push_back(whole<int>(rank, "an entry of ranks"));
  });
  unisono_comm_t made = nullptr;
  use.run([&] {
    return unisono_comm_from_list(self.handle(), members.data(), static_cast<int>(members.size()),
                                  &made);
  });
  return self.adopt(made);
}

std::unique_ptr<Communicator> shrink(Communicator& self) {
  Communicator::Use use(self);
  unisono_comm_t made = nullptr;
  use.run([&] { return unisono_shrink(self.handle(), &made); });
  return self.adopt(made);
}

// For functions that no other rank waits for.
template <class Integer>
Integer own_argument(Whole number, const char* function, const char* name) {
  try {
    return number.value<Integer>(name);
  } catch (const BadArgument& why) {
    raise(why.code(), std::string(function) + ": " + why.what());
  }
}

void publish(Communicator& self, Whole value) {
  const auto word = own_argument<std::uint64_t>(value, "publish", "value");
  Communicator::Use use(self);
  use.run([&] { return unisono_publish(self.handle(), word); });
}

bool query(Communicator& self, const std::string& how, Whole value) {
  constexpr const char* kHow[] = {"==", "!=", "<", "<=", ">", ">="};
  unisono_compare_t number = 0;
  while (number < 6 && how != kHow[number]) ++number;
  if (number == 6) raise(UNISONO_ERROR_ARGUMENT, "query: how is one of == != < <= > >=");
  const auto word = own_argument<std::uint64_t>(value, "query", "value");
  Communicator::Use use(self);
  int result = 0;
  use.run([&] { return unisono_query(self.handle(), number, word, &result); });
  return result != 0;
}

struct RankState {
  const char* state;
  std::string why;
};

RankState rank_state(Communicator& self, Whole rank) {
  constexpr const char* kNames[] = {"present", "left", "lost"};
  const auto number = own_argument<int>(rank, "rank_state", "rank");
  Communicator::Use use(self);
  unisono_rank_state_t state{};
  state.size = sizeof state;
  use.run([&] { return unisono_comm_rank_state(self.handle(), number, &state); });
  return {kNames[state.state], state.why};
}

void refuse(Communicator& self, const std::string& why) {
  const Communicator::Use use(self);
  self.refuse_because_of(why);
}

// The end of a with statement. An exception of its body may leave requests open. It is what the
// caller has to see, so the communicator then ends when nobody can wait for these any more.
void leave(Communicator& self, nb::handle kind, nb::handle, nb::handle) {
  try {
    self.close();
  } catch (nb::python_error& error) {
    const nb::object state = nb::module_::import_("unisono._errors").attr("StateError");
    if (kind.is_none() || !error.matches(state)) throw;
  }
}

// unisono/_arrays.py knows NumPy's types and shapes.
nb::object empty(nb::handle self, nb::handle shape, nb::handle dtype) {
  communicator_of(self).require_open();
  return arrays_module().attr("empty_shared")(self, shape, dtype);
}

nb::dict info(Communicator& self) {
  Communicator::Use use(self);
  unisono_comm_info_t info{};
  info.size = sizeof info;
  use.run([&] { return unisono_comm_info(self.handle(), &info); });
  nb::dict all;
  all["buffer_bytes"] = info.buffer_bytes;
  all["operations"] = info.operations;
  all["sleeps"] = info.sleeps;
  all["helped_steps"] = info.helped_steps;
  all["algorithm"] = nb::str(info.algorithm);
  all["engine"] = nb::str(info.engine);
  all["multicasts"] = info.multicasts;
  all["stagings"] = info.stagings;
  return all;
}

void set_timeout(Communicator& self, nb::handle seconds) {
  const double value = PyFloat_AsDouble(seconds.ptr());
  if (PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    raise(UNISONO_ERROR_TYPE, std::string("timeout is a ") + nb::inst_name(seconds).c_str() +
                                  "; it has to be a number of seconds, and 0 is no limit");
  }
  self.set_timeout(value);
}

void define_communicator(nb::module_& module) {
  nb::class_<RankState>(module, "RankState", "The known state of one member of a communicator.")
      .def_ro("state", &RankState::state, "\"present\", \"left\" or \"lost\"")
      .def_ro("why", &RankState::why, "what happened, with the rank; empty if it is present");
  // The end of the world ends all its communicators, so each of them keeps the world alive.
  const auto keep_parent = nb::keep_alive<0, 1>();
  nb::class_<Communicator> type(module, "Communicator", nb::is_weak_referenceable());
  type.def_prop_ro("rank", &Communicator::rank)
      .def_prop_ro("size", &Communicator::size)
      .def_prop_ro("is_open", &Communicator::is_open)
      .def_prop_rw(
          "timeout", &Communicator::timeout, &set_timeout,
          nb::for_setter(nb::arg("seconds").none()),
          "Seconds that a call may wait before it ends the communicator for all ranks with "
          "TimeoutError; 0: no limit. A new value holds for a call in progress, too.")
      .def("close", &Communicator::close,
           "Ends this rank's use of it; for the communicator of all ranks, its part in the job.")
      .def("dup", &dup, keep_parent, "A communicator with the same members. Collective.")
      .def("split", &split, keep_parent,
           "A communicator for each color, its ranks ordered by (key, old rank). Collective. None "
           "for a negative color.",
           "color"_a, "key"_a = 0)
      .def("subgroup", &subgroup, keep_parent,
           "A communicator of these members, in this order. Collective: all members call it; None "
           "outside.",
           "ranks"_a)
      .def("shrink", &shrink, keep_parent,
           "A communicator of the members that live. Each of them calls it; it ends this one.")
      .def("publish", &publish, "Sets the word of this rank, which query() of any rank sees.",
           "value"_a)
      .def("query", &query,
           "Whether `word how value` holds for the words of all members; how is one of == != < <= "
           "> >=.",
           "how"_a, "value"_a)
      .def("rank_state", &rank_state,
           "The known state of a member. Does not wait; repeat it to learn of a loss.", "rank"_a)
      .def("empty", &empty,
           "A NumPy array, of zeros at first, in memory that all ranks of this host can read. Long "
           "reductions of it copy once less. It may outlive the communicator. Not collective.",
           "shape"_a.none(), "dtype"_a.none() = "float64")
      .def("info", &info, "Memory and counters: see unisono_comm_info_t.")
      .def("refuse", &refuse,
           "This rank cannot make its next call: the communicator fails for all ranks, for this "
           "reason.",
           "why"_a)
      .def("__enter__", [](nb::handle self) { return nb::borrow(self); })
      .def("__exit__", &leave, "kind"_a.none(), "error"_a.none(), "trace"_a.none());
  for (const char* const collective : {"split", "subgroup"}) refuse_others(type, collective);
  define_collectives(type);
}

std::unique_ptr<Communicator> join(Whole rank, Whole size, const nb::callable& allgather,
                                   double timeout) {
  return init_with(own_argument<int>(rank, "init_with", "rank"),
                   own_argument<int>(size, "init_with", "size"), allgather, timeout);
}

// For unisono.mpi, whose buffers are bytes with datatypes of their own.
void define_memory(nb::module_& module) {
  nb::class_<Array>(module, "Memory")
      .def_prop_ro(
          "address",
          [](const Array& array) { return reinterpret_cast<std::uintptr_t>(array.data()); })
      .def_prop_ro("bytes", &Array::bytes)
      .def_prop_ro("item_bytes", &Array::item_bytes)
      .def_prop_ro("is_read_only", &Array::is_read_only)
      .def_prop_ro("type_name", [](const Array& array) {
        return array.element().is_opaque ? std::string() : array.type_name();
      });
  module.def(
      "memory_of",
      [](nb::handle object) {
        auto array = std::make_unique<Array>();
        array->take(object, Array::Use::input, "the buffer");
        return array;
      },
      "Where the elements of an array lie, which this object keeps alive.", "array"_a);
}

// Python may collect an object whose constructor has not run.
int visit_request(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  return nb::inst_ptr<Request>(self)->visit(visit, arg);
}

int clear_request(PyObject* self) {
  if (nb::inst_ready(self)) nb::inst_ptr<Request>(self)->clear();
  return 0;
}

PyType_Slot request_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(&visit_request)},
                               {Py_tp_clear, reinterpret_cast<void*>(&clear_request)},
                               {0, nullptr}};

void define_request(nb::module_& module) {
  nb::class_<Request>(module, "Request", nb::is_weak_referenceable(), nb::type_slots(request_slots))
      .def("wait", &Request::wait, "Waits for the end, and returns the result.")
      .def("done", &Request::done, "Whether it has ended; then wait() returns at once.")
      .def("cancel", &Request::cancel,
           "Ends it for all ranks, unless it is complete: the communicator then fails, and wait() "
           "raises CancelledError.")
      .def("__await__",
           [](nb::handle self) {
             return nb::module_::import_("unisono._waiting").attr("of_request")(self);
           })
      .def("__enter__", [](nb::handle self) { return nb::borrow(self); })
      .def("__exit__", [](Request& self, const nb::args&) { self.wait(); });
  nb::class_<Plan>(module, "Plan", nb::is_weak_referenceable())
      .def("start", &Plan::start, "Starts the collective.")
      .def("wait", &Plan::wait, "Waits for the end, and returns the result.")
      .def("done", &Plan::done, "Whether it has ended; then wait() returns at once.")
      .def("close", &Plan::close, "Waits for an active start, and frees what is prepared.")
      .def("__call__", &Plan::run, "Starts the collective, waits for it, and returns the result.")
      .def("__await__",
           [](nb::handle self) {
             return nb::module_::import_("unisono._waiting").attr("of_request")(self);
           })
      .def("__enter__", [](nb::handle self) { return nb::borrow(self); })
      .def("__exit__", [](Plan& self, const nb::args&) { self.close(); });
}

}  // namespace
}  // namespace unisono::python

// Python calls PyInit__native below.
NB_MODULE(_native_once, module) {
  using namespace unisono::python;  // NOLINT: the one function outside it
  namespace nb = nanobind;
  using namespace nb::literals;  // NOLINT: "name"_a
  // Communicators that are open at the end are closed by close_all; they are no leaks.
  nb::set_leak_warnings(false);
  watch_forks();
  define_communicator(module);
  define_request(module);
  define_memory(module);
  define_shared_memory(module);
  define_ndarray(module);
  module.def("init", &init, "Joins the job of the environment; the communicator of all its ranks.");
  module.def(
      "init_with", &join,
      "Makes a job over an allgather of the caller's: a function from the bytes of this rank "
      "to those of all ranks.",
      "rank"_a, "size"_a, "allgather"_a, "timeout"_a = 0.0);
  module.def("has_joined", &has_joined);
  module.def("end_with_parent", &end_with_parent);
  module.def("close_all", &close_all);
  module.def("end_of_interpreter", &end_of_interpreter);
  module.def("set_in_place", [](nb::handle object) { set_in_place(object); });
  module.def("version", [] { return unisono_version(); });
  module.def("error_name", [](int code) { return unisono_error_name(code); });
}

// Types and functions are those of one interpreter. Servers may have several in a process. There a
// second import would take them from the first one, even if it failed in the function above.
extern "C" NB_EXPORT PyObject* PyInit__native() {
  static const PyInterpreterState* const first = PyInterpreterState_Get();
  if (PyInterpreterState_Get() == first) return PyInit__native_once();
  PyErr_SetString(PyExc_ImportError,
                  "another interpreter of this process has imported unisono; only one can");
  return nullptr;
}
