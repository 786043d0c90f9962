/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Unisono: collective communication that does not wait for host CPUs. This header is the contract:
 * it is all that is installed besides unisono.hpp (C++20 over it), and everything not said here may
 * change. Guide: docs/tutorial; this file is the reference.
 *
 * Every function returns UNISONO_OK or an error code; unisono_last_error() then says, for the
 * calling thread, what happened, where, on which rank, and what to do. Nothing is thrown, and no
 * misuse listed under a function crashes the caller or leaves the other ranks hanging.
 *
 * Threads: a communicator, its requests and its plans are used by one thread at a time; different
 * communicators may be used by different threads at once.
 *
 * Counts are elements of the given type, 64 bits, and may be 0. Buffers belong to the caller; a
 * collective uses them from its start until its completion, and they must not overlap each other.
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
  UNISONO_ERROR_RANK_LOST = 5,      /* a rank exited, was killed, or left */
  UNISONO_ERROR_TIMEOUT = 6,        /* a deadline passed */
  UNISONO_ERROR_RESOURCES = 7,      /* memory, descriptors, or a named limit */
  UNISONO_ERROR_SYSTEM = 8,         /* a system call failed */
  UNISONO_ERROR_UNSUPPORTED = 9,    /* right, but not available here */
  UNISONO_ERROR_PEER_ARGUMENT = 10, /* another rank passed something invalid */
  UNISONO_ERROR_CANCELLED = 11      /* a rank gave the operation up */
};

/* The message of the calling thread's last failed call; "" if none. Valid until its next call. */
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

/* An opaque element of `size` bytes with the given alignment (a power of two, at most 64, of which
 * the size is a multiple), for moving and for user-defined operators. All ranks create their types
 * and operators in the same order. Lives until the end of the process. Errors: ARGUMENT, RESOURCES
 * (more than 1000). */
UNISONO_API int unisono_type_create(size_t size, size_t alignment, unisono_type_t* type);

/* target[i] = left[i] op right[i] for count elements; target is left or right or overlaps neither.
 */
typedef void (*unisono_function_t)(void* target, const void* left, const void* right, int64_t count,
                                   unisono_type_t type, void* user);

/* An operator of the caller's. commutative == 0 keeps the order of ranks; it must be associative.
 * `user` is handed to each call. Lives until the end of the process. Errors: ARGUMENT, RESOURCES.
 */
UNISONO_API int unisono_op_create(unisono_function_t function, int commutative, void* user,
                                  unisono_op_t* op);

/* ---- jobs and communicators --------------------------------------------------------------------
 */

typedef struct unisono_comm_s* unisono_comm_t;

/* Joins the job that the environment describes (unisono run, mpirun, mpiexec, srun, torchrun, or
 * UNISONO_RANK, UNISONO_SIZE and UNISONO_RENDEZVOUS; none of these: a job of one rank) and gives
 * the communicator of all its ranks. Returns when all ranks have come, or when one of them has died
 * on the way, or after UNISONO_START_TIMEOUT with the missing ranks named. Once per process.
 * Errors: ARGUMENT (environment), STATE (second call), RANK_LOST, TIMEOUT, RESOURCES, SYSTEM. */
UNISONO_API int unisono_init(unisono_comm_t* world);

/* Ranks that are threads of this process (tests, examples): create the job once, then each thread
 * calls unisono_init_thread with its rank. Free it after all have finalized. */
typedef struct unisono_threads_s* unisono_threads_t;
UNISONO_API int unisono_threads_create(int ranks, unisono_threads_t* threads);
UNISONO_API int unisono_init_thread(unisono_threads_t threads, int rank, unisono_comm_t* world);
UNISONO_API int unisono_threads_free(unisono_threads_t threads);

/* Ends the rank's part in the job: pending requests end with an error, all its communicators end.
 * Other ranks that still wait for this one get RANK_LOST. An error that this rank has not been
 * told yet (a mismatch after it had run ahead) is returned here. */
UNISONO_API int unisono_finalize(unisono_comm_t world);

UNISONO_API int unisono_comm_rank(unisono_comm_t comm, int* rank);
UNISONO_API int unisono_comm_size(unisono_comm_t comm, int* size);

/* Collective over `comm`; all members call it. A duplicate has the same members and its own order
 * of operations. Errors: STATE, MISMATCH, RANK_LOST, RESOURCES. */
UNISONO_API int unisono_comm_dup(unisono_comm_t comm, unisono_comm_t* result);
/* One communicator for each color, its ranks ordered by (key, old rank). A negative color takes no
 * part and gets NULL. */
UNISONO_API int unisono_comm_split(unisono_comm_t comm, int color, int key, unisono_comm_t* result);
/* The members `ranks[0..count)` of comm in that order; collective over all of comm, every rank
 * passes the same list; those outside get NULL. Errors: ARGUMENT (out of range, twice), MISMATCH.
 */
