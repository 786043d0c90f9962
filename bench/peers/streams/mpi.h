/* SPDX-License-Identifier: BSD-3-Clause
 *
 * So much of MPI as mpi_twin.c needs, over plain TCP: what the kernel's streams reach with the same
 * calls, buffers and clocks. Two ranks have one connection. A broadcast sends the bytes one way; an
 * allgather and an alltoall send them both ways at once. Sockets keep the system's settings. The
 * bytes have no tags, no headers and no copies besides the kernel's. Collectives that combine are
 * only there for what the twin itself has to say; they and the others fail if they are measured.
 *
 * STREAMS_RANK is 0 or 1; STREAMS_ADDRESS and STREAMS_PORT are those at which rank 0 listens.
 */
#ifndef UNISONO_BENCH_STREAMS_MPI_H
#define UNISONO_BENCH_STREAMS_MPI_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

typedef int MPI_Comm;
typedef enum { MPI_FLOAT, MPI_DOUBLE, MPI_INT64_T } MPI_Datatype;
typedef enum { MPI_SUM, MPI_MAX, MPI_MIN } MPI_Op;

#define MPI_COMM_WORLD 0
#define MPI_IN_PLACE ((const void*)-1)
#define MPI_SUCCESS 0
#define MPI_ERR_OTHER 15
#define MPI_MAX_LIBRARY_VERSION_STRING 64

/* Attempts to connect before rank 0 listens, 10 ms apart. */
enum { STREAMS_ATTEMPTS = 1000, STREAMS_LEAST_TURNS = 64, STREAMS_MOST_BYTES = 1 << 20 };

static int streams_rank, streams_socket = -1;

static inline _Noreturn void streams_fail(const char* what) {
  fprintf(stderr, "streams: rank %d: %s: %s\n", streams_rank, what, strerror(errno));
  exit(1);
}

static inline const char* streams_setting(const char* name) {
  const char* const value = getenv(name);
  if (!value) streams_fail(name);
  return value;
}

static inline size_t streams_bytes(int count, MPI_Datatype type) {
  return (size_t)count * (type == MPI_FLOAT ? 4 : 8);
}

/* ---- the connection -------------------------------------------------------------------------- */

static inline int streams_new_socket(void) {
  const int made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (made < 0) streams_fail("socket");
  return made;
}

static inline int streams_accept(const struct sockaddr_in* at) {
  const int listener = streams_new_socket(), on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(listener, (const struct sockaddr*)at, sizeof *at) != 0) streams_fail("bind");
  if (listen(listener, 1) != 0) streams_fail("listen");
  const int accepted = accept(listener, NULL, NULL);
  if (accepted < 0) streams_fail("accept");
  close(listener);
  return accepted;
}

static inline int streams_connect(const struct sockaddr_in* to) {
  for (int i = 0; i < STREAMS_ATTEMPTS; ++i) {
    const int made = streams_new_socket();
    if (connect(made, (const struct sockaddr*)to, sizeof *to) == 0) return made;
    close(made);
    usleep(10000);
  }
  streams_fail("connect");
}

