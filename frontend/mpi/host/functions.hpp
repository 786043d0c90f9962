// SPDX-License-Identifier: BSD-3-Clause
// The MPI functions that the drop-in interposes and those that it calls, each with its parameters.
// A handle (communicator, datatype, operator) is an int in MPICH, a pointer in Open MPI and in the
// standard ABI. Both travel in one register or stack slot of 8 bytes, so one declaration serves
// both. The upper half of an int handle is undefined: Host::handle() removes it. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace unisono::mpi {

using Handle = std::uintptr_t;
using CopyAttribute = int(Handle, int, void*, void*, void*, int*);
using DeleteAttribute = int(Handle, int, void*, void*);
using HandleErrors = void(Handle*, int*, ...);
using QueryRequest = int(void* extra, void* status);
using PollRequest = int(void* extra, void* status);
using WaitForRequests = int(int count, void** extras, double timeout, void* status);
using FreeRequest = int(void* extra);
using CancelRequest = int(void* extra, int is_complete);

}  // namespace unisono::mpi

// The parameters or arguments of a list below without their parentheses.
#define UNISONO_MPI_UNPACK(...) __VA_ARGS__

// Each collective with counts, and the name of its nonblocking counterpart, which has one more
// parameter: Handle* request. The persistent one is name_init, with Handle info besides. Count and
// Offset (of displacements) are int; in functions with large counts (name_c) they have 8 bytes.
// clang-format off
#define UNISONO_MPI_COUNTED(F) \
  F(Bcast, Ibcast, (void* buffer, Count count, Handle type, int root, Handle comm), \
    (buffer, count, type, root, comm)) \
  F(Reduce, Ireduce, (const void* send, void* receive, Count count, Handle type, Handle op, int root, \
             Handle comm), \
    (send, receive, count, type, op, root, comm)) \
  F(Allreduce, Iallreduce, (const void* send, void* receive, Count count, Handle type, Handle op, Handle comm), \
    (send, receive, count, type, op, comm)) \
  F(Scan, Iscan, (const void* send, void* receive, Count count, Handle type, Handle op, Handle comm), \
    (send, receive, count, type, op, comm)) \
  F(Exscan, Iexscan, (const void* send, void* receive, Count count, Handle type, Handle op, Handle comm), \
    (send, receive, count, type, op, comm)) \
  F(Reduce_scatter_block, Ireduce_scatter_block, \
    (const void* send, void* receive, Count count, Handle type, Handle op, Handle comm), \
    (send, receive, count, type, op, comm)) \
  F(Reduce_scatter, Ireduce_scatter, \
    (const void* send, void* receive, const Count* counts, Handle type, Handle op, Handle comm), \
    (send, receive, counts, type, op, comm)) \
  F(Allgather, Iallgather, (const void* send, Count send_count, Handle send_type, void* receive, \
                Count receive_count, Handle receive_type, Handle comm), \
    (send, send_count, send_type, receive, receive_count, receive_type, comm)) \
  F(Allgatherv, Iallgatherv, (const void* send, Count send_count, Handle send_type, void* receive, \
                 const Count* counts, const Offset* displacements, Handle receive_type, Handle comm), \
    (send, send_count, send_type, receive, counts, displacements, receive_type, comm)) \
  F(Gather, Igather, (const void* send, Count send_count, Handle send_type, void* receive, \
             Count receive_count, Handle receive_type, int root, Handle comm), \
    (send, send_count, send_type, receive, receive_count, receive_type, root, comm)) \
  F(Gatherv, Igatherv, (const void* send, Count send_count, Handle send_type, void* receive, \
              const Count* counts, const Offset* displacements, Handle receive_type, int root, \
              Handle comm), \
    (send, send_count, send_type, receive, counts, displacements, receive_type, root, comm)) \
  F(Scatter, Iscatter, (const void* send, Count send_count, Handle send_type, void* receive, \
              Count receive_count, Handle receive_type, int root, Handle comm), \
    (send, send_count, send_type, receive, receive_count, receive_type, root, comm)) \
  F(Scatterv, Iscatterv, (const void* send, const Count* counts, const Offset* displacements, Handle send_type, \
               void* receive, Count receive_count, Handle receive_type, int root, Handle comm), \
    (send, counts, displacements, send_type, receive, receive_count, receive_type, root, comm)) \
  F(Alltoall, Ialltoall, (const void* send, Count send_count, Handle send_type, void* receive, \
               Count receive_count, Handle receive_type, Handle comm), \
    (send, send_count, send_type, receive, receive_count, receive_type, comm)) \
  F(Alltoallv, Ialltoallv, (const void* send, const Count* send_counts, const Offset* send_displacements, \
                Handle send_type, void* receive, const Count* receive_counts, \
                const Offset* receive_displacements, Handle receive_type, Handle comm), \
    (send, send_counts, send_displacements, send_type, receive, receive_counts, \
     receive_displacements, receive_type, comm)) \
  F(Alltoallw, Ialltoallw, (const void* send, const Count* send_counts, \
                            const Offset* send_displacements, const void* send_types, void* receive, \
                            const Count* receive_counts, const Offset* receive_displacements, \
                            const void* receive_types, Handle comm), \
    (send, send_counts, send_displacements, send_types, receive, receive_counts, \
     receive_displacements, receive_types, comm))

