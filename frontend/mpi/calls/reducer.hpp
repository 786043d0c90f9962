// SPDX-License-Identifier: BSD-3-Clause
// Reducer: how Unisono reduces elements of an MPI type with an MPI operator during one call. Where
// it has no kernel of its own, the host applies the operator (MPI_Reduce_local): functions of the
// program in C and Fortran, on predefined and derived types; and predefined ones on types such as
// long double. Any thread.
#pragma once

#include <cstdint>

#include "host/types.hpp"

namespace unisono::mpi {

struct HostOperator;

class Reducer {
 public:
  // `comm` is the call's. Throws if there is no memory, or no room in Unisono's tables.
  Reducer(Handle type, Handle op, Handle comm);
  ~Reducer() {
    if (by_host_ != nullptr) release();
  }
  Reducer(const Reducer&) = delete;
  Reducer& operator=(const Reducer&) = delete;

  // False: the host MPI does the call, or reports what is invalid. MPI demands the same type and
  // operator at all ranks, so all ranks find the same.
  explicit operator bool() const { return found_; }
  unisono_type_t type() const { return reduction_.type; }
  unisono_op_t op() const { return reduction_.op; }
  // Bytes from one element to the next; also its size for Unisono.
  std::int64_t size() const { return reduction_.size; }
  std::int64_t alignment() const { return alignment_; }
  // Whether the host applies the operator. MPI demands the same at all ranks.
  bool is_by_host() const { return by_host_ != nullptr; }
  // Whether elements have bytes that belong to the program and not to the call.
  bool has_gaps() const { return has_gaps_; }
  // Copies elements from one buffer to another, without the gaps. An MPI error code.
  int copy_elements(const void* from, void* to, std::int64_t count) const;

 private:
  void by_host(Handle op);
  void release();

  Handle type_, comm_;
  Reduction reduction_;
  std::int64_t alignment_ = 1;
  bool found_ = false;
  bool has_gaps_ = false;
  HostOperator* by_host_ = nullptr;
};

}  // namespace unisono::mpi
