// SPDX-License-Identifier: BSD-3-Clause
// The datatypes and operators that callers know by number: the built-in ones, and their own.
// Entries are never taken back, so a number stays good. Reading takes no lock; any thread.
#pragma once

#include <cstdint>
#include <optional>

#include "plan/call.hpp"

namespace unisono::api {

struct TypeEntry {
  std::int64_t bytes = 0;
  std::int64_t alignment = 1;
};

struct OperatorEntry {
  bool commutative = true;
  plan::UserOperator user;  // function is null for built-in ones
};

// nullopt for an unknown number.
std::optional<TypeEntry> find_type(std::int32_t type);
std::optional<OperatorEntry> find_operator(std::int32_t op);

}  // namespace unisono::api
