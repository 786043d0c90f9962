/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Unisono: collective communication that does not wait for host CPUs. This header is the contract
 * and the reference; everything that it does not say may change. Besides it only unisono.hpp (C++20
 * over it) is installed. The guide is docs/tutorial.
 *
 * Errors: every function that can fail returns UNISONO_OK or an error code. unisono_last_error()
 * then says, for the calling thread, what happened, where, on which rank, and what to do. Nothing
 * is thrown. No misuse listed under a function crashes the caller or leaves the other ranks
 * hanging.
 *
 * Threads: one thread at a time uses a communicator, its requests and its plans. Different threads
 * may use different communicators at once. A thread that calls the library needs 128 KiB of stack.
 *
 * Fork: a child of fork() is no rank. There unisono_init and every call with a handle of the parent
 * return STATE. The child may exec, do anything that does not use this library, and end in any way.
 * The parent goes on as if there were no child. The child keeps the job's shared memory and sockets
 * open until it execs or ends.
 *
 * Counts are elements of the given type, 64 bits, and may be 0. Buffers belong to the caller and
 * must not overlap each other. A collective uses them from its start until its completion.
 */
#ifndef UNISONO_UNISONO_H
#define UNISONO_UNISONO_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define UNISONO_API __attribute__((visibility("default")))
#else
#define UNISONO_API
#endif

#define UNISONO_VERSION_MAJOR 0
#define UNISONO_VERSION_MINOR 1
#define UNISONO_VERSION_PATCH 0

/* ---- errors ---------------------------------------------------------------------------------- */

enum {
  UNISONO_OK = 0,
  UNISONO_ERROR_ARGUMENT = 1,       /* an argument is invalid */
  UNISONO_ERROR_TYPE = 2,           /* unknown datatype or operator, or they do not fit */
  UNISONO_ERROR_STATE = 3,          /* before init, after finalize, or a handle that has ended */
  UNISONO_ERROR_MISMATCH = 4,       /* the ranks called different things */
  UNISONO_ERROR_RANK_LOST = 5,      /* a rank died, is stopped or silent, or left comm */
  UNISONO_ERROR_TIMEOUT = 6,        /* a deadline passed */
  UNISONO_ERROR_RESOURCES = 7,      /* memory, descriptors, or a named limit */
  UNISONO_ERROR_SYSTEM = 8,         /* a system call failed */
  UNISONO_ERROR_UNSUPPORTED = 9,    /* a valid request, not available here */
  UNISONO_ERROR_PEER_ARGUMENT = 10, /* another rank passed an invalid argument */
  UNISONO_ERROR_CANCELLED = 11      /* a rank cancelled the operation */
};

/* The message of the calling thread's last failed call; "" if none failed. Valid until the
 * thread's next call. */
UNISONO_API const char* unisono_last_error(void);
/* "mismatch", "rank_lost" ...; "unknown" for other numbers. */
UNISONO_API const char* unisono_error_name(int error);
/* "0.1.0" */
UNISONO_API const char* unisono_version(void);

/* ---- datatypes and operators ------------------------------------------------------------------
 */

typedef int32_t unisono_type_t;
enum {
  UNISONO_BYTE = 0,
  UNISONO_INT8 = 1,
  UNISONO_INT16 = 2,
  UNISONO_INT32 = 3,
  UNISONO_INT64 = 4,
  UNISONO_UINT8 = 5,
  UNISONO_UINT16 = 6,
  UNISONO_UINT32 = 7,
  UNISONO_UINT64 = 8,
  UNISONO_FLOAT16 = 9,
  UNISONO_BFLOAT16 = 10,
  UNISONO_FLOAT32 = 11,
  UNISONO_FLOAT64 = 12,
  UNISONO_COMPLEX64 = 13,  /* two float32 */
  UNISONO_COMPLEX128 = 14, /* two float64 */
  /* pairs for minloc and maxloc: struct {value; int32_t index;} */
  UNISONO_INT16_INT32 = 15,
  UNISONO_INT32_INT32 = 16,
  UNISONO_INT64_INT32 = 17,
  UNISONO_FLOAT32_INT32 = 18,
  UNISONO_FLOAT64_INT32 = 19
};

typedef int32_t unisono_op_t;
enum {
  UNISONO_SUM = 0,
  UNISONO_PROD = 1,
  UNISONO_MIN = 2,
  UNISONO_MAX = 3,
  UNISONO_LOGICAL_AND = 4,
  UNISONO_LOGICAL_OR = 5,
  UNISONO_LOGICAL_XOR = 6,
  UNISONO_BITWISE_AND = 7,
  UNISONO_BITWISE_OR = 8,
  UNISONO_BITWISE_XOR = 9,
  UNISONO_MINLOC = 10,
  UNISONO_MAXLOC = 11
};

/* Bytes of one element; 0 for an unknown type. */
UNISONO_API size_t unisono_type_size(unisono_type_t type);

/* Creates an opaque datatype of `size` bytes, to move and to use with user-defined operators. The
 * alignment is a power of two, at most 64; the size is a multiple of it. All ranks create their
 * types and operators in the same order. The type lives until the end of the process. Errors:
 * ARGUMENT, RESOURCES (more than 1000). */
UNISONO_API int unisono_type_create(size_t size, size_t alignment, unisono_type_t* type);

/* Computes target[i] = left[i] op right[i] for count elements. target equals left or right, or
 * overlaps neither. The function may call nothing of this library but unisono_op_fail and queries
 * of rank and size. Its calls on a communicator, a request or a plan return STATE. A collective
 * that it calls also fails the operation, as unisono_op_fail does. */