#define UNISONO_MPI_COLLECTIVES(F) \
  F(Barrier, Ibarrier, (Handle comm), (comm)) \
  UNISONO_MPI_COUNTED(F)

// Neighbourhood collectives, which the host MPI does. The drop-in has the persistent ones, to know
// their requests. Open MPI 4.1 has those as an extension. Count and Offset as above.
#define UNISONO_MPI_NEIGHBOURS(F) \
  F(Neighbor_allgather_init, \
    (const void* send, Count send_count, Handle send_type, void* receive, Count receive_count, \
     Handle receive_type, Handle comm, Handle info, Handle* request), \
    (send, send_count, send_type, receive, receive_count, receive_type, comm, info, request)) \
  F(Neighbor_allgatherv_init, \
    (const void* send, Count send_count, Handle send_type, void* receive, const Count* counts, \
     const Offset* displacements, Handle receive_type, Handle comm, Handle info, Handle* request), \
    (send, send_count, send_type, receive, counts, displacements, receive_type, comm, info, request)) \
  F(Neighbor_alltoall_init, \
    (const void* send, Count send_count, Handle send_type, void* receive, Count receive_count, \
     Handle receive_type, Handle comm, Handle info, Handle* request), \
    (send, send_count, send_type, receive, receive_count, receive_type, comm, info, request)) \
  F(Neighbor_alltoallv_init, \
    (const void* send, const Count* send_counts, const Offset* send_displacements, Handle send_type, \
     void* receive, const Count* receive_counts, const Offset* receive_displacements, \
     Handle receive_type, Handle comm, Handle info, Handle* request), \
    (send, send_counts, send_displacements, send_type, receive, receive_counts, \
     receive_displacements, receive_type, comm, info, request)) \
  F(Neighbor_alltoallw_init, \
    (const void* send, const Count* send_counts, const void* send_displacements, \
     const void* send_types, void* receive, const Count* receive_counts, \
     const void* receive_displacements, const void* receive_types, Handle comm, \
     Handle info, Handle* request), \
    (send, send_counts, send_displacements, send_types, receive, receive_counts, \
     receive_displacements, receive_types, comm, info, request))

// Functions on requests. The program's arrays of requests are void*: Host::handle_at().
#define UNISONO_MPI_REQUESTS(F) \
  F(Start, (Handle* request), (request)) \
  F(Startall, (int count, void* requests), (count, requests)) \
  F(Request_free, (Handle* request), (request)) \
  F(Request_get_status, (Handle request, int* flag, void* status), (request, flag, status)) \
  F(Wait, (Handle* request, void* status), (request, status)) \
  F(Waitall, (int count, void* requests, void* statuses), (count, requests, statuses)) \
  F(Waitany, (int count, void* requests, int* index, void* status), \
    (count, requests, index, status)) \
  F(Waitsome, (int count, void* requests, int* done, int* indices, void* statuses), \
    (count, requests, done, indices, statuses)) \
  F(Test, (Handle* request, int* flag, void* status), (request, flag, status)) \
  F(Testall, (int count, void* requests, int* flag, void* statuses), \
    (count, requests, flag, statuses)) \
  F(Testany, (int count, void* requests, int* index, int* flag, void* status), \
    (count, requests, index, flag, status)) \
  F(Testsome, (int count, void* requests, int* done, int* indices, void* statuses), \
    (count, requests, done, indices, statuses))

// Those of MPI 4.1, which the host MPI may lack.
#define UNISONO_MPI_LATER_REQUESTS(F) \
  F(Request_get_status_all, (int count, const void* requests, int* flag, void* statuses), \
    (count, requests, flag, statuses)) \
  F(Request_get_status_any, (int count, const void* requests, int* index, int* flag, \
                             void* status), \
    (count, requests, index, flag, status)) \
  F(Request_get_status_some, (int count, const void* requests, int* done, int* indices, \
                              void* statuses), \
    (count, requests, done, indices, statuses))

