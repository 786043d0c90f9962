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

/* A stopped rank counts as lost, and no mpirun ends the other ranks for it. */
static void stopped(void) {
  int pids[16], own = (int)getpid(), error_class = 0;
  MPI_Comm made;
  MPI_Comm_dup(MPI_COMM_WORLD, &made);
  MPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN);
  EXPECT(size <= 16);
  MPI_Allgather(&own, 1, MPI_INT, pids, 1, MPI_INT, made);
  if (rank == 1) raise(SIGSTOP);
  const int code = MPI_Barrier(made);
  if (rank == 1) return; /* once the others know, which have all arrived */
  EXPECT(code != MPI_SUCCESS);
  MPI_Error_class(code, &error_class);
#if defined(MPI_ERR_PROC_FAILED)
  EXPECT(error_class == MPI_ERR_PROC_FAILED);
#elif defined(MPIX_ERR_PROC_FAILED)
  EXPECT(error_class == MPIX_ERR_PROC_FAILED);
#else
  EXPECT(error_class == MPI_ERR_OTHER);
#endif
  /* The last one lets it go on. */
  int token = 0;
  const int before = rank == 2 ? 0 : rank - 1, after = rank == 0 ? 2 : rank + 1;
  if (rank > 0) MPI_Recv(&token, 1, MPI_INT, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (after < size) MPI_Send(&token, 1, MPI_INT, after, 0, MPI_COMM_WORLD);
  if (after >= size) kill(pids[1], SIGCONT);
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
/* Shared memory of this process that is in use, in KiB. */
static long shared_memory(void) {
  char line[256];
  long found = -1;
  FILE* const file = fopen("/proc/self/status", "r");
  while (fgets(line, sizeof line, file) != NULL) {
    if (strncmp(line, "RssShmem:", 9) == 0) found = strtol(line + 9, NULL, 10);
  }
  fclose(file);
  return found;
}
/* Communicators that come and go leave nothing: duplicates, halves, those of a group. */
static void many(void) {
  enum { kMany = 600, kFirst = 60 };
  int descriptors = 0;
  long memory = 0;
  MPI_Group world, part;
  const int last = size - 1;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_excl(world, 1, &last, &part);
  for (int i = 0; i < kMany; ++i) {
    MPI_Comm comm = MPI_COMM_NULL;
    if (i % 3 == 0) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    if (i % 3 == 1) MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &comm);
    if (i % 3 == 2 && rank != last) MPI_Comm_create_group(MPI_COMM_WORLD, part, i, &comm);
    if (comm != MPI_COMM_NULL) {
      const int members = i % 3 == 0 ? size : i % 3 == 1 ? (size + 1 - rank % 2) / 2 : size - 1;
      const int sum = i % 3 == 0   ? size * (size - 1) / 2
                      : i % 3 == 1 ? members * (members - 1) / 2
                                   : (size - 1) * (size - 2) / 2;
      EXPECT(sum_of_ranks(comm) == sum);
      MPI_Comm_free(&comm);
    }
    if (i == kFirst) descriptors = open_descriptors(), memory = shared_memory();
  }
  MPI_Group_free(&part);
  MPI_Group_free(&world);
  EXPECT(open_descriptors() <= descriptors + 8);
  EXPECT(memory > 0 && shared_memory() <= memory + 8 * 1024);
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

/* Types on which Unisono lets the MPI reduce. */
static void wide_types(void) {
  struct Located {
    long double value;
    int place;
  } own = {rank % 3, rank}, most = {-1, -1};
  const long double in[2] = {rank + 0.5L, -rank};
  long double out[2] = {0, 0}, before[2] = {0, 0};
  MPI_Request request;
  for (int round = 0; round < 3; ++round) {
    MPI_Allreduce(in, out, 2, MPI_LONG_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    EXPECT(out[0] == size * (size - 1) / 2 + size * 0.5L && out[1] == -size * (size - 1) / 2);
    MPI_Exscan(in, before, 2, MPI_LONG_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    EXPECT(rank == 0 || (before[0] == rank - 0.5L && before[1] == 0));
    MPI_Allreduce(&own, &most, 1, MPI_LONG_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD);
    EXPECT(most.value == (size > 2 ? 2 : size - 1) && most.place == (size > 2 ? 2 : size - 1));
    MPI_Iallreduce(in, out, 2, MPI_LONG_DOUBLE, MPI_MIN, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    EXPECT(out[0] == 0.5L && out[1] == 1 - size);
  }
}

/* Elements that lie backwards, in a type and from one element to the next. */
static void backwards(void) {
  enum { kCount = 6 };
  int* const in = malloc((size_t)(kCount * size) * sizeof(int));
  int* const out = malloc((size_t)(kCount * size) * sizeof(int));
  const int sent = kCount * size;
  MPI_Datatype down, back;
  MPI_Type_create_hvector(kCount, 1, -(MPI_Aint)sizeof(int), MPI_INT, &down);
  MPI_Type_commit(&down);
  MPI_Type_create_resized(MPI_INT, 0, -(MPI_Aint)sizeof(int), &back);
  MPI_Type_commit(&back);
  for (int i = 0; i < sent; ++i) in[i] = 1000 * rank + i, out[i] = -1;
  MPI_Bcast(rank == 0 ? in : out + kCount - 1, rank == 0 ? kCount : 1, rank == 0 ? MPI_INT : down,
            0, MPI_COMM_WORLD);
  for (int i = 0; i < kCount && rank > 0; ++i) EXPECT(out[i] == kCount - 1 - i);
  for (int i = 0; i < sent; ++i) out[i] = -1;
  MPI_Allgather(in, kCount, MPI_INT, out + sent - 1, kCount, back, MPI_COMM_WORLD);
  for (int i = 0; i < sent; ++i) {
    EXPECT(out[sent - 1 - i] == 1000 * (i / kCount) + i % kCount);
  }
  for (int i = 0; i < sent; ++i) out[i] = -1;
  MPI_Alltoall(in + sent - 1, kCount, back, out, kCount, MPI_INT, MPI_COMM_WORLD);
  for (int i = 0; i < sent; ++i) {
    EXPECT(out[i] == 1000 * (i / kCount) + sent - 1 - kCount * rank - i % kCount);
  }
  MPI_Type_free(&down);
  MPI_Type_free(&back);
  free(in);
  free(out);
}

/* Rank 1's call differs in one respect. All ranks get an error of their handler, at the latest in
 * the next call; none waits. */
static void differ(void) {
  MPI_Errhandler mine;
  MPI_Comm_create_errhandler(handle, &mine);
  EXPECT(sum_of_ranks(MPI_COMM_WORLD) == size * (size - 1) / 2);
  const int odd = rank == 1;
  for (int which = 0; which < 8; ++which) {
    long double in[8] = {0}, out[8 * 16];
    MPI_Comm comm;
    int code = MPI_SUCCESS;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, mine);
    handled = 0;
    if (which == 0) {
      code = MPI_Allreduce(in, out, 4, odd ? MPI_FLOAT : MPI_INT, MPI_SUM, comm);
    } else if (which == 1) {
      code = MPI_Allreduce(in, out, 4, MPI_INT, odd ? MPI_MAX : MPI_SUM, comm);
    } else if (which == 2) {
      code = MPI_Allreduce(in, out, 4, odd ? MPI_LONG_DOUBLE : MPI_DOUBLE, MPI_SUM, comm);
    } else if (which == 3) {
      code = MPI_Bcast(in, 4, MPI_INT, odd ? 1 : 0, comm);
    } else if (which == 4) {
      code = odd ? MPI_Barrier(comm) : MPI_Allreduce(in, out, 4, MPI_INT, MPI_SUM, comm);
    } else if (which == 5) {
      code = MPI_Allgather(in, odd ? 3 : 4, MPI_INT, out, odd ? 3 : 4, MPI_INT, comm);
    } else if (which == 6) {
      code = MPI_Alltoall(in, odd ? 2 : 1, MPI_INT, out, odd ? 2 : 1, MPI_INT, comm);
    } else {
      MPI_Request request = MPI_REQUEST_NULL;
      EXPECT(MPI_Barrier(comm) == MPI_SUCCESS);
      code = MPI_Iallreduce(in, out, 4, MPI_INT, odd ? MPI_MAX : MPI_SUM, comm, &request);
      if (code == MPI_SUCCESS) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    if (code == MPI_SUCCESS) code = MPI_Barrier(comm);
    int error_class = 0;
    MPI_Error_class(code, &error_class);
    EXPECT(error_class != MPI_SUCCESS && error_class <= MPI_ERR_LASTCODE);
    EXPECT(handled == 1);
    MPI_Comm_free(&comm);
  }
  MPI_Errhandler_free(&mine);
  EXPECT(sum_of_ranks(MPI_COMM_WORLD) == size * (size - 1) / 2);
}

/* MPI_COMM_SELF, and an intercommunicator with MPI_ROOT and MPI_PROC_NULL. */
static void corners(void) {
  int value = 5, out = -1, word = rank == 0 ? 41 : -1;
  MPI_Comm half, inter;
  MPI_Request request;
  EXPECT(sum_of_ranks(MPI_COMM_SELF) == 0);
  MPI_Iallreduce(&value, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  EXPECT(out == 5);
  const int low = rank < size / 2;
  MPI_Comm_split(MPI_COMM_WORLD, low, rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, low ? size / 2 : 0, 9, &inter);
  MPI_Bcast(&word, 1, MPI_INT, low ? (rank == 0 ? MPI_ROOT : MPI_PROC_NULL) : 0, inter);
  EXPECT(low ? word == (rank == 0 ? 41 : -1) : word == 41);
  MPI_Ibarrier(inter, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Comm_free(&inter);
  MPI_Comm_free(&half);
}

/* MPI_Finalize deletes the attributes of MPI_COMM_SELF first, and their functions may communicate.
 */
static int deleted_at_end(MPI_Comm comm, int key, void* value, void* extra) {
  (void)comm;
  (void)key;
  (void)value;
  (void)extra;
  EXPECT(sum_of_ranks(MPI_COMM_WORLD) == size * (size - 1) / 2);
  return MPI_SUCCESS;
}
static void at_end(void) {
  int key;
  EXPECT(sum_of_ranks(MPI_COMM_WORLD) == size * (size - 1) / 2);
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, deleted_at_end, &key, NULL);
  MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
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

/* Rank r gives or gets 10 * (r + 1) elements; in alltoallv and alltoallw rank r sends r + 2 * s + 1
 * to rank s. No rank knows the counts of all others. */
static void local_counts(void) {
  enum { kMost = 8, kBlock = 100 };
  int in[kMost * kBlock], out[kMost * kBlock], counts[kMost], places[kMost], to[kMost], from[kMost];
  int bytes[kMost];
  MPI_Datatype types[kMost];
  EXPECT(size <= kMost);
  for (int r = 0; r < size; ++r) {
    counts[r] = 10 * (r + 1);
    places[r] = r * kBlock;
    to[r] = rank + 2 * r + 1;
    from[r] = r + 2 * rank + 1;
    bytes[r] = places[r] * (int)sizeof(int);
    types[r] = MPI_INT;
    for (int i = 0; i < kBlock; ++i) in[r * kBlock + i] = 1000 * rank + 100 * r + i;
  }
  MPI_Gatherv(in, counts[rank], MPI_INT, out, counts, places, MPI_INT, 0, MPI_COMM_WORLD);
  for (int r = 0; rank == 0 && r < size; ++r)
    EXPECT(out[places[r] + counts[r] - 1] == 1000 * r + counts[r] - 1);
  MPI_Scatterv(in, counts, places, MPI_INT, out, counts[rank], MPI_INT, 0, MPI_COMM_WORLD);
  EXPECT(out[counts[rank] - 1] == 100 * rank + counts[rank] - 1);
  for (int call = 0; call < 2; ++call) {
    memset(out, 0, sizeof out);
    if (call == 0) {
      MPI_Alltoallv(in, to, places, MPI_INT, out, from, places, MPI_INT, MPI_COMM_WORLD);
    } else {
      MPI_Alltoallw(in, to, bytes, types, out, from, bytes, types, MPI_COMM_WORLD);
    }
    for (int r = 0; r < size; ++r) {
      EXPECT(out[places[r] + from[r] - 1] == 1000 * r + 100 * rank + from[r] - 1);
      EXPECT(out[places[r] + from[r]] == 0);
    }
  }
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

static const Scenario all[] = {{"mismatch", mismatch},     {"handler", handler},
                               {"fatal", fatal},           {"invalid", invalid},
                               {"killed", killed},         {"stopped", stopped},
                               {"threads", threads},       {"many", many},
                               {"attributes", attributes}, {"kinds", kinds},
                               {"misaligned", misaligned}, {"bottom", bottom},
                               {"unexpected", unexpected}, {"spawned", spawned},
                               {"wide_types", wide_types}, {"backwards", backwards},
                               {"differ", differ},         {"corners", corners},
                               {"at_end", at_end},         {"local_counts", local_counts}};

int main(int argc, char** argv) {
  if (argc > 1 && strcmp(argv[1], "too_early") == 0) return MPI_Barrier(MPI_COMM_WORLD);
  start_scenarios(&argc, &argv);
  if (argc > 1) run_scenario(all, sizeof all / sizeof all[0], argv[1]);
  if (argc > 1 && strcmp(argv[1], "spawn") == 0) spawn(argc > 2 ? argv[2] : argv[0]);
  if (rank == 0 && strcmp(argv[argc - 1], "spawned") != 0) puts("fine");
  MPI_Finalize();
  if (argc > 1 && strcmp(argv[1], "too_late") == 0) return MPI_Barrier(MPI_COMM_WORLD);
  return 0;
}
