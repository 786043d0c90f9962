// SPDX-License-Identifier: BSD-3-Clause
// The datatypes and operators of MPI, and those of Unisono that equal them. Looking up a predefined
// one takes a few instructions; a derived one is in derived.hpp. Any thread, after host().
#pragma once

#include <cstdint>
#include <optional>

#include "host/functions.hpp"
#include "unisono/unisono.h"

namespace unisono::mpi {

struct TypeInfo {
  std::int64_t size = 0;    // bytes of an element's data
  std::int64_t extent = 0;  // from one element to the next
  std::int64_t lower = 0;
  std::int64_t true_lower = 0, true_extent = 0;  // of the data alone
  bool direct = false;  // without gaps and in order, so elements can be moved where they lie
  bool valid = false;
};
TypeInfo type_info(Handle type);
// Bytes of an element of a predefined type without gaps; 0 for all others.
std::int64_t plain_bytes(Handle type);

struct Reduction {
  unisono_type_t type = UNISONO_BYTE;
  unisono_op_t op = UNISONO_SUM;
  std::int64_t size = 0;  // of an element
  std::int64_t alignment = 1;
  bool is_pair = false;  // of a value and its place; there may be a gap between or behind them
};
// nullopt: MPI does not define it, or Unisono has no equivalent. MPI demands the same type and
// operator at all ranks, so all ranks find the same.
std::optional<Reduction> find_reduction(Handle type, Handle op);

// Whether it is an operator of the program; or one of MPI's on a type that Unisono does not have.
bool is_reduced_by_host(Handle type, Handle op);

}  // namespace unisono::mpi
