// SPDX-License-Identifier: BSD-3-Clause
#include "operators.hpp"

#include <nanobind/stl/string.h>

#include <cstdint>
#include <deque>
#include <string>
#include <utility>

#include "errors.hpp"

namespace unisono::python {

namespace nb = nanobind;

class UserOperator {
 public:
  // The library has no type of truth values: an operator of these takes their bytes, and calls the
  // function with arrays of bool.
  UserOperator(nb::handle function, bool is_commutative, bool is_of_bools)
      : given_(nb::borrow(function)),
        function_(is_of_bools ? arrays_module().attr("on_bools")(function) : given_),
        is_commutative_(is_commutative),
        is_of_bools_(is_of_bools) {}

  bool is(nb::handle function, bool is_commutative, bool is_of_bools) const {
    return given_.is(function) && is_commutative_ == is_commutative && is_of_bools_ == is_of_bools;
  }
  // Takes a number of the library.
  void create() { check(unisono_op_create(&call, is_commutative_ ? 1 : 0, this, &op_)); }
  unisono_op_t op() const { return op_; }

  std::uint64_t errors() const { return errors_; }
  nb::object take_error() { return std::exchange(error_, nb::object()); }

 private:
  // By the library, on any of its threads, without the GIL.
  static void call(void* target, const void* left, const void* right, std::int64_t count,
                   unisono_type_t type, void* user) {
    const nb::gil_scoped_acquire gil;
    auto& self = *static_cast<UserOperator*>(user);
    try {
      const auto bytes = static_cast<Py_ssize_t>(unisono_type_size(type)) * count;
      const auto view = [bytes](const void* memory, int flags) {
        char* const start = const_cast<char*>(static_cast<const char*>(memory));
        return nb::steal(PyMemoryView_FromMemory(start, bytes, flags));
      };
      arrays_module().attr("apply")(self.function_, view(target, PyBUF_WRITE),
                                    view(left, PyBUF_READ), view(right, PyBUF_READ), type);
    } catch (nb::python_error& error) {
      self.error_ = nb::borrow(error.value());
      ++self.errors_;
      // Else other ranks would get memory that the function has not written.
      unisono_op_fail(said_by(error).c_str());
    }
  }

  static std::string said_by(const nb::python_error& error) {
    try {
      return text_of(error);
    } catch (nb::python_error&) {  // of the exception's own __str__
      return "an exception";
    }
  }

  nb::object given_;     // the caller's
  nb::object function_;  // of arrays of the library's types
  bool is_commutative_;
  bool is_of_bools_;
  unisono_op_t op_ = 0;
  nb::object error_;  // the last one that nobody has taken
  std::uint64_t errors_ = 0;
};

namespace {

// Never taken back, as the library's operators; it outlives the interpreter on purpose.
std::deque<UserOperator>& user_operators() {
  static auto* const all = new std::deque<UserOperator>;
  return *all;
}

constexpr std::pair<const char*, unisono_op_t> kNames[] = {{"sum", UNISONO_SUM},
                                                           {"max", UNISONO_MAX},
                                                           {"min", UNISONO_MIN},
                                                           {"prod", UNISONO_PROD},
                                                           {"logical_and", UNISONO_LOGICAL_AND},
                                                           {"logical_or", UNISONO_LOGICAL_OR},
                                                           {"logical_xor", UNISONO_LOGICAL_XOR},
                                                           {"bitwise_and", UNISONO_BITWISE_AND},
                                                           {"bitwise_or", UNISONO_BITWISE_OR},
                                                           {"bitwise_xor", UNISONO_BITWISE_XOR},
                                                           {"minloc", UNISONO_MINLOC},
                                                           {"maxloc", UNISONO_MAXLOC}};

// As NumPy has it: a sum of truth values is whether any of them is true.
unisono_op_t of_truth_values(unisono_op_t op) {
  switch (op) {
    case UNISONO_SUM:
    case UNISONO_MAX:
      return UNISONO_LOGICAL_OR;
    case UNISONO_PROD:
    case UNISONO_MIN:
      return UNISONO_LOGICAL_AND;
    default:
      return op;
  }
}

Operator find_function(nb::handle function, bool is_commutative, const Element& element) {
  for (UserOperator& known : user_operators()) {
    if (known.is(function, is_commutative, element.is_bool))
      return {known.op(), &known, known.errors()};
  }
  const nb::object why = arrays_module().attr("why_no_operator")(function);
  if (!why.is_none()) throw BadArgument(nb::cast<std::string>(why), BadArgument::Kind::type);
  UserOperator& made = user_operators().emplace_back(function, is_commutative, element.is_bool);
  try {
    made.create();
  } catch (const nb::python_error&) {
    user_operators().pop_back();
    throw;
  }
  return {made.op(), &made, made.errors()};
}

// A program most often names one operator, by the same string. A comparison takes longer than what
// else is done with it.
unisono_op_t number_of(nb::handle name) {
  static constinit PyObject* last = nullptr;  // owned, so that no other string has its address
  static constinit unisono_op_t last_number = UNISONO_SUM;
  if (name.ptr() == last) [[likely]]
    return last_number;
  for (const auto& [known, number] : kNames) {
    if (PyUnicode_CompareWithASCIIString(name.ptr(), known) != 0) continue;
    if (PyUnicode_CheckExact(name.ptr())) {  // a subclass may run code when it is released
      last_number = number;
      Py_XDECREF(std::exchange(last, Py_NewRef(name.ptr())));
    }
    return number;
  }
  std::string all;
  for (const auto& [known, number] : kNames) all += std::string(all.empty() ? "" : ", ") + known;
  throw BadArgument("op is '" + nb::cast<std::string>(name) + "'; known are " + all +
                    ", and functions");
}

}  // namespace

Operator find_operator(nb::handle op, const Element& element) {
  if (PyUnicode_Check(op.ptr())) [[likely]] {
    const unisono_op_t number = number_of(op);
    if (element.is_opaque) {
      throw BadArgument("no operator by name takes elements of this type; give a type of numbers",
                        BadArgument::Kind::type);
    }
    return {element.is_bool ? of_truth_values(number) : number, nullptr, 0};
  }
  if (element.is_opaque) {
    throw BadArgument("operators do not take elements of this type", BadArgument::Kind::type);
  }
  if (nb::hasattr(op, "_unisono_op")) {
    return find_function(op.attr("function"), nb::cast<bool>(op.attr("commutative")), element);
  }
  if (PyCallable_Check(op.ptr()) != 0) return find_function(op, true, element);
  throw BadArgument("op is neither a name, nor a function, nor a unisono.Op",
                    BadArgument::Kind::type);
}

std::uint64_t errors_of(const Operator& op) { return op.user == nullptr ? 0 : op.user->errors(); }

nb::object take_error(const Operator& op) {
  if (errors_of(op) == op.errors_before) return {};
  nb::object error = op.user->take_error();
  if (error.is_valid()) return error;
  return nb::handle(PyExc_RuntimeError)(
      "the operator has raised an exception, which another call with it has had");
}

}  // namespace unisono::python
