// SPDX-License-Identifier: BSD-3-Clause
// Library: libunisono, loaded when the first communicator of an MPI program needs it. So a program
// without MPI that is started with the drop-in loads nothing of it. Any thread.
#pragma once

#include "unisono/unisono.h"

// clang-format off
#define UNISONO_MPI_LIBRARY(F) \
  F(last_error) F(error_name) F(type_create) F(op_create) F(init_with) F(finalize) F(barrier) F(broadcast) F(reduce) \
  F(allreduce) F(scan) F(exscan) F(reduce_scatter_block) F(reduce_scatter) F(allgather) \
  F(allgatherv) F(gather) F(gatherv) F(scatter) F(scatterv) F(alltoall) F(alltoallv)
// clang-format on

namespace unisono::mpi {

struct Library {
#define UNISONO_MPI_MEMBER(name) decltype(&unisono_##name) name = nullptr;
  UNISONO_MPI_LIBRARY(UNISONO_MPI_MEMBER)
#undef UNISONO_MPI_MEMBER
  bool loaded = false;
};

// Looks for it at the first call: beside the drop-in, then where the system looks.
const Library& library();

}  // namespace unisono::mpi
