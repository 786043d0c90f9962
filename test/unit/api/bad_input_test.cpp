// SPDX-License-Identifier: BSD-3-Clause
// Invalid arguments of the collectives, in the middle rank of a job of three: that rank gets a
// clear error that names function, argument and rank, the others are told who did it, and nobody
// hangs.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <limits>
#include <ostream>
#include <string>
#include <vector>

#include "harness/outcome.hpp"
#include "harness/threads.hpp"
#include "unisono/unisono.h"

namespace unisono::harness {
namespace {

constexpr int kRanks = 3;
constexpr int kBadRank = 1;
constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();

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

  const std::array<std::int64_t, kRanks> good_counts{2, 3, 4};  // of good calls
  std::int64_t own() const { return good_counts[static_cast<std::size_t>(rank)]; }
};

using Call = std::function<int(Desk&)>;

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

struct BadCall {
  const char* name;
  int code;
  std::vector<std::string> parts;  // of the message at the bad rank
  Call bad;
  Call good;
};

void PrintTo(const BadCall& c, std::ostream* out) { *out << c.name; }

const int kArgument = UNISONO_ERROR_ARGUMENT;
const int kType = UNISONO_ERROR_TYPE;

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

// The calls of this file's second half: one good call each, and what is wrong at the bad rank.
BadCall bad_call(const char* name, const char* function, std::vector<std::string> parts, Call bad,
                 Call good) {
  parts.emplace_back(function);
  return {name, kArgument, std::move(parts), std::move(bad), std::move(good)};
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

std::vector<BadCall> bad_unequal_blocks() {
  using Three = std::array<std::int64_t, kRanks>;
  const auto good = [](Desk& d) {
    return d.allgatherv(d.a.data(), d.own(), d.b.data(), d.good_counts.data(), nullptr);
  };
  const auto counts = [=](const char* name, std::vector<std::string> parts, Three bad) {
    return bad_call(
        name, "allgatherv", std::move(parts),
        [=](Desk& d) {
          return d.allgatherv(d.a.data(), bad[kBadRank], d.b.data(), bad.data(), nullptr);
        },
        good);
  };
  const auto places = [=](const char* name, std::vector<std::string> parts, Three bad) {
    return bad_call(
        name, "allgatherv", std::move(parts),
        [=](Desk& d) {
          return d.allgatherv(d.a.data(), d.own(), d.b.data(), d.good_counts.data(), bad.data());
        },
        good);
  };
  return {
      bad_call(
          "AllgathervNullCounts", "allgatherv", {"counts is NULL", "3 ranks"},
          [](Desk& d) { return d.allgatherv(d.a.data(), 3, d.b.data(), nullptr, nullptr); }, good),
      counts("AllgathervNegativeCount", {"counts[2] is -4"}, {2, 3, -4}),
      counts("AllgathervCountsOverflow", {"counts[2]", "overflow"}, {2, 3, kHuge}),
      counts("AllgathervSumOverflows", {"counts[1]", "overflow"}, {kHuge / 1536, kHuge / 1536, 1}),
      bad_call(
          "AllgathervOwnCountDiffers", "allgatherv", {"count is 5", "counts[1]", "is 3"},
          [](Desk& d) {
            return d.allgatherv(d.a.data(), 5, d.b.data(), d.good_counts.data(), nullptr);
          },
          good),
      places("AllgathervNegativeDisplacement", {"displacements[0] is -1"}, {-1, 10, 20}),
      places("AllgathervDisplacementOverflows", {"displacements[2]", "overflow"}, {0, 10, kHuge}),
      places("AllgathervBlocksOverlap", {"ranks 2 and 0", "overlap"}, {13, 20, 10}),
      places("AllgathervBlocksAtOnePlace", {"ranks 0 and 1", "overlap"}, {5, 5, 10}),
      bad_call(
          "AllgathervNullOutput", "allgatherv", {"output", "72 bytes"},
          [](Desk& d) {
            return d.allgatherv(d.a.data(), d.own(), nullptr, d.good_counts.data(), nullptr);
          },
          good),
      bad_call(
          "AllgathervInputInABlock", "allgatherv", {"overlap", "IN_PLACE"},
          [](Desk& d) {
            static constexpr Three kPlaces{0, 10, 20};
            return d.allgatherv(d.b.data() + 168, d.own(), d.b.data(), d.good_counts.data(),
                                kPlaces.data());
          },
          good),
      bad_call(
          "ReduceScatterNullCounts", "reduce_scatter", {"counts is NULL"},
          [](Desk& d) { return d.reduce_scatter(d.a.data(), d.b.data(), nullptr); },
          [](Desk& d) { return d.reduce_scatter(d.a.data(), d.b.data(), d.good_counts.data()); }),
      bad_call(
          "ReduceScatterNullInput", "reduce_scatter", {"input", "72 bytes"},
          [](Desk& d) { return d.reduce_scatter(nullptr, d.b.data(), d.good_counts.data()); },
          [](Desk& d) { return d.reduce_scatter(d.a.data(), d.b.data(), d.good_counts.data()); }),
  };
}

std::vector<BadCall> bad_masks() {
  static constexpr std::array<int, kRanks> kNotHere{1, 0, 1};
  static constexpr std::array<int, kRanks> kList{0, 2, 1};
  const auto good = [](Desk& d) {
    return d.many_to_many(d.a.data(), d.own(), d.b.data(), nullptr, kNotHere.data());
  };
  return {
      bad_call(
          "ManyToManyListInsteadOfMarks", "many_to_many", {"receives[1] is 2", "0"},
          [](Desk& d) {
            return d.many_to_many(d.a.data(), d.own(), d.b.data(), nullptr, kList.data());
          },
          good),
      bad_call(
          "ManyToManyInPlaceWithoutReceiving", "many_to_many", {"IN_PLACE", "receives[1]"},
          [](Desk& d) {
            return d.many_to_many(UNISONO_IN_PLACE, d.own(), d.b.data(), nullptr, kNotHere.data());
          },
          good),
      bad_call(
          "ManyToManyNullInput", "many_to_many", {"input", "24 bytes"},
          [](Desk& d) {
            return d.many_to_many(nullptr, d.own(), nullptr, nullptr, kNotHere.data());
          },
          good),
  };
}

std::vector<BadCall> bad_calls() {
  std::vector<BadCall> all;
  for (const auto& some :
       {bad_broadcasts(), bad_reduces(), bad_allreduces(), bad_allgathers(), bad_rooted_moves(),
        bad_equal_blocks(), bad_unequal_blocks(), bad_masks()}) {
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

// What the rank is told at the latest: by the call, by its completion, by the next call on the
// communicator, or (if it had run ahead of everything) at the end.
int first_error(Desk& desk, const Call& call, ThreadRank& self) {
  int error = call(desk);
  if (error == UNISONO_OK && desk.started) error = unisono_wait(&desk.request);
  if (error == UNISONO_OK) error = unisono_barrier(desk.comm);
  return error == UNISONO_OK ? self.finalize() : error;
}

void check_bad_call(const BadCall& c, bool started) {
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

class BadInput : public testing::TestWithParam<BadCall> {};

TEST_P(BadInput, OfABlockingCall) { check_bad_call(GetParam(), false); }

TEST_P(BadInput, OfAStartedCall) { check_bad_call(GetParam(), true); }

INSTANTIATE_TEST_SUITE_P(Calls, BadInput, testing::ValuesIn(bad_calls()),
                         [](const auto& suite) { return std::string(suite.param.name); });

// What another communicator does is none of the failed one's business.
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
    // Whoever had run ahead is told by the failed communicator's next call.
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

// A rank alone has nobody to tell, and gets the same errors.
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
}  // namespace unisono::harness
