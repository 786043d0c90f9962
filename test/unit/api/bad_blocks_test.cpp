// SPDX-License-Identifier: BSD-3-Clause
// Invalid arguments of the collectives with blocks of different lengths: arrays that are missing,
// counts and displacements that are negative or overflow, blocks that overlap or are misaligned.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "harness/bad_call.hpp"
#include "unisono/unisono.h"

namespace unisono::harness::bad_blocks_test {
namespace {

using Three = std::array<std::int64_t, kRanks>;

std::vector<BadCall> bad_unequal_blocks() {
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

std::vector<BadCall> bad_rooted_own_blocks() {
  const auto gather = [](Desk& d) {
    return d.gatherv(d.a.data(), d.own(), d.b.data(), d.good_counts.data(), nullptr);
  };
  const auto scatter = [](Desk& d) {
    return d.scatterv(d.a.data(), d.good_counts.data(), nullptr, d.b.data(), d.own());
  };
  const auto gatherv = [=](const char* name, std::vector<std::string> parts, Three counts,
                           Three places) {
    return bad_call(
        name, "gatherv", std::move(parts),
        [=](Desk& d) {
          return d.gatherv(d.a.data(), counts[kBadRank], d.b.data(), counts.data(), places.data());
        },
        gather);
  };
  const auto scatterv = [=](const char* name, std::vector<std::string> parts, Three counts,
                            Three places) {
    return bad_call(
        name, "scatterv", std::move(parts),
        [=](Desk& d) {
          return d.scatterv(d.a.data(), counts.data(), places.data(), d.b.data(), counts[kBadRank]);
        },
        scatter);
  };
  const auto from_leaf = [](Desk& d) {
    return d.gatherv(d.a.data(), d.own(), d.b.data(), d.good_counts.data(), nullptr, 0);
  };
  const auto to_leaf = [](Desk& d) {
    return d.scatterv(d.a.data(), d.good_counts.data(), nullptr, d.b.data(), d.own(), 0);
  };
  const auto leaf = [=](const char* name, std::vector<std::string> parts, const void* input,
                        std::int64_t count) {
    return bad_call(
        name, "gatherv", std::move(parts),
        [=](Desk& d) { return d.gatherv(input, count, nullptr, nullptr, nullptr, 0); }, from_leaf);
  };
  return {
      bad_call(
          "GathervNullCountsAtRoot", "gatherv", {"counts is NULL", "3 ranks"},
          [](Desk& d) { return d.gatherv(d.a.data(), 3, d.b.data(), nullptr, nullptr); }, gather),
      gatherv("GathervNegativeCount", {"counts[2] is -4"}, {2, 3, -4}, {0, 5, 10}),
      gatherv("GathervSumOverflows", {"counts[0] to counts[2]", "overflow"},
              {kHuge / 2048, 3, kHuge / 1024}, {0, 5, 10}),
      gatherv("GathervNegativeDisplacement", {"displacements[1] is -1"}, {2, 3, 4}, {5, -1, 10}),
      gatherv("GathervDisplacementOverflows", {"displacements[2]", "4 elements", "overflow"},
              {2, 3, 4}, {0, 5, kHuge / 8}),
      gatherv("GathervBlocksOverlap", {"ranks 2 and 1", "overlap in the output"}, {2, 3, 4},
              {20, 13, 10}),
      bad_call(
          "GathervOwnCountDiffers", "gatherv", {"count is 5", "counts[1]", "is 3"},
          [](Desk& d) {
            return d.gatherv(d.a.data(), 5, d.b.data(), d.good_counts.data(), nullptr);
          },
          gather),
      bad_call(
          "GathervNullOutputAtRoot", "gatherv", {"output", "72 bytes"},
          [](Desk& d) { return d.gatherv(d.a.data(), 3, nullptr, d.good_counts.data(), nullptr); },
          gather),
      bad_call(
          "GathervInputInABlock", "gatherv", {"overlap", "IN_PLACE as the input"},
          [](Desk& d) {
            return d.gatherv(d.b.data() + 64, 3, d.b.data(), d.good_counts.data(), nullptr);
          },
          gather),
      leaf("GathervNegativeCountOfALeaf", {"count is -1"}, "", -1),
      leaf("GathervOverflowingCountOfALeaf", {"count", "overflows"}, "", kHuge / 8),
      leaf("GathervNullInput", {"input is NULL", "24 bytes"}, nullptr, 3),
      leaf("GathervInPlaceElsewhere", {"IN_PLACE", "root (rank 0)"}, UNISONO_IN_PLACE, 3),
      bad_call(
          "GathervRootBeyondRanks", "gatherv", {"root is 3"},
          [](Desk& d) {
            return d.gatherv(d.a.data(), 3, d.b.data(), d.good_counts.data(), nullptr, kRanks);
          },
          gather),
      bad_call(
          "ScattervNullCountsAtRoot", "scatterv", {"counts is NULL"},
          [](Desk& d) { return d.scatterv(d.a.data(), nullptr, nullptr, d.b.data(), 3); }, scatter),
      scatterv("ScattervNegativeCount", {"counts[0] is -2"}, {-2, 3, 4}, {0, 5, 10}),
      scatterv("ScattervNegativeDisplacement", {"displacements[2] is -9"}, {2, 3, 4}, {0, 5, -9}),
      scatterv("ScattervDisplacementOverflows", {"displacements[0]", "overflow"}, {2, 3, 4},
               {kHuge, 5, 10}),
      scatterv("ScattervOutputInABlock", {"overlap", "IN_PLACE as the output"}, {2, 3, 4},
               {0, 5, 4096 / 8}),
      bad_call(
          "ScattervNullInputAtRoot", "scatterv", {"input is NULL", "72 bytes"},
          [](Desk& d) { return d.scatterv(nullptr, d.good_counts.data(), nullptr, d.b.data(), 3); },
          scatter),
      bad_call(
          "ScattervOwnCountDiffers", "scatterv", {"count is 0", "counts[1]", "is 3"},
          [](Desk& d) {
            return d.scatterv(d.a.data(), d.good_counts.data(), nullptr, d.b.data(), 0);
          },
          scatter),
      bad_call(
          "ScattervInPlaceElsewhere", "scatterv", {"IN_PLACE", "root (rank 0)"},
          [](Desk& d) { return d.scatterv(nullptr, nullptr, nullptr, UNISONO_IN_PLACE, 3, 0); },
          to_leaf),
      bad_call(
          "ScattervNullOutput", "scatterv", {"output is NULL", "24 bytes"},
          [](Desk& d) { return d.scatterv(nullptr, nullptr, nullptr, nullptr, 3, 0); }, to_leaf),
  };
}

std::vector<BadCall> bad_exchanges() {
  static constexpr Three kTwo{2, 2, 2};
  static constexpr Three kPlaces{0, 2, 4};
  const auto good = [](Desk& d) {
    return d.alltoallv({d.a.data(), kTwo.data(), nullptr}, {d.b.data(), kTwo.data(), nullptr});
  };
  const auto sent = [=](const char* name, std::vector<std::string> parts, Three counts,
                        Three places) {
    return bad_call(
        name, "alltoallv", std::move(parts),
        [=](Desk& d) {
          return d.alltoallv({d.a.data(), counts.data(), places.data()},
                             {d.b.data(), kTwo.data(), nullptr});
        },
        good);
  };
  const auto received = [=](const char* name, std::vector<std::string> parts, Three counts,
                            Three places) {
    return bad_call(
        name, "alltoallv", std::move(parts),
        [=](Desk& d) {
          return d.alltoallv({d.a.data(), kTwo.data(), nullptr},
                             {d.b.data(), counts.data(), places.data()});
        },
        good);
  };
  return {
      bad_call(
          "AlltoallvNullInputCounts", "alltoallv", {"input_counts is NULL"},
          [](Desk& d) {
            return d.alltoallv({d.a.data(), nullptr, nullptr}, {d.b.data(), kTwo.data(), nullptr});
          },
          good),
      bad_call(
          "AlltoallvNullOutputCounts", "alltoallv", {"output_counts is NULL"},
          [](Desk& d) {
            return d.alltoallv({d.a.data(), kTwo.data(), nullptr}, {d.b.data(), nullptr, nullptr});
          },
          good),
      sent("AlltoallvNegativeInputCount", {"input_counts[2] is -1"}, {2, 2, -1}, kPlaces),
      sent("AlltoallvNegativeInputDisplacement", {"input_displacements[0] is -2"}, kTwo,
           {-2, 0, 2}),
      sent("AlltoallvInputDisplacementOverflows", {"input_displacements[1]", "overflow"}, kTwo,
           {0, kHuge, 2}),
      sent("AlltoallvToItselfDiffers", {"rank 1 sends to itself", "has 3", "but 2"}, {2, 3, 2},
           {0, 2, 5}),
      sent("AlltoallvInputBeyondIntoTheOutput", {"overlap"}, kTwo, {0, 2, 4096 / 8 + 1}),
      received("AlltoallvNegativeOutputCount", {"output_counts[0] is -7"}, {-7, 2, 2}, kPlaces),
      received("AlltoallvOutputCountsOverflow", {"output_counts[2]", "overflow"},
               {kHuge / 2048, 2, kHuge / 1024}, kPlaces),
      received("AlltoallvOutputDisplacementOverflows", {"output_displacements[2]", "overflow"},
               kTwo, {0, 2, kHuge / 8}),
      received("AlltoallvOutputBlocksOverlap", {"ranks 0 and 2", "overlap in the output"}, kTwo,
               {0, 4, 1}),
      bad_call(
          "AlltoallvNullOutput", "alltoallv", {"output is NULL", "48 bytes"},
          [](Desk& d) {
            return d.alltoallv({d.a.data(), kTwo.data(), nullptr}, {nullptr, kTwo.data(), nullptr});
          },
          good),
      bad_call(
          "AlltoallvOutputInPlace", "alltoallv", {"IN_PLACE", "for the input"},
          [](Desk& d) {
            return d.alltoallv({d.a.data(), kTwo.data(), nullptr},
                               {UNISONO_IN_PLACE, kTwo.data(), nullptr});
          },
          good),
      bad_call(
          "AlltoallvSameBuffer", "alltoallv", {"overlap", "IN_PLACE"},
          [](Desk& d) {
            return d.alltoallv({d.a.data(), kTwo.data(), nullptr},
                               {d.a.data(), kTwo.data(), nullptr});
          },
          good),
  };
}

std::vector<BadCall> bad_typed_exchanges() {
  static constexpr Three kTwo{2, 2, 2};
  static constexpr Three kOdd{0, 20, 40};
  static constexpr std::array<unisono_type_t, kRanks> kWords{UNISONO_INT64, UNISONO_INT64,
                                                             UNISONO_INT64};
  static constexpr std::array<unisono_type_t, kRanks> kUnknown{UNISONO_INT64, UNISONO_INT64, 4711};
  const auto good = [](Desk& d) {
    return d.alltoallw({d.a.data(), kTwo.data(), nullptr}, kWords.data(),
                       {d.b.data(), kTwo.data(), nullptr}, kWords.data());
  };
  const auto types = [=](const char* name, int code, std::vector<std::string> parts,
                         const unisono_type_t* sent, const unisono_type_t* received) {
    BadCall bad = bad_call(
        name, "alltoallw", std::move(parts),
        [=](Desk& d) {
          return d.alltoallw({d.a.data(), kTwo.data(), nullptr}, sent,
                             {d.b.data(), kTwo.data(), nullptr}, received);
        },
        good);
    bad.code = code;
    return bad;
  };
  const auto places = [=](const char* name, std::vector<std::string> parts, Three counts,
                          Three bad) {
    return bad_call(
        name, "alltoallw", std::move(parts),
        [=](Desk& d) {
          return d.alltoallw({d.a.data(), kTwo.data(), nullptr}, kWords.data(),
                             {d.b.data(), counts.data(), bad.data()}, kWords.data());
        },
        good);
  };
  return {
      types("AlltoallwNullInputTypes", kArgument, {"input_types is NULL", "3 ranks"}, nullptr,
            kWords.data()),
      types("AlltoallwNullOutputTypes", kArgument, {"output_types is NULL"}, kWords.data(),
            nullptr),
      types("AlltoallwUnknownInputType", kType, {"input_types[2] is 4711"}, kUnknown.data(),
            kWords.data()),
      types("AlltoallwUnknownOutputType", kType, {"output_types[2] is 4711"}, kWords.data(),
            kUnknown.data()),
      places("AlltoallwOverflows", {"output_counts[1] of 8 byte elements overflow"},
             {2, kHuge / 8, 2}, {0, 16, 32}),
      places("AlltoallwMisalignedBlock",
             {"output is misaligned for the block of rank 1", "20 bytes", "multiple of 8"}, kTwo,
             kOdd),
      places("AlltoallwBlocksOverlap", {"ranks 0 and 1 overlap", "16 bytes from displacement 0"},
             kTwo, {0, 8, 32}),
      bad_call(
          "AlltoallwNullInput", "alltoallw", {"input is NULL", "48 bytes"},
          [](Desk& d) {
            return d.alltoallw({nullptr, kTwo.data(), nullptr}, kWords.data(),
                               {d.b.data(), kTwo.data(), nullptr}, kWords.data());
          },
          good),
  };
}

std::vector<BadCall> bad_block_calls() {
  std::vector<BadCall> all;
  for (const auto& some : {bad_unequal_blocks(), bad_masks(), bad_rooted_own_blocks(),
                           bad_exchanges(), bad_typed_exchanges()}) {
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

class BadBlocks : public testing::TestWithParam<BadCall> {};

TEST_P(BadBlocks, OfABlockingCall) { check_bad_call(GetParam(), false); }

TEST_P(BadBlocks, OfAStartedCall) { check_bad_call(GetParam(), true); }

INSTANTIATE_TEST_SUITE_P(Calls, BadBlocks, testing::ValuesIn(bad_block_calls()),
                         [](const auto& suite) { return std::string(suite.param.name); });

}  // namespace
}  // namespace unisono::harness::bad_blocks_test
