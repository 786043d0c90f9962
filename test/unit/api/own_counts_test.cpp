// SPDX-License-Identifier: BSD-3-Clause
// The collectives with local counts (gatherv, scatterv, alltoallv, alltoallw): their results in
// every form of a call, and the errors if blocks or calls do not agree.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "harness/own_block_results.hpp"
#include "harness/threads.hpp"
#include "unisono/unisono.h"

namespace unisono::harness::own_counts_test {
namespace {

class OwnCounts : public testing::TestWithParam<int> {
 protected:
  int ranks() const { return GetParam(); }
};

TEST_P(OwnCounts, InEveryWay) {
  run_threads(ranks(), [](ThreadRank& self) {
    int root = 0;
    for (const std::int64_t unit : {0, 1, 4, 100}) {
      SCOPED_TRACE(unit);
      for (const bool in_place : {false, true}) {
        for (const Way way : kWays) {
          ASSERT_NO_FATAL_FAILURE(check_own_blocks(self, unit, root, in_place, way));
          root = (root + 1) % self.ranks;
        }
      }
    }
  });
}

TEST_P(OwnCounts, FromAndToEveryRoot) {
  run_threads(ranks(), [](ThreadRank& self) {
    const Words counts = unequal_counts(self.ranks, 9);
    for (int root = 0; root < self.ranks; ++root) {
      for (const bool in_place : {false, true}) {
        ASSERT_NO_FATAL_FAILURE(
            check_gatherv(self, counts, Places::scattered, root, in_place, Way::blocking));
        ASSERT_NO_FATAL_FAILURE(
            check_scatterv(self, counts, Places::scattered, root, in_place, Way::blocking));
      }
    }
  });
}

TEST_P(OwnCounts, AllEmpty) {
  run_threads(ranks(), [](ThreadRank& self) {
    const Words none(static_cast<std::size_t>(self.ranks), 0);
    const PairCounts no_pairs = pair_counts(self.ranks, [](int, int) { return 0; });
    for (const bool in_place : {false, true}) {
      for (const Way way : kWays) {
        ASSERT_NO_FATAL_FAILURE(check_gatherv(self, none, Places::packed, 0, in_place, way));
        ASSERT_NO_FATAL_FAILURE(check_scatterv(self, none, Places::packed, 0, in_place, way));
        ASSERT_NO_FATAL_FAILURE(check_alltoallv(self, no_pairs, Places::packed, in_place, way));
        ASSERT_NO_FATAL_FAILURE(check_alltoallw(self, no_pairs, Places::scattered, in_place, way));
      }
    }
  });
}

// Most ranks have nothing to do with each other.
TEST_P(OwnCounts, OnSomePairsOnly) {
  run_threads(ranks(), [](ThreadRank& self) {
    const auto only = [&](auto which) {
      return pair_counts(self.ranks,
                         [&](int from, int to) { return which(from, to) ? 7 + from + to : 0; });
    };
    const int last = self.ranks - 1;
    const PairCounts some[] = {
        only([&](int from, int to) { return to == (from + 1) % self.ranks; }),
        only([&](int from, int to) { return from == last && to == 0; }),
        only([](int from, int to) { return from == to; }),
        only([](int from, int) { return from % 2 == 0; }),
    };
    for (const PairCounts& pairs : some) {
      for (const Way way : kWays) {
        ASSERT_NO_FATAL_FAILURE(check_alltoallv(self, pairs, Places::scattered, false, way));
        ASSERT_NO_FATAL_FAILURE(check_alltoallw(self, pairs, Places::scattered, false, way));
      }
    }
    const PairCounts to_and_fro =
        only([&](int from, int to) { return from + to == last && from != to; });
    ASSERT_NO_FATAL_FAILURE(
        check_alltoallv(self, to_and_fro, Places::scattered, true, Way::blocking));
  });
}

// Far more than a share of a receive buffer.
TEST_P(OwnCounts, LargeBlocks) {
  run_threads(ranks(), [](ThreadRank& self) {
    const std::int64_t unit = std::max<std::int64_t>(20'000, scaled(200'003) / self.ranks);
    for (const bool in_place : {false, true}) {
      ASSERT_NO_FATAL_FAILURE(
          check_own_blocks(self, unit / self.ranks + 1, 0, in_place, Way::blocking));
      ASSERT_NO_FATAL_FAILURE(check_gatherv(self, unequal_counts(self.ranks, unit),
                                            Places::scattered, self.ranks / 2, in_place,
                                            Way::started));
      ASSERT_NO_FATAL_FAILURE(check_scatterv(self, unequal_counts(self.ranks, unit),
                                             Places::scattered, self.ranks / 2, in_place,
                                             Way::planned));
    }
    const PairCounts one = pair_counts(self.ranks, [&](int from, int to) {
      return from == 0 && to == self.ranks - 1 ? 40'000 : 3;
    });
    ASSERT_NO_FATAL_FAILURE(check_alltoallv(self, one, Places::scattered, false, Way::started));
  });
}

// The same call again and again, and others between.
TEST_P(OwnCounts, RepeatedCalls) {
  run_threads(ranks(), [](ThreadRank& self) {
    for (int i = 0; i < 6; ++i) {
      ASSERT_NO_FATAL_FAILURE(check_own_blocks(self, 3, 0, false, Way::blocking));
      ASSERT_NO_FATAL_FAILURE(check_own_blocks(self, 3, 0, true, Way::blocking));
      ASSERT_NO_FATAL_FAILURE(check_own_blocks(self, 3 + i % 2, 0, false, Way::blocking));
    }
  });
}

// The contents of the arrays count, not their addresses.
TEST_P(OwnCounts, ArraysThatChangeBetweenCalls) {
  run_threads(ranks(), [](ThreadRank& self) {
    const std::size_t ranks = static_cast<std::size_t>(self.ranks);
    const Words input = words_of(self.rank, 0, 8 * self.ranks);
    Words sent(ranks), received(ranks), from(ranks), to(ranks);
    for (int turn = 0; turn < 12; ++turn) {
      for (std::size_t r = 0; r < ranks; ++r) {
        const int pair = self.rank + static_cast<int>(r) + turn / 3;
        sent[r] = received[r] = pair % 3;
        from[r] = turn % 2 == 0 ? 0 : 5;
        to[r] = static_cast<std::int64_t>(turn % 4 < 2 ? r : ranks - 1 - r) * 2;
      }
      Words output = untouched_words(2 * self.ranks);
      Words expected = output;
      for (std::size_t r = 0; r < ranks; ++r) {
        for (std::int64_t i = 0; i < received[r]; ++i) {
          expected[static_cast<std::size_t>(to[r] + i)] = word(static_cast<int>(r), 0, from[0] + i);
        }
      }
      ASSERT_TRUE(
          succeeded(unisono_alltoallv(input.data(), sent.data(), from.data(), output.data(),
                                      received.data(), to.data(), UNISONO_INT64, self.world)));
      ASSERT_EQ(output, expected) << "turn " << turn;
    }
  });
}

// A rank that is not the root may pass anything.
TEST_P(OwnCounts, WhatIsIgnoredIsNotRead) {
  run_threads(ranks(), [](ThreadRank& self) {
    const Words counts = unequal_counts(self.ranks, 3);
    const auto* const nowhere = reinterpret_cast<const std::int64_t*>(8);
    const std::int64_t own = counts[static_cast<std::size_t>(self.rank)];
    for (int turn = 0; turn < 6; ++turn) {
      const int root = turn / 3 % self.ranks;
      const bool is_root = self.rank == root;
      BlockBuffer all(counts, Places::scattered, self.rank);
      BlockBuffer expected = all;
      for (int r = 0; is_root && r < self.ranks; ++r) expected.put(r, r, root);
      const Words input = words_of(self.rank, root, own);
      ASSERT_TRUE(succeeded(unisono_gatherv(
          input.data(), own, is_root ? all.words.data() : const_cast<std::int64_t*>(nowhere),
          is_root ? counts.data() : nowhere, is_root ? all.displacements() : nowhere, UNISONO_INT64,
          root, self.world)));
      ASSERT_EQ(all.words, expected.words);
      Words back = untouched_words(own);
      ASSERT_TRUE(succeeded(unisono_scatterv(is_root ? all.words.data() : nowhere,
                                             is_root ? counts.data() : nowhere,
                                             is_root ? all.displacements() : nowhere, back.data(),
                                             own, UNISONO_INT64, root, self.world)));
      ASSERT_EQ(back, input);
      Words swapped = untouched_words(self.ranks);
      const Words ones(counts.size(), 1);
      ASSERT_TRUE(succeeded(unisono_alltoallv(UNISONO_IN_PLACE, nowhere, nowhere, swapped.data(),
                                              ones.data(), nullptr, UNISONO_INT64, self.world)));
      std::vector<int> receives(counts.size(), 0);
      receives[static_cast<std::size_t>(root)] = 1;
      ASSERT_TRUE(succeeded(unisono_many_to_many(
          input.data(), own, is_root ? all.words.data() : const_cast<std::int64_t*>(nowhere),
          counts.data(), is_root ? all.displacements() : nowhere, receives.data(), UNISONO_INT64,
          self.world)));
    }
  });
}

TEST_P(OwnCounts, WrongArraysAreSeenAfterRightOnes) {
  run_threads(ranks(), [](ThreadRank& self) {
    const Words input = words_of(self.rank, 0, self.ranks);
    Words output = untouched_words(self.ranks);
    Words counts(static_cast<std::size_t>(self.ranks), 1);
    const auto exchange = [&] {
      return unisono_alltoallv(input.data(), counts.data(), nullptr, output.data(), counts.data(),
                               nullptr, UNISONO_INT64, self.world);
    };
    for (int turn = 0; turn < 3; ++turn) ASSERT_TRUE(succeeded(exchange()));
    counts.back() = -1;
    EXPECT_TRUE(failed(exchange(), UNISONO_ERROR_ARGUMENT, {"counts[", "is -1"}));
    self.finalize();
  });
}

// One buffer of an alltoallv in place: the second start brings back what the first took away.
TEST_P(OwnCounts, PlansStartedSeveralTimes) {
  run_threads(ranks(), [](ThreadRank& self) {
    const PairCounts pairs = unequal_pairs(self.ranks, 700, true);
    Exchanged moved(self, pairs, Places::scattered, false);
    Exchanged swapped(self, pairs, Places::scattered, true);
    const Words first = swapped.output.words;
    unisono_plan_t plans[2] = {};
    ASSERT_TRUE(succeeded(unisono_alltoallv_plan(
        moved.input.words.data(), moved.input.counts.data(), moved.input.displacements(),
        moved.output.words.data(), moved.output.counts.data(), moved.output.displacements(),
        UNISONO_INT64, self.world, &plans[0])));
    ASSERT_TRUE(succeeded(
        unisono_alltoallv_plan(UNISONO_IN_PLACE, nullptr, nullptr, swapped.output.words.data(),
                               swapped.output.counts.data(), swapped.output.displacements(),
                               UNISONO_INT64, self.world, &plans[1])));
    for (int turn = 0; turn < 6; ++turn) {
      for (std::int64_t& each : moved.input.words) each += each == kUntouched ? 0 : 1;
      for (std::int64_t& each : moved.expected.words) each += each == kUntouched ? 0 : 1;
      for (unisono_plan_t plan : plans) ASSERT_TRUE(succeeded(unisono_plan_start(plan)));
      for (unisono_plan_t plan : plans) ASSERT_TRUE(succeeded(unisono_plan_wait(plan)));
      ASSERT_EQ(moved.output.words, moved.expected.words) << "turn " << turn;
      ASSERT_EQ(swapped.output.words, turn % 2 == 0 ? swapped.expected.words : first)
          << "turn " << turn;
    }
    for (unisono_plan_t plan : plans) ASSERT_TRUE(succeeded(unisono_plan_free(plan)));
  });
}

// Started in order, completed in any; the arrays are the caller's again at once.
TEST_P(OwnCounts, ManyRequestsAtOnce) {
  run_threads(ranks(), [](ThreadRank& self) {
    constexpr int kStarts = 12;
    std::vector<Exchanged> all;
    std::vector<unisono_request_t> requests(kStarts);
    for (int i = 0; i < kStarts; ++i) {
      all.emplace_back(self, unequal_pairs(self.ranks, i * i * i, false), Places::scattered, false);
    }
    for (std::size_t i = 0; i < kStarts; ++i) {
      Words sent = all[i].input.counts, received = all[i].output.counts;
      Words from = all[i].input.places, to = all[i].output.places;
      ASSERT_TRUE(succeeded(unisono_alltoallv_start(
          all[i].input.words.data(), sent.data(), from.data(), all[i].output.words.data(),
          received.data(), to.data(), UNISONO_INT64, self.world, &requests[i])));
      for (Words* array : {&sent, &received, &from, &to}) array->assign(array->size(), -1);
    }
    ASSERT_TRUE(succeeded(unisono_wait(&requests[kStarts / 2])));
    ASSERT_TRUE(succeeded(unisono_wait_all(requests.data(), kStarts)));
    for (const Exchanged& each : all) ASSERT_EQ(each.output.words, each.expected.words);
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, OwnCounts, testing::ValuesIn(rank_counts()),
                         [](const auto& suite) { return "P" + std::to_string(suite.param); });

// As in MPI, where only those of an output must not.
TEST(OwnCountsInput, BlocksOfAnInputMayOverlap) {
  run_threads(3, [](ThreadRank& self) {
    const Words input = words_of(self.rank, 0, 5);
    const Words three(3, 3), one_apart{0, 1, 2};
    Words output = untouched_words(9);
    ASSERT_TRUE(
        succeeded(unisono_alltoallv(input.data(), three.data(), one_apart.data(), output.data(),
                                    three.data(), nullptr, UNISONO_INT64, self.world)));
    for (int from = 0; from < 3; ++from) {
      for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(output[static_cast<std::size_t>(3 * from + i)], word(from, 0, self.rank + i));
      }
    }
    Words mine = untouched_words(3);
    ASSERT_TRUE(succeeded(unisono_scatterv(input.data(), three.data(), one_apart.data(),
                                           mine.data(), 3, UNISONO_INT64, 1, self.world)));
    EXPECT_EQ(mine[2], word(1, 0, self.rank + 2));
  });
}

TEST(OwnCountsInput, MayLieBetweenTheOutputsBlocks) {
  run_threads(2, [](ThreadRank& self) {
    const Words one{1, 1}, even{0, 2}, odd{1, 3};
    Words buffer = untouched_words(4);
    put_words(buffer, 1, 1, self.rank, 0);
    put_words(buffer, 3, 1, self.rank, 1);
    ASSERT_TRUE(succeeded(unisono_alltoallv(buffer.data(), one.data(), odd.data(), buffer.data(),
                                            one.data(), even.data(), UNISONO_INT64, self.world)));
    EXPECT_EQ(buffer, (Words{word(0, self.rank, 0), word(self.rank, 0, 0), word(1, self.rank, 0),
                             word(self.rank, 1, 0)}));
  });
}

// ---- what does not agree ----

// Up to the rank's end; with the text of the first error.
int first_error(ThreadRank& self, int error) {
  if (error == UNISONO_OK) error = unisono_barrier(self.world);
  return error == UNISONO_OK ? self.finalize() : error;
}

enum class Which { gatherv, scatterv, alltoallv, alltoallw };

// `from` sends `length` words to `to`, but the given call has one more or fewer at one end. The
// error names both ranks, with both lengths.
void check_mismatch(Which which, std::int64_t length, std::int64_t wrong, Way way) {
  const int from = which == Which::scatterv ? 2 : 1;
  const int to = which == Which::scatterv ? 1 : 2;
  run_threads(3, [&](ThreadRank& self) {
    PairCounts pairs = pair_counts(3, [&](int, int) { return length; });
    if (self.rank == 1) pairs.counts[static_cast<std::size_t>(3 * from + to)] = wrong;
    const std::int64_t room = 3 * std::max(length, wrong);
    const Words input = words_of(0, 0, room);
    Words output = untouched_words(room);
    const Words sent = pairs.sent_by(self.rank), received = pairs.received_by(self.rank);
    const std::vector<unisono_type_t> types(3, UNISONO_INT64);
    const std::int64_t own = self.rank == 1 ? wrong : length;
    int error = UNISONO_OK;
    switch (which) {
      case Which::gatherv:
        error =
            call(way, unisono_gatherv, unisono_gatherv_start, unisono_gatherv_plan, input.data(),
                 own, output.data(), received.data(), nullptr, UNISONO_INT64, 2, self.world);
        break;
      case Which::scatterv:
        error =
            call(way, unisono_scatterv, unisono_scatterv_start, unisono_scatterv_plan, input.data(),
                 sent.data(), nullptr, output.data(), own, UNISONO_INT64, 2, self.world);
        break;
      case Which::alltoallv:
        error = call(way, unisono_alltoallv, unisono_alltoallv_start, unisono_alltoallv_plan,
                     input.data(), sent.data(), nullptr, output.data(), received.data(), nullptr,
                     UNISONO_INT64, self.world);
        break;
      case Which::alltoallw:
        error = call(way, unisono_alltoallw, unisono_alltoallw_start, unisono_alltoallw_plan,
                     input.data(), sent.data(), nullptr, types.data(), output.data(),
                     received.data(), nullptr, types.data(), self.world);
        break;
    }
    const auto bytes = [](std::int64_t words) { return std::to_string(8 * words) + " bytes"; };
    const std::int64_t sends = which == Which::scatterv ? length : wrong;
    const std::int64_t expects = which == Which::scatterv ? wrong : length;
    const char* const names[] = {"gatherv", "scatterv", "alltoallv", "alltoallw"};
    EXPECT_TRUE(failed(
        first_error(self, error), UNISONO_ERROR_MISMATCH,
        {"rank " + std::to_string(from) + " sends " + bytes(sends), "to rank " + std::to_string(to),
         "expects " + std::to_string(8 * expects), names[static_cast<int>(which)]}));
    if (!self.finalized()) self.finalize();
  });
}

TEST(OwnCountsMismatch, OfLengthsNamesBothRanksAndBothLengths) {
  for (const Which which : {Which::gatherv, Which::scatterv, Which::alltoallv, Which::alltoallw}) {
    int way = 0;
    for (const std::int64_t length : {2, 1000, 20'000}) {
      check_mismatch(which, length, length + 1, kWays[way++ % 3]);
      check_mismatch(which, length, length - 1, kWays[way++ % 3]);
      if (HasFailure()) return;
    }
    check_mismatch(which, 2, 20'000, Way::blocking);
    check_mismatch(which, 20'000, 2, Way::started);
  }
}

// A block that one side does not know of is not sent. A rank that waits for it gets an error: its
// receiver, or the sender of a block that is too long to be left behind.
TEST(OwnCountsMismatch, OfABlockThatOneSideDoesNotKnowOf) {
  for (const bool sent : {false, true}) {
    SCOPED_TRACE(sent ? "sent and not expected" : "expected and not sent");
    run_threads(2, [&](ThreadRank& self) {
      constexpr std::int64_t kLong = 100'000;
      const Words input = words_of(0, 0, kLong);
      Words output = untouched_words(kLong);
      const Words nothing{0, 0}, something{0, kLong};
      const int error = unisono_gatherv(input.data(), self.rank == 1 && sent ? kLong : 0,
                                        output.data(), sent ? nothing.data() : something.data(),
                                        nullptr, UNISONO_INT64, 0, self.world);
      const char* const text = sent ? "rank 1 waits in operation 0" : "rank 0 waits in operation 0";
      EXPECT_TRUE(failed(first_error(self, error), UNISONO_ERROR_MISMATCH, {text, "gatherv"}));
      if (!self.finalized()) self.finalize();
    });
  }
}

// Other functions, types or roots are other calls, whatever the lengths are.
TEST(OwnCountsMismatch, OfCalls) {
  if (kThreadSanitizer) GTEST_SKIP() << "ranks that call different things write the same slots";
  const Words two(3, 2), one{1, 1, 1};
  const std::vector<unisono_type_t> types(3, UNISONO_INT64);
  const Words input = words_of(0, 0, 6);
  struct Variant {
    std::string name, distinction;
    std::function<int(unisono_comm_t, std::int64_t*)> call;
  };
  const auto gatherv = [&](unisono_type_t type, int root) {
    return [&, type, root](unisono_comm_t comm, std::int64_t* output) {
      return unisono_gatherv(input.data(), 2, output, two.data(), nullptr, type, root, comm);
    };
  };
  const std::vector<Variant> variants = {
      {"gatherv", "root 0", gatherv(UNISONO_INT64, 0)},
      {"gatherv", "root 1", gatherv(UNISONO_INT64, 1)},
      {"gatherv", "float64", gatherv(UNISONO_FLOAT64, 0)},
      {"gather", "count 2",
       [&](unisono_comm_t comm, std::int64_t* output) {
         return unisono_gather(input.data(), output, 2, UNISONO_INT64, 0, comm);
       }},
      {"scatterv", "root 0",
       [&](unisono_comm_t comm, std::int64_t* output) {
         return unisono_scatterv(input.data(), two.data(), nullptr, output, 2, UNISONO_INT64, 0,
                                 comm);
       }},
      {"alltoallv", "own blocks of 6 elements, byte",
       [&](unisono_comm_t comm, std::int64_t* output) {
         return unisono_alltoallv(input.data(), two.data(), nullptr, output, two.data(), nullptr,
                                  UNISONO_BYTE, comm);
       }},
      {"alltoallw", "own blocks of 24 elements, byte",
       [&](unisono_comm_t comm, std::int64_t* output) {
         return unisono_alltoallw(input.data(), one.data(), nullptr, types.data(), output,
                                  one.data(), nullptr, types.data(), comm);
       }},
  };
  for (std::size_t a = 0; a < variants.size(); ++a) {
    for (std::size_t b = 0; b < variants.size(); ++b) {
      if (a == b) continue;
      const int odd = static_cast<int>(a + b) % 3;
      run_threads(3, [&](ThreadRank& self) {
        const Variant& mine = variants[self.rank == odd ? b : a];
        Words output = untouched_words(6);
        EXPECT_TRUE(
            failed(first_error(self, mine.call(self.world, output.data())), UNISONO_ERROR_MISMATCH,
                   {"rank " + std::to_string(odd), variants[a].name, variants[b].distinction}));
        if (!self.finalized()) self.finalize();
      });
      if (HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace unisono::harness::own_counts_test
