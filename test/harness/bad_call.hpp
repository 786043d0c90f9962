// SPDX-License-Identifier: BSD-3-Clause
// A call of a collective with an invalid argument in the middle rank of a job of three. That rank
// gets a clear error that names function, argument and rank. The others get an error that names the
// rank, and no rank hangs. For tests only; any thread.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <limits>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "harness/outcome.hpp"
#include "harness/threads.hpp"
#include "unisono/unisono.h"

namespace unisono::harness {

inline constexpr int kRanks = 3;
inline constexpr int kBadRank = 1;
inline constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();

// A rank's memory, and its way to call any collective, blocking or started.
struct Desk {
  alignas(64) std::array<unsigned char, 4096> a{};
  alignas(64) std::array<unsigned char, 4096> b{};
  int rank = 0;
  unisono_comm_t comm = nullptr;
  bool started = false;
  unisono_request_t request = nullptr;

  // Any collective by its two functions.
  template <class Blocking, class Start, class... Arguments>
  int make(Blocking blocking, Start start, Arguments... arguments) {
    return started ? start(arguments..., comm, &request) : blocking(arguments..., comm);
  }
  int broadcast(void* buffer, std::int64_t count, unisono_type_t type, int root) {
    return started ? unisono_broadcast_start(buffer, count, type, root, comm, &request)
                   : unisono_broadcast(buffer, count, type, root, comm);
  }
  int reduce(const void* input, void* output, std::int64_t count, unisono_type_t type,
             unisono_op_t op, int root) {
    return started ? unisono_reduce_start(input, output, count, type, op, root, comm, &request)
                   : unisono_reduce(input, output, count, type, op, root, comm);
  }
  int allreduce(const void* input, void* output, std::int64_t count, unisono_type_t type,
                unisono_op_t op) {
    return started ? unisono_allreduce_start(input, output, count, type, op, comm, &request)
                   : unisono_allreduce(input, output, count, type, op, comm);
  }
  int allgather(const void* input, void* output, std::int64_t count, unisono_type_t type) {
    return started ? unisono_allgather_start(input, output, count, type, comm, &request)
                   : unisono_allgather(input, output, count, type, comm);
  }
  int gather(const void* input, void* output, std::int64_t count, int root) {
    return make(unisono_gather, unisono_gather_start, input, output, count, UNISONO_INT64, root);
  }
  int scatter(const void* input, void* output, std::int64_t count, int root) {
    return make(unisono_scatter, unisono_scatter_start, input, output, count, UNISONO_INT64, root);
  }
  int alltoall(const void* input, void* output, std::int64_t count) {
    return make(unisono_alltoall, unisono_alltoall_start, input, output, count, UNISONO_INT64);
  }
  int reduce_scatter_block(const void* input, void* output, std::int64_t count,
                           unisono_type_t type = UNISONO_INT64) {
    return make(unisono_reduce_scatter_block, unisono_reduce_scatter_block_start, input, output,
                count, type, UNISONO_SUM);
  }
  int scan(const void* input, void* output, std::int64_t count, unisono_op_t op = UNISONO_SUM) {
    return make(unisono_scan, unisono_scan_start, input, output, count, UNISONO_INT64, op);
  }
  int exscan(const void* input, void* output, std::int64_t count) {
    return make(unisono_exscan, unisono_exscan_start, input, output, count, UNISONO_INT64,
                UNISONO_SUM);
  }
  int allgatherv(const void* input, std::int64_t count, void* output, const std::int64_t* counts,
                 const std::int64_t* displacements) {
    return make(unisono_allgatherv, unisono_allgatherv_start, input, count, output, counts,
                displacements, UNISONO_INT64);
  }
  int many_to_many(const void* input, std::int64_t count, void* output,
                   const std::int64_t* displacements, const int* receives) {
    return make(unisono_many_to_many, unisono_many_to_many_start, input, count, output,
                good_counts.data(), displacements, receives, UNISONO_INT64);
  }
  int reduce_scatter(const void* input, void* output, const std::int64_t* of_ranks) {
    return make(unisono_reduce_scatter, unisono_reduce_scatter_start, input, output, of_ranks,
                UNISONO_INT64, UNISONO_SUM);
  }
  int gatherv(const void* input, std::int64_t count, void* output, const std::int64_t* counts,
              const std::int64_t* displacements, int root = kBadRank) {
    return make(unisono_gatherv, unisono_gatherv_start, input, count, output, counts, displacements,
                UNISONO_INT64, root);
  }
  int scatterv(const void* input, const std::int64_t* counts, const std::int64_t* displacements,
               void* output, std::int64_t count, int root = kBadRank) {
    return make(unisono_scatterv, unisono_scatterv_start, input, counts, displacements, output,
                count, UNISONO_INT64, root);
  }
  struct Side {
    const void* buffer;
    const std::int64_t* counts;
    const std::int64_t* displacements;
  };
  int alltoallv(Side sent, Side received) {
    return make(unisono_alltoallv, unisono_alltoallv_start, sent.buffer, sent.counts,
                sent.displacements, const_cast<void*>(received.buffer), received.counts,
                received.displacements, UNISONO_INT64);
  }
  int alltoallw(Side sent, const unisono_type_t* sent_types, Side received,
                const unisono_type_t* received_types) {
    return make(unisono_alltoallw, unisono_alltoallw_start, sent.buffer, sent.counts,
                sent.displacements, sent_types, const_cast<void*>(received.buffer), received.counts,
                received.displacements, received_types);
  }