typedef void (*unisono_function_t)(void* target, const void* left, const void* right, int64_t count,
                                   unisono_type_t type, void* user);

/* Creates an operator from a function of the caller. The operator must be associative.
 * commutative == 0 keeps the order of ranks. Each call of the function gets `user`. Any thread of
 * the caller that waits in this library may call it, also for another communicator. If it takes a
 * lock, the caller does not hold that lock in calls on a communicator where it is in use. Only
 * unisono_test and unisono_plan_test allow that. The operator lives until the end of the process.
 * Errors: ARGUMENT, RESOURCES. */
UNISONO_API int unisono_op_create(unisono_function_t function, int commutative, void* user,
                                  unisono_op_t* op);

/* For the function of an operator, which calls it on its own thread: it cannot combine the
 * operands, and need not write target. The operation ends on this rank, and the communicator fails
 * on all ranks, with PEER_ARGUMENT, this rank's number and `why`. No rank gets a result that needed
 * this one. An exception of C++ that leaves the function does the same; `why` then is its text.
 * Errors: STATE (no function of an operator runs on this thread), RESOURCES. */
UNISONO_API int unisono_op_fail(const char* why);

/* ---- jobs and communicators --------------------------------------------------------------------
 */

typedef struct unisono_comm_s* unisono_comm_t;

/* Joins the job that the environment describes, and gives the communicator of all its ranks. The
 * environment comes from unisono run, mpirun, mpiexec, srun or torchrun, or it has UNISONO_RANK,
 * UNISONO_SIZE and UNISONO_RENDEZVOUS. Without any of these the job has one rank.
 *
 * Returns when all ranks have joined; with RANK_LOST when one of them has died before that; with
 * TIMEOUT after UNISONO_START_TIMEOUT, naming the missing ranks. Call it once per process.
 * Errors: ARGUMENT (environment), STATE (second call), RANK_LOST, TIMEOUT, RESOURCES, SYSTEM. */
UNISONO_API int unisono_init(unisono_comm_t* world);

/* An allgather of the caller's, by which ranks reach each other before there is a job. Front ends
 * have one (MPI, a store). The library calls it only during unisono_init_with and
 * unisono_comm_from_list_with, on the calling thread, with the same number of bytes (at most 1024)
 * at all ranks.
 * It has to write `bytes` bytes of each rank to `output`, in the order of ranks, and to return 0;
 * any other value means failure. `user` is passed on. The allgather decides how long it waits for
 * other ranks. If it fails at one rank it should fail at the others, which wait in it. */
typedef struct {
  int (*allgather)(const void* input, void* output, size_t bytes, void* user);
  void* user;
  /* Not 0: a call that fails at one rank fails at all, or ends the job, as MPI's collectives do.
   * unisono_comm_from_list_with then needs fewer calls. */
  int fails_everywhere;
} unisono_exchange_t;

/* Set `size` to sizeof before the call; later versions may add fields at the end. */
typedef struct {
  size_t size;
  int64_t timeout_ms; /* of each phase of the start; 0: UNISONO_START_TIMEOUT */
  /* The library calls it with `user` while a blocking call of this job waits, at least every
   * millisecond, on the calling thread. So the caller's own communication goes on meanwhile. It
   * must not wait, and must not call this library. While calls take longer than those that find
   * nothing to do, the waiting rank stays awake if it has a core. NULL: none. */
  void (*carry_on)(void* user);
  void* user;
} unisono_init_options_t;

/* Makes a job of `size` ranks, of which the caller is `rank`, over an exchange that the caller
 * provides. It uses no launcher and no address. Call it as often as you like: each call makes
 * another job with a world communicator of its own, which unisono_finalize ends. Ranks may be
 * processes or threads, on one host or on several. `exchange` and `options` (NULL: defaults) are
 * used during the call only. Threads may make different jobs at once, each with its own exchange.
 *
 * Collective: all ranks call it. Either all get a communicator, or all get an error. A rank that
 * fails tells the others, and a rank that is lost ends the call at the deadline. The waiting time
 * inside `allgather` is the caller's.
 *
 * Errors: ARGUMENT (of any rank, or different sizes), RANK_LOST, TIMEOUT, RESOURCES, SYSTEM (for
 * instance, the allgather failed). UNSUPPORTED: ranks on a host in different pid namespaces, or
 * another version of the library. The other ranks do not hear of an invalid rank, size or
 * exchange. */
UNISONO_API int unisono_init_with(int rank, int size, const unisono_exchange_t* exchange,
                                  const unisono_init_options_t* options, unisono_comm_t* world);

/* A job whose ranks are threads of this process, for tests and examples. Create the job once; then
 * each thread calls unisono_init_thread with its rank. Free the job after all have finalized.
 * Errors: ARGUMENT (a number of ranks or a rank out of range, NULL), RESOURCES, SYSTEM. STATE: a
 * handle that has ended (freed before, or of the parent in a child of fork()), a rank that is taken
 * already. */
typedef struct unisono_threads_s* unisono_threads_t;
UNISONO_API int unisono_threads_create(int ranks, unisono_threads_t* threads);
UNISONO_API int unisono_init_thread(unisono_threads_t threads, int rank, unisono_comm_t* world);
UNISONO_API int unisono_threads_free(unisono_threads_t threads);

/* Ends this rank's part in the job. Its pending requests end with an error; all its communicators
 * end. Other ranks that still wait for this one get RANK_LOST. Returns an error that no earlier
 * call of this rank has reported, for instance a mismatch found after this rank had run ahead. */
UNISONO_API int unisono_finalize(unisono_comm_t world);

