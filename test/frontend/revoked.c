/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Rank 0 revokes a communicator (MPIX_Comm_revoke of Open MPI 5), while the others wait for it in a
 * collective: revoked FORM. Their calls end with MPIX_ERR_REVOKED, and so do all later ones. What
 * the ranks make of it by MPIX_Comm_shrink is as good as new. Prints "fine"; "none" if the MPI has
 * no such function. */
#include "persistent.h"
#include "scenario.h"

#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION >= 5
#include <mpi-ext.h>
#include <unistd.h>

/* The collective in which the others wait. */
static int wait_in(MPI_Comm comm, const char* form, MPI_Request* persistent) {
  int sum = -1;
  MPI_Request request;
  if (strcmp(form, "blocking") == 0) {
    return MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
  }
  if (strcmp(form, "nonblocking") == 0) {
    const int code = MPI_Iallreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm, &request);
    return code != MPI_SUCCESS ? code : MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  MPI_Start(persistent);
  return MPI_Wait(persistent, MPI_STATUS_IGNORE);
}

static void revoke_one(const char* form) {
  static int own, sum;
  int one = 1, all = 0, count = 0;
  MPI_Comm comm, left;
  MPI_Request persistent;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  EXPECT(MPI_Barrier(comm) == MPI_SUCCESS);
  MPI_Allreduce_init(&own, &sum, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &persistent);
  if (rank == 0) {
    usleep(300000); /* the others are most likely in the call; if not, it fails at once */
    EXPECT(MPIX_Comm_revoke(comm) == MPI_SUCCESS);
  } else {
    EXPECT(class_of(wait_in(comm, form, &persistent)) == MPIX_ERR_REVOKED);
  }
  for (int i = 0; i < 2; ++i) EXPECT(class_of(MPI_Barrier(comm)) == MPIX_ERR_REVOKED);
  EXPECT(MPIX_Comm_shrink(comm, &left) == MPI_SUCCESS);
  MPI_Comm_size(left, &count);
  EXPECT(MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, left) == MPI_SUCCESS);
  EXPECT(count == size && all == size);
  MPI_Comm_free(&left);
}

int main(int argc, char** argv) {
  start_scenarios(&argc, &argv);
  if (argc > 1) revoke_one(current = argv[1]);
  if (rank == 0) puts("fine");
  MPI_Finalize();
  return 0;
}

#else

int main(void) {
  puts("none");
  return 0;
}

#endif
