/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Nonblocking collectives in programs of a few lines each, by name: nonblocking NAME. */
#include <dirent.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "scenario.h"

static int sum_over_ranks(int a, int b) { /* of a * r + b */
  return a * size * (size - 1) / 2 + b * size;
}

/* Collectives on two communicators and messages, which complete in any order. */
static void overlap(void) {
  enum { kRounds = 100, kCalls = 6 };
  MPI_Comm comms[2] = {MPI_COMM_WORLD, MPI_COMM_NULL};
  MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
  int* const gathered = malloc((size_t)size * sizeof(int));
  for (int c = 0; c < 2; ++c) MPI_Barrier(comms[c]);
  for (int round = 0; round < kRounds; ++round) {
    MPI_Request requests[kCalls + 2];
    const int to = (rank + 1) % size, from = (rank + size - 1) % size;
    int sent = rank * 3 + round, received = -1, own = rank + round, sum = -1, least = -1;
    int word = rank == round % size ? round : -1, before = -1;
    MPI_Irecv(&received, 1, MPI_INT, from, round, comms[0], &requests[0]);
    MPI_Iallreduce(&own, &sum, 1, MPI_INT, MPI_SUM, comms[0], &requests[1]);
    MPI_Ibcast(&word, 1, MPI_INT, round % size, comms[1], &requests[2]);
    MPI_Iallgather(&own, 1, MPI_INT, gathered, 1, MPI_INT, comms[0], &requests[3]);
    MPI_Isend(&sent, 1, MPI_INT, to, round, comms[0], &requests[4]);
    MPI_Ireduce(&own, &least, 1, MPI_INT, MPI_MIN, 0, comms[1], &requests[5]);
    MPI_Iexscan(&own, &before, 1, MPI_INT, MPI_SUM, comms[1], &requests[6]);
    MPI_Ibarrier(comms[0], &requests[7]);
    for (int left = kCalls + 2; left > 0; --left) {
      int index = -1;
      if ((round + rank + left) % 3 == 0) {
        for (int i = 0; i < kCalls + 2; ++i) {
          if (requests[(i + rank) % (kCalls + 2)] != MPI_REQUEST_NULL)
            index = (i + rank) % (kCalls + 2);
        }
        MPI_Wait(&requests[index], MPI_STATUS_IGNORE);
      } else {
        MPI_Waitany(kCalls + 2, requests, &index, MPI_STATUS_IGNORE);
      }
      EXPECT(index != MPI_UNDEFINED && requests[index] == MPI_REQUEST_NULL);
    }
    EXPECT(received == from * 3 + round && sum == sum_over_ranks(1, round) && word == round);
    EXPECT(rank != 0 || least == round);
    EXPECT(rank == 0 || before == rank * (rank - 1) / 2 + rank * round);
    for (int r = 0; r < size; ++r) EXPECT(gathered[r] == r + round);
  }
  free(gathered);
  MPI_Comm_free(&comms[1]);
}

/* Messages and collectives of two communicators in one array, completed at random. */
static void mixed(void) {
  enum { kRounds = 300, kMost = 12 };
  MPI_Comm comms[2] = {MPI_COMM_WORLD, MPI_COMM_NULL};
  unsigned state = 12345; /* the same at all ranks */
  MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
  for (int c = 0; c < 2; ++c) MPI_Barrier(comms[c]);
  const int to = (rank + 1) % size, from = (rank + size - 1) % size;
  for (int round = 0; round < kRounds; ++round) {
    MPI_Request requests[kMost];
    int in[kMost], out[kMost], kinds[kMost], count = 0;
    while (count < kMost) {
      state = state * 1664525U + 1013904223U;
      const int kind = (int)(state >> 24) % 5;
      const MPI_Comm comm = comms[(state >> 20) & 1];
      if (kind >= 4 && count + 2 > kMost) break;
      in[count] = rank * 3 + round + count;
      out[count] = -1;
      kinds[count] = kind;
      if (kind == 0) {
        MPI_Iallreduce(&in[count], &out[count], 1, MPI_INT, MPI_SUM, comm, &requests[count]);
      } else if (kind == 1) {
        out[count] = rank == round % size ? in[count] : -1;
        MPI_Ibcast(&out[count], 1, MPI_INT, round % size, comm, &requests[count]);
      } else if (kind == 2) {
        MPI_Iscan(&in[count], &out[count], 1, MPI_INT, MPI_MAX, comm, &requests[count]);
      } else if (kind == 3) {
        MPI_Ibarrier(comm, &requests[count]);
      } else {
        MPI_Irecv(&out[count], 1, MPI_INT, from, count, comm, &requests[count]);
        kinds[count + 1] = -1;
        MPI_Isend(&in[count], 1, MPI_INT, to, count, comm, &requests[count + 1]);
        ++count;
      }
      ++count;
    }
    complete_all(count, requests, round);
    for (int i = 0; i < count; ++i) {
      EXPECT(requests[i] == MPI_REQUEST_NULL);
      if (kinds[i] == 0) EXPECT(out[i] == sum_over_ranks(3, round + i));
      if (kinds[i] == 1) EXPECT(out[i] == round % size * 3 + round + i);
      if (kinds[i] == 2) EXPECT(out[i] == in[i]);
      if (kinds[i] == 4) EXPECT(out[i] == from * 3 + round + i);
    }
  }
  MPI_Comm_free(&comms[1]);
}