UNISONO_API int unisono_comm_rank(unisono_comm_t comm, int* rank);
UNISONO_API int unisono_comm_size(unisono_comm_t comm, int* size);

/* Makes a communicator with the same members and its own order of operations. Collective: all
 * members of `comm` call it. Errors: STATE, MISMATCH, RANK_LOST, RESOURCES. */
UNISONO_API int unisono_comm_dup(unisono_comm_t comm, unisono_comm_t* result);
/* Makes one communicator for each color, its ranks ordered by (key, old rank). Collective: a rank
 * with a negative color calls it as well, and gets NULL. */
UNISONO_API int unisono_comm_split(unisono_comm_t comm, int color, int key, unisono_comm_t* result);
/* Makes a communicator of the members `ranks[0..count)` of comm, in that order. Collective over all
 * of comm: every rank passes the same list, and ranks outside it get NULL. Errors: ARGUMENT (a rank
 * out of range or listed twice), MISMATCH. */
UNISONO_API int unisono_comm_from_list(unisono_comm_t comm, const int* ranks, int count,
                                       unisono_comm_t* result);
/* The same without the other members of comm: only the ranks on the list call it. They reach each
 * other by `exchange`, which gathers from them in the order of the list (see unisono_init_with). It
 * costs two calls of the exchange, or one among ranks of one host if fails_everywhere is set. Other
 * threads may use comm meanwhile, and make communicators from it in the same way.
 * All ranks on the list get a communicator, or all get an error. If the exchange fails at some
 * ranks only, the communicator of the others fails in its first call. If the first rank of the list
 * dies during the call, some of the job's memory is lost until the job ends.
 * Errors: ARGUMENT (different lists; a rank out of range or listed twice; the calling rank not
 * listed), STATE (comm), RESOURCES, SYSTEM (the allgather failed). The other ranks do not hear of
 * an invalid list. */
UNISONO_API int unisono_comm_from_list_with(unisono_comm_t comm, const int* ranks, int count,
                                            const unisono_exchange_t* exchange,
                                            unisono_comm_t* result);
/* Ends the calling rank's use of comm. Only unisono_finalize ends the world. If members on this
 * rank's host make a further call on comm, they get RANK_LOST, which names this rank. */
UNISONO_API int unisono_comm_free(unisono_comm_t comm);

/* Makes a communicator of the surviving members of comm, in their old order. Every survivor calls
 * it, after it has ended its requests on comm (wait returns their error) and its active plans. The
 * call waits for the other survivors as a collective does. It ends comm: on ranks that knew of no
 * failure, comm fails with CANCELLED. Free comm as any other. If no member died (for instance,
 * comm failed by a mismatch), the result has all members.
 *
 * All ranks that get a communicator get the same one, whichever ranks die meanwhile and whenever
 * the others notice it. A rank that dies after the agreement may be a member. Then the first call
 * that needs this rank reports it, and the new communicator has to be shrunk in turn.
 *
 * RANK_LOST has one of two causes:
 *  - The others took this rank for lost and go on without it for good: it was silent for
 *    UNISONO_DETECT_TIMEOUT_HOSTS, or stopped for UNISONO_DETECT_TIMEOUT.
 *  - The survivors have no majority: more than half of comm's hosts are lost, or exactly half of
 *    them with the host of comm's rank 0. The lost hosts may go on by themselves.
 *
 * Other errors: ARGUMENT, STATE (requests outstanding, shrunk before), TIMEOUT and CANCELLED (name
 * the ranks that it waited for; CANCELLED after unisono_set_interrupt only), RESOURCES. After
 * ARGUMENT, TIMEOUT, CANCELLED, and STATE because of requests, call it again; the others wait for
 * that. */
UNISONO_API int unisono_shrink(unisono_comm_t comm, unisono_comm_t* result);

/* Sets *rank to the member of comm that is the cause of its failure. That is the rank that made an
 * invalid call, the lost rank, or the rank that cancelled. For a mismatch it is a rank whose call
 * differs from that of the rank which found the difference. -1: comm has not failed, no single rank
 * is the cause (a deadline, for instance), or it is unknown. The call is local: it reads what this
 * rank has been told. Errors: ARGUMENT, STATE. */
UNISONO_API int unisono_comm_failed_rank(unisono_comm_t comm, int* rank);

enum {
  UNISONO_RANK_PRESENT = 0, /* as far as is known */
  UNISONO_RANK_LEFT = 1,    /* it has finalized, or ended its use of the communicator */
  UNISONO_RANK_LOST = 2     /* it died, is stopped or silent, and takes no part any more */
};
/* Set `size` to sizeof before the call; later versions may add fields at the end. */
typedef struct {
  size_t size;
  int32_t state; /* UNISONO_RANK_PRESENT ... */
  char why[256]; /* "rank 2 is lost (its process ended without finalize)"; "" if it is present */
} unisono_rank_state_t;
/* Gives the known state of one member of comm. It does not wait, and the member takes no part. A
 * look at the processes of this host is at most a tenth of UNISONO_DETECT_TIMEOUT old. The call
 * asks a member of another host for a sign, and a later call uses the answer. So repeat the call,
 * at least every second, to learn of a loss. It then comes in the times in which a waiting rank
 * learns it. A rank may ask at any time, also between start and wait, and also on a communicator
 * that has failed. The communicator does not fail by it. Errors: ARGUMENT, STATE, RESOURCES. */
UNISONO_API int unisono_comm_rank_state(unisono_comm_t comm, int rank, unisono_rank_state_t* state);

/* ---- collectives ------------------------------------------------------------------------------
 */

/* Stands for `input`, or for `output` of a scatter: input and output then lie in the one buffer
 * that is given. The input of an allgather lies in this rank's block. Some functions below have
 * further rules. */