  const std::array<std::int64_t, kRanks> good_counts{2, 3, 4};  // of good calls
  std::int64_t own() const { return good_counts[static_cast<std::size_t>(rank)]; }
};

using Call = std::function<int(Desk&)>;

struct BadCall {
  const char* name;
  int code;
  std::vector<std::string> parts;  // of the message at the bad rank
  Call bad;
  Call good;
};

inline void PrintTo(const BadCall& c, std::ostream* out) { *out << c.name; }

inline const int kArgument = UNISONO_ERROR_ARGUMENT;
inline const int kType = UNISONO_ERROR_TYPE;

// A collective's name, a good call of it, and the fault at the bad rank.
inline BadCall bad_call(const char* name, const char* function, std::vector<std::string> parts,
                        Call bad, Call good) {
  parts.emplace_back(function);
  return {name, kArgument, std::move(parts), std::move(bad), std::move(good)};
}

// The first error of a rank. It comes from the call, from its completion, or from the next call on
// the communicator. A rank that had run ahead of all that gets it at the end.
inline int first_error(Desk& desk, const Call& call, ThreadRank& self) {
  int error = call(desk);
  if (error == UNISONO_OK && desk.started) error = unisono_wait(&desk.request);
  if (error == UNISONO_OK) error = unisono_barrier(desk.comm);
  return error == UNISONO_OK ? self.finalize() : error;
}

inline void check_bad_call(const BadCall& c, bool started) {
  run_threads(kRanks, [&](ThreadRank& self) {
    Desk desk;
    desk.rank = self.rank;
    desk.comm = self.world;
    desk.started = started;
    if (self.rank == kBadRank) {
      auto parts = c.parts;
      parts.push_back("unisono_");
      parts.push_back("rank 1");
      if (started) parts.push_back("_start");
      EXPECT_TRUE(failed(c.bad(desk), c.code, parts));
      EXPECT_EQ(desk.request, nullptr) << "a failed start gives no request";
      EXPECT_TRUE(failed_with_any(unisono_barrier(self.world),
                                  {c.code, UNISONO_ERROR_PEER_ARGUMENT}, {"rank 1"}))
          << "the communicator has failed";
    } else {
      EXPECT_TRUE(failed(first_error(desk, c.good, self), UNISONO_ERROR_PEER_ARGUMENT, {"rank 1"}));
    }
    if (!self.finalized()) self.finalize();
  });
}

}  // namespace unisono::harness
