// SPDX-License-Identifier: BSD-3-Clause
// Call: a collective with the caller's arrays, checked, so that the library can be called. The
// functions of collectives.cpp fill it in. It is run blocking, started (Request) or planned (Plan).
// Callers hold the GIL.
#pragma once

#include <nanobind/nanobind.h>
#include <unisono/unisono.h>

#include <cstdint>
#include <vector>

#include "array.hpp"
#include "communicator.hpp"
#include "operators.hpp"

namespace unisono::python {

enum class Collective : std::uint8_t {
  barrier,
  broadcast,
  reduce,
  allreduce,
  allgather,
  gather,
  scatter,
  alltoall,
  reduce_scatter_block,
  scan,
  exscan,
  allgatherv,
  many_to_many,
  reduce_scatter,
  gatherv,
  scatterv,
  alltoallv,
  alltoallw,
};

// Blocks by rank, in elements (alltoallw: the displacements are in bytes). Empty displacements mean
// one block behind the other.
struct Blocks {
  std::vector<std::int64_t> counts, displacements;
  std::vector<unisono_type_t> types;

  const std::int64_t* displacements_or_null() const {
    return displacements.empty() ? nullptr : displacements.data();
  }
};

struct Call {
  explicit Call(Communicator& communicator) : comm(communicator) {}

  Communicator& comm;
  Collective collective = Collective::barrier;
  Array send, receive;
  const void* input = nullptr;
  void* output = nullptr;
  std::int64_t count = 0;
  unisono_type_t type = UNISONO_BYTE;
  Operator op;
  int root = 0;
  Blocks input_blocks, output_blocks;
  std::vector<int> receives;
  nanobind::object result;  // what the Python call returns

  // Each calls the library's function of this collective, without the GIL.
  int run() const;
  int start(unisono_request_t* request) const;
  int plan(unisono_plan_t* plan) const;
};

// The value that Python's call returns, after the operation: a number for a number.
nanobind::object result_of(Call& call);

}  // namespace unisono::python