static inline int MPI_Init(int* argc, char*** argv) {
  (void)argc, (void)argv;
  streams_rank = atoi(streams_setting("STREAMS_RANK"));
  struct sockaddr_in address = {.sin_family = AF_INET};
  address.sin_port = htons((uint16_t)atoi(streams_setting("STREAMS_PORT")));
  if (inet_pton(AF_INET, streams_setting("STREAMS_ADDRESS"), &address.sin_addr) != 1) {
    streams_fail("STREAMS_ADDRESS");
  }
  streams_socket = streams_rank == 0 ? streams_accept(&address) : streams_connect(&address);
  const int on = 1;
  setsockopt(streams_socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return MPI_SUCCESS;
}

static inline int MPI_Finalize(void) { return close(streams_socket); }

static inline int MPI_Abort(MPI_Comm comm, int code) {
  (void)comm;
  exit(code);
}

static inline int MPI_Comm_rank(MPI_Comm comm, int* rank) {
  (void)comm;
  *rank = streams_rank;
  return MPI_SUCCESS;
}

static inline int MPI_Comm_size(MPI_Comm comm, int* ranks) {
  (void)comm;
  *ranks = 2;
  return MPI_SUCCESS;
}

static inline int MPI_Comm_dup(MPI_Comm comm, MPI_Comm* made) {
  *made = comm;
  return MPI_SUCCESS;
}

static inline int MPI_Get_library_version(char* text, int* length) {
  *length = snprintf(text, MPI_MAX_LIBRARY_VERSION_STRING, "plain TCP");
  return MPI_SUCCESS;
}

/* ---- bytes ----------------------------------------------------------------------------------- */

/* Whether a part went. */
static inline int streams_part(ssize_t moved, char** at, size_t* left) {
  if (moved == 0) streams_fail("the other side ended");
  if (moved < 0 && errno != EAGAIN && errno != EINTR) streams_fail("a stream");
  if (moved <= 0) return 0;
  *at += moved;
  *left -= (size_t)moved;
  return 1;
}

/* Both at once. A rank that has to wait asks some times, and then sleeps. */
static inline int streams_exchange(const void* from, size_t sending, void* to, size_t receiving) {
  char *out = (char*)(uintptr_t)from, *in = to;
  for (int idle = 0; sending || receiving;) {
    int moved = 0;
    if (sending) {
      const size_t piece = sending < STREAMS_MOST_BYTES ? sending : STREAMS_MOST_BYTES;
      moved |= streams_part(send(streams_socket, out, piece, MSG_DONTWAIT | MSG_NOSIGNAL), &out,
                            &sending);
    }
    if (receiving) {
      moved |= streams_part(recv(streams_socket, in, receiving, MSG_DONTWAIT), &in, &receiving);
    }
    idle = moved ? 0 : idle + 1;
    if (idle < STREAMS_LEAST_TURNS) continue;
    const int events = (sending ? POLLOUT : 0) | (receiving ? POLLIN : 0);
    struct pollfd either = {.fd = streams_socket, .events = (short)events};
    poll(&either, 1, -1);
  }
  return MPI_SUCCESS;
}

static inline int MPI_Barrier(MPI_Comm comm) {
  (void)comm;
  char byte = 0, other;
  return streams_exchange(&byte, 1, &other, 1);
}

static inline int MPI_Bcast(void* data, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  (void)comm;
  const size_t bytes = streams_bytes(count, type), sent = streams_rank == root ? bytes : 0;
  return streams_exchange(data, sent, data, bytes - sent);
}

static inline int MPI_Allgather(const void* input, int count, MPI_Datatype type, void* output,
                                int received, MPI_Datatype same, MPI_Comm comm) {
  (void)received, (void)same, (void)comm;
  const size_t bytes = streams_bytes(count, type);
  char* const blocks = output;
  streams_exchange(input, bytes, blocks + (size_t)(1 - streams_rank) * bytes, bytes);
  memcpy(blocks + (size_t)streams_rank * bytes, input, bytes);
  return MPI_SUCCESS;
}

static inline int MPI_Alltoall(const void* input, int count, MPI_Datatype type, void* output,
                               int received, MPI_Datatype same, MPI_Comm comm) {
  (void)received, (void)same, (void)comm;
  const size_t bytes = streams_bytes(count, type);
  const size_t own = (size_t)streams_rank * bytes, other = bytes - own;
  const char* const from = input;
  char* const to = output;
  streams_exchange(from + other, bytes, to + other, bytes);
  memcpy(to + own, from + own, bytes);
  return MPI_SUCCESS;
}

/* ---- what the twin has to say ---------------------------------------------------------------- */

#define STREAMS_COMBINE(Type, mine, other, count, op)                                    \
  for (int i = 0; i < (count); ++i) {                                                    \
    const Type a = ((Type*)(mine))[i], b = ((const Type*)(other))[i];                    \
    ((Type*)(mine))[i] = (op) == MPI_SUM ? a + b : ((op) == MPI_MAX) == (a > b) ? a : b; \
  }

static inline int MPI_Allreduce(const void* input, void* values, int count, MPI_Datatype type,
                                MPI_Op op, MPI_Comm comm) {
  (void)comm;
  if (input != MPI_IN_PLACE || type == MPI_FLOAT) return MPI_ERR_OTHER;
  const size_t bytes = streams_bytes(count, type);
  void* const others = malloc(bytes + 1);
  if (!others) streams_fail("malloc");
  streams_exchange(values, bytes, others, bytes);
  if (type == MPI_DOUBLE) {
    STREAMS_COMBINE(double, values, others, count, op)
  } else {
    STREAMS_COMBINE(int64_t, values, others, count, op)
  }
  free(others);
  return MPI_SUCCESS;
}

/* ---- not to be measured ---------------------------------------------------------------------- */

#define STREAMS_WITHOUT(name, ...) \
  static inline int MPI_##name(__VA_ARGS__) { return MPI_ERR_OTHER; }
#define STREAMS_BLOCK const void*, int, MPI_Datatype, void*, int, MPI_Datatype
#define STREAMS_SUM const void*, void*, int, MPI_Datatype, MPI_Op
#define STREAMS_COUNTS const int*, const int*, MPI_Datatype
STREAMS_WITHOUT(Reduce, STREAMS_SUM, int, MPI_Comm)
STREAMS_WITHOUT(Scan, STREAMS_SUM, MPI_Comm)
STREAMS_WITHOUT(Exscan, STREAMS_SUM, MPI_Comm)
STREAMS_WITHOUT(Reduce_scatter_block, STREAMS_SUM, MPI_Comm)
STREAMS_WITHOUT(Reduce_scatter, const void*, void*, const int*, MPI_Datatype, MPI_Op, MPI_Comm)
STREAMS_WITHOUT(Gather, STREAMS_BLOCK, int, MPI_Comm)
STREAMS_WITHOUT(Scatter, STREAMS_BLOCK, int, MPI_Comm)
STREAMS_WITHOUT(Allgatherv, const void*, int, MPI_Datatype, void*, STREAMS_COUNTS, MPI_Comm)
STREAMS_WITHOUT(Gatherv, const void*, int, MPI_Datatype, void*, STREAMS_COUNTS, int, MPI_Comm)
STREAMS_WITHOUT(Scatterv, const void*, STREAMS_COUNTS, void*, int, MPI_Datatype, int, MPI_Comm)
STREAMS_WITHOUT(Alltoallv, const void*, STREAMS_COUNTS, void*, STREAMS_COUNTS, MPI_Comm)

#endif
