/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions with large counts that a program finds by their names at run time, in calls that
 * Unisono leaves to the MPI: between two groups ("between"), or all ("own", with UNISONO_MPI=off).
 * The MPI may have none. Prints "fine"; "none" if nobody has them. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "scenario.h"

#define FIND(name, parameters) \
  int(*const name) parameters = (int(*) parameters)(intptr_t)dlsym(RTLD_DEFAULT, "MPI_" #name)

/* Where MPI says that an argument means nothing. */
#define NOWHERE ((void*)8)

enum { kMost = 64 };
static MPI_Count ones[kMost];
static MPI_Aint backwards[kMost]; /* the last rank's block first */

static void prepare_lists(int ranks) {
  for (int r = 0; r < ranks; ++r) {
    ones[r] = 1;
    backwards[r] = ranks - 1 - r;
  }
}

static void between(void) {
  FIND(Allreduce_c, (const void*, void*, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm));
  FIND(Bcast_c, (void*, MPI_Count, MPI_Datatype, int, MPI_Comm));
  FIND(Gatherv_c, (const void*, MPI_Count, MPI_Datatype, void*, const MPI_Count*, const MPI_Aint*,
                   MPI_Datatype, int, MPI_Comm));
  FIND(Iallgatherv_c, (const void*, MPI_Count, MPI_Datatype, void*, const MPI_Count*,
                       const MPI_Aint*, MPI_Datatype, MPI_Comm, MPI_Request*));
  const int upper = rank >= (size + 1) / 2, others = upper ? (size + 1) / 2 : size / 2;
  const int first = upper ? 0 : (size + 1) / 2; /* of the others, in the world */
  MPI_Comm half, both;
  MPI_Comm_split(MPI_COMM_WORLD, upper, 0, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, first, 0, &both);
  prepare_lists(others);
  int sum = -1, all[kMost], expected = 0;
  for (int r = 0; r < others; ++r) expected += first + r;
  EXPECT(Allreduce_c(&rank, &sum, 1, MPI_INT, MPI_SUM, both) == MPI_SUCCESS);
  EXPECT(sum == expected);
  int half_rank = 0;
  MPI_Comm_rank(half, &half_rank);
  int word = upper ? -1 : 7;
  const int root = upper ? 0 : half_rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
  EXPECT(Bcast_c(&word, 1, MPI_INT, root, both) == MPI_SUCCESS);
  EXPECT(word == 7);
  const int is_root = root == MPI_ROOT;
  EXPECT(Gatherv_c(&rank, 1, MPI_INT, all, is_root ? ones : NOWHERE, is_root ? backwards : NOWHERE,
                   MPI_INT, root, both) == MPI_SUCCESS);
  for (int r = 0; is_root && r < others; ++r) EXPECT(all[others - 1 - r] == first + r);
  MPI_Request request;
  memset(all, 0, sizeof all);
  EXPECT(Iallgatherv_c(&rank, 1, MPI_INT, all, ones, backwards, MPI_INT, both, &request) ==
         MPI_SUCCESS);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (int r = 0; r < others; ++r) EXPECT(all[others - 1 - r] == first + r);
#if MPI_VERSION < 4
  EXPECT(Bcast_c(&word, (MPI_Count)1 << 31, MPI_INT, root, both) != MPI_SUCCESS);
#endif
  MPI_Comm_free(&both);
  MPI_Comm_free(&half);
}

static void own(void) {
  FIND(Alltoallv_c, (const void*, const MPI_Count*, const MPI_Aint*, MPI_Datatype, void*,
                     const MPI_Count*, const MPI_Aint*, MPI_Datatype, MPI_Comm));
  FIND(Alltoallw_c, (const void*, const MPI_Count*, const MPI_Aint*, const MPI_Datatype*, void*,
                     const MPI_Count*, const MPI_Aint*, const MPI_Datatype*, MPI_Comm));
  FIND(Iscatterv_c, (const void*, const MPI_Count*, const MPI_Aint*, MPI_Datatype, void*, MPI_Count,
                     MPI_Datatype, int, MPI_Comm, MPI_Request*));
  FIND(Reduce_scatter_c, (const void*, void*, const MPI_Count*, MPI_Datatype, MPI_Op, MPI_Comm));
  int many[kMost], taken = -1;
  MPI_Aint bytes[kMost];
  MPI_Datatype types[kMost];
  prepare_lists(size);
  for (int r = 0; r < size; ++r) {
    many[r] = 10 * rank + r;
    bytes[r] = r * (MPI_Aint)sizeof(int);
    types[r] = MPI_INT;
  }
  EXPECT(Reduce_scatter_c(many, &taken, ones, MPI_INT, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS);
  EXPECT(taken == 10 * size * (size - 1) / 2 + size * rank);
  const int is_root = rank == size - 1;
  MPI_Request request;
  EXPECT(Iscatterv_c(many, is_root ? ones : NOWHERE, is_root ? backwards : NOWHERE, MPI_INT, &taken,
                     1, MPI_INT, size - 1, MPI_COMM_WORLD, &request) == MPI_SUCCESS);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  EXPECT(taken == 10 * (size - 1) + size - 1 - rank);
  EXPECT(Alltoallv_c(MPI_IN_PLACE, NOWHERE, NOWHERE, MPI_INT, many, ones, backwards, MPI_INT,
                     MPI_COMM_WORLD) == MPI_SUCCESS);
  EXPECT(Alltoallw_c(MPI_IN_PLACE, NOWHERE, NOWHERE, NOWHERE, many, ones, bytes, types,
                     MPI_COMM_WORLD) == MPI_SUCCESS);
  for (int r = 0; r < size; ++r) {
    EXPECT(many[r] == 10 * (size - 1 - rank) + size - 1 - r);
  }
}

/* Those of MPI 4.1 that ask for several requests and free none. */
static void statuses(void) {
  FIND(Request_get_status_all, (int, const MPI_Request*, int*, MPI_Status*));
  FIND(Request_get_status_any, (int, const MPI_Request*, int*, int*, MPI_Status*));
  FIND(Request_get_status_some, (int, const MPI_Request*, int*, int*, MPI_Status*));
  EXPECT(Request_get_status_all && Request_get_status_any && Request_get_status_some);
  int sum = 0, value[2] = {0, 0}, flag = 7, index = 7, done = 7, indices[4], bytes = 0;
  MPI_Request requests[4] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL,
                             MPI_REQUEST_NULL};
  MPI_Status status[4];
  status[0].MPI_ERROR = MPI_ERR_OTHER;
  EXPECT(Request_get_status_any(2, requests, &index, &flag, &status[0]) == MPI_SUCCESS);
  EXPECT(flag && index == MPI_UNDEFINED && status[0].MPI_TAG == MPI_ANY_TAG);
  static char version[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(version, &length); /* Intel MPI's own function leaves it as it was. */
  EXPECT(status[0].MPI_ERROR == MPI_SUCCESS || strstr(version, "Intel") != NULL);
  EXPECT(Request_get_status_some(2, requests, &done, indices, status) == MPI_SUCCESS);
  EXPECT(done == MPI_UNDEFINED);
  MPI_Irecv(value, 2, MPI_INT, rank, 9, MPI_COMM_WORLD, &requests[1]);
  EXPECT(Request_get_status_all(4, requests, &flag, status) == MPI_SUCCESS && !flag);
  EXPECT(Request_get_status_any(4, requests, &index, &flag, status) == MPI_SUCCESS && !flag);
  EXPECT(Request_get_status_some(4, requests, &done, indices, status) == MPI_SUCCESS && done == 0);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Iallreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[3]);
  for (flag = 0; !flag;) {
    EXPECT(Request_get_status_any(4, requests, &index, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  }
  EXPECT(index == 3 && sum == size * (size - 1) / 2);
  MPI_Send(&rank, 1, MPI_INT, rank, 9, MPI_COMM_WORLD);
  for (flag = 0; !flag;) {
    EXPECT(Request_get_status_all(4, requests, &flag, status) == MPI_SUCCESS);
  }
  MPI_Get_count(&status[1], MPI_INT, &bytes);
  EXPECT(bytes == 1 && status[1].MPI_SOURCE == rank && status[1].MPI_TAG == 9);
  EXPECT(Request_get_status_some(4, requests, &done, indices, status) == MPI_SUCCESS);
  EXPECT(done == 2 && indices[0] == 1 && indices[1] == 3 && status[0].MPI_TAG == 9);
  EXPECT(value[0] == rank);
  MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
}

/* Persistent collectives of neighbours, which the MPI does, beside one of Unisono. */
static void neighbours(void) {
  FIND(Neighbor_allgather_init_c, (const void*, MPI_Count, MPI_Datatype, void*, MPI_Count,
                                   MPI_Datatype, MPI_Comm, MPI_Info, MPI_Request*));
  FIND(Neighbor_allgatherv_init_c,
       (const void*, MPI_Count, MPI_Datatype, void*, const MPI_Count*, const MPI_Aint*,
        MPI_Datatype, MPI_Comm, MPI_Info, MPI_Request*));
  FIND(Neighbor_alltoall_init_c, (const void*, MPI_Count, MPI_Datatype, void*, MPI_Count,
                                  MPI_Datatype, MPI_Comm, MPI_Info, MPI_Request*));
  FIND(Neighbor_alltoallv_init_c,
       (const void*, const MPI_Count*, const MPI_Aint*, MPI_Datatype, void*, const MPI_Count*,
        const MPI_Aint*, MPI_Datatype, MPI_Comm, MPI_Info, MPI_Request*));
  FIND(Neighbor_alltoallw_init_c,
       (const void*, const MPI_Count*, const MPI_Aint*, const MPI_Datatype*, void*,
        const MPI_Count*, const MPI_Aint*, const MPI_Datatype*, MPI_Comm, MPI_Info, MPI_Request*));
  FIND(Allreduce_init,
       (const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Info, MPI_Request*));
  enum { kCalls = 6 };
  const int periodic = 1, left = (rank + size - 1) % size, right = (rank + 1) % size;
  const int sources = rank == 0 ? 0 : 1, targets = rank == 0 ? size - 1 : 0, root = 0;
  MPI_Comm ring, star; /* in the star rank 0 sends to each other one */
  MPI_Request requests[kCalls];
  MPI_Datatype types[2] = {MPI_INT, MPI_INT};
  MPI_Aint bytes[2] = {sizeof(int), 0};
  int own[2], received[4][2], others[kMost], many[kMost], sum = -1, of_root = -1;
  for (int r = 0; r < size; ++r) others[r] = r + 1;
  MPI_Count one_each[kMost];
  MPI_Aint in_order[kMost];
  for (int r = 0; r < kMost; ++r) {
    one_each[r] = 1;
    in_order[r] = r;
  }
  MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &ring);
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, sources, &root, MPI_UNWEIGHTED, targets, others,
                                 MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &star);
  prepare_lists(2);
  int codes[kCalls], made = 0;
  codes[made++] = Neighbor_allgather_init_c(own, 1, MPI_INT, received[0], 1, MPI_INT, ring,
                                            MPI_INFO_NULL, &requests[0]);
  codes[made++] = Neighbor_allgatherv_init_c(own, 1, MPI_INT, received[1], ones, backwards, MPI_INT,
                                             ring, MPI_INFO_NULL, &requests[1]);
  codes[made++] = Neighbor_alltoall_init_c(own, 1, MPI_INT, received[2], 1, MPI_INT, ring,
                                           MPI_INFO_NULL, &requests[2]);
  codes[made++] = Neighbor_alltoallw_init_c(own, ones, bytes, types, received[3], ones, bytes,
                                            types, ring, MPI_INFO_NULL, &requests[3]);
  codes[made++] = Neighbor_alltoallv_init_c(many, one_each, in_order, MPI_INT, &of_root, one_each,
                                            in_order, MPI_INT, star, MPI_INFO_NULL, &requests[4]);
  codes[made++] =
      Allreduce_init(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[5]);
  for (int i = 0; i < kCalls; ++i) EXPECT(codes[i] == MPI_SUCCESS);
  for (int round = 0; round < 6; ++round) {
    int done = 0;
    own[0] = rank + round;
    own[1] = rank + 100 + round;
    for (int r = 0; r < size; ++r) many[r] = 1000 * r + round;
    sum = of_root = -1;
    MPI_Startall(kCalls, requests);
    if (round % 2 == 0) {
      MPI_Waitall(kCalls, requests, MPI_STATUSES_IGNORE);
    } else {
      while (!done) MPI_Testall(kCalls, requests, &done, MPI_STATUSES_IGNORE);
    }
    EXPECT(received[0][0] == left + round && received[0][1] == right + round);
    EXPECT(received[1][1] == left + round && received[1][0] == right + round);
    EXPECT(sum == size * (size - 1) / 2);
    EXPECT(of_root == (rank == 0 ? -1 : 1000 * (rank - 1) + round));
    if (size == 2) continue; /* where MPIs pair the two directions in their own ways */
    EXPECT(received[2][0] == left + 100 + round && received[2][1] == right + round);
    EXPECT(received[3][1] == left + round && received[3][0] == right + 100 + round);
  }
  for (int i = 0; i < kCalls; ++i) MPI_Request_free(&requests[i]);
  MPI_Comm_free(&ring);
  MPI_Comm_free(&star);
}

/* Tells which there are of those that need more of the MPI than its collectives. */
static void names(void) {
  static const char* const all[] = {"MPI_Comm_dup",
                                    "MPI_Session_init",
                                    "MPI_Session_finalize",
                                    "MPI_Comm_create_from_group",
                                    "MPI_Group_from_session_pset",
                                    "MPI_Neighbor_allgather_c",
                                    "MPI_Neighbor_alltoall_c",
                                    "MPI_Psend_init",
                                    "MPI_Isendrecv"};
  for (size_t i = 0; rank == 0 && i < sizeof all / sizeof all[0]; ++i) {
    if (dlsym(RTLD_DEFAULT, all[i]) != NULL) printf("has %s\n", all[i]);
  }
}

int main(int argc, char** argv) {
  static const Scenario all[] = {{"between", between},
                                 {"own", own},
                                 {"neighbours", neighbours},
                                 {"statuses", statuses},
                                 {"names", names}};
  start_scenarios(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const int are_there = dlsym(RTLD_DEFAULT, "MPI_Allreduce_c") != NULL;
  if (!are_there && strcmp(argv[1], "names") != 0) {
    if (rank == 0) puts("none");
  } else {
    run_scenario(all, sizeof all / sizeof all[0], argv[1]);
    if (rank == 0) puts("fine");
  }
  MPI_Finalize();
  return 0;
}