// Functions that look whether something has come.
#define UNISONO_MPI_PROBES(F) \
  F(Iprobe, (int from, int tag, Handle comm, int* flag, void* status), \
    (from, tag, comm, flag, status)) \
  F(Improbe, (int from, int tag, Handle comm, int* flag, void* message, void* status), \
    (from, tag, comm, flag, message, status)) \
  F(Win_test, (Handle window, int* flag), (window, flag))

// Functions with large counts that the drop-in calls where the host MPI has them.
#define UNISONO_MPI_LATER_USED(F) \
  F(Pack_c, (const void* input, std::int64_t count, Handle type, void* output, \
             std::int64_t bytes, std::int64_t* position, Handle comm)) \
  F(Unpack_c, (const void* input, std::int64_t bytes, std::int64_t* position, void* output, \
               std::int64_t count, Handle type, Handle comm))

// Functions of the host MPI that the drop-in calls.
#define UNISONO_MPI_USED(F) \
  F(Init, (int* count, char*** words)) \
  F(Init_thread, (int* count, char*** words, int wanted, int* given)) \
  F(Finalize, ()) \
  F(Abort, (Handle comm, int code)) \
  F(Initialized, (int* flag)) \
  F(Finalized, (int* flag)) \
  F(Get_library_version, (char* version, int* length)) \
  F(Comm_rank, (Handle comm, int* rank)) \
  F(Comm_size, (Handle comm, int* size)) \
  F(Comm_remote_size, (Handle comm, int* size)) \
  F(Comm_test_inter, (Handle comm, int* flag)) \
  F(Comm_group, (Handle comm, Handle* group)) \
  F(Group_free, (Handle* group)) \
  F(Group_translate_ranks, (Handle from, int count, const int* ranks, Handle to, int* result)) \
  F(Topo_test, (Handle comm, int* kind)) \
  F(Cartdim_get, (Handle comm, int* dimensions)) \
  F(Graph_neighbors_count, (Handle comm, int rank, int* count)) \
  F(Dist_graph_neighbors_count, (Handle comm, int* sources, int* targets, int* is_weighted)) \
  F(Comm_create_keyval, (CopyAttribute* copy, DeleteAttribute* end, int* keyval, void* extra)) \
  F(Comm_free, (Handle* comm)) \
  F(Comm_disconnect, (Handle* comm)) \
  F(Comm_get_attr, (Handle comm, int keyval, void* value, int* flag)) \
  F(Comm_set_attr, (Handle comm, int keyval, void* value)) \
  F(Comm_call_errhandler, (Handle comm, int code)) \
  F(Add_error_code, (int error_class, int* code)) \
  F(Add_error_string, (int code, const char* text)) \
  F(Grequest_start, (QueryRequest* query, FreeRequest* free, CancelRequest* cancel, void* extra, \
                     Handle* request)) \
  F(Grequest_complete, (Handle request)) \
  F(Send, (const void* buffer, int count, Handle type, int to, int tag, Handle comm)) \
  F(Recv_init, (void* buffer, int count, Handle type, int from, int tag, Handle comm, \
                Handle* request)) \
  F(Comm_split, (Handle comm, int color, int key, Handle* created)) \
  F(Comm_create_errhandler, (HandleErrors* function, Handle* handler)) \
  F(Comm_set_errhandler, (Handle comm, Handle handler)) \
  F(Status_set_elements, (void* status, Handle type, int count)) \
  F(Status_set_cancelled, (void* status, int flag)) \
  F(Type_size_x, (Handle type, std::int64_t* size)) \
  F(Type_create_hindexed, (int count, const int* lengths, const std::ptrdiff_t* displacements, \
                           Handle type, Handle* created)) \
  F(Type_create_keyval, (CopyAttribute* copy, DeleteAttribute* end, int* keyval, void* extra)) \
  F(Type_get_attr, (Handle type, int keyval, void* value, int* flag)) \
  F(Type_set_attr, (Handle type, int keyval, void* value)) \
  F(Type_commit, (Handle* type)) \
  F(Type_contiguous, (int count, Handle type, Handle* created)) \
  F(Type_free, (Handle* type)) \
  F(Type_get_extent_x, (Handle type, std::int64_t* lower, std::int64_t* extent)) \
  F(Type_get_true_extent_x, (Handle type, std::int64_t* lower, std::int64_t* extent)) \
  F(Op_commutative, (Handle op, int* commutative)) \
  F(Reduce_local, (const void* first, void* second, int count, Handle type, Handle op)) \
  F(Pack, (const void* input, int count, Handle type, void* output, int bytes, int* position, \
           Handle comm)) \
  F(Unpack, (const void* input, int bytes, int* position, void* output, int count, Handle type, \
             Handle comm))
// clang-format on
