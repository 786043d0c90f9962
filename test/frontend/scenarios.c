/* SPDX-License-Identifier: BSD-3-Clause
 *
 * MPI programs of a few lines each, by name: scenarios NAME. Each prints "fine" at rank 0 if what
 * it expects came true; others end as their name says. */
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "scenario.h"

static int sum_of_ranks(MPI_Comm comm) {
  int own, sum = -1;
  MPI_Comm_rank(comm, &own);
  MPI_Allreduce(&own, &sum, 1, MPI_INT, MPI_SUM, comm);
  return sum;
}

/* Rank 1 passes another count: all get an error of a class, with a text, from their handler. */
static void mismatch(void) {
  int in[8] = {0}, out[8];
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  EXPECT(MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS);
  const int code = MPI_Allreduce(in, out, rank == 1 ? 8 : 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  EXPECT(code != MPI_SUCCESS);
  int error_class = 0, length = 0;
  char text[MPI_MAX_ERROR_STRING];
  MPI_Error_class(code, &error_class);
  MPI_Error_string(code, text, &length);
  EXPECT(error_class != MPI_SUCCESS && error_class <= MPI_ERR_LASTCODE);
  EXPECT(strstr(text, "allreduce") != NULL);
}

/* The handler of another communicator than the one that fails is not called. */
static int handled;
static void handle(MPI_Comm* comm, int* code, ...) {
  (void)comm;
  (void)code;
  ++handled;
}
static void handler(void) {
  MPI_Comm comm;
  MPI_Errhandler mine;
  int in[8] = {0}, out[8];
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_create_errhandler(handle, &mine);
  MPI_Comm_set_errhandler(comm, mine);
  EXPECT(MPI_Reduce(in, out, rank == 0 ? 8 : 4, MPI_INT, MPI_SUM, 0, comm) != MPI_SUCCESS ||
         MPI_Barrier(comm) != MPI_SUCCESS);
  EXPECT(handled == 1);
  EXPECT(sum_of_ranks(MPI_COMM_WORLD) == size * (size - 1) / 2);
}

/* MPI's default handler ends the job. */
static void fatal(void) {
  int in[8] = {0}, out[8];
  MPI_Allreduce(in, out, rank == 1 ? 8 : 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
}

/* An invalid argument is reported by the host MPI. */
static void invalid(void) {
  int in[8] = {0}, out[8];
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int error_class = 0;
  MPI_Error_class(MPI_Allreduce(in, out, -1, MPI_INT, MPI_SUM, MPI_COMM_WORLD), &error_class);
  EXPECT(error_class == MPI_ERR_COUNT);
  MPI_Error_class(MPI_Bcast(in, 1, MPI_INT, size, MPI_COMM_WORLD), &error_class);
  EXPECT(error_class == MPI_ERR_ROOT);
  MPI_Error_class(MPI_Allreduce(in, out, 1, MPI_DOUBLE, MPI_BAND, MPI_COMM_WORLD), &error_class);
  EXPECT(error_class == MPI_ERR_OP);
  MPI_Error_class(MPI_Barrier(MPI_COMM_NULL), &error_class);
  EXPECT(error_class == MPI_ERR_COMM);
  EXPECT(sum_of_ranks(MPI_COMM_WORLD) == size * (size - 1) / 2);
}

static void killed(void) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1) raise(SIGKILL);
  MPI_Barrier(MPI_COMM_WORLD);
}

static MPI_Comm of_threads[4];
static void* use(void* index) {
  for (int i = 0; i < 200; ++i)
    EXPECT(sum_of_ranks(of_threads[*(int*)index]) == size * (size - 1) / 2);
  return NULL;
}
/* Each thread uses a communicator of its own; all threads make their first call at once. */
static void threads(void) {
  pthread_t thread[4];
  int index[4];
  for (int i = 0; i < 4; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &of_threads[i]);
  for (int i = 0; i < 4; ++i) {
    index[i] = i;
    pthread_create(&thread[i], NULL, use, &index[i]);
  }
  for (int i = 0; i < 4; ++i) pthread_join(thread[i], NULL);
  for (int i = 0; i < 4; ++i) MPI_Comm_free(&of_threads[i]);
}

static int open_descriptors(void) {
  int count = 0;
  DIR* const folder = opendir("/proc/self/fd");
  while (readdir(folder) != NULL) ++count;
  closedir(folder);
  return count;
}
/* Communicators that come and go leave nothing. */
static void many(void) {
  int before = 0;
  for (int i = 0; i < 300; ++i) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    EXPECT(sum_of_ranks(comm) == size * (size - 1) / 2);
    MPI_Comm_free(&comm);
    if (i == 20) before = open_descriptors();
  }
  EXPECT(open_descriptors() <= before + 8);
}

/* Attributes of the program's own, copied by dup, stay as they are. */
static int deleted;
static int count_deleted(MPI_Comm comm, int key, void* value, void* extra) {
  (void)comm;
  (void)key;
  (void)value;
  (void)extra;
  ++deleted;
  return MPI_SUCCESS;
}
static void attributes(void) {
  int key, flag = 0, number = 7;
  int* value = NULL;
  MPI_Comm comm;
  MPI_Comm_create_keyval(MPI_COMM_DUP_FN, count_deleted, &key, NULL);
  MPI_Comm_set_attr(MPI_COMM_WORLD, key, &number);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  EXPECT(sum_of_ranks(comm) == size * (size - 1) / 2);
  MPI_Comm_get_attr(comm, key, &value, &flag);
  EXPECT(flag && *value == 7);
  MPI_Comm_free(&comm);
  EXPECT(deleted == 1);
  EXPECT(sum_of_ranks(MPI_COMM_WORLD) == size * (size - 1) / 2);
  MPI_Comm_delete_attr(MPI_COMM_WORLD, key);
}