/* A rank that is blocked in a receive holds up nobody who needs it for a collective. */
static void blocked(void) {
  enum { kCount = 20000 };
  double* const in = malloc(kCount * sizeof *in);
  double* const out = malloc(kCount * sizeof *out);
  int word = 0;
  MPI_Request request;
  MPI_Barrier(MPI_COMM_WORLD);
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < kCount; ++i) in[i] = rank + i + round;
    MPI_Iallreduce(in, out, kCount, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
    if (rank == size - 1) {
      MPI_Recv(&word, 1, MPI_INT, 0, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      if (rank == 0) MPI_Send(&word, 1, MPI_INT, size - 1, round, MPI_COMM_WORLD);
    }
    for (int i = 0; i < kCount; ++i) EXPECT(out[i] == sum_over_ranks(1, i + round));
  }
  free(in);
  free(out);
}

static int threads_of_process(void) {
  int count = 0;
  DIR* const folder = opendir("/proc/self/task");
  EXPECT(folder != NULL);
  while (readdir(folder) != NULL) ++count;
  closedir(folder);
  return count;
}

/* An MPI that calls the drop-in while it waits needs no thread: a rank that is blocked in a receive
 * holds up nobody. */
static void no_thread(void) {
  MPI_Barrier(MPI_COMM_WORLD);
  const int before = threads_of_process();
  blocked();
  EXPECT(threads_of_process() == before);
}