UNISONO_API int unisono_comm_from_list(unisono_comm_t comm, const int* ranks, int count,
                                       unisono_comm_t* result);
/* Ends the calling rank's use of comm; the world ends with unisono_finalize only. Members on the
 * rank's host that make a further call get RANK_LOST, with its name. */
UNISONO_API int unisono_comm_free(unisono_comm_t comm);

/* Goes on without those who are lost: gives those members of comm that live a communicator of
 * themselves, in their old order. Every member that lives calls it, once it has ended its requests
 * on comm (wait gives their error) and active plans; it waits for them as a collective does. It
 * ends comm, which fails with CANCELLED on ranks that knew of no failure; free it as any other.
 * Where nobody died (comm failed by a mismatch, say) all members are in the new one.
 *
 * All that get a communicator get the same, whoever dies meanwhile and whenever they learn of it.
 * Who dies after the agreement may be a member; then the first call that needs it says so, and the
 * new communicator is to be shrunk. RANK_LOST: the others took this rank for lost (it was silent
 * for UNISONO_DETECT_TIMEOUT_HOSTS, or stopped for UNISONO_DETECT_TIMEOUT) and go on without it for
 * good; or half of the communicator's hosts or more are lost, and with half of them that of its
 * rank 0, so that nobody can know whether those go on by themselves. Other errors: ARGUMENT, STATE
 * (requests outstanding, shrunk before), TIMEOUT (who was waited for is named), RESOURCES. After
 * ARGUMENT, TIMEOUT, and STATE because of requests, it may be called again; the others wait for
 * that. */
UNISONO_API int unisono_shrink(unisono_comm_t comm, unisono_comm_t* result);

/* ---- collectives ------------------------------------------------------------------------------
 */

/* Passed instead of `input`, or, to a scatter, instead of `output`: both then lie in the buffer
 * that is given, the input of an allgather in this rank's block; where else it matters it is said
 * below.
 */
#define UNISONO_IN_PLACE ((void*)-1)

/* Errors of all collectives: ARGUMENT (null, misaligned, overlapping or overflowing buffers, root
 * or count out of range), TYPE, STATE, MISMATCH, RANK_LOST, TIMEOUT, RESOURCES, PEER_ARGUMENT,
 * CANCELLED. After any of them on any rank the communicator has failed: later calls on it return
 * the same error, and output buffers hold nothing of use. A rank that cannot make its call, for an
 * invalid argument, no place for a result, a plan that is still active or a limit, ends the
 * communicator for all: the others get PEER_ARGUMENT, or RESOURCES, with the name of that rank.
 * Where the ranks' calls differ, that is found when they meet or have waited for each other: one
 * that returns OK on a rank before may have moved parts of both.
 * Only a call without a communicator (its handle, or the plan's, is NULL or has ended) tells nobody
 * else: the others wait, as for a rank that comes late. */

UNISONO_API int unisono_barrier(unisono_comm_t comm);
/* root's buffer[0..count) to everyone's. */
UNISONO_API int unisono_broadcast(void* buffer, int64_t count, unisono_type_t type, int root,
                                  unisono_comm_t comm);
/* output[i] at the root = input[i] of rank 0 op input[i] of rank 1 op ...; output is ignored
 * elsewhere. IN_PLACE at the root only. */
UNISONO_API int unisono_reduce(const void* input, void* output, int64_t count, unisono_type_t type,
                               unisono_op_t op, int root, unisono_comm_t comm);
/* The same result, bit for bit, at every rank. */
UNISONO_API int unisono_allreduce(const void* input, void* output, int64_t count,
                                  unisono_type_t type, unisono_op_t op, unisono_comm_t comm);
/* output[r * count .. (r + 1) * count) = input of rank r. */
UNISONO_API int unisono_allgather(const void* input, void* output, int64_t count,
                                  unisono_type_t type, unisono_comm_t comm);
/* At the root, output[r * count .. (r + 1) * count) = input of rank r; output is ignored elsewhere.
 * IN_PLACE at the root only: its input lies in its block of the output. */
UNISONO_API int unisono_gather(const void* input, void* output, int64_t count, unisono_type_t type,
                               int root, unisono_comm_t comm);
/* output = input[r * count .. (r + 1) * count) of the root, at rank r; input is ignored elsewhere.
 * IN_PLACE at the root only, and for its output: its block stays where it is in the input, which
 * then has to be memory that may be written, with the same bytes. */
UNISONO_API int unisono_scatter(const void* input, void* output, int64_t count, unisono_type_t type,
                                int root, unisono_comm_t comm);
/* output[r * count .. (r + 1) * count) = this rank's block of input of rank r, whose block s is
 * input[s * count .. (s + 1) * count). */