/* An intercommunicator, a cartesian one, and one of a group: the first is the host MPI's. */
static void kinds(void) {
  MPI_Comm half, inter, cart, grouped;
  MPI_Group world, part;
  int dims[1] = {size}, periods[1] = {1}, value = rank, out = -1;
  EXPECT(size > 1);
  MPI_Comm_split(MPI_COMM_WORLD, rank < size / 2, rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank < size / 2 ? size / 2 : 0, 9, &inter);
  MPI_Allreduce(&value, &out, 1, MPI_INT, MPI_MAX, inter);
  EXPECT(out == (rank < size / 2 ? size - 1 : size / 2 - 1));
  MPI_Barrier(inter);
  MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &cart);
  EXPECT(sum_of_ranks(cart) == size * (size - 1) / 2);
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  const int first = 0;
  MPI_Group_excl(world, 1, &first, &part);
  if (rank > 0) {
    MPI_Comm_create_group(MPI_COMM_WORLD, part, 4, &grouped);
    EXPECT(sum_of_ranks(grouped) == (size - 1) * (size - 2) / 2);
    MPI_Comm_free(&grouped);
  }
  MPI_Group_free(&part);
  MPI_Group_free(&world);
  MPI_Comm_free(&cart);
  MPI_Comm_free(&inter);
  MPI_Comm_free(&half);
}

/* MPI allows any address for a buffer. */
static void misaligned(void) {
  char in[8 * 20 + 1], out[8 * 20 + 1];
  for (int i = 0; i < 20; ++i) {
    const double value = rank + i;
    memcpy(in + 1 + 8 * i, &value, 8);
  }
  MPI_Allreduce(in + 1, out + 1, 20, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  memcpy(out, out + 1, 0);
  MPI_Allreduce(MPI_IN_PLACE, in + 1, 20, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < 20; ++i) {
    double value, again;
    memcpy(&value, out + 1 + 8 * i, 8);
    memcpy(&again, in + 1 + 8 * i, 8);
    EXPECT(value == (double)(size * (size - 1) / 2 + size * i) && again == value);
  }
}

/* A type of absolute addresses, at MPI_BOTTOM; a type freed right after the call. */
static void bottom(void) {
  int one = rank == 0 ? 5 : 0, other = rank == 0 ? 6 : 0;
  int lengths[2] = {1, 1};
  MPI_Aint places[2];
  MPI_Datatype type;
  MPI_Get_address(&one, &places[0]);
  MPI_Get_address(&other, &places[1]);
  MPI_Type_create_hindexed(2, lengths, places, MPI_INT, &type);
  MPI_Type_commit(&type);
  MPI_Bcast(MPI_BOTTOM, 1, type, 0, MPI_COMM_WORLD);
  MPI_Type_free(&type);
  EXPECT(one == 5 && other == 6);
}

/* Rank 0 waits in a collective with an unexpected message in its queue. The last rank gets there
 * only after rank 0 has received its long message meanwhile. */
static void unexpected(void) {
  enum { kBytes = 1 << 22 };
  char* const message = calloc(1, kBytes);
  MPI_Request request;
  const int last = size - 1;
  int value = rank;
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == last) {
    MPI_Send(&value, 1, MPI_INT, 0, 7, MPI_COMM_WORLD);
    MPI_Ssend(message, kBytes, MPI_CHAR, 0, 8, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
  } else {
    if (rank == 0) MPI_Irecv(message, kBytes, MPI_CHAR, last, 8, MPI_COMM_WORLD, &request);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      MPI_Recv(&value, 1, MPI_INT, last, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      EXPECT(value == last);
    }
  }
  free(message);
}

/* A process that was spawned without the drop-in: the host MPI does the collectives with it. */
static void spawn(const char* program) {
  MPI_Comm children, all;
  MPI_Info info;
  char* words[] = {"spawned", NULL};
  MPI_Info_create(&info);
  MPI_Comm_spawn(program, words, 1, info, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
  MPI_Info_free(&info);
  MPI_Intercomm_merge(children, 0, &all);
  EXPECT(sum_of_ranks(all) == size * (size + 1) / 2);
  MPI_Barrier(all);
  EXPECT(sum_of_ranks(MPI_COMM_WORLD) == size * (size - 1) / 2);
  MPI_Comm_free(&all);
  MPI_Comm_disconnect(&children);
}

/* The spawned process. */
static void spawned(void) {
  MPI_Comm parents, all;
  MPI_Comm_get_parent(&parents);
  MPI_Intercomm_merge(parents, 1, &all);
  EXPECT(sum_of_ranks(all) > 0);
  MPI_Barrier(all);
  MPI_Comm_free(&all);
  MPI_Comm_disconnect(&parents);
}

static const Scenario all[] = {{"mismatch", mismatch}, {"handler", handler},
                               {"fatal", fatal},       {"invalid", invalid},
                               {"killed", killed},     {"threads", threads},
                               {"many", many},         {"attributes", attributes},
                               {"kinds", kinds},       {"misaligned", misaligned},
                               {"bottom", bottom},     {"unexpected", unexpected},
                               {"spawned", spawned}};

int main(int argc, char** argv) {
  start_scenarios(&argc, &argv);
  if (argc > 1) run_scenario(all, sizeof all / sizeof all[0], argv[1]);
  if (argc > 1 && strcmp(argv[1], "spawn") == 0) spawn(argc > 2 ? argv[2] : argv[0]);
  if (rank == 0 && strcmp(argv[argc - 1], "spawned") != 0) puts("fine");
  MPI_Finalize();
  return 0;
}