#define UNISONO_IN_PLACE ((void*)-1)

/* Errors of all collectives: ARGUMENT (null, misaligned, overlapping or overflowing buffers, root
 * or count out of range), TYPE, STATE, MISMATCH, RANK_LOST, TIMEOUT, RESOURCES, PEER_ARGUMENT,
 * CANCELLED.
 *
 * After any of them on any rank the communicator has failed. Later calls on it return the same
 * error, and output buffers have undefined contents. A rank that makes the failed call late may
 * still complete it, if the others have done their part before; its result is right. A rank that
 * cannot make its call ends the communicator for all ranks. Causes are an invalid argument, no
 * pointer for a result, a plan that is still active, or a limit. The other ranks get PEER_ARGUMENT,
 * or RESOURCES, with the name of that rank.
 *
 * The library finds calls that differ between ranks when they communicate. A call that returned OK
 * before on some rank may have moved parts of both calls' data.
 *
 * If the communicator is invalid (its handle, or the plan's, is NULL or has ended), the call cannot
 * tell the other ranks. They wait, as for a late rank. */

/* Returns when all ranks have called it. */
UNISONO_API int unisono_barrier(unisono_comm_t comm);
/* Copies buffer[0..count) of the root to every rank's buffer. */
UNISONO_API int unisono_broadcast(void* buffer, int64_t count, unisono_type_t type, int root,
                                  unisono_comm_t comm);
/* At the root, output[i] = input[i] of rank 0 op input[i] of rank 1 op ... Other ranks' output is
 * ignored. IN_PLACE at the root only. */
UNISONO_API int unisono_reduce(const void* input, void* output, int64_t count, unisono_type_t type,
                               unisono_op_t op, int root, unisono_comm_t comm);
/* As reduce, with the same result, bit for bit, at every rank. */
UNISONO_API int unisono_allreduce(const void* input, void* output, int64_t count,
                                  unisono_type_t type, unisono_op_t op, unisono_comm_t comm);
/* output[r * count .. (r + 1) * count) = input of rank r. */
UNISONO_API int unisono_allgather(const void* input, void* output, int64_t count,
                                  unisono_type_t type, unisono_comm_t comm);
/* At the root, output[r * count .. (r + 1) * count) = input of rank r. Other ranks' output is
 * ignored. IN_PLACE at the root only: its input lies in its block of the output. */
UNISONO_API int unisono_gather(const void* input, void* output, int64_t count, unisono_type_t type,
                               int root, unisono_comm_t comm);
/* At rank r, output = input[r * count .. (r + 1) * count) of the root. Other ranks' input is
 * ignored. IN_PLACE at the root only, as its output: the root's block stays in the input. That
 * input must be writable memory; its bytes do not change. */
UNISONO_API int unisono_scatter(const void* input, void* output, int64_t count, unisono_type_t type,
                                int root, unisono_comm_t comm);
/* At rank s, output[r * count .. (r + 1) * count) = input[s * count .. (s + 1) * count) of rank r.
 */
UNISONO_API int unisono_alltoall(const void* input, void* output, int64_t count,
                                 unisono_type_t type, unisono_comm_t comm);
/* At rank r, output[i] = input[r * count + i] of rank 0 op input[r * count + i] of rank 1 op ...
 * IN_PLACE: the output's buffer has size * count elements and holds the whole input; the result
 * takes its first `count` elements, and the rest becomes undefined. */
UNISONO_API int unisono_reduce_scatter_block(const void* input, void* output, int64_t count,
                                             unisono_type_t type, unisono_op_t op,
                                             unisono_comm_t comm);
/* output[i] = input[i] of rank 0 op ... op input[i] of this rank. */
UNISONO_API int unisono_scan(const void* input, void* output, int64_t count, unisono_type_t type,
                             unisono_op_t op, unisono_comm_t comm);
/* output[i] = input[i] of rank 0 op ... op input[i] of the rank before this one. Rank 0's output is
 * ignored and stays unchanged. */
UNISONO_API int unisono_exscan(const void* input, void* output, int64_t count, unisono_type_t type,
                               unisono_op_t op, unisono_comm_t comm);

/* Blocks of different lengths, known to all ranks: every rank passes the same counts and receives.
 * `count` is counts[] of the calling rank. displacements[r] says where rank r's block lies in this
 * rank's output, in elements and without overlap; ranks may pass different displacements. NULL
 * means one block behind the other. The library reads arrays with an entry for each rank during the
 * call only, also in _start and _plan. */

/* output[displacements[r] .. displacements[r] + counts[r]) = input of rank r. IN_PLACE: this rank's
 * input lies in its block of the output, and count is ignored. */
UNISONO_API int unisono_allgatherv(const void* input, int64_t count, void* output,
                                   const int64_t counts[], const int64_t displacements[],
                                   unisono_type_t type, unisono_comm_t comm);
/* An allgatherv from some ranks to some. Ranks with counts[r] > 0 send. Ranks with
 * receives[r] == 1 get the blocks; if receives is NULL, all ranks do. The output and displacements
 * of other ranks are ignored. IN_PLACE only at ranks that receive. */
UNISONO_API int unisono_many_to_many(const void* input, int64_t count, void* output,
                                     const int64_t counts[], const int64_t displacements[],
                                     const int receives[], unisono_type_t type,
                                     unisono_comm_t comm);
/* Reduces the inputs of all ranks and distributes the result in blocks. Block r begins at element
 * counts[0] + ... + counts[r - 1] and becomes the output of rank r. IN_PLACE as in
 * reduce_scatter_block. */
