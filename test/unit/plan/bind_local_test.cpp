// SPDX-License-Identifier: BSD-3-Clause
// How a schedule of local counts is bound; that it works is shown in unit/comm/local_counts_test.
#include "plan/bind/bind_local.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "algorithm/algorithm.hpp"

namespace unisono::plan::bind_local_test {
namespace {

using schedule::Blocks;
using schedule::Collective;

constexpr ReceiveGeometry kGeometry{.ranks = 4, .slot_indexes = 2, .lines = 24, .data_bytes = 4096};

Program bind_alltoall(int rank, std::int64_t length, LocalOptions options) {
  const std::vector<std::int64_t> counts(4, length);
  schedule::Shape shape;
  shape.collective = Collective::alltoall;
  shape.ranks = 4;
  shape.blocks = *Blocks::of_pairs_of(rank, counts, counts);
  const auto* row = algorithm::find(shape.collective, "linear");
  if (options.geometry.ranks == 1) options.geometry = kGeometry;
  return bind_local(*algorithm::build(*row, shape, {}, rank), options);
}

Program bind_alltoall(int rank, std::int64_t length, bool pull, bool in_place) {
  LocalOptions options;
  options.pull = pull;
  options.in_place = in_place;
  return bind_alltoall(rank, length, options);
}

std::int64_t count_of(const Program& program, StepKind kind) {
  return std::ranges::count(program.steps, kind, &Step::kind);
}

// Sender and receiver compute the places apart from each other.
TEST(BindLocal, BothEndsOfAMessageFindTheSamePlace) {
  for (const std::int64_t length : {1, 48, 49, 1024, 1025}) {
    std::vector<std::int64_t> sent, awaited;
    for (int rank = 0; rank < 4; ++rank) {
      for (const Step& step : bind_alltoall(rank, length, true, false).steps) {
        if (step.flag < 0) continue;
        (step.kind == StepKind::wait ? awaited : sent).push_back(step.flag);
        EXPECT_EQ(step.flag % kLineBytes, kLinePayload);
      }
    }
    std::ranges::sort(sent);
    std::ranges::sort(awaited);
    EXPECT_EQ(sent, awaited) << length;
    EXPECT_EQ(std::ranges::adjacent_find(sent), sent.end()) << "a flag of two messages";
  }
}

// Ranks 0 and 1 are on one host, 2 and 3 on another.
TEST(BindLocal, WhatIsOfferedByAnotherHostIsGotThroughTheShare) {
  const std::vector<std::int64_t> counts(4, 5000);
  schedule::Shape shape;
  shape.collective = Collective::alltoall;
  shape.ranks = 4;
  shape.blocks = *Blocks::of_pairs_of(1, counts, counts);
  const auto schedule =
      *algorithm::build(*algorithm::find(shape.collective, "linear"), shape, {}, 1);
  const LocalOptions options{.input = {},
                             .output = {},
                             .geometry = kGeometry,
                             .hosts = topology::HostMap::of_labels(std::vector{0, 0, 1, 1})};
  const Program program = bind_local(schedule, options);
  EXPECT_EQ(count_of(program, StepKind::get), 2);
  EXPECT_EQ(count_of(program, StepKind::pull), 1);
  EXPECT_EQ(program.staging_bytes, 3 * 5056);
  for (const Step& step : program.steps) {
    if (step.kind != StepKind::get) continue;
    EXPECT_EQ(step.bytes, 5000);
    EXPECT_EQ(step.count, longest_block(options));
    EXPECT_EQ(step.right.space, Space::data);
  }
}

// Ranks 0 and 1 are on one host, 2 and 3 on another.
Program bind_between_hosts(Collective collective, int rank, std::vector<std::int64_t> counts) {
  schedule::Shape shape;
  shape.collective = collective;
  shape.ranks = 4;
  if (schedule::has_pairs(collective)) {
    shape.blocks = *Blocks::of_pairs_of(rank, counts, std::vector<std::int64_t>(4, 0));
  } else {
    shape.root = 1;
    shape.blocks = *Blocks::of_ranks(counts);
  }
  return bind_local(*algorithm::build(*algorithm::find(collective, "linear"), shape, {}, rank),
                    {.input = {},
                     .output = {},
                     .geometry = kGeometry,
                     .hosts = topology::HostMap::of_labels(std::vector{0, 0, 1, 1})});
}

// Those of kGeometry with a longer data area.
LocalOptions options_between_hosts() {
  LocalOptions options;
  options.geometry = kGeometry;
  options.geometry.data_bytes = 8192;
  options.most_of_short = 1024;
  options.hosts = topology::HostMap::of_labels(std::vector{0, 0, 1, 1});
  return options;
}

TEST(BindLocal, BetweenHostsLongBlocksHaveSharesBehindThoseOfShortOnes) {
  const LocalOptions options = options_between_hosts();
  const BlockShares shares = BlockShares::of(options);
  EXPECT_EQ(shares.short_bytes, 256);
  EXPECT_EQ(shares.long_begin, 1024);
  EXPECT_EQ(shares.long_bytes, 2368) << "a third of the rest, in whole lines";
  EXPECT_EQ(longest_block(options), shares.long_bytes);
  EXPECT_EQ(shares.place(2, 256), 512);
  EXPECT_EQ(shares.place(2, 257), 1024 + 2 * 2368);
  EXPECT_LE(shares.place(3, shares.long_bytes), options.geometry.data_bytes);
}

// Then none are longer than an equal share.
TEST(BindLocal, ThereAreNoLongSharesOnOneHostOrInShortBuffers) {
  LocalOptions options = options_between_hosts();
  options.geometry.data_bytes = 4096;
  EXPECT_EQ(longest_block(options), 1024);
  EXPECT_EQ(BlockShares::of(options).short_bytes, 1024);
  options = options_between_hosts();
  options.hosts = {};
  EXPECT_EQ(longest_block(options), 2048);
  EXPECT_EQ(BlockShares::of(options).short_bytes, 2048);
}

// So that much of the buffers becomes real memory.
TEST(BindLocal, AProgramSaysHowMuchOfTheDataItUses) {
  const auto data_bytes = [](std::int64_t length) {
    return bind_alltoall(1, length, options_between_hosts()).data_bytes;
  };
  EXPECT_EQ(data_bytes(48), 0) << "they are in lines";
  EXPECT_EQ(data_bytes(49), 1024);
  EXPECT_EQ(data_bytes(256), 1024);
  EXPECT_EQ(data_bytes(257), 1024 + 3 * 2368);
  EXPECT_EQ(data_bytes(2369), 1024 + 3 * 2368) << "pieces that are got go through the shares";
}

TEST(BindLocal, SenderAndReceiverOfALongBlockFindTheSamePlace) {
  for (const std::int64_t length : {49, 256, 257, 2368}) {
    std::vector<std::int64_t> sent, read;
    for (int rank = 0; rank < 4; ++rank) {
      for (const Step& step : bind_alltoall(rank, length, options_between_hosts()).steps) {
        if (step.kind == StepKind::put) sent.push_back(step.target.offset);
        if (step.kind == StepKind::copy && step.left.space == Space::data) {
          read.push_back(step.left.offset);
        }
      }
    }
    std::ranges::sort(sent);
    std::ranges::sort(read);
    EXPECT_EQ(sent, read) << length;
    EXPECT_EQ(read.size(), 12U) << length;
    for (std::size_t i = 1; i < read.size(); ++i) EXPECT_GE(read[i] - read[i - 1], length);
  }
}

using Ranks = std::vector<std::int32_t>;

TEST(BindLocal, AGatherDependsOnTheHostOfTheRoot) {
  const auto bind = [](int rank) {
    return bind_between_hosts(Collective::gather, rank, {0, 0, 10, 0});
  };
  for (const int rank : {0, 1}) {
    EXPECT_EQ(bind(rank).remote_senders, (Ranks{2, 3})) << "their counts are not known";
    EXPECT_EQ(bind(rank).remote_receivers, Ranks{}) << rank;
  }
  EXPECT_EQ(bind(2).remote_receivers, (Ranks{0, 1}));
  EXPECT_EQ(bind(3).remote_receivers, Ranks{}) << "it sends nothing";
  for (const int rank : {2, 3}) EXPECT_EQ(bind(rank).remote_senders, Ranks{}) << rank;
}

TEST(BindLocal, TheRootOfAScatterDependsOnThoseWithBlocks) {
  const auto bind = [](int rank) {
    return bind_between_hosts(Collective::scatter, rank, {10, 0, 10, 0});
  };
  EXPECT_EQ(bind(1).remote_receivers, (Ranks{2, 3})) << "all of a host with a receiver";
  for (const int rank : {2, 3}) {
    EXPECT_EQ(bind(rank).remote_senders, Ranks{1}) << "also of an empty block";
    EXPECT_EQ(bind(rank).remote_receivers, Ranks{}) << rank;
  }
  for (const int rank : {0, 1}) EXPECT_EQ(bind(rank).remote_senders, Ranks{}) << rank;
}

TEST(BindLocal, AnyRankOfAnotherHostMaySendInAnAlltoall) {
  const Program program = bind_between_hosts(Collective::alltoall, 0, {0, 10, 0, 0});
  EXPECT_EQ(program.remote_senders, (Ranks{2, 3}));
  EXPECT_EQ(program.remote_receivers, Ranks{});
}

TEST(BindLocal, WhatDoesNotFitAShareOfTheWindowIsOffered) {
  EXPECT_EQ(count_of(bind_alltoall(1, 1024, true, false), StepKind::advertise), 0);
  const Program advertised = bind_alltoall(1, 1025, true, false);
  EXPECT_EQ(count_of(advertised, StepKind::advertise), 3);
  EXPECT_EQ(count_of(advertised, StepKind::pull), 3);
  EXPECT_EQ(advertised.staging_bytes, 0);
}

TEST(BindLocal, WhatMayNotBePulledOrWillBeOverwrittenIsStaged) {
  const Program unreadable = bind_alltoall(1, 1025, false, false);
  EXPECT_EQ(unreadable.staging_bytes, 3 * 1088);
  const Program in_place = bind_alltoall(1, 1025, true, true);
  EXPECT_EQ(in_place.staging_bytes, 3 * 1088);
  for (const Step& step : in_place.steps) {
    if (step.kind == StepKind::advertise) {
      EXPECT_EQ(step.left.space, Space::staging);
    }
  }
}

std::int64_t staged_offers(const Program& program) {
  return std::ranges::count_if(program.steps, [](const Step& step) {
    return step.kind == StepKind::advertise && step.left.space == Space::staging;
  });
}

TEST(BindLocal, SoManyBytesAreStagedAndTheRestIsPulled) {
  LocalOptions options;
  options.pull = true;
  options.staged_up_to = 2 * 1088;
  const Program some = bind_alltoall(1, 1025, options);
  EXPECT_EQ(count_of(some, StepKind::advertise), 3);
  EXPECT_EQ(staged_offers(some), 2);
  EXPECT_EQ(some.staging_bytes, 2 * 1088);
  EXPECT_EQ(staged_offers(bind_alltoall(1, 3000, options)), 0) << "not even one fits";
}

std::int64_t awaited_returns(const Program& program) {
  return std::ranges::count_if(program.steps, [](const Step& step) {
    return step.kind == StepKind::wait && step.length_header < 0;
  });
}

// Its store depends on the distance between both cores, so it has to know whose the other is.
TEST(BindLocal, WhoeverStagesABlockKnowsItsReader) {
  const Program program = bind_alltoall(1, 1025, false, false);
  std::vector<std::int32_t> readers, receivers;
  for (const Step& step : program.steps) {
    if (step.kind == StepKind::stage) readers.push_back(step.peer);
    if (step.kind == StepKind::advertise) receivers.push_back(step.peer);
  }
  EXPECT_EQ(readers.size(), 3U);
  EXPECT_EQ(readers, receivers);
}

// Where staging lasts, no step waits for the ranks that read it.
TEST(BindLocal, ShortStagingLastsAndIsNotWaitedFor) {
  LocalOptions options;
  options.lasting_up_to = 3 * 1088;
  const Program lasts = bind_alltoall(1, 1088, options);
  EXPECT_TRUE(lasts.staging_lasts);
  EXPECT_EQ(awaited_returns(lasts), 0);
  const Program longer = bind_alltoall(1, 1089, options);
  EXPECT_FALSE(longer.staging_lasts);
  EXPECT_EQ(awaited_returns(longer), 3);
  EXPECT_FALSE(bind_alltoall(1, 1024, options).staging_lasts) << "nothing is staged";
}

TEST(BindLocal, APulledMessageIsWaitedForBesideStagingThatLasts) {
  LocalOptions options;
  options.pull = true;
  options.staged_up_to = 2 * 1088;
  options.lasting_up_to = 2 * 1088;
  const Program program = bind_alltoall(1, 1088, options);
  EXPECT_TRUE(program.staging_lasts);
  EXPECT_EQ(staged_offers(program), 2);
  EXPECT_EQ(awaited_returns(program), 1);
}

// Whatever the share is, a line takes what fits into it.
TEST(BindLocal, AShortMessageIsInItsLineWhereTheWindowHasNoShare) {
  const std::vector<std::int64_t> counts(4, 48);
  schedule::Shape shape;
  shape.collective = Collective::alltoall;
  shape.ranks = 4;
  shape.blocks = *Blocks::of_pairs_of(1, counts, counts);
  LocalOptions options;
  options.geometry = {.ranks = 4, .slot_indexes = 2, .lines = 24, .data_bytes = 192};
  ASSERT_EQ(longest_block(options), 0);
  const auto* row = algorithm::find(shape.collective, "linear");
  const Program program = bind_local(*algorithm::build(*row, shape, {}, 1), options);
  EXPECT_EQ(count_of(program, StepKind::advertise), 0);
  EXPECT_EQ(count_of(program, StepKind::put), 3);
}

TEST(BindLocal, ASettingSaysFromWhereOnMessagesArePulled) {
  LocalOptions options;
  options.pull = true;
  options.staged_up_to = 1 << 20;
  options.pull_from = 2000;
  EXPECT_EQ(staged_offers(bind_alltoall(1, 1999, options)), 3);
  EXPECT_EQ(staged_offers(bind_alltoall(1, 2000, options)), 0);
  options.pull = false;
  EXPECT_EQ(staged_offers(bind_alltoall(1, 2000, options)), 3) << "where they cannot be pulled";
}

TEST(BindLocal, EveryMessageHasItsLengthNoted) {
  for (const std::int64_t length : {7, 100, 2000}) {
    for (const Step& step : bind_alltoall(2, length, true, false).steps) {
      const bool is_message =
          step.kind == StepKind::advertise || (step.kind == StepKind::put && step.bytes > 0);
      if (is_message) {
        EXPECT_EQ(step.length_header, length);
      }
    }
  }
}

}  // namespace
}  // namespace unisono::plan::bind_local_test
