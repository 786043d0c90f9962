// SPDX-License-Identifier: BSD-3-Clause
// Operators by name, and those that are Python functions. A function becomes an operator of the
// library at its first use and stays one: the library keeps operators until the process ends. All
// functions here are called with the GIL, except by the library.
#pragma once

#include <nanobind/nanobind.h>
#include <unisono/unisono.h>

#include <cstdint>

#include "array.hpp"

namespace unisono::python {

class UserOperator;

struct Operator {
  unisono_op_t op = UNISONO_SUM;
  UserOperator* user = nullptr;     // null: a built-in one
  std::uint64_t errors_before = 0;  // that its function had raised before the call
};

// By name, or a function or unisono.Op. Throws BadArgument. `element` is what it is used with.
Operator find_operator(nanobind::handle op, const Element& element);

// The exceptions that its function has raised until now.
std::uint64_t errors_of(const Operator& op);
// An exception if the function has raised one since `errors_before`: the results of all calls with
// it since then may be worthless. The first of them has that one. Invalid: none.
nanobind::object take_error(const Operator& op);

}  // namespace unisono::python
