// SPDX-License-Identifier: BSD-3-Clause
// Library: libunisono, loaded when the first communicator of an MPI program needs it. So a program
// without MPI that is started with the drop-in loads nothing of it. Any thread.
#pragma once

#include "unisono/unisono.h"

// clang-format off
#define UNISONO_MPI_LIBRARY(F) \
  F(last_error) F(error_name) F(type_create) F(op_create) F(op_fail) F(init_with) \
  F(finalize) F(comm_from_list_with) F(comm_free) F(comm_hosts) F(faster_by_mpi) \
  F(machine_bytes) F(refuse) F(set_interrupt) F(test) F(wait) F(profile_call) F(profile_save) \
  F(barrier) F(barrier_start) F(broadcast) F(broadcast_start) F(reduce) F(reduce_start) \
  F(allreduce) F(allreduce_start) F(scan) F(scan_start) F(exscan) F(exscan_start) \
  F(reduce_scatter_block) F(reduce_scatter_block_start) F(reduce_scatter) F(reduce_scatter_start) \
  F(allgather) F(allgather_start) F(allgatherv) F(allgatherv_start) F(gather) F(gather_start) \
  F(gatherv) F(gatherv_start) F(scatter) F(scatter_start) F(scatterv) F(scatterv_start) \
  F(alltoall) F(alltoall_start) F(alltoallv) F(alltoallv_start)
// clang-format on

namespace unisono::mpi {

struct Library {
#define UNISONO_MPI_MEMBER(name) decltype(&unisono_##name) name = nullptr;
  UNISONO_MPI_LIBRARY(UNISONO_MPI_MEMBER)
#undef UNISONO_MPI_MEMBER
  bool loaded = false;
};

// Looks for it at the first call: beside the drop-in, then where the system looks.
const Library& load_library();
inline const Library& library() {
  static const Library& loaded = load_library();
  return loaded;
}

// Saves the profile before an end of the process that Unisono does not see. It loads nothing. Also
// for signal handlers.
void save_profile();

}  // namespace unisono::mpi