UNISONO_API int unisono_alltoall(const void* input, void* output, int64_t count,
                                 unisono_type_t type, unisono_comm_t comm);
/* output[i] = input[r * count + i] of rank 0 op that of rank 1 op ..., at rank r. In place the
 * input is all of the output's buffer, of size * count elements, and the result its first `count`;
 * what the others then hold is undefined. */
UNISONO_API int unisono_reduce_scatter_block(const void* input, void* output, int64_t count,
                                             unisono_type_t type, unisono_op_t op,
                                             unisono_comm_t comm);
/* output[i] = input[i] of rank 0 op ... op input[i] of this rank. */
UNISONO_API int unisono_scan(const void* input, void* output, int64_t count, unisono_type_t type,
                             unisono_op_t op, unisono_comm_t comm);
/* output[i] = input[i] of rank 0 op ... op input[i] of the rank before this one. Rank 0 gets
 * nothing: its output is ignored, and stays as it is. */
UNISONO_API int unisono_exscan(const void* input, void* output, int64_t count, unisono_type_t type,
                               unisono_op_t op, unisono_comm_t comm);

/* Blocks of different lengths. `counts` (and what else has an entry for each rank) are read during
 * the call only, by _start and _plan as well; all ranks pass the same counts and receives, and
 * `count` is counts[] of the calling rank. A rank's displacements are its own affair: where each
 * rank's block lies in its output, in elements, without overlap; NULL: one behind the other. */

/* output[displacements[r] .. displacements[r] + counts[r]) = input of rank r. In place the input
 * lies there already, and count is ignored. */
UNISONO_API int unisono_allgatherv(const void* input, int64_t count, void* output,
                                   const int64_t counts[], const int64_t displacements[],
                                   unisono_type_t type, unisono_comm_t comm);
/* From some ranks to some: what allgatherv does, but only ranks r with receives[r] == 1 get the
 * blocks (all ranks where receives is NULL), and only ranks with counts[r] > 0 send any. The
 * others' output and displacements are ignored. IN_PLACE at ranks that receive only. */
UNISONO_API int unisono_many_to_many(const void* input, int64_t count, void* output,
                                     const int64_t counts[], const int64_t displacements[],
                                     const int receives[], unisono_type_t type,
                                     unisono_comm_t comm);
/* The reduction of the inputs of all ranks, in blocks: block r, which follows the counts[0] + ... +
 * counts[r - 1] elements before it, becomes the output of rank r. In place as with
 * reduce_scatter_block. */
UNISONO_API int unisono_reduce_scatter(const void* input, void* output, const int64_t counts[],
                                       unisono_type_t type, unisono_op_t op, unisono_comm_t comm);

/* Blocks whose lengths only their two ends know, as in MPI: a rank gives the counts of the blocks
 * that it sends and receives. Where the two ends of a block disagree, both ranks and both lengths
 * (in bytes) are named: MISMATCH; only a short block that its receiver takes for empty may stay
 * unseen. Counts and displacements are elements of `type`, 64 bits; those
 * of an output must not let its blocks overlap, those of an input may. Arrays have one entry for
 * each rank, are read during the call only, by _start and _plan as well, and NULL displacements
 * mean one block behind the other. Blocks that are empty cost nothing, not even a message. Further
 * errors: ARGUMENT (NULL arrays, negative counts or displacements, sums beyond 2^56 bytes, output
 * blocks that overlap each other or the input). */

/* At the root, output[displacements[r] .. displacements[r] + counts[r]) = input of rank r, which
 * passes counts[r] as its `count`; output, counts and displacements are ignored elsewhere. IN_PLACE
 * at the root only: its input lies in its block already, and its count is ignored. */
UNISONO_API int unisono_gatherv(const void* input, int64_t count, void* output,
                                const int64_t counts[], const int64_t displacements[],
                                unisono_type_t type, int root, unisono_comm_t comm);
/* output[0 .. count) = input[displacements[r] .. displacements[r] + counts[r]) of the root, at rank
 * r, which passes counts[r] as its `count`; input, counts and displacements are ignored elsewhere.
 * IN_PLACE at the root only, and for its output: its block stays where it is in the input, which
 * then has to be memory that may be written, with the same bytes; its count is ignored. */
UNISONO_API int unisono_scatterv(const void* input, const int64_t counts[],
                                 const int64_t displacements[], void* output, int64_t count,
                                 unisono_type_t type, int root, unisono_comm_t comm);
/* The block of input_counts[r] elements from input_displacements[r] on in the input goes to rank r,
 * and the block of rank r to output_counts[r] elements from output_displacements[r] on in the
 * output. IN_PLACE at any rank: the other input_ arguments are ignored, and each block is replaced
 * by one of the same length from the same rank. */
