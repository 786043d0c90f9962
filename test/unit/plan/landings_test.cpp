// SPDX-License-Identifier: BSD-3-Clause
// Which messages may land in the output, and from when on.
#include "plan/bind/landings.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "algorithm/algorithm.hpp"
#include "schedule/text.hpp"

namespace unisono::plan::landings_test {
namespace {

using schedule::Collective;
using schedule::Schedule;
using schedule::Shape;

std::vector<Landing> landings_of(const Schedule& schedule, std::int64_t from_count = 1) {
  const Landings landings(schedule, topology::HostMap::apart(schedule.shape.ranks), from_count);
  std::vector<Landing> all;
  for (std::size_t s = 0; s < schedule.slots.size(); ++s) {
    all.push_back(landings.of(static_cast<schedule::SlotId>(s)));
  }
  return all;
}

std::vector<Landing> landings_of(std::string_view name, const Shape& shape, int rank = 1) {
  const algorithm::Algorithm& row = *algorithm::find(shape.collective, name);
  return landings_of(
      *algorithm::build(row, shape, algorithm::default_parameters(row, shape), rank));
}

TEST(Landings, ABlockThatNothingElseTouchesLandsFromTheStart) {
  EXPECT_EQ(landings_of("ring", {Collective::allgather, 4, 0, 5, false}),
            (std::vector{Landing::start, Landing::start, Landing::start}))
      << "though they are passed on";
  EXPECT_EQ(landings_of("fnomial", {Collective::broadcast, 4, 0, 5, false}),
            (std::vector{Landing::start}));
}

// In place, the blocks that others send replace the own ones.
TEST(Landings, InPlaceABlockLandsOnceItsPlaceIsSent) {
  EXPECT_EQ(landings_of("linear", {Collective::alltoall, 3, 0, 5, false}),
            (std::vector{Landing::apart, Landing::apart}));
}

// Rank 0 sends the block of the place of slot 1 only once that has come.
TEST(Landings, WhereThePlaceIsSentAfterwardsItIsOnlyForTwoBuffers) {
  EXPECT_EQ(landings_of("pairwise", {Collective::alltoall, 3, 0, 5, false}, 0),
            (std::vector{Landing::apart, Landing::only_apart}));
}

TEST(Landings, OperandsDoNotLand) {
  const auto landings = landings_of("ring", {Collective::allreduce, 4, 0, 8, false});
  ASSERT_EQ(landings.size(), 6U);
  for (std::size_t s = 0; s < 3; ++s) EXPECT_EQ(landings[s], Landing::no) << s;
  EXPECT_EQ(landings[3], Landing::apart);
  EXPECT_EQ(landings[4], Landing::waited);
  EXPECT_EQ(landings[5], Landing::waited);
}

// A part of the sum is sent from where the whole of it comes.
TEST(Landings, APartOfTheOutputThatIsSentBeforeLandsAfterThat) {
  const auto landings =
      landings_of("reduce-scatter-allgather", {Collective::allreduce, 4, 0, 8, false});
  EXPECT_EQ(landings, (std::vector{Landing::no, Landing::no, Landing::apart, Landing::waited}));
}

TEST(Landings, ShortMessagesAndThoseOfTheOwnHostDoNot) {
  const algorithm::Algorithm& row = *algorithm::find(Collective::allgather, "ring");
  const Shape shape{Collective::allgather, 4, 0, 5, false};
  const Schedule schedule = *algorithm::build(row, shape, {}, 1);
  EXPECT_EQ(landings_of(schedule, 6), std::vector(3, Landing::no));
  const std::vector<int> hosts{0, 0, 1, 1};
  const Landings landings(schedule, topology::HostMap::of_labels(hosts), 1);
  for (schedule::SlotId s = 0; s < 3; ++s) {
    EXPECT_EQ(landings.of(s), Landing::no) << "they come from rank 0, which shares the host";
  }
}

// The message alone orders the send of the same part of the output before the copy.
TEST(Landings, NotWhereOnlyAMessageOrdersTheStepsBefore) {
  constexpr const char* kText =
      "schedule broadcast ranks 2 rank 1 count 4 root 0\n"
      "slot 0 from 0 count 4\n"
      "slot 1 from 0 count 4\n"
      "op 0 wait slot 0\n"
      "op 1 copy output[0:4] = slot 0[0:4] after 0\n"
      "op 2 send output[0:4] to 0 slot 0 after 1\n"
      "op 3 wait slot 1\n"
      "op 4 copy output[0:4] = slot 1[0:4] after 3";
  const auto unordered = schedule::parse(std::string(kText) + "\n");
  ASSERT_TRUE(unordered.ok()) << unordered.error().message;
  EXPECT_EQ(landings_of(unordered->front())[1], Landing::no);
  const auto ordered = schedule::parse(std::string(kText) + " 1 2\n");
  ASSERT_TRUE(ordered.ok()) << ordered.error().message;
  EXPECT_EQ(landings_of(ordered->front())[1], Landing::waited);
}

// The segment of the wait of slot 1 does not need the send of the same part.
TEST(Landings, NotWhereAnotherWaitStandsBetweenAWaitAndItsCopy) {
  constexpr const char* kText =
      "schedule broadcast ranks 3 rank 1 count 4 root 0\n"
      "slot 0 from 0 count 4\n"
      "slot 1 from 0 count 4\n"
      "slot 2 from 2 count 4\n"
      "op 0 wait slot 0\n"
      "op 1 send output[0:4] to 0 slot 0 after 0\n"
      "op 2 wait slot 1\n"
      "%op 4 copy output[0:4] = slot 1[0:4] after 2 1\n";
  const auto landing_with = [&](const std::string& between) {
    std::string text = kText;
    text.replace(text.find('%'), 1, between);
    const auto set = schedule::parse(text);
    EXPECT_TRUE(set.ok()) << set.error().message;
    return landings_of(set->front())[1];
  };
  EXPECT_EQ(landing_with("op 3 wait slot 2\n"), Landing::no);
  EXPECT_EQ(landing_with("op 3 send input[0:4] to 2 slot 0\n"), Landing::waited);
}

TEST(Landings, InExchangesOfSoManyRanksNobodyLooksForThem) {
  const auto first_of = [](int ranks) {
    return landings_of("linear", {Collective::alltoall, ranks, 0, 1, false})[0];
  };
  EXPECT_EQ(first_of(592), Landing::apart) << "591 slots, 1774 ops: 1,048,434";
  const Schedule many = *algorithm::build(*algorithm::find(Collective::alltoall, "linear"),
                                          {Collective::alltoall, 593, 0, 1, false}, {}, 1);
  EXPECT_EQ(landings_of(many)[0], Landing::no);
}

}  // namespace
}  // namespace unisono::plan::landings_test