UNISONO_API int unisono_reduce_scatter(const void* input, void* output, const int64_t counts[],
                                       unisono_type_t type, unisono_op_t op, unisono_comm_t comm);

/* Per-pair counts (MPI's v and w collectives). Each rank gives only the counts of the blocks that
 * it sends and receives. If sender and receiver of a block disagree, the error is MISMATCH; it
 * names both ranks and both lengths in bytes. One case may stay undetected: a short block that the
 * receiver expects to be empty.
 *
 * Counts and displacements are elements of `type`, 64 bits. The blocks of an output must not
 * overlap; those of an input may. Arrays have one entry for each rank. The library reads them
 * during the call only, also in _start and _plan. NULL displacements mean one block behind the
 * other. Empty blocks cost nothing, not even a message.
 *
 * Further errors: ARGUMENT (NULL arrays, negative counts or displacements, sums beyond 2^56 bytes,
 * output blocks that overlap each other or the input). */

/* At the root, output[displacements[r] .. displacements[r] + counts[r]) = input of rank r. Rank r
 * passes counts[r] as its `count`. Other ranks' output, counts and displacements are ignored.
 * IN_PLACE at the root only: its input lies in its block of the output, and its count is ignored.
 */
UNISONO_API int unisono_gatherv(const void* input, int64_t count, void* output,
                                const int64_t counts[], const int64_t displacements[],
                                unisono_type_t type, int root, unisono_comm_t comm);
/* At rank r, output[0 .. count) = input[displacements[r] .. displacements[r] + counts[r]) of the
 * root. Rank r passes counts[r] as its `count`. Other ranks' input, counts and displacements are
 * ignored. IN_PLACE at the root only, as its output: the root's block stays in the input, and its
 * count is ignored. That input must be writable memory; its bytes do not change. */
UNISONO_API int unisono_scatterv(const void* input, const int64_t counts[],
                                 const int64_t displacements[], void* output, int64_t count,
                                 unisono_type_t type, int root, unisono_comm_t comm);
/* Sends input[input_displacements[r] .. + input_counts[r]) to rank r, and receives rank r's block
 * at output[output_displacements[r] .. + output_counts[r]). IN_PLACE at any rank: the other input_
 * arguments are ignored, and each block is replaced by one of the same length from the same rank.
 */
UNISONO_API int unisono_alltoallv(const void* input, const int64_t input_counts[],
                                  const int64_t input_displacements[], void* output,
                                  const int64_t output_counts[],
                                  const int64_t output_displacements[], unisono_type_t type,
                                  unisono_comm_t comm);
/* An alltoallv with a type for each block. Counts are elements of input_types[r] and
 * output_types[r]; displacements are bytes from the buffer's start, as in MPI. Each block is
 * aligned as its type requires. Sender and receiver may give a block different types if the bytes
 * agree. Further error: TYPE (an unknown type, also for an empty block). IN_PLACE as in alltoallv.
 */
UNISONO_API int unisono_alltoallw(const void* input, const int64_t input_counts[],
                                  const int64_t input_displacements[],
                                  const unisono_type_t input_types[], void* output,
                                  const int64_t output_counts[],
                                  const int64_t output_displacements[],
                                  const unisono_type_t output_types[], unisono_comm_t comm);

/* ---- split phase ------------------------------------------------------------------------------
 */

typedef struct unisono_request_s* unisono_request_t;

/* A start returns at once. The buffers belong to the operation until test or wait says that it is
 * done. All ranks start the operations of a communicator in the same order; they may complete them
 * in any order. Blocking, split-phase and persistent calls of one shape are one call for the other
 * ranks, so each rank may choose. A failed start gives no request. */
UNISONO_API int unisono_barrier_start(unisono_comm_t comm, unisono_request_t* request);
UNISONO_API int unisono_broadcast_start(void* buffer, int64_t count, unisono_type_t type, int root,
                                        unisono_comm_t comm, unisono_request_t* request);
UNISONO_API int unisono_reduce_start(const void* input, void* output, int64_t count,
                                     unisono_type_t type, unisono_op_t op, int root,
                                     unisono_comm_t comm, unisono_request_t* request);
UNISONO_API int unisono_allreduce_start(const void* input, void* output, int64_t count,
                                        unisono_type_t type, unisono_op_t op, unisono_comm_t comm,
                                        unisono_request_t* request);
UNISONO_API int unisono_allgather_start(const void* input, void* output, int64_t count,
                                        unisono_type_t type, unisono_comm_t comm,
                                        unisono_request_t* request);
UNISONO_API int unisono_gather_start(const void* input, void* output, int64_t count,
                                     unisono_type_t type, int root, unisono_comm_t comm,
                                     unisono_request_t* request);
UNISONO_API int unisono_scatter_start(const void* input, void* output, int64_t count,
                                      unisono_type_t type, int root, unisono_comm_t comm,
                                      unisono_request_t* request);
UNISONO_API int unisono_alltoall_start(const void* input, void* output, int64_t count,
                                       unisono_type_t type, unisono_comm_t comm,
                                       unisono_request_t* request);
UNISONO_API int unisono_reduce_scatter_block_start(const void* input, void* output, int64_t count,
                                                   unisono_type_t type, unisono_op_t op,
                                                   unisono_comm_t comm, unisono_request_t* request);
UNISONO_API int unisono_scan_start(const void* input, void* output, int64_t count,
                                   unisono_type_t type, unisono_op_t op, unisono_comm_t comm,
                                   unisono_request_t* request);
UNISONO_API int unisono_exscan_start(const void* input, void* output, int64_t count,
                                     unisono_type_t type, unisono_op_t op, unisono_comm_t comm,
                                     unisono_request_t* request);
