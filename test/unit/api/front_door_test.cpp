// SPDX-License-Identifier: BSD-3-Clause
// Calls that one rank cannot make although the others do. It has no place for the request, no
// handle left, or no memory for the preparation. That rank gets an error with the reason. Every
// other rank gets one that names it, and no rank waits forever.
#include <gtest/gtest.h>

#include <array>
#include <barrier>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "api/objects.hpp"
#include "harness/outcome.hpp"
#include "harness/threads.hpp"
#include "unisono/unisono.h"

namespace unisono::harness::front_door_test {
namespace {

constexpr int kRanks = 3;
constexpr int kOdd = 1;  // the rank that cannot make the call

struct Buffers {
  std::array<std::int64_t, 8> in{1, 2, 3, 4, 5, 6, 7, 8};
  std::array<std::int64_t, 8> out{};
  const std::array<std::int64_t, kRanks> counts{1, 1, 1};
  const std::array<unisono_type_t, kRanks> types{UNISONO_INT64, UNISONO_INT64, UNISONO_INT64};
  const std::array<std::int64_t, kRanks> bytes{0, 8, 16};
};

struct Start {
  const char* function;
  std::function<int(Buffers&, unisono_comm_t, unisono_request_t*)> start;
};

// Every function that starts an operation.
std::vector<Start> all_starts() {
  using Request = unisono_request_t*;
  using Comm = unisono_comm_t;
  constexpr unisono_type_t kType = UNISONO_INT64;
  constexpr unisono_op_t kSum = UNISONO_SUM;
  return {
      {"unisono_barrier_start",
       [](Buffers&, Comm c, Request r) { return unisono_barrier_start(c, r); }},
      {"unisono_broadcast_start",
       [](Buffers& b, Comm c, Request r) {
         return unisono_broadcast_start(b.out.data(), 1, kType, 0, c, r);
       }},
      {"unisono_reduce_start",
       [](Buffers& b, Comm c, Request r) {
         return unisono_reduce_start(b.in.data(), b.out.data(), 1, kType, kSum, 0, c, r);
       }},
      {"unisono_allreduce_start",
       [](Buffers& b, Comm c, Request r) {
         return unisono_allreduce_start(b.in.data(), b.out.data(), 1, kType, kSum, c, r);
       }},
      {"unisono_allgather_start",
       [](Buffers& b, Comm c, Request r) {
         return unisono_allgather_start(b.in.data(), b.out.data(), 1, kType, c, r);
       }},
      {"unisono_gather_start",
       [](Buffers& b, Comm c, Request r) {
         return unisono_gather_start(b.in.data(), b.out.data(), 1, kType, 0, c, r);
       }},
      {"unisono_scatter_start",
       [](Buffers& b, Comm c, Request r) {
         return unisono_scatter_start(b.in.data(), b.out.data(), 1, kType, 0, c, r);
       }},
      {"unisono_alltoall_start",
       [](Buffers& b, Comm c, Request r) {
         return unisono_alltoall_start(b.in.data(), b.out.data(), 1, kType, c, r);
       }},
      {"unisono_reduce_scatter_block_start",
       [](Buffers& b, Comm c, Request r) {
         return unisono_reduce_scatter_block_start(b.in.data(), b.out.data(), 1, kType, kSum, c, r);
       }},
      {"unisono_scan_start",
       [](Buffers& b, Comm c, Request r) {
         return unisono_scan_start(b.in.data(), b.out.data(), 1, kType, kSum, c, r);
       }},
      {"unisono_exscan_start",
       [](Buffers& b, Comm c, Request r) {
         return unisono_exscan_start(b.in.data(), b.out.data(), 1, kType, kSum, c, r);
       }},
      {"unisono_allgatherv_start",
       [](Buffers& b, Comm c, Request r) {
         return unisono_allgatherv_start(b.in.data(), 1, b.out.data(), b.counts.data(), nullptr,
                                         kType, c, r);
       }},
      {"unisono_many_to_many_start",
       [](Buffers& b, Comm c, Request r) {
         return unisono_many_to_many_start(b.in.data(), 1, b.out.data(), b.counts.data(), nullptr,
                                           nullptr, kType, c, r);
       }},
      {"unisono_reduce_scatter_start",
       [](Buffers& b, Comm c, Request r) {
         return unisono_reduce_scatter_start(b.in.data(), b.out.data(), b.counts.data(), kType,
                                             kSum, c, r);
       }},
      {"unisono_gatherv_start",
       [](Buffers& b, Comm c, Request r) {
         return unisono_gatherv_start(b.in.data(), 1, b.out.data(), b.counts.data(), nullptr, kType,
                                      0, c, r);
       }},
      {"unisono_scatterv_start",
       [](Buffers& b, Comm c, Request r) {
         return unisono_scatterv_start(b.in.data(), b.counts.data(), nullptr, b.out.data(), 1,
                                       kType, 0, c, r);
       }},
      {"unisono_alltoallv_start",
       [](Buffers& b, Comm c, Request r) {
         return unisono_alltoallv_start(b.in.data(), b.counts.data(), nullptr, b.out.data(),
                                        b.counts.data(), nullptr, kType, c, r);
       }},
      {"unisono_alltoallw_start",
       [](Buffers& b, Comm c, Request r) {
         return unisono_alltoallw_start(b.in.data(), b.counts.data(), b.bytes.data(),
                                        b.types.data(), b.out.data(), b.counts.data(),
                                        b.bytes.data(), b.types.data(), c, r);
       }},
  };
}

// The error that a calling rank gets: from its start, from its wait, or, if its part was already
// over, from the next call.
int told_of(const Start& call, unisono_comm_t comm) {
  Buffers buffers;
  unisono_request_t request = nullptr;
  int error = call.start(buffers, comm, &request);
  if (error == UNISONO_OK) error = unisono_wait(&request);
  return error == UNISONO_OK ? unisono_barrier(comm) : error;
}

class FrontDoor : public testing::TestWithParam<Start> {};

TEST_P(FrontDoor, NoPlaceForTheRequestIsAnErrorOnEveryRank) {
  run_threads(kRanks, [](ThreadRank& self) {
    if (self.rank == kOdd) {
      Buffers buffers;
      EXPECT_TRUE(failed(GetParam().start(buffers, self.world, nullptr), UNISONO_ERROR_ARGUMENT,
                         {GetParam().function, "request is NULL", "rank 1"}));
      EXPECT_TRUE(failed(unisono_barrier(self.world), UNISONO_ERROR_ARGUMENT));
    } else {
      EXPECT_TRUE(failed(told_of(GetParam(), self.world), UNISONO_ERROR_PEER_ARGUMENT,
                         {"rank 1", GetParam().function, "request is NULL"}));
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Starts, FrontDoor, testing::ValuesIn(all_starts()),
                         [](const auto& suite) { return std::string(suite.param.function + 8); });

// Takes all handles that a table has left, and gives them back.
template <class Object, class Handle>
class TakenHandles {
 public:
  explicit TakenHandles(api::HandleTable<Object, Handle>& table) : table_(table) {
    while (const Handle handle = table_.insert(std::make_unique<Object>())) {
      taken_.push_back(handle);
    }
  }
  ~TakenHandles() {
    for (const Handle handle : taken_) table_.remove(handle);
  }

 private:
  api::HandleTable<Object, Handle>& table_;
  std::vector<Handle> taken_;
};

TEST(FrontDoor, TooManyRequestsAreAnErrorOnEveryRank) {
  std::barrier<> others_have_started(kRanks);
  run_threads(kRanks, [&](ThreadRank& self) {
    std::int64_t in = 1, out = 0;
    const auto start = [&](unisono_request_t* request) {
      return unisono_allreduce_start(&in, &out, 1, UNISONO_INT64, UNISONO_SUM, self.world, request);
    };
    unisono_request_t request = nullptr;
    if (self.rank != kOdd) {
      ASSERT_TRUE(succeeded(start(&request)));
      others_have_started.arrive_and_wait();
      EXPECT_TRUE(failed(unisono_wait(&request), UNISONO_ERROR_RESOURCES,
                         {"rank 1", "unisono_allreduce_start", "requests already"}));
      return;
    }
    others_have_started.arrive_and_wait();
    const TakenHandles taken(api::requests());
    EXPECT_TRUE(failed(start(&request), UNISONO_ERROR_RESOURCES, {"requests already", "rank 1"}));
    EXPECT_EQ(request, nullptr);
  });
}

TEST(FrontDoor, TooManyCommunicatorsAreAnErrorOnEveryRank) {
  std::barrier<> all(kRanks);  // ranks that are threads share the handles
  run_threads(kRanks, [&](ThreadRank& self) {
    all.arrive_and_wait();
    unisono_comm_t copy = nullptr;
    if (self.rank == kOdd) {
      const TakenHandles taken(api::comms());
      EXPECT_TRUE(failed(unisono_comm_dup(self.world, &copy), UNISONO_ERROR_RESOURCES,
                         {"unisono_comm_dup", "communicators already", "rank 1"}));
      EXPECT_TRUE(failed(unisono_barrier(self.world), UNISONO_ERROR_RESOURCES));
    }
    all.arrive_and_wait();
    if (self.rank == kOdd) return;
    EXPECT_TRUE(failed(unisono_comm_dup(self.world, &copy), UNISONO_ERROR_RESOURCES, {"rank 1"}));
    EXPECT_EQ(copy, nullptr);
  });
}

// An element that no receive buffer holds.
constexpr std::size_t kHugeElement = std::size_t{1} << 28;

void expect_no_plan(bool blocking) {
  run_threads(kRanks, [blocking](ThreadRank& self) {
    std::vector<std::int64_t> in(8), out(8);
    unisono_type_t huge = 0;
    ASSERT_TRUE(succeeded(unisono_type_create(kHugeElement, 8, &huge)));
    unisono_request_t request = nullptr;
    // Nothing is read there, as there is no plan for it.
    auto* const far = reinterpret_cast<std::byte*>(std::uintptr_t{1} << 40);
    const bool is_odd = self.rank == kOdd;
    const void* const from = is_odd ? far : static_cast<const void*>(in.data());
    void* const to = is_odd ? far + 8 * kHugeElement : static_cast<void*>(out.data());
    const unisono_type_t type = is_odd ? huge : UNISONO_INT64;
    int error = blocking ? unisono_alltoall(from, to, 1, type, self.world)
                         : unisono_alltoall_start(from, to, 1, type, self.world, &request);
    if (!is_odd && error == UNISONO_OK) error = unisono_wait(&request);
    EXPECT_TRUE(failed(error, UNISONO_ERROR_RESOURCES,
                       {"rank 1", "unisono_alltoall", "raise UNISONO_BUFFERS"}));
    EXPECT_EQ(request, nullptr);
    EXPECT_TRUE(failed(unisono_barrier(self.world), UNISONO_ERROR_RESOURCES));
  });
}

TEST(FrontDoor, ABlockingCallThatCannotBePlannedIsAnErrorOnEveryRank) { expect_no_plan(true); }
TEST(FrontDoor, AStartThatCannotBePlannedIsAnErrorOnEveryRank) { expect_no_plan(false); }

// One rank starts a plan anew before it has waited: the first start ends well everywhere.
TEST(FrontDoor, AStartOfAnActivePlanIsAnErrorOnEveryRank) {
  run_threads(kRanks, [](ThreadRank& self) {
    std::int64_t in = 1, out = 0;
    unisono_plan_t plan = nullptr;
    ASSERT_TRUE(succeeded(
        unisono_allreduce_plan(&in, &out, 1, UNISONO_INT64, UNISONO_SUM, self.world, &plan)));
    ASSERT_TRUE(succeeded(unisono_plan_start(plan)));
    if (self.rank == kOdd) {
      EXPECT_TRUE(failed(unisono_plan_start(plan), UNISONO_ERROR_STATE,
                         {"unisono_plan_start", "still active", "rank 1"}));
    }
    EXPECT_TRUE(succeeded(unisono_plan_wait(plan)));
    EXPECT_EQ(out, kRanks);
    if (self.rank != kOdd) {
      int error = unisono_plan_start(plan);
      if (error == UNISONO_OK) error = unisono_plan_wait(plan);
      EXPECT_TRUE(failed(error, UNISONO_ERROR_PEER_ARGUMENT, {"rank 1", "unisono_plan_start"}));
    }
    EXPECT_TRUE(succeeded(unisono_plan_free(plan)));
  });
}

// One rank has ended the communicator, and lives: it will not take part any more.
TEST(FrontDoor, ACommunicatorThatOneRankHasFreedIsAnErrorForTheOthers) {
  std::barrier<> all(kRanks);
  run_threads(kRanks, [&](ThreadRank& self) {
    unisono_comm_t copy = nullptr;
    ASSERT_TRUE(succeeded(unisono_comm_dup(self.world, &copy)));
    ASSERT_TRUE(succeeded(unisono_barrier(copy)));
    if (self.rank != kOdd) {
      EXPECT_TRUE(failed(unisono_barrier(copy), UNISONO_ERROR_RANK_LOST,
                         {"rank 1", "unisono_comm_free", "barrier"}));
    }
    EXPECT_TRUE(succeeded(unisono_comm_free(copy)));
    all.arrive_and_wait();
    EXPECT_TRUE(succeeded(unisono_barrier(self.world)));
  });
}

}  // namespace
}  // namespace unisono::harness::front_door_test
