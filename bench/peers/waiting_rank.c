/* SPDX-License-Identifier: BSD-3-Clause
 * What messages cost whose receiver waits in a collective. Rank 0 is in MPI_Barrier, while rank 1
 * sends it messages that wait for their receipt (MPI_Ssend), and then adds to a number in its
 * memory (MPI_Fetch_and_op). Rank 1 prints one JSON line for each round: microseconds for each of
 * them. drop_in.py --messages runs it with and without the drop-in. */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

enum { kMessages = 200, kRounds = 5, kPauseUs = 20000 };

static double send_all(void) {
  const double start = MPI_Wtime();
  for (int i = 0; i < kMessages; ++i) MPI_Ssend(&i, 1, MPI_INT, 0, i, MPI_COMM_WORLD);
  return MPI_Wtime() - start;
}

static double add_all(MPI_Win window) {
  const double start = MPI_Wtime();
  for (int i = 0; i < kMessages; ++i) {
    const int one = 1;
    int before;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
    MPI_Fetch_and_op(&one, &before, MPI_INT, 0, 0, MPI_SUM, window);
    MPI_Win_unlock(0, window);
  }
  return MPI_Wtime() - start;
}

int main(int argc, char** argv) {
  int rank, ranks, *number, received[kMessages];
  MPI_Request requests[kMessages];
  MPI_Win window;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks < 2) {
    fprintf(stderr, "waiting_rank: it needs 2 ranks\n");
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Win_allocate(sizeof *number, sizeof *number, MPI_INFO_NULL, MPI_COMM_WORLD, &number, &window);
  *number = 0;
  for (int round = 0; round < kRounds; ++round) {
    if (rank == 0) {
      for (int i = 0; i < kMessages; ++i) {
        MPI_Irecv(&received[i], 1, MPI_INT, 1, i, MPI_COMM_WORLD, &requests[i]);
      }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
      usleep(kPauseUs); /* so that rank 0 has waited for long, and sleeps if it ever does */
      const double sent = send_all();
      usleep(kPauseUs);
      const double added = add_all(window);
      printf("{\"ssend_us\": %.3f, \"fetch_and_op_us\": %.3f}\n", 1e6 * sent / kMessages,
             1e6 * added / kMessages);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
      for (int i = 0; i < kMessages; ++i) MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
  }
  MPI_Win_free(&window);
  MPI_Finalize();
  return 0;
}