UNISONO_API int unisono_allgatherv_start(const void* input, int64_t count, void* output,
                                         const int64_t counts[], const int64_t displacements[],
                                         unisono_type_t type, unisono_comm_t comm,
                                         unisono_request_t* request);
UNISONO_API int unisono_many_to_many_start(const void* input, int64_t count, void* output,
                                           const int64_t counts[], const int64_t displacements[],
                                           const int receives[], unisono_type_t type,
                                           unisono_comm_t comm, unisono_request_t* request);
UNISONO_API int unisono_reduce_scatter_start(const void* input, void* output,
                                             const int64_t counts[], unisono_type_t type,
                                             unisono_op_t op, unisono_comm_t comm,
                                             unisono_request_t* request);
UNISONO_API int unisono_gatherv_start(const void* input, int64_t count, void* output,
                                      const int64_t counts[], const int64_t displacements[],
                                      unisono_type_t type, int root, unisono_comm_t comm,
                                      unisono_request_t* request);
UNISONO_API int unisono_scatterv_start(const void* input, const int64_t counts[],
                                       const int64_t displacements[], void* output, int64_t count,
                                       unisono_type_t type, int root, unisono_comm_t comm,
                                       unisono_request_t* request);
UNISONO_API int unisono_alltoallv_start(const void* input, const int64_t input_counts[],
                                        const int64_t input_displacements[], void* output,
                                        const int64_t output_counts[],
                                        const int64_t output_displacements[], unisono_type_t type,
                                        unisono_comm_t comm, unisono_request_t* request);
UNISONO_API int unisono_alltoallw_start(const void* input, const int64_t input_counts[],
                                        const int64_t input_displacements[],
                                        const unisono_type_t input_types[], void* output,
                                        const int64_t output_counts[],
                                        const int64_t output_displacements[],
                                        const unisono_type_t output_types[], unisono_comm_t comm,
                                        unisono_request_t* request);

/* Sets *done = 1 if the operation is complete. A completed (or failed) request ends and *request
 * becomes NULL. The use of a kept copy is UNISONO_ERROR_STATE. */
UNISONO_API int unisono_test(unisono_request_t* request, int* done);
UNISONO_API int unisono_wait(unisono_request_t* request);
/* Waits until one of requests[0..count) is complete, ends it, and gives its index. It skips NULL
 * entries; the index is -1 if all are NULL. */
UNISONO_API int unisono_wait_any(unisono_request_t* requests, int count, int* index);
UNISONO_API int unisono_wait_all(unisono_request_t* requests, int count);
/* Cancels an operation. If it is complete or has failed, the request ends as with wait. Otherwise
 * the operation ends for all ranks, because they count on it. Here the request ends and the call
 * returns OK. On every rank the communicator fails with UNISONO_ERROR_CANCELLED, which names the
 * rank that cancelled. If several ranks cancel, each call returns OK and the error names one of
 * them. A rank that already has all its data may still complete, and gets the error in its next
 * call. */
UNISONO_API int unisono_cancel(unisono_request_t* request);

/* ---- persistent -------------------------------------------------------------------------------
 */

typedef struct unisono_plan_s* unisono_plan_t;

/* Checks and prepares a collective once, for any number of starts with the same buffers. The call
 * is local: it does not communicate, and its error concerns no other rank. One start of a plan may
 * be active at a time. A second start meanwhile is STATE and fails the communicator, as any call
 * that a rank cannot make. */
UNISONO_API int unisono_barrier_plan(unisono_comm_t comm, unisono_plan_t* plan);
UNISONO_API int unisono_broadcast_plan(void* buffer, int64_t count, unisono_type_t type, int root,
                                       unisono_comm_t comm, unisono_plan_t* plan);
UNISONO_API int unisono_reduce_plan(const void* input, void* output, int64_t count,
                                    unisono_type_t type, unisono_op_t op, int root,
                                    unisono_comm_t comm, unisono_plan_t* plan);
UNISONO_API int unisono_allreduce_plan(const void* input, void* output, int64_t count,
                                       unisono_type_t type, unisono_op_t op, unisono_comm_t comm,
                                       unisono_plan_t* plan);
UNISONO_API int unisono_allgather_plan(const void* input, void* output, int64_t count,
                                       unisono_type_t type, unisono_comm_t comm,
                                       unisono_plan_t* plan);
UNISONO_API int unisono_gather_plan(const void* input, void* output, int64_t count,
                                    unisono_type_t type, int root, unisono_comm_t comm,
                                    unisono_plan_t* plan);
UNISONO_API int unisono_scatter_plan(const void* input, void* output, int64_t count,
                                     unisono_type_t type, int root, unisono_comm_t comm,
                                     unisono_plan_t* plan);
UNISONO_API int unisono_alltoall_plan(const void* input, void* output, int64_t count,
                                      unisono_type_t type, unisono_comm_t comm,
                                      unisono_plan_t* plan);
UNISONO_API int unisono_reduce_scatter_block_plan(const void* input, void* output, int64_t count,
                                                  unisono_type_t type, unisono_op_t op,
                                                  unisono_comm_t comm, unisono_plan_t* plan);
UNISONO_API int unisono_scan_plan(const void* input, void* output, int64_t count,
                                  unisono_type_t type, unisono_op_t op, unisono_comm_t comm,
                                  unisono_plan_t* plan);
UNISONO_API int unisono_exscan_plan(const void* input, void* output, int64_t count,
                                    unisono_type_t type, unisono_op_t op, unisono_comm_t comm,
                                    unisono_plan_t* plan);
