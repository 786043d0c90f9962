// SPDX-License-Identifier: BSD-3-Clause
// Barrier and the collectives with an operator.
#include <algorithm>
#include <numeric>
#include <vector>

#include "buffers.hpp"
#include "collectives.hpp"
#include "communicator.hpp"
#include "host/host.hpp"
#include "host/types.hpp"
#include "library.hpp"
#include "reducer.hpp"

namespace unisono::mpi::ours {
namespace {

int result(const Communicator& comm, int error) {
  return error == UNISONO_OK ? 0 : report_error(comm, error);
}

// Input and output are the same elements. Most MPIs take the same buffer twice for MPI_IN_PLACE.
bool is_in_place(const void* send, const void* receive) {
  return send == host().constants.in_place || send == receive;
}

using Reducing = int (*)(const void*, void*, std::int64_t, unisono_type_t, unisono_op_t,
                         unisono_comm_t);

// Allreduce, scan and exscan.
int reduce_all(const Communicator& comm, Reducing reduce, const Reducer& reduction,
               const void* send, void* receive, int count) {
  const std::int64_t bytes = count * reduction.size();
  ReductionBuffers buffers(send, receive, is_in_place(send, receive), bytes, bytes, reduction);
  const int error =
      reduce(buffers.input(), buffers.output(), count, reduction.type(), reduction.op(), comm.job);
  if (error == UNISONO_OK) buffers.finish();
  return result(comm, error);
}

}  // namespace

int Barrier(Handle comm) {
  const Communicator* const own = find_communicator(comm, Collective::Barrier);
  if (own == nullptr) return host().Barrier(comm);
  return result(*own, library().barrier(own->job));
}

int Allreduce(const void* send, void* receive, int count, Handle type, Handle op, Handle comm) {
  const Communicator* const own = find_communicator(comm, Collective::Allreduce);
  const Reducer reduction(type, op, comm);
  if (own == nullptr || !reduction || count < 0) {
    return host().Allreduce(send, receive, count, type, op, comm);
  }
  return reduce_all(*own, library().allreduce, reduction, send, receive, count);
}

int Scan(const void* send, void* receive, int count, Handle type, Handle op, Handle comm) {
  const Communicator* const own = find_communicator(comm, Collective::Scan);
  const Reducer reduction(type, op, comm);
  if (own == nullptr || !reduction || count < 0) {
    return host().Scan(send, receive, count, type, op, comm);
  }
  return reduce_all(*own, library().scan, reduction, send, receive, count);
}

int Exscan(const void* send, void* receive, int count, Handle type, Handle op, Handle comm) {
  const Communicator* const own = find_communicator(comm, Collective::Exscan);
  const Reducer reduction(type, op, comm);
  if (own == nullptr || !reduction || count < 0) {
    return host().Exscan(send, receive, count, type, op, comm);
  }
  return reduce_all(*own, library().exscan, reduction, send, receive, count);
}

int Reduce(const void* send, void* receive, int count, Handle type, Handle op, int root,
           Handle comm) {
  const Communicator* const own = find_communicator(comm, Collective::Reduce);
  const Reducer reduction(type, op, comm);
  if (own == nullptr || !reduction || count < 0 || root < 0 || root >= own->size) {
    return host().Reduce(send, receive, count, type, op, root, comm);
  }
  const bool is_root = own->rank == root;
  if (!is_root) receive = nullptr;  // not significant there
  const std::int64_t bytes = count * reduction.size();
  ReductionBuffers buffers(send, receive, is_root && is_in_place(send, receive), bytes,
                           is_root ? bytes : 0, reduction);
  const int error = library().reduce(buffers.input(), buffers.output(), count, reduction.type(),
                                     reduction.op(), root, own->job);
  if (error == UNISONO_OK) buffers.finish();
  return result(*own, error);
}

int Reduce_scatter_block(const void* send, void* receive, int count, Handle type, Handle op,
                         Handle comm) {
  const Communicator* const own = find_communicator(comm, Collective::Reduce_scatter_block);
  const Reducer reduction(type, op, comm);
  if (own == nullptr || !reduction || count < 0) {
    return host().Reduce_scatter_block(send, receive, count, type, op, comm);
  }
  const std::int64_t bytes = count * reduction.size();
  ReductionBuffers buffers(send, receive, is_in_place(send, receive), bytes * own->size, bytes,
                           reduction);
  const int error = library().reduce_scatter_block(buffers.input(), buffers.output(), count,
                                                   reduction.type(), reduction.op(), own->job);
  if (error == UNISONO_OK) buffers.finish();
  return result(*own, error);
}

int Reduce_scatter(const void* send, void* receive, const int* counts, Handle type, Handle op,
                   Handle comm) {
  const Communicator* const own = find_communicator(comm, Collective::Reduce_scatter);
  const Reducer reduction(type, op, comm);
  const bool valid = own != nullptr && reduction && counts != nullptr &&
                     std::all_of(counts, counts + own->size, [](int count) { return count >= 0; });
  if (!valid) return host().Reduce_scatter(send, receive, counts, type, op, comm);
  const std::vector<std::int64_t> lengths(counts, counts + own->size);
  const std::int64_t all = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  ReductionBuffers buffers(send, receive, is_in_place(send, receive), all * reduction.size(),
                           counts[own->rank] * reduction.size(), reduction);
  const int error = library().reduce_scatter(buffers.input(), buffers.output(), lengths.data(),
                                             reduction.type(), reduction.op(), own->job);
  if (error == UNISONO_OK) buffers.finish();
  return result(*own, error);
}

}  // namespace unisono::mpi::ours
