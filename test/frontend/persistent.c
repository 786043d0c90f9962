/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Persistent collectives in programs of a few lines each, by name: persistent NAME. */
#include "persistent.h"

#include <dirent.h>
#include <pthread.h>
#include <stdlib.h>

#include "scenario.h"

static int sum_over_ranks(int a, int b) { /* of a * r + b */
  return a * size * (size - 1) / 2 + b * size;
}

/* Ranks start the requests in different orders, together with persistent messages, many times. */
static void order(void) {
  enum { kRounds = 60, kCalls = 6 };
  MPI_Request requests[kCalls], now[kCalls];
  int sent = -1, received = -1, own = -1, sum = -1, word = -1, before = -1;
  int* const gathered = malloc((size_t)size * sizeof(int));
  const int to = (rank + 1) % size, from = (rank + size - 1) % size;
  MPI_Recv_init(&received, 1, MPI_INT, from, 1, MPI_COMM_WORLD, &requests[0]);
  PERSISTENT(Allreduce)
  (&own, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
  PERSISTENT(Bcast)(&word, 1, MPI_INT, size - 1, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[2]);
  MPI_Send_init(&sent, 1, MPI_INT, to, 1, MPI_COMM_WORLD, &requests[3]);
  PERSISTENT(Allgather)
  (&own, 1, MPI_INT, gathered, 1, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[4]);
  PERSISTENT(Exscan)
  (&own, &before, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[5]);
  for (int round = 0; round < kRounds; ++round) {
    sent = rank * 3 + round;
    own = rank + round;
    sum = before = received = -1;
    word = rank == size - 1 ? round : -1;
    if (round % 4 == 0) {
      for (int i = 0; i < kCalls; ++i) now[i] = requests[(i + rank) % kCalls];
      MPI_Startall(kCalls, now);
      complete_all(kCalls, now, round);
    } else {
      for (int i = 0; i < kCalls; ++i) {
        MPI_Start(&requests[rank % 2 == 0 ? i : kCalls - 1 - i]);
      }
      complete_all(kCalls, requests, round);
    }
    EXPECT(received == from * 3 + round && sum == sum_over_ranks(1, round) && word == round);
    EXPECT(rank == 0 || before == rank * (rank - 1) / 2 + rank * round);
    for (int r = 0; r < size; ++r) EXPECT(gathered[r] == r + round);
  }
  for (int i = 0; i < kCalls; ++i) {
    MPI_Request_free(&requests[i]);
    EXPECT(requests[i] == MPI_REQUEST_NULL);
  }
  free(gathered);
}

static void add(void* in, void* sum, int* count, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *count; ++i) ((int*)sum)[i] += ((int*)in)[i];
}

