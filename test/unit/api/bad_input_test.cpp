// SPDX-License-Identifier: BSD-3-Clause
// Invalid arguments of the collectives without count arrays: null, misaligned and overlapping
// buffers, counts, types, operators and roots. Also the scope of such an error.
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "harness/bad_call.hpp"
#include "harness/outcome.hpp"
#include "harness/threads.hpp"
#include "unisono/unisono.h"

namespace unisono::harness::bad_input_test {
namespace {

int good_broadcast(Desk& d) { return d.broadcast(d.a.data(), 4, UNISONO_INT64, 0); }
int good_reduce(Desk& d) {
  return d.reduce(d.a.data(), d.b.data(), 4, UNISONO_INT64, UNISONO_SUM, 0);
}
int good_reduce_to_bad_rank(Desk& d) {
  return d.reduce(d.a.data(), d.b.data(), 4, UNISONO_INT64, UNISONO_SUM, kBadRank);
}
int good_allreduce(Desk& d) {
  return d.allreduce(d.a.data(), d.b.data(), 4, UNISONO_INT64, UNISONO_SUM);
}
int good_allgather(Desk& d) { return d.allgather(d.a.data(), d.b.data(), 4, UNISONO_INT64); }

std::vector<BadCall> bad_broadcasts() {
  const auto bad = [](const char* name, int code, std::vector<std::string> parts, Call call) {
    parts.push_back("broadcast");
    return BadCall{name, code, parts, call, good_broadcast};
  };
  return {
      bad("BroadcastNull", kArgument, {"buffer"},
          [](Desk& d) { return d.broadcast(nullptr, 4, UNISONO_INT64, 0); }),
      bad("BroadcastMisaligned", kArgument, {"buffer", "align"},
          [](Desk& d) { return d.broadcast(d.a.data() + 4, 4, UNISONO_INT64, 0); }),
      bad("BroadcastMisalignedPair", kArgument, {"buffer", "align"},
          [](Desk& d) { return d.broadcast(d.a.data() + 4, 4, UNISONO_FLOAT64_INT32, 0); }),
      bad("BroadcastNegativeCount", kArgument, {"count", "-1"},
          [](Desk& d) { return d.broadcast(d.a.data(), -1, UNISONO_INT64, 0); }),
      bad("BroadcastOverflowingCount", kArgument, {"count"},
          [](Desk& d) { return d.broadcast(d.a.data(), kHuge / 2, UNISONO_INT64, 0); }),
      bad("BroadcastCountBeyondAddresses", kArgument, {"count"},
          [](Desk& d) { return d.broadcast(d.a.data(), kHuge / 8, UNISONO_INT64, 0); }),
      bad("BroadcastNegativeType", kType, {"type", "-1"},
          [](Desk& d) { return d.broadcast(d.a.data(), 4, -1, 0); }),
      bad("BroadcastUnknownType", kType, {"type", "99999"},
          [](Desk& d) { return d.broadcast(d.a.data(), 4, 99999, 0); }),
      bad("BroadcastNegativeRoot", kArgument, {"root", "-1"},
          [](Desk& d) { return d.broadcast(d.a.data(), 4, UNISONO_INT64, -1); }),
      bad("BroadcastRootBeyondRanks", kArgument, {"root", "3"},
          [](Desk& d) { return d.broadcast(d.a.data(), 4, UNISONO_INT64, kRanks); }),
      bad("BroadcastInPlace", kArgument, {"buffer"},
          [](Desk& d) {
            return d.broadcast(const_cast<void*>(UNISONO_IN_PLACE), 4, UNISONO_INT64, 0);
          }),
  };
}

std::vector<BadCall> bad_reduces() {
  const auto bad = [](const char* name, int code, std::vector<std::string> parts, Call call,
                      Call good = good_reduce) {
    parts.push_back("reduce");
    return BadCall{name, code, parts, call, good};
  };
  const auto reduce = [](Desk& d, unisono_type_t type, unisono_op_t op) {
    return d.reduce(d.a.data(), d.b.data(), 4, type, op, 0);
  };
  return {
      bad("ReduceNullInput", kArgument, {"input"},
          [](Desk& d) { return d.reduce(nullptr, d.b.data(), 4, UNISONO_INT64, UNISONO_SUM, 0); }),
      bad(
          "ReduceNullOutputAtRoot", kArgument, {"output"},
          [](Desk& d) {
            return d.reduce(d.a.data(), nullptr, 4, UNISONO_INT64, UNISONO_SUM, kBadRank);
          },
          good_reduce_to_bad_rank),
      bad("ReduceInPlaceElsewhere", kArgument, {"IN_PLACE", "root"},
          [](Desk& d) {
            return d.reduce(UNISONO_IN_PLACE, d.b.data(), 4, UNISONO_INT64, UNISONO_SUM, 0);
          }),
      bad(
          "ReduceOverlapAtRoot", kArgument, {"overlap"},
          [](Desk& d) {
            return d.reduce(d.a.data(), d.a.data() + 8, 4, UNISONO_INT64, UNISONO_SUM, kBadRank);
          },
          good_reduce_to_bad_rank),
      bad("ReduceRootBeyondRanks", kArgument, {"root", "17"},
          [](Desk& d) {
            return d.reduce(d.a.data(), d.b.data(), 4, UNISONO_INT64, UNISONO_SUM, 17);
          }),
      bad("ReduceUnknownOperator", kType, {"op", "99999"},
          [=](Desk& d) { return reduce(d, UNISONO_INT64, 99999); }),
      bad("ReduceNegativeOperator", kType, {"op", "-7"},
          [=](Desk& d) { return reduce(d, UNISONO_INT64, -7); }),
      bad("ReduceBitwiseOnFloats", kType, {"float64"},
          [=](Desk& d) { return reduce(d, UNISONO_FLOAT64, UNISONO_BITWISE_AND); }),
      bad("ReduceSumOnBytes", kType, {"byte"},
          [=](Desk& d) { return reduce(d, UNISONO_BYTE, UNISONO_SUM); }),
      bad("ReduceMinlocOnIntegers", kType, {"minloc", "int32"},
          [=](Desk& d) { return reduce(d, UNISONO_INT32, UNISONO_MINLOC); }),
      bad("ReduceMinOnComplex", kType, {"min", "complex64"},
          [=](Desk& d) { return reduce(d, UNISONO_COMPLEX64, UNISONO_MIN); }),
  };
}

std::vector<BadCall> bad_allreduces() {
  const auto bad = [](const char* name, int code, std::vector<std::string> parts, Call call) {
    parts.push_back("allreduce");
    return BadCall{name, code, parts, call, good_allreduce};
  };
  const auto move = [](Desk& d, const void* input, void* output) {
    return d.allreduce(input, output, 4, UNISONO_INT64, UNISONO_SUM);
  };
  return {
      bad("AllreduceNullInput", kArgument, {"input"},
          [=](Desk& d) { return move(d, nullptr, d.b.data()); }),
      bad("AllreduceNullOutput", kArgument, {"output"},
          [=](Desk& d) { return move(d, d.a.data(), nullptr); }),
      bad("AllreduceInPlaceNullOutput", kArgument, {"output"},
          [=](Desk& d) { return move(d, UNISONO_IN_PLACE, nullptr); }),
      bad("AllreduceMisalignedInput", kArgument, {"input", "align"},
          [=](Desk& d) { return move(d, d.a.data() + 1, d.b.data()); }),
      bad("AllreduceMisalignedOutput", kArgument, {"output", "align"},
          [=](Desk& d) { return move(d, d.a.data(), d.b.data() + 2); }),
      bad("AllreduceSameBuffer", kArgument, {"overlap", "IN_PLACE"},
          [=](Desk& d) { return move(d, d.a.data(), d.a.data()); }),
      bad("AllreduceOverlapAbove", kArgument, {"overlap"},
          [=](Desk& d) { return move(d, d.a.data(), d.a.data() + 24); }),
      bad("AllreduceOverlapBelow", kArgument, {"overlap"},
          [=](Desk& d) { return move(d, d.a.data() + 24, d.a.data()); }),
      bad("AllreduceNegativeCount", kArgument, {"count"},
          [](Desk& d) {
            return d.allreduce(d.a.data(), d.b.data(), std::numeric_limits<std::int64_t>::min(),
                               UNISONO_INT64, UNISONO_SUM);
          }),
      bad("AllreduceCountBeyondMemory", kArgument, {"count is too large", "8796093022208 bytes"},
          [](Desk& d) {
            return d.allreduce(d.a.data(), d.b.data(), std::int64_t{1} << 40, UNISONO_INT64,
                               UNISONO_SUM);
          }),
      bad("AllreduceOperatorDoesNotFit", kType, {"logical_and", "float32"},
          [](Desk& d) {
            return d.allreduce(d.a.data(), d.b.data(), 4, UNISONO_FLOAT32, UNISONO_LOGICAL_AND);
          }),
      bad("AllreduceUnknownType", kType, {"type", "12345"},
          [](Desk& d) { return d.allreduce(d.a.data(), d.b.data(), 4, 12345, UNISONO_SUM); }),
  };
}

std::vector<BadCall> bad_allgathers() {
  const auto bad = [](const char* name, int code, std::vector<std::string> parts, Call call) {
    parts.push_back("allgather");
    return BadCall{name, code, parts, call, good_allgather};
  };
  return {
      bad("AllgatherNullInput", kArgument, {"input"},
          [](Desk& d) { return d.allgather(nullptr, d.b.data(), 4, UNISONO_INT64); }),
      bad("AllgatherNullOutput", kArgument, {"output"},
          [](Desk& d) { return d.allgather(d.a.data(), nullptr, 4, UNISONO_INT64); }),
      bad("AllgatherInputInsideOutput", kArgument, {"overlap"},
          [](Desk& d) { return d.allgather(d.b.data() + 64, d.b.data(), 4, UNISONO_INT64); }),
      // One block fits into the address space, three do not into 64 bits.
      bad("AllgatherBlocksOverflow", kArgument, {"count"},
          [](Desk& d) { return d.allgather(d.a.data(), d.b.data(), kHuge / 16, UNISONO_INT64); }),
      bad("AllgatherNegativeCount", kArgument, {"count", "-5"},
          [](Desk& d) { return d.allgather(d.a.data(), d.b.data(), -5, UNISONO_INT64); }),
  };
}

std::vector<BadCall> bad_rooted_moves() {
  const auto gather = [](Desk& d) { return d.gather(d.a.data(), d.b.data(), 4, 0); };
  const auto gather_here = [](Desk& d) { return d.gather(d.a.data(), d.b.data(), 4, kBadRank); };
  const auto scatter = [](Desk& d) { return d.scatter(d.a.data(), d.b.data(), 4, 0); };
  const auto scatter_here = [](Desk& d) { return d.scatter(d.a.data(), d.b.data(), 4, kBadRank); };
  return {
      bad_call(
          "GatherNullInput", "gather", {"input"},
          [](Desk& d) { return d.gather(nullptr, d.b.data(), 4, 0); }, gather),
      bad_call(
          "GatherNullOutputAtRoot", "gather", {"output"},
          [](Desk& d) { return d.gather(d.a.data(), nullptr, 4, kBadRank); }, gather_here),
      bad_call(
          "GatherInPlaceElsewhere", "gather", {"IN_PLACE", "root"},
          [](Desk& d) { return d.gather(UNISONO_IN_PLACE, d.b.data(), 4, 0); }, gather),
      bad_call(
          "GatherOutputInPlace", "gather", {"IN_PLACE", "input"},
          [](Desk& d) { return d.gather(d.a.data(), UNISONO_IN_PLACE, 4, kBadRank); }, gather_here),
      bad_call(
          "GatherOverlapInTheLastBlock", "gather", {"overlap"},
          [](Desk& d) { return d.gather(d.b.data() + 88, d.b.data(), 4, kBadRank); }, gather_here),
      bad_call(
          "GatherBlocksOverflow", "gather", {"count"},
          [](Desk& d) { return d.gather(d.a.data(), d.b.data(), kHuge / 2048, 0); }, gather),
      bad_call(
          "GatherRootBeyondRanks", "gather", {"root", "3"},
          [](Desk& d) { return d.gather(d.a.data(), d.b.data(), 4, kRanks); }, gather),
      bad_call(
          "ScatterNullInputAtRoot", "scatter", {"input"},
          [](Desk& d) { return d.scatter(nullptr, d.b.data(), 4, kBadRank); }, scatter_here),
      bad_call(
          "ScatterNullOutput", "scatter", {"output"},
          [](Desk& d) { return d.scatter(nullptr, nullptr, 4, 0); }, scatter),
      bad_call(
          "ScatterInPlaceElsewhere", "scatter", {"IN_PLACE", "root"},
          [](Desk& d) { return d.scatter(nullptr, UNISONO_IN_PLACE, 4, 0); }, scatter),
      bad_call(
          "ScatterInputInPlace", "scatter", {"IN_PLACE", "output"},
          [](Desk& d) { return d.scatter(UNISONO_IN_PLACE, d.b.data(), 4, kBadRank); },
          scatter_here),
      bad_call(
          "ScatterInPlaceNullInput", "scatter", {"input"},
          [](Desk& d) { return d.scatter(nullptr, UNISONO_IN_PLACE, 4, kBadRank); }, scatter_here),
      bad_call(
          "ScatterOverlap", "scatter", {"overlap", "IN_PLACE"},
          [](Desk& d) { return d.scatter(d.a.data(), d.a.data() + 32, 4, kBadRank); },
          scatter_here),
  };
}

std::vector<BadCall> bad_equal_blocks() {
  const auto alltoall = [](Desk& d) { return d.alltoall(d.a.data(), d.b.data(), 4); };
  const auto block = [](Desk& d) { return d.reduce_scatter_block(d.a.data(), d.b.data(), 4); };
  const auto scan = [](Desk& d) { return d.scan(d.a.data(), d.b.data(), 4); };
  const auto exscan = [](Desk& d) { return d.exscan(d.a.data(), d.b.data(), 4); };
  std::vector<BadCall> all = {
      bad_call(
          "AlltoallNullOutput", "alltoall", {"output"},
          [](Desk& d) { return d.alltoall(d.a.data(), nullptr, 4); }, alltoall),
      bad_call(
          "AlltoallMisaligned", "alltoall", {"input", "align"},
          [](Desk& d) { return d.alltoall(d.a.data() + 4, d.b.data(), 4); }, alltoall),
      bad_call(
          "AlltoallOverlap", "alltoall", {"overlap"},
          [](Desk& d) { return d.alltoall(d.a.data(), d.a.data() + 88, 4); }, alltoall),
      bad_call(
          "AlltoallNegativeCount", "alltoall", {"count", "-2"},
          [](Desk& d) { return d.alltoall(d.a.data(), d.b.data(), -2); }, alltoall),
      bad_call(
          "AlltoallBlocksOverflow", "alltoall", {"count"},
          [](Desk& d) { return d.alltoall(d.a.data(), d.b.data(), kHuge / 2048); }, alltoall),
      bad_call(
          "ReduceScatterBlockNullInput", "reduce_scatter_block", {"input", "96 bytes"},
          [](Desk& d) { return d.reduce_scatter_block(nullptr, d.b.data(), 4); }, block),
      bad_call(
          "ReduceScatterBlockOverlapBehindTheBlock", "reduce_scatter_block", {"overlap"},
          [](Desk& d) { return d.reduce_scatter_block(d.a.data(), d.a.data() + 64, 4); }, block),
      bad_call(
          "ReduceScatterBlockInPlaceNull", "reduce_scatter_block", {"output", "96 bytes"},
          [](Desk& d) { return d.reduce_scatter_block(UNISONO_IN_PLACE, nullptr, 4); }, block),
      bad_call(
          "ScanNullOutput", "scan", {"output"},
          [](Desk& d) { return d.scan(d.a.data(), nullptr, 4); }, scan),
      bad_call(
          "ScanOutputInPlace", "scan", {"IN_PLACE"},
          [](Desk& d) { return d.scan(d.a.data(), UNISONO_IN_PLACE, 4); }, scan),
      bad_call(
          "ExscanNullOutput", "exscan", {"output"},
          [](Desk& d) { return d.exscan(d.a.data(), nullptr, 4); }, exscan),
      bad_call(
          "ExscanSameBuffer", "exscan", {"overlap"},
          [](Desk& d) { return d.exscan(d.a.data(), d.a.data(), 4); }, exscan),
  };
  all.push_back({"ScanUnknownOperator",
                 kType,
                 {"scan", "op", "4711"},
                 [](Desk& d) { return d.scan(d.a.data(), d.b.data(), 4, 4711); },
                 scan});
  all.push_back(
      {"ReduceScatterBlockSumOnBytes",
       kType,
       {"reduce_scatter_block", "byte"},
       [](Desk& d) { return d.reduce_scatter_block(d.a.data(), d.b.data(), 4, UNISONO_BYTE); },
       block});
  return all;
}

std::vector<BadCall> bad_calls() {
  std::vector<BadCall> all;
  for (const auto& some : {bad_broadcasts(), bad_reduces(), bad_allreduces(), bad_allgathers(),
                           bad_rooted_moves(), bad_equal_blocks()}) {
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

class BadInput : public testing::TestWithParam<BadCall> {};

TEST_P(BadInput, OfABlockingCall) { check_bad_call(GetParam(), false); }

TEST_P(BadInput, OfAStartedCall) { check_bad_call(GetParam(), true); }

INSTANTIATE_TEST_SUITE_P(Calls, BadInput, testing::ValuesIn(bad_calls()),
                         [](const auto& suite) { return std::string(suite.param.name); });

// An error does not affect other communicators.
TEST(BadInputScope, OtherCommunicatorsGoOn) {
  run_threads(kRanks, [](ThreadRank& self) {
    unisono_comm_t other = nullptr;
    ASSERT_TRUE(succeeded(unisono_comm_dup(self.world, &other)));
    std::int32_t value = 1;
    const int root = self.rank == kBadRank ? 9 : 0;
    const int error = unisono_broadcast(&value, 1, UNISONO_INT32, root, other);
    EXPECT_EQ(error == UNISONO_ERROR_ARGUMENT, self.rank == kBadRank);
    ASSERT_TRUE(succeeded(
        unisono_allreduce(UNISONO_IN_PLACE, &value, 1, UNISONO_INT32, UNISONO_SUM, self.world)));
    EXPECT_EQ(value, kRanks);
    // A rank that had run ahead gets the error from the failed communicator's next call.
    EXPECT_TRUE(failed_with_any(unisono_barrier(other),
                                {UNISONO_ERROR_ARGUMENT, UNISONO_ERROR_PEER_ARGUMENT}, {"rank 1"}));
    EXPECT_TRUE(succeeded(unisono_comm_free(other)));
  });
}

TEST(BadInputScope, LaterCallsReturnTheSameError) {
  run_threads(kRanks, [](ThreadRank& self) {
    std::int32_t value = 1;
    const bool bad = self.rank == kBadRank;
    const int code = bad ? UNISONO_ERROR_ARGUMENT : UNISONO_ERROR_PEER_ARGUMENT;
    const auto call = [&](int count) {
      return unisono_allreduce(UNISONO_IN_PLACE, &value, count, UNISONO_INT32, UNISONO_SUM,
                               self.world);
    };
    EXPECT_TRUE(failed(call(bad ? -1 : 1), code, {"rank 1"}));
    EXPECT_TRUE(failed(call(1), code, {"rank 1"}));
    EXPECT_TRUE(failed(unisono_barrier(self.world), code, {"rank 1"}));
    self.finalize();
  });
}

// A single rank has no others to inform, and gets the same errors.
TEST(BadInputScope, OfAJobOfOneRank) {
  run_threads(1, [](ThreadRank& self) {
    EXPECT_TRUE(failed(unisono_broadcast(nullptr, 1, UNISONO_INT32, 0, self.world),
                       UNISONO_ERROR_ARGUMENT, {"unisono_broadcast", "buffer", "rank 0"}));
    EXPECT_TRUE(failed(unisono_barrier(self.world), UNISONO_ERROR_ARGUMENT));
    self.finalize();
  });
}

TEST(BadInputScope, ListsOfMembers) {
  const std::vector<std::vector<int>> bad_lists = {{0, 3}, {-1, 1}, {0, 1, 0}};
  for (const std::vector<int>& list : bad_lists) {
    run_threads(kRanks, [&](ThreadRank& self) {
      unisono_comm_t result = self.world;
      EXPECT_TRUE(failed_with_any(
          unisono_comm_from_list(self.world, list.data(), static_cast<int>(list.size()), &result),
          {UNISONO_ERROR_ARGUMENT, UNISONO_ERROR_PEER_ARGUMENT}));
      EXPECT_EQ(result, nullptr);
      self.finalize();
    });
  }
}

TEST(BadInputScope, NoPlaceForTheResultOfACommunicatorCall) {
  run_threads(kRanks, [](ThreadRank& self) {
    unisono_comm_t result = nullptr;
    const bool bad = self.rank == kBadRank;
    EXPECT_TRUE(failed(unisono_comm_dup(self.world, bad ? nullptr : &result),
                       bad ? UNISONO_ERROR_ARGUMENT : UNISONO_ERROR_PEER_ARGUMENT, {"rank 1"}));
    self.finalize();
  });
}

}  // namespace
}  // namespace unisono::harness::bad_input_test
