// SPDX-License-Identifier: BSD-3-Clause
// Operators by name, and those that are Python functions. A function becomes an operator of the
// library at its first use and stays one: the library keeps operators until the process ends. All
// functions here are called with the GIL, except by the library.
#pragma once

#include <nanobind/nanobind.h>
#include <unisono/unisono.h>

#include "array.hpp"

namespace unisono::python {

class UserOperator;

struct Operator {
  unisono_op_t op = UNISONO_SUM;
  UserOperator* user = nullptr;  // null: a built-in one
};

// By name, or a function or unisono.Op. Throws BadArgument. `element` is what it is used with.
Operator find_operator(nanobind::handle op, const Element& element);

// The exception that a call of the function has raised since the last time; then the results are
// worthless. Invalid: none.
nanobind::object take_error(UserOperator& user);

}  // namespace unisono::python