UNISONO_API int unisono_alltoallv(const void* input, const int64_t input_counts[],
                                  const int64_t input_displacements[], void* output,
                                  const int64_t output_counts[],
                                  const int64_t output_displacements[], unisono_type_t type,
                                  unisono_comm_t comm);
/* An alltoallv whose blocks each have a type: counts are elements of input_types[r] and
 * output_types[r], displacements are bytes from the buffer's start, as in MPI. Blocks are aligned
 * as their types ask. The two types of a block may differ if its bytes agree. Further error: TYPE
 * (an unknown one, also for an empty block). IN_PLACE as with alltoallv. */
UNISONO_API int unisono_alltoallw(const void* input, const int64_t input_counts[],
                                  const int64_t input_displacements[],
                                  const unisono_type_t input_types[], void* output,
                                  const int64_t output_counts[],
                                  const int64_t output_displacements[],
                                  const unisono_type_t output_types[], unisono_comm_t comm);

/* ---- split phase ------------------------------------------------------------------------------
 */

typedef struct unisono_request_s* unisono_request_t;

/* Start returns at once; the buffers belong to the operation until test or wait says it is done.
 * Operations of one communicator are started in the same order by all its ranks, and may be
 * completed in any order. An operation is split-phase on all ranks or on none: where only some
 * start it, it may end with MISMATCH. A failed start gives no request. */
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

/* *done = 1 if complete. A completed (or failed) request ends and *request becomes NULL; a second
 * use of a kept copy is UNISONO_ERROR_STATE. */
UNISONO_API int unisono_test(unisono_request_t* request, int* done);
UNISONO_API int unisono_wait(unisono_request_t* request);
/* Waits until one of requests[0..count) is complete, ends it, and gives its index; NULL entries
 * are passed over; -1 if all are NULL. */
UNISONO_API int unisono_wait_any(unisono_request_t* requests, int count, int* index);
UNISONO_API int unisono_wait_all(unisono_request_t* requests, int count);
/* Gives an operation up. If it is complete, or has failed, the request ends as with wait. Otherwise
 * the other ranks count on it, so it ends for all: here the request ends and the call returns OK,
 * and the communicator fails on every rank with UNISONO_ERROR_CANCELLED, naming the rank that
 * cancelled. Where several ranks cancel, each call returns OK, be it the first or not, and one of
 * them is named. A rank that already has all it needs may still complete, and is told at its next
 * call. */
UNISONO_API int unisono_cancel(unisono_request_t* request);

/* ---- persistent -------------------------------------------------------------------------------
 */

typedef struct unisono_plan_s* unisono_plan_t;

/* Checks and prepares a collective once, for any number of starts with the same buffers. Local: no
 * communication, and an error concerns nobody else. One start of a plan may be active at a time: to
 * start it again is STATE, and fails the communicator as any call that cannot be made. */
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

/* Every rank has a word in each communicator, 0 at first. Sets the caller's; returns at once.
 * What it wrote before to memory that it shares with another rank is seen by who sees the word. */
UNISONO_API int unisono_publish(unisono_comm_t comm, uint64_t value);
/* *result = 1 if `word how value` holds (unsigned) for the word of every member, as it was at some
 * time during the call; else 0. The members take no part, may compute or wait elsewhere: words are
 * read from memory, or sent by their ranks' agents. No collective, so a rank may ask at any time,
 * between start and wait as well, and on a communicator that has failed.
 * Errors: ARGUMENT, STATE; RANK_LOST, which names it, if a member has died, left, or does not
 * answer (one of another host, within UNISONO_DETECT_TIMEOUT_HOSTS, 10 s by default, and a
 * fifth of UNISONO_DETECT_TIMEOUT): the communicator does not fail by it. */
UNISONO_API int unisono_query(unisono_comm_t comm, unisono_compare_t how, uint64_t value,
                              int* result);

/* ---- what is going on -------------------------------------------------------------------------
 */

/* What a communicator has and does. Fields may be added at the end; set `size` to sizeof before. */
typedef struct {
  size_t size;
  int64_t buffer_bytes; /* shared memory of this communicator, all ranks together */
  int64_t operations;   /* collectives completed by this rank */
  int64_t sleeps;       /* times this rank slept in the kernel while it waited */
  int64_t helped_steps; /* steps this rank did for others */
  char algorithm[64];   /* of the last collective, e.g. "pairwise" */
  char engine[16];      /* of the last collective: "inline" or "helping" */
  int64_t multicasts;   /* messages that this rank sent to several others */
  int64_t stagings;     /* times it wrote one of them for its receivers: once each, not once for
                           each of them, and not at all where they read it from its buffer */
} unisono_comm_info_t;
UNISONO_API int unisono_comm_info(unisono_comm_t comm, unisono_comm_info_t* info);

#ifdef __cplusplus
}
#endif

#endif