/* The MPI does those with an operator of the program. They complete together with the others. */
static void beside_the_mpis(void) {
  enum { kCalls = 5 };
  MPI_Request requests[kCalls];
  MPI_Status statuses[kCalls];
  MPI_Op op;
  int own = -1, sum = -1, word = -1, received = -1;
  MPI_Op_create(add, 1, &op);
  PERSISTENT(Allreduce)
  (&own, &sum, 1, MPI_INT, op, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
  PERSISTENT(Bcast)(&word, 1, MPI_INT, size - 1, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
  PERSISTENT(Barrier)(MPI_COMM_WORLD, MPI_INFO_NULL, &requests[2]);
  MPI_Recv_init(&received, 1, MPI_INT, (rank + size - 1) % size, 1, MPI_COMM_WORLD, &requests[3]);
  MPI_Send_init(&rank, 1, MPI_INT, (rank + 1) % size, 1, MPI_COMM_WORLD, &requests[4]);
  for (int round = 0; round < 20; ++round) {
    int done = 0, count = -1;
    own = rank + round;
    word = rank == size - 1 ? round : -1;
    sum = received = -1;
    if (round % 2 == 0) {
      MPI_Startall(kCalls, requests);
    } else {
      for (int i = kCalls - 1; i >= 0; --i) MPI_Start(&requests[i]);
    }
    if (round % 3 == 0) {
      MPI_Waitall(kCalls, requests, statuses);
    } else if (round % 3 == 1) {
      MPI_Waitall(kCalls, requests, MPI_STATUSES_IGNORE);
    } else {
      while (!done) MPI_Testall(kCalls, requests, &done, statuses);
    }
    EXPECT(sum == sum_over_ranks(1, round) && word == round);
    EXPECT(received == (rank + size - 1) % size);
    if (round % 3 == 1) continue;
    MPI_Get_count(&statuses[3], MPI_INT, &count);
    EXPECT(count == 1 && statuses[3].MPI_SOURCE == received);
  }
  for (int i = 0; i < kCalls; ++i) MPI_Request_free(&requests[i]);
  MPI_Op_free(&op);
}

/* A persistent collective that the MPI does, as its operator is the program's. Once MPI_Waitall has
 * completed it, the other functions do not give it any more. */
static void inactive_again(void) {
  MPI_Request request;
  MPI_Op op;
  int own = rank, sum = -1;
  MPI_Op_create(add, 1, &op);
  PERSISTENT(Allreduce)(&own, &sum, 1, MPI_INT, op, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  for (int way = 0; way < 4; ++way) {
    int index = 0, done = 0;
    sum = -1;
    MPI_Start(&request);
    MPI_Waitall(1, &request, MPI_STATUSES_IGNORE);
    EXPECT(sum == sum_over_ranks(1, 0));
    if (way == 0) MPI_Waitany(1, &request, &index, MPI_STATUS_IGNORE);
    if (way == 1) MPI_Testany(1, &request, &index, &done, MPI_STATUS_IGNORE);
    if (way <= 1) EXPECT(index == MPI_UNDEFINED && done == way);
    if (way == 2) MPI_Waitsome(1, &request, &done, &index, MPI_STATUSES_IGNORE);
    if (way == 3) MPI_Testsome(1, &request, &done, &index, MPI_STATUSES_IGNORE);
    if (way >= 2) EXPECT(done == MPI_UNDEFINED);
  }
  MPI_Request_free(&request);
  MPI_Op_free(&op);
}

/* An inactive request: each function returns at once, with an empty status. */
static void inactive(void) {
  int in = rank, out = -1, flag = 0, index = 0, count = -1;
  MPI_Status status;
  MPI_Request request;
  PERSISTENT(Allreduce)(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  for (int round = 0; round < 2; ++round) {
    MPI_Wait(&request, &status);
    EXPECT(request != MPI_REQUEST_NULL);
    EXPECT(status.MPI_SOURCE == MPI_ANY_SOURCE && status.MPI_TAG == MPI_ANY_TAG);
    MPI_Get_count(&status, MPI_BYTE, &count);
    EXPECT(count == 0);
    flag = 0;
    MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    EXPECT(flag);
    flag = 0;
    MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE);
    EXPECT(flag);
    MPI_Waitany(1, &request, &index, MPI_STATUS_IGNORE);
    EXPECT(index == MPI_UNDEFINED);
    MPI_Testsome(1, &request, &count, &index, MPI_STATUSES_IGNORE);
    EXPECT(count == MPI_UNDEFINED);
    MPI_Start(&request);
    flag = 0;
    while (!flag) MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE);
    EXPECT(out == sum_over_ranks(1, 0));
    MPI_Wait(&request, &status);
    MPI_Get_count(&status, MPI_BYTE, &count);
    EXPECT(count == 0);
  }
  MPI_Request_free(&request);
}

/* The program frees the communicator and the type before the first start. */
static void freed(void) {
  enum { kRounds = 5 };
  MPI_Comm comm;
  MPI_Datatype gapped, two;
  MPI_Request request;
  int in[4] = {0, -1, 0, -1};
  int* const out = malloc((size_t)size * sizeof in);
  memset(out, 0x55, (size_t)size * sizeof in);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Type_vector(1, 1, 2, MPI_INT, &two);
  MPI_Type_create_resized(two, 0, 2 * sizeof(int), &gapped);
  MPI_Type_commit(&gapped);
  PERSISTENT(Allgather)(in, 2, gapped, out, 2, gapped, comm, MPI_INFO_NULL, &request);
  MPI_Type_free(&gapped);
  MPI_Type_free(&two);
  MPI_Comm_free(&comm);
  for (int round = 0; round < kRounds; ++round) {
    in[0] = rank + round;
    in[2] = rank + 100 + round;
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int r = 0; r < size; ++r) {
      EXPECT(out[4 * r] == r + round && out[4 * r + 2] == r + 100 + round);
      EXPECT(out[4 * r + 1] == 0x55555555 && out[4 * r + 3] == 0x55555555);
    }
  }
  MPI_Request_free(&request);
  free(out);
}

/* Buffers at any address, and in place: what a start reads is what lies there at that time. */
static void misaligned(void) {
  enum { kCount = 20 };
  char in[8 * kCount + 1], out[8 * kCount + 1];
  MPI_Request requests[2];
  PERSISTENT(Allreduce)
  (in + 1, out + 1, kCount, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
  PERSISTENT(Allreduce)
  (MPI_IN_PLACE, in + 1, kCount, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < kCount; ++i) {
      const double value = rank + i + round;
      memcpy(in + 1 + 8 * i, &value, 8);
    }
    for (int which = 0; which < 2; ++which) {
      MPI_Start(&requests[which]);
      MPI_Wait(&requests[which], MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < kCount; ++i) {
      double sum, most;
      memcpy(&sum, out + 1 + 8 * i, 8);
      memcpy(&most, in + 1 + 8 * i, 8);
      EXPECT(sum == (double)sum_over_ranks(1, i + round) && most == (double)(size - 1 + i + round));
    }
  }
  for (int which = 0; which < 2; ++which) MPI_Request_free(&requests[which]);
}

/* A rank that is blocked in a receive holds up nobody who needs it for a collective. */
static void blocked(void) {
  enum { kCount = 20000 };
  double* const in = malloc(kCount * sizeof *in);
  double* const out = malloc(kCount * sizeof *out);
  int word = 0;
  MPI_Request request;
  PERSISTENT(Allreduce)
  (in, out, kCount, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < kCount; ++i) in[i] = rank + i + round;
    MPI_Start(&request);
    if (rank == size - 1) {
      MPI_Recv(&word, 1, MPI_INT, 0, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      if (rank == 0) MPI_Send(&word, 1, MPI_INT, size - 1, round, MPI_COMM_WORLD);
    }
    for (int i = 0; i < kCount; ++i) EXPECT(out[i] == sum_over_ranks(1, i + round));
  }
  MPI_Request_free(&request);
  free(in);
  free(out);
}

static int open_descriptors(void) {
  int count = 0;
  DIR* const folder = opendir("/proc/self/fd");
  while (readdir(folder) != NULL) ++count;
  closedir(folder);
  return count;
}

/* Requests that come and go, also without a start, leave nothing. */
static void many(void) {
  int before = 0, in = rank, out = -1;
  for (int i = 0; i < 200; ++i) {
    MPI_Request request;
    PERSISTENT(Allreduce)(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    if (i % 3 != 0) {
      MPI_Start(&request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      EXPECT(out == sum_over_ranks(1, 0));
    }
    MPI_Request_free(&request);
    if (i == 20) before = open_descriptors();
  }
  EXPECT(open_descriptors() <= before + 8);
}

/* Blocking and nonblocking collectives on the communicator while persistent ones are active. */
static void between(void) {
  int in = rank, out = -1, sum = -1, other = -1;
  MPI_Request request, nonblocking;
  PERSISTENT(Allreduce)(&in, &out, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  for (int round = 0; round < 50; ++round) {
    in = rank + round;
    if (rank % 2 == 0) MPI_Start(&request);
    MPI_Iallreduce(&rank, &other, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &nonblocking);
    if (rank % 2 != 0) MPI_Start(&request);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Wait(&nonblocking, MPI_STATUS_IGNORE);
    EXPECT(out == size - 1 + round && sum == sum_over_ranks(1, 0) && other == sum);
  }
  MPI_Request_free(&request);
}

/* Rank 1 passes another count: the error comes with the start or with the wait. */
static int handled;
static void handle(MPI_Comm* comm, int* code, ...) {
  (void)comm;
  (void)code;
  ++handled;
}
static void mismatch(void) {
  int in[8] = {0}, out[8];
  MPI_Comm comm;
  MPI_Errhandler mine;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_create_errhandler(handle, &mine);
  MPI_Comm_set_errhandler(comm, mine);
  EXPECT(PERSISTENT(Allreduce)(in, out, rank == 1 ? 8 : 4, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL,
                               &request) == MPI_SUCCESS);
  int code = MPI_Start(&request);
  if (code == MPI_SUCCESS) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
  EXPECT(code != MPI_SUCCESS && handled == 1);
  int error_class = 0, length = 0;
  char text[MPI_MAX_ERROR_STRING];
  MPI_Error_class(code, &error_class);
  MPI_Error_string(code, text, &length);
  EXPECT(error_class != MPI_SUCCESS && error_class <= MPI_ERR_LASTCODE);
  EXPECT(strstr(text, "allreduce") != NULL);
  MPI_Request_free(&request);
}

/* Threads use requests of the same communicator at once. */
static MPI_Request of_threads[3];
static int inputs[3], outputs[3];
static void* use(void* which) {
  const int i = *(int*)which;
  for (int round = 0; round < 50; ++round) {
    inputs[i] = rank + round;
    MPI_Start(&of_threads[i]);
    MPI_Wait(&of_threads[i], MPI_STATUS_IGNORE);
    EXPECT(outputs[i] == sum_over_ranks(1, round));
  }
  return NULL;
}
static void threads(void) {
  int provided = 0, index[3];
  pthread_t thread[3];
  MPI_Query_thread(&provided);
  if (provided < MPI_THREAD_MULTIPLE) return;
  for (int i = 0; i < 3; ++i) {
    index[i] = i;
    PERSISTENT(Allreduce)
    (&inputs[i], &outputs[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &of_threads[i]);
  }
  for (int i = 0; i < 3; ++i) pthread_create(&thread[i], NULL, use, &index[i]);
  for (int i = 0; i < 3; ++i) pthread_join(thread[i], NULL);
  for (int i = 0; i < 3; ++i) MPI_Request_free(&of_threads[i]);
}

/* A message's status comes with MPI_Testall and MPI_Waitall, beside collectives of each kind. */
static void statuses(void) {
  enum { kSent = 3, kRounds = 20 };
  int values[kSent] = {rank, rank, rank}, received[5], sum[2] = {-1, -1};
  MPI_Request requests[4];
  MPI_Status found[4];
  const int to = (rank + 1) % size, from = (rank + size - 1) % size;
  MPI_Send_init(values, kSent, MPI_INT, to, 7, MPI_COMM_WORLD, &requests[0]);
  MPI_Recv_init(received, 5, MPI_INT, from, 7, MPI_COMM_WORLD, &requests[1]);
  PERSISTENT(Allreduce)
  (&rank, &sum[0], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[2]);
  for (int round = 0; round < kRounds; ++round) {
    const int both = round % 2 == 0; /* the persistent collective as well */
    int flag = 0, count = -1;
    sum[0] = sum[1] = received[0] = -1;
    MPI_Startall(both ? 3 : 2, requests);
    MPI_Request now[4] = {requests[0], requests[1], MPI_REQUEST_NULL, requests[2]};
    MPI_Iallreduce(&rank, &sum[1], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &now[2]);
    if (round % 4 < 2) {
      while (!flag) MPI_Testall(both ? 4 : 3, now, &flag, found);
    } else {
      MPI_Waitall(both ? 4 : 3, now, found);
    }
    MPI_Get_count(&found[1], MPI_INT, &count);
    EXPECT(found[1].MPI_SOURCE == from && found[1].MPI_TAG == 7 && count == kSent);
    EXPECT(received[0] == from && now[2] == MPI_REQUEST_NULL && now[3] == requests[2]);
    EXPECT(sum[1] == sum_over_ranks(1, 0) && (!both || sum[0] == sum[1]));
    MPI_Barrier(MPI_COMM_WORLD);
  }
  for (int i = 0; i < 3; ++i) MPI_Request_free(&requests[i]);
}

/* The MPI does those of neighbours, each with its own function. */
static void neighbours(void) {
  enum { kCalls = 6 };
  MPI_Comm ring;
  MPI_Request requests[kCalls + 1];
  MPI_Datatype types[2] = {MPI_INT, MPI_INT};
  const int periodic = 1, ones[2] = {1, 1}, places[2] = {0, 1};
  const MPI_Aint bytes[2] = {0, sizeof(int)};
  int own[2] = {-1, -1}, received[kCalls - 1][2], sum = -1;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &ring);
  PERSISTENT(Neighbor_allgather)
  (own, 1, MPI_INT, received[0], 1, MPI_INT, ring, MPI_INFO_NULL, &requests[0]);
  PERSISTENT(Neighbor_allgatherv)
  (own, 1, MPI_INT, received[1], ones, places, MPI_INT, ring, MPI_INFO_NULL, &requests[1]);
  PERSISTENT(Neighbor_alltoall)
  (own, 1, MPI_INT, received[2], 1, MPI_INT, ring, MPI_INFO_NULL, &requests[2]);
  PERSISTENT(Neighbor_alltoallv)
  (own, ones, places, MPI_INT, received[3], ones, places, MPI_INT, ring, MPI_INFO_NULL,
   &requests[3]);
  PERSISTENT(Neighbor_alltoallw)
  (own, ones, bytes, types, received[4], ones, bytes, types, ring, MPI_INFO_NULL, &requests[4]);
  PERSISTENT(Allreduce)
  (&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[5]);
  for (int round = 0; round < 10; ++round) {
    const int left = (rank + size - 1) % size, right = (rank + 1) % size;
    int done = 0;
    sum = -1;
    own[0] = own[1] = rank + round;
    memset(received, 0xff, sizeof received);
    MPI_Startall(kCalls, requests);
    requests[kCalls] = MPI_REQUEST_NULL;
    if (round % 2 == 0) {
      MPI_Waitall(kCalls + 1, requests, MPI_STATUSES_IGNORE);
    } else {
      while (!done) MPI_Testall(kCalls + 1, requests, &done, MPI_STATUSES_IGNORE);
    }
    EXPECT(sum == sum_over_ranks(1, 0));
    for (int i = 0; i < kCalls - 1; ++i) {
      EXPECT(received[i][0] == left + round && received[i][1] == right + round);
    }
  }
  for (int i = 0; i < kCalls; ++i) MPI_Request_free(&requests[i]);
  MPI_Comm_free(&ring);
}

/* The collective of the last rank ends after the others' messages to it, which need its MPI. */
static void after_messages(void) {
  enum { kCount = 1 << 18 };
  int* const words = malloc(kCount * sizeof *words);
  int out = -1;
  MPI_Request requests[2];
  PERSISTENT(Allreduce)
  (&rank, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < kCount; ++i) words[i] = rank == 0 ? i + round : -1;
    out = -1;
    if (rank == size - 1) {
      MPI_Irecv(words, kCount, MPI_INT, 0, round, MPI_COMM_WORLD, &requests[1]);
      MPI_Start(&requests[0]);
      MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    } else {
      if (rank == 0) MPI_Ssend(words, kCount, MPI_INT, size - 1, round, MPI_COMM_WORLD);
      MPI_Start(&requests[0]);
      MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    }
    EXPECT(out == sum_over_ranks(1, 0));
    for (int i = 0; i < kCount && rank == size - 1; ++i) EXPECT(words[i] == i + round);
  }
  MPI_Request_free(&requests[0]);
  free(words);
}

/* A collective that the MPI does ends in an MPI_Testall that leaves another request active. The
 * next function on requests completes it, once. */
static void looked_at(void) {
  enum { kCalls = 3 };
  MPI_Request requests[kCalls];
  MPI_Status statuses[kCalls];
  MPI_Op op;
  int sums[2] = {-1, -1}, word = -1, is_complete = 0;
  MPI_Op_create(add, 1, &op);
  PERSISTENT(Allreduce)
  (&rank, &sums[0], 1, MPI_INT, op, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
  MPI_Recv_init(&word, 1, MPI_INT, rank, 5, MPI_COMM_WORLD, &requests[1]);
  PERSISTENT(Allreduce)
  (&rank, &sums[1], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[2]);
  for (int round = 0; round < 15; ++round) {
    int left = kCalls;
    sums[0] = sums[1] = word = -1;
    MPI_Startall(kCalls, requests);
    /* The sums come before the ends of the calls. */
    for (int turns = 0; turns < 100; turns += sums[0] >= 0 && sums[1] >= 0) {
      MPI_Testall(kCalls, requests, &is_complete, statuses);
      EXPECT(!is_complete);
    }
    while (left > 0) {
      int index = -1, done = 0, indices[kCalls];
      if (left == 1) MPI_Send(&round, 1, MPI_INT, rank, 5, MPI_COMM_WORLD);
      switch (round % 5) {
        case 0:
          MPI_Waitany(kCalls, requests, &index, statuses);
          done = 1;
          break;
        case 1:
          MPI_Waitsome(kCalls, requests, &done, indices, statuses);
          break;
        case 2:
          while (!done) MPI_Testany(kCalls, requests, &index, &done, statuses);
          break;
        case 3:
          while (done == 0) MPI_Testsome(kCalls, requests, &done, indices, statuses);
          break;
        default:
          if (left == 1) {
            MPI_Waitall(kCalls, requests, statuses);
            done = 1;
          } else {
            index = left == 3 ? 0 : 2;
            for (is_complete = 0; !is_complete;) {
              MPI_Request_get_status(requests[index], &is_complete, statuses);
            }
            MPI_Waitany(kCalls, requests, &index, statuses);
            done = 1;
          }
      }
      EXPECT(index != MPI_UNDEFINED && done != MPI_UNDEFINED && done <= left);
      left -= done;
    }
    EXPECT(sums[0] == sum_over_ranks(1, 0) && sums[1] == sums[0] && word == round);
    MPI_Testsome(kCalls, requests, &is_complete, (int[kCalls]){0}, statuses);
    EXPECT(is_complete == MPI_UNDEFINED);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  for (int i = 0; i < kCalls; ++i) MPI_Request_free(&requests[i]);
  MPI_Op_free(&op);
}

/* MPI_Finalize deletes the attributes of MPI_COMM_SELF first. Their functions may start a
 * persistent collective that the program has made before, and others. */
static MPI_Request kept;
static int kept_sum = -1;
static int deleted_at_end(MPI_Comm comm, int key, void* value, void* extra) {
  (void)comm, (void)key, (void)value, (void)extra;
  static const int one = 1;
  int sum = -1, word = rank == size - 1 ? 7 : -1;
  MPI_Request request;
  MPI_Comm other;
  current = "at_end";
  kept_sum = -1;
  MPI_Start(&kept);
  MPI_Wait(&kept, MPI_STATUS_IGNORE);
  EXPECT(kept_sum == size);
  MPI_Request_free(&kept);
  PERSISTENT(Bcast)(&word, 1, MPI_INT, size - 1, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  MPI_Start(&request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  EXPECT(word == 7);
  MPI_Request_free(&request);
  MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  EXPECT(sum == size);
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, other);
  EXPECT(sum == sum_over_ranks(1, 0));
  MPI_Comm_free(&other);
  return MPI_SUCCESS;
}
static void at_end(void) {
  static const int one = 1;
  int key;
  PERSISTENT(Allreduce)
  (&one, &kept_sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &kept);
  MPI_Start(&kept);
  MPI_Wait(&kept, MPI_STATUS_IGNORE);
  EXPECT(kept_sum == size);
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, deleted_at_end, &key, NULL);
  MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
}

/* MPICH's MPI_Testall fails for partitioned messages, its MPI_Waitall does not: so one waits for
 * them beside persistent and nonblocking collectives. */
static void partitioned(void) {
#if MPI_VERSION >= 4
  enum { kParts = 3 };
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  int own = 0, sum = 0, most = -1, out[kParts], in[kParts];
  MPI_Request requests[5];
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Psend_init(out, kParts, 1, MPI_INT, right, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
  MPI_Precv_init(in, kParts, 1, MPI_INT, left, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
  PERSISTENT(Allreduce)
  (&own, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[2]);
  requests[4] = MPI_REQUEST_NULL;
  for (int round = 0; round < 20; ++round) {
    const int has_persistent = round < 10;
    own = rank + round;
    for (int i = 0; i < kParts; ++i) out[i] = 100 * rank + 10 * i + round;
    MPI_Startall(has_persistent ? 3 : 2, requests);
    MPI_Iallreduce(&rank, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &requests[3]);
    MPI_Pready_range(0, kParts - 1, requests[0]);
    MPI_Waitall(5, requests, MPI_STATUSES_IGNORE);
    EXPECT(most == size - 1);
    if (has_persistent) EXPECT(sum == size * (size - 1) / 2 + size * round);
    for (int i = 0; i < kParts; ++i) EXPECT(in[i] == 100 * left + 10 * i + round);
    if (round == 9) MPI_Request_free(&requests[2]);
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
#endif
}

static const Scenario all[] = {{"statuses", statuses},
                               {"order", order},
                               {"inactive", inactive},
                               {"freed", freed},
                               {"many", many},
                               {"misaligned", misaligned},
                               {"blocked", blocked},
                               {"between", between},
                               {"mismatch", mismatch},
                               {"threads", threads},
                               {"beside", beside_the_mpis},
                               {"neighbours", neighbours},
                               {"inactive_again", inactive_again},
                               {"after_messages", after_messages},
                               {"looked_at", looked_at},
                               {"partitioned", partitioned},
                               {"at_end", at_end}};

int main(int argc, char** argv) {
  start_scenarios(&argc, &argv);
  if (argc > 1) run_scenario(all, sizeof all / sizeof all[0], argv[1]);
  if (rank == 0) puts("fine");
  MPI_Finalize();
  return 0;
}