UNISONO_API int unisono_allgatherv_plan(const void* input, int64_t count, void* output,
                                        const int64_t counts[], const int64_t displacements[],
                                        unisono_type_t type, unisono_comm_t comm,
                                        unisono_plan_t* plan);
UNISONO_API int unisono_many_to_many_plan(const void* input, int64_t count, void* output,
                                          const int64_t counts[], const int64_t displacements[],
                                          const int receives[], unisono_type_t type,
                                          unisono_comm_t comm, unisono_plan_t* plan);
UNISONO_API int unisono_reduce_scatter_plan(const void* input, void* output, const int64_t counts[],
                                            unisono_type_t type, unisono_op_t op,
                                            unisono_comm_t comm, unisono_plan_t* plan);
UNISONO_API int unisono_gatherv_plan(const void* input, int64_t count, void* output,
                                     const int64_t counts[], const int64_t displacements[],
                                     unisono_type_t type, int root, unisono_comm_t comm,
                                     unisono_plan_t* plan);
UNISONO_API int unisono_scatterv_plan(const void* input, const int64_t counts[],
                                      const int64_t displacements[], void* output, int64_t count,
                                      unisono_type_t type, int root, unisono_comm_t comm,
                                      unisono_plan_t* plan);
UNISONO_API int unisono_alltoallv_plan(const void* input, const int64_t input_counts[],
                                       const int64_t input_displacements[], void* output,
                                       const int64_t output_counts[],
                                       const int64_t output_displacements[], unisono_type_t type,
                                       unisono_comm_t comm, unisono_plan_t* plan);
UNISONO_API int unisono_alltoallw_plan(const void* input, const int64_t input_counts[],
                                       const int64_t input_displacements[],
                                       const unisono_type_t input_types[], void* output,
                                       const int64_t output_counts[],
                                       const int64_t output_displacements[],
                                       const unisono_type_t output_types[], unisono_comm_t comm,
                                       unisono_plan_t* plan);
UNISONO_API int unisono_plan_start(unisono_plan_t plan);
UNISONO_API int unisono_plan_test(unisono_plan_t plan, int* done);
UNISONO_API int unisono_plan_wait(unisono_plan_t plan);
/* STATE if a start is still active. */
UNISONO_API int unisono_plan_free(unisono_plan_t plan);

/* ---- global query -----------------------------------------------------------------------------
 */

typedef int32_t unisono_compare_t;
enum {
  UNISONO_EQUAL = 0,
  UNISONO_NOT_EQUAL = 1,
  UNISONO_LESS = 2,
  UNISONO_LESS_EQUAL = 3,
  UNISONO_GREATER = 4,
  UNISONO_GREATER_EQUAL = 5
};

/* Sets the caller's word in the communicator; returns at once. Every rank has such a word, 0 at
 * first. A rank that sees the word also sees all that the caller wrote before to memory that both
 * share. */
UNISONO_API int unisono_publish(unisono_comm_t comm, uint64_t value);
/* Sets *result = 1 if `word how value` (unsigned) holds for the word of every member, as it was at
 * some time during the call; else 0. The members take no part; they may compute or wait elsewhere.
 * The library reads the words from memory, or the agents of their ranks send them. It is not a
 * collective: a rank may ask at any time, also between start and wait, and also on a communicator
 * that has failed.
 *
 * Errors: ARGUMENT, STATE; RANK_LOST if a member has died, finalized, freed the communicator, or
 * does not answer. TIMEOUT (UNISONO_TIMEOUT) and CANCELLED (unisono_set_interrupt) name the members
 * that have not answered. None of them fails the communicator. RANK_LOST names the member. A member
 * of another host has UNISONO_DETECT_TIMEOUT_HOSTS (10 s by default) and a fifth of
 * UNISONO_DETECT_TIMEOUT to answer. */
UNISONO_API int unisono_query(unisono_comm_t comm, unisono_compare_t how, uint64_t value,
                              int* result);

/* ---- for front ends ---------------------------------------------------------------------------
 */

/* For a front end that checks arguments itself: this rank cannot make its next collective on comm,
 * because of `why` (NULL: no reason given). As after an invalid argument, the communicator has then
 * failed: the other ranks get PEER_ARGUMENT, with `why` and the name of this rank. Returns ARGUMENT
 * with the message for this rank, or STATE. */
UNISONO_API int unisono_refuse(unisono_comm_t comm, const char* why);

/* On how many hosts the ranks of comm are, 1 or more. Errors: ARGUMENT, STATE. */
UNISONO_API int unisono_comm_hosts(unisono_comm_t comm, int* hosts);

/* For a front end that can leave calls to an MPI: which calls the MPI `library` does faster, by the
 * machine file of the job. They are for as many ranks on as many hosts as comm has.
 * Calls `found` for each range, on this thread. `collective` is in small letters as MPI spells it,
 * and valid during the call. The bytes are of a rank's block or vector, both ends included;
 * `up_to_bytes` 0: any. All ranks of a job have the same machine file, so all get the same ranges.
 * `library` is the name that `unisono mpirun --tune` wrote. Not a collective.
 * Errors: ARGUMENT, STATE. */
typedef void (*unisono_range_found_t)(const char* collective, int64_t from_bytes,
                                      int64_t up_to_bytes, void* user);
UNISONO_API int unisono_faster_by_mpi(unisono_comm_t comm, const char* library,
                                      unisono_range_found_t found, void* user);

/* For a front end that chooses between collectives: a number of bytes of the job's machine file, by
 * its key there, such as "exchange_from". If the file lacks the key, the default machine counts.
 * All ranks of a job get the same. `key` must not be NULL. After an error *bytes is unchanged. Not
 * a collective. Errors: ARGUMENT (also: no number of bytes has this key), STATE. */