/* A first collective that is nonblocking waits for nobody. */
static void first(void) {
  MPI_Comm comm;
  MPI_Request request;
  int word = 0;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  if (rank > 0) MPI_Recv(&word, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Ibarrier(comm, &request);
  for (int to = 1; rank == 0 && to < size; ++to) {
    MPI_Send(&word, 1, MPI_INT, to, 1, MPI_COMM_WORLD);
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Comm_free(&comm);
}

/* The program frees the type and the communicator while the collective goes on. */
static void freed(void) {
  for (int round = 0; round < 20; ++round) {
    MPI_Comm comm;
    MPI_Datatype gapped, two;
    MPI_Request request;
    int in[4] = {rank, -1, rank + 100, -1};
    int* const out = malloc((size_t)size * sizeof in);
    memset(out, 0x55, (size_t)size * sizeof in);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Type_vector(1, 1, 2, MPI_INT, &two);
    MPI_Type_create_resized(two, 0, 2 * sizeof(int), &gapped);
    MPI_Type_commit(&gapped);
    MPI_Barrier(comm);
    MPI_Iallgather(in, 2, gapped, out, 2, gapped, comm, &request);
    MPI_Type_free(&gapped);
    MPI_Type_free(&two);
    MPI_Comm_free(&comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int r = 0; r < size; ++r) {
      EXPECT(out[4 * r] == r && out[4 * r + 2] == r + 100);
      EXPECT(out[4 * r + 1] == 0x55555555 && out[4 * r + 3] == 0x55555555);
    }
    free(out);
  }
}

/* Blocking calls on the communicator while requests are open, and very many requests. */
static void between(void) {
  enum { kMany = 1000 };
  static int in[kMany], out[kMany];
  static MPI_Request requests[kMany];
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < kMany; ++i) {
    in[i] = rank + i;
    MPI_Iallreduce(&in[i], &out[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[i]);
    if (i % 100 == 50) {
      int sum = 0;
      MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
      EXPECT(sum == sum_over_ranks(1, 0));
    }
  }
  MPI_Waitall(kMany, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < kMany; ++i) EXPECT(out[i] == sum_over_ranks(1, i));
}

/* A request has an empty status, and is MPI_REQUEST_NULL at the end. */
static void status(void) {
  int in = rank, out = -1, flag = 0, count = -1, left = 3;
  MPI_Status told;
  MPI_Request request, several[3];
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Iscan(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
  while (!flag) MPI_Request_get_status(request, &flag, &told);
  EXPECT(out == rank * (rank + 1) / 2);
  MPI_Wait(&request, &told);
  EXPECT(request == MPI_REQUEST_NULL);
  MPI_Get_count(&told, MPI_BYTE, &count);
  EXPECT(count == 0);
  MPI_Test_cancelled(&told, &flag);
  EXPECT(!flag);
  for (int i = 0; i < 3; ++i) MPI_Ibarrier(MPI_COMM_WORLD, &several[i]);
  while (left > 0) {
    int indices[3], done = 0;
    MPI_Testsome(3, several, &done, indices, MPI_STATUSES_IGNORE);
    if (done != MPI_UNDEFINED) left -= done;
  }
  for (int i = 0; i < 3; ++i) EXPECT(several[i] == MPI_REQUEST_NULL);
}

/* Rank 1 passes another count: the error comes with the start or with the wait. */
static void mismatch(void) {
  int in[8] = {0}, out[8];
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  EXPECT(MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS);
  int code = MPI_Iallreduce(in, out, rank == 1 ? 8 : 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
  if (code == MPI_SUCCESS) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
  EXPECT(code != MPI_SUCCESS);
  int error_class = 0, length = 0;
  char text[MPI_MAX_ERROR_STRING];
  MPI_Error_class(code, &error_class);
  MPI_Error_string(code, text, &length);
  EXPECT(error_class != MPI_SUCCESS && error_class <= MPI_ERR_LASTCODE);
  EXPECT(strstr(text, "allreduce") != NULL);
}

/* The same among other requests: MPI_Waitall names the one that has failed. The communicator's
 * error handler is called, and not that of MPI_COMM_WORLD, which would end the job. */
static int handled;
static void handle(MPI_Comm* comm, int* code, ...) {
  (void)comm;
  (void)code;
  ++handled;
}
static void in_status(void) {
  int in[8] = {0}, out[8], sent = rank, received = -1;
  const int to = (rank + 1) % size, from = (rank + size - 1) % size;
  MPI_Comm comm;
  MPI_Errhandler mine;
  MPI_Status statuses[3];
  MPI_Request requests[3];
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_create_errhandler(handle, &mine);
  MPI_Comm_set_errhandler(comm, mine);
  EXPECT(MPI_Barrier(comm) == MPI_SUCCESS);
  MPI_Irecv(&received, 1, MPI_INT, from, 4, comm, &requests[0]);
  MPI_Isend(&sent, 1, MPI_INT, to, 4, comm, &requests[2]);
  int code = MPI_Iallreduce(in, out, rank == 1 ? 8 : 4, MPI_INT, MPI_SUM, comm, &requests[1]);
  if (code == MPI_SUCCESS) {
    EXPECT(MPI_Waitall(3, requests, statuses) == MPI_ERR_IN_STATUS);
    EXPECT(statuses[0].MPI_ERROR == MPI_SUCCESS && statuses[2].MPI_ERROR == MPI_SUCCESS);
    code = statuses[1].MPI_ERROR;
    EXPECT(requests[1] == MPI_REQUEST_NULL);
  } else { /* the others had found it before this rank's call */
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Wait(&requests[2], MPI_STATUS_IGNORE);
  }
  int length = 0;
  char text[MPI_MAX_ERROR_STRING];
  MPI_Error_string(code, text, &length);
  EXPECT(handled == 1 && received == from && strstr(text, "allreduce") != NULL);
  MPI_Errhandler_free(&mine);
  MPI_Comm_free(&comm);
}

/* The program asks for the status of a request that has failed, which is no end of it. */
static void asked_first(void) {
  int in[8] = {0}, out[8], is_complete = 0;
  MPI_Comm comm;
  MPI_Errhandler mine;
  MPI_Status told;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_create_errhandler(handle, &mine);
  MPI_Comm_set_errhandler(comm, mine);
  EXPECT(MPI_Barrier(comm) == MPI_SUCCESS);
  handled = 0;
  int code = MPI_Iallreduce(in, out, rank == 1 ? 8 : 4, MPI_INT, MPI_SUM, comm, &request);
  if (code == MPI_SUCCESS) {
    while (!is_complete) MPI_Request_get_status(request, &is_complete, &told);
    code = MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  EXPECT(code != MPI_SUCCESS && handled == 1 && request == MPI_REQUEST_NULL);
  MPI_Errhandler_free(&mine);
  MPI_Comm_free(&comm);
}

/* A collective is open while its ranks are in a blocking one of another communicator. The last rank
 * comes there when it has the result of the first one. */
static void add(void* in, void* target, int* count, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *count; ++i) ((double*)target)[i] += ((double*)in)[i];
}
static void elsewhere(void) {
  static double in[1 << 17], out[1 << 17];
  const int is_last = rank == size - 1;
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Barrier(comm);
  MPI_Op own;
  MPI_Op_create(add, 1, &own);
  for (int turn = 0; turn < 4; ++turn) {
    const int count = turn % 2 == 0 ? 1 : 1 << 17;
    const MPI_Op op = turn < 2 ? MPI_SUM : own;
    MPI_Request request;
    for (int i = 0; i < count; ++i) in[i] = rank;
    if (is_last) usleep(20000);
    MPI_Iallreduce(in, out, count, MPI_DOUBLE, op, MPI_COMM_WORLD, &request);
    if (is_last) MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Barrier(comm);
    if (!is_last) MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < count; ++i) EXPECT(out[i] == size * (size - 1) / 2);
  }
  MPI_Op_free(&own);
  MPI_Comm_free(&comm);
}

/* A thread waits for a request. For that, rank 0 has to go on in its other thread. This one
 * starts another collective on the same communicator, and sends what the others wait for. */
static void* wait_for(void* request) {
  MPI_Wait(request, MPI_STATUS_IGNORE);
  return NULL;
}
static void threads(void) {
  int provided = 0;
  MPI_Query_thread(&provided);
  if (provided < MPI_THREAD_MULTIPLE) return;
  MPI_Barrier(MPI_COMM_WORLD);
  for (int round = 0; round < 20; ++round) {
    MPI_Request barrier, reduce;
    int word = round, sum = -1;
    if (rank > 0) MPI_Recv(&word, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Ibarrier(MPI_COMM_WORLD, &barrier);
    pthread_t other;
    EXPECT(pthread_create(&other, NULL, wait_for, &barrier) == 0);
    MPI_Iallreduce(&word, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &reduce);
    for (int to = 1; rank == 0 && to < size; ++to) {
      MPI_Send(&word, 1, MPI_INT, to, 2, MPI_COMM_WORLD);
    }
    MPI_Wait(&reduce, MPI_STATUS_IGNORE);
    pthread_join(other, NULL);
    EXPECT(sum == round * size && barrier == MPI_REQUEST_NULL);
  }
}

/* MPICH's MPI_Testall fails for requests of files, its MPI_Waitall does not. */
static void beside_files(void) {
  char name[64] = "";
  MPI_File file;
  MPI_Request requests[3];
  if (rank == 0) snprintf(name, sizeof name, "/tmp/unisono_beside_files_%d", (int)getpid());
  MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
  EXPECT(MPI_File_open(MPI_COMM_WORLD, name,
                       MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                       &file) == MPI_SUCCESS);
  for (int round = 0; round < 20; ++round) {
    const int written = 100 * rank + round;
    int sum = -1, read = -1;
    MPI_Status statuses[3];
    int count = 0;
    MPI_Iallreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[0]);
    MPI_File_iwrite_at(file, (MPI_Offset)sizeof written * rank, &written, 1, MPI_INT, &requests[1]);
    MPI_Ibarrier(MPI_COMM_WORLD, &requests[2]);
    MPI_Waitall(3, requests, statuses);
    EXPECT(sum == sum_over_ranks(1, 0));
    MPI_Get_count(&statuses[1], MPI_INT, &count);
    EXPECT(count == 1);
    for (int i = 0; i < 3; ++i) EXPECT(requests[i] == MPI_REQUEST_NULL);
    MPI_File_read_at(file, (MPI_Offset)sizeof written * rank, &read, 1, MPI_INT, MPI_STATUS_IGNORE);
    EXPECT(read == written);
  }
  MPI_File_close(&file);
}

static const Scenario all[] = {
    {"overlap", overlap},     {"blocked", blocked},          {"first", first},
    {"freed", freed},         {"between", between},          {"status", status},
    {"mismatch", mismatch},   {"threads", threads},          {"mixed", mixed},
    {"in_status", in_status}, {"asked_first", asked_first},  {"elsewhere", elsewhere},
    {"no_thread", no_thread}, {"beside_files", beside_files}};

int main(int argc, char** argv) {
  start_scenarios(&argc, &argv);
  if (argc > 1) run_scenario(all, sizeof all / sizeof all[0], argv[1]);
  if (rank == 0) puts("fine");
  MPI_Finalize();
  return 0;
}