UNISONO_API int unisono_machine_bytes(unisono_comm_t comm, const char* key, int64_t* bytes);

/* A collective that a front end has left to another library. Set `size` to sizeof; later versions
 * may add fields at the end. */
typedef struct {
  size_t size;
  const char* collective; /* its name, such as "allreduce" */
  const char* library;    /* which library did it */
  const char* reason;     /* why it was left to that library */
  unisono_type_t type;    /* or UNISONO_PROFILE_NONE, UNISONO_PROFILE_OTHER */
  unisono_op_t op;        /* the same */
  int ranks, hosts;       /* of the communicator; 0 hosts: not known */
  int started;            /* 1: it was started, and completes later */
  int64_t bytes;          /* of a rank's vector or block; 0: none, or not known */
  int64_t ns;             /* its time */
} unisono_profiled_call_t;
enum {
  UNISONO_PROFILE_NONE = -1, /* the collective has none */
  UNISONO_PROFILE_OTHER = -2 /* one that this library does not have */
};
/* Counts the call in the profile of this process, so that the profile shows such calls too. Without
 * UNISONO_PROFILE it does nothing. Before the first job of the process, the rank that a launcher
 * gave names the profile; without a launcher such calls are not counted. Any thread.
 * Errors: ARGUMENT. */
UNISONO_API int unisono_profile_call(const unisono_profiled_call_t* call);
/* Saves the profile of this process as far as calls are counted, before the process ends otherwise
 * than by exit(), which saves it too. It waits for a second at most. Without UNISONO_PROFILE it
 * does nothing. Any thread, also in a signal handler. */
UNISONO_API int unisono_profile_save(void);

/* Whether a waiting call has to end. 0: no. UNISONO_INTERRUPT_LATE: yes, because a deadline of the
 * front end has passed. Any other number: yes, for instance because of a signal. */
enum { UNISONO_INTERRUPT_LATE = 2 };
typedef int (*unisono_interrupt_t)(void* user);
/* A rank that waits for operations of comm asks `interrupt` on the waiting thread. It asks after a
 * signal that ends its sleep, and at least every fifth of UNISONO_DETECT_TIMEOUT. Short waits do
 * not ask. If the answer is nonzero, the operations in progress end for all ranks: the
 * communicator has failed with CANCELLED, which names this rank. After UNISONO_INTERRUPT_LATE it
 * has failed with TIMEOUT, which names the ranks that have not made the call. unisono_query and
 * unisono_shrink end with the same codes for this rank alone. `interrupt` may do
 * anything but use the communicator. NULL: none. Communicators made from comm do not take it over.
 * Errors: STATE. */
UNISONO_API int unisono_set_interrupt(unisono_comm_t comm, unisono_interrupt_t interrupt,
                                      void* user);

/* For a thread that only communicates while other threads of the process compute on the same cores.
 * Its waits, in any communicator, spin for 0.2 ms and then sleep; they never yield. Where ranks
 * share cores or the job spans hosts they sleep at once. The thread asks the kernel for short time
 * slices (UNISONO_SHORT_SLICES), so that it gets the core when it is woken. 0 ends it. Any time,
 * for the calling thread. */
UNISONO_API int unisono_set_background_thread(int is_background);

/* ---- memory that the ranks of a host share ----------------------------------------------------
 */

/* At least `bytes` bytes, zeroed, that the other ranks of this host can read. Long reductions copy
 * once less from buffers that lie in it: the receivers read them where they are. The ranks need not
 * agree: each may pass such memory or any other, and gets the same results. Between hosts it is
 * ordinary memory.
 *
 * It costs whole pages of 64 KiB and several system calls, so it is meant for few and long buffers
 * that are used again. Its pages count as this process's shared memory; /dev/shm is not used. It
 * belongs to the caller until unisono_memory_free, also after unisono_finalize, and vanishes with
 * the process. A child of fork() shares it with its parent. Other ranks read it only during
 * collectives that it is passed to. *memory is NULL after an error.
 *
 * Not a collective. Any thread, as long as comm lives. An error does not end comm: the caller may
 * use other memory instead. Errors: ARGUMENT, STATE, RESOURCES (with the limit that was met). */
UNISONO_API int unisono_memory_alloc(unisono_comm_t comm, size_t bytes, void** memory);
/* Not while an operation uses it. NULL does nothing. Any thread. Errors: ARGUMENT for anything that
 * is no such memory or was freed before, STATE in a child of fork(). */
UNISONO_API int unisono_memory_free(void* memory);

/* ---- what is going on -------------------------------------------------------------------------
 */

/* Memory and counters of a communicator. Set `size` to sizeof before the call; later versions may
 * add fields at the end. */
typedef struct {
  size_t size;
  int64_t buffer_bytes; /* shared memory of this communicator, all ranks together */
  int64_t operations;   /* collectives completed by this rank */
  int64_t sleeps;       /* times this rank slept in the kernel while it waited */
  int64_t helped_steps; /* steps this rank did for other ranks */
  char algorithm[128];  /* of the last collective, e.g. "pairwise" */
  char engine[16];      /* of the last collective: "inline" or "helping" */
  int64_t multicasts;   /* messages that this rank sent to several ranks */
  int64_t stagings;     /* multicasts that this rank copied to a shared buffer: once for all
                           receivers, and not at all where they read the caller's buffer */
} unisono_comm_info_t;
UNISONO_API int unisono_comm_info(unisono_comm_t comm, unisono_comm_info_t* info);

#ifdef __cplusplus
}
#endif

#endif
