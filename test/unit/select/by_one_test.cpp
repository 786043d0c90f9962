// SPDX-License-Identifier: BSD-3-Clause
// Where one rank has to apply the operator (UNISONO_HETEROGENEOUS), every choice obeys: by rules,
// by prices, by what the user asks for, and by trials. No rank helps, and no NIC combines.
#include <gtest/gtest.h>

#include "algorithm/algorithm.hpp"
#include "select/candidates.hpp"
#include "select/select.hpp"

namespace unisono::select::by_one_test {
namespace {

using schedule::Collective;
using schedule::Shape;

constexpr Collective kReductions[] = {Collective::reduce, Collective::allreduce,
                                      Collective::reduce_scatter, Collective::scan,
                                      Collective::exscan};

Circumstances with(bool oversubscribed, bool multicast) {
  return {.element_bytes = 8,
          .oversubscribed = oversubscribed,
          .cores = 2,
          .multicast = multicast,
          .staged_multicast = true,
          .receive_buffer_bytes = 128 << 10,
          .op = arith::Operator::sum,
          .type = arith::Type::float64,
          .shared_receive_buffers = true,
          .engine = base::EngineChoice::helping,
          .nic = nic::Preferences{},
          .nic_multicasts = multicast};
}

template <class Visit>
void for_each_call(const Visit& visit) {
  for (const Collective collective : kReductions) {
    for (const int ranks : {1, 2, 3, 4, 5, 6, 7, 8, 9, 32, 70}) {
      for (const std::int64_t count : {0, 1, 1000, 100'000}) {
        for (const int bits : {0, 1, 2, 3, 4, 5, 6, 7}) {
          const Shape shape{.collective = collective,
                            .ranks = ranks,
                            .root = schedule::is_rooted(collective) ? ranks / 2 : 0,
                            .count = count,
                            .exact = (bits & 4) != 0,
                            .by_one = true};
          visit(shape, with((bits & 1) != 0, (bits & 2) != 0));
        }
      }
    }
  }
}

TEST(ByOne, EveryChoiceIsLegal) {
  for_each_call([](const Shape& shape, const Circumstances& now) {
    const Choice choice = choose(shape, now);
    ASSERT_EQ(why_not(*choice.algorithm, shape, choice.parameters), "");
    ASSERT_TRUE(choice.algorithm->by_one(shape, choice.parameters));
    ASSERT_EQ(choice.engine, EngineKind::inline_);
    ASSERT_FALSE(choice.reason.empty());
    if (shape.ranks == 1 || shape.ranks > 9) return;
    const auto priced = choose_by_price(shape, now);
    ASSERT_TRUE(priced);
    ASSERT_EQ(why_not(*priced->algorithm, shape, priced->parameters), "");
    for (const Priced& each : candidates_to_try(shape, now, {}, choice)) {
      ASSERT_EQ(why_not(*each.row, shape, each.parameters), "");
    }
  });
}

TEST(ByOne, SaysWhy) {
  const Shape shape{.collective = Collective::allreduce, .ranks = 8, .count = 10, .by_one = true};
  const Circumstances now = with(false, true);
  const Choice choice = choose(shape, now);
  EXPECT_EQ(algorithm::describe(*choice.algorithm, choice.parameters), "gather-release(8)");
  EXPECT_NE(choice.reason.find("the job is heterogeneous"), std::string::npos) << choice.reason;
  EXPECT_NE(choice.why_not_nic.find("UNISONO_HETEROGENEOUS"), std::string::npos)
      << choice.why_not_nic;
  EXPECT_NE(choice.engine_reason.find("UNISONO_HETEROGENEOUS"), std::string::npos);
}

TEST(ByOne, OverridesAreTakenIfOneRankApplies) {
  const Shape shape{.collective = Collective::allreduce, .ranks = 8, .count = 10, .by_one = true};
  const auto rules = parse_overrides("allreduce: ring; gather-release(2); reduce-broadcast(9)");
  ASSERT_TRUE(rules.ok());
  const Choice choice = choose(shape, with(false, true), *rules);
  EXPECT_EQ(algorithm::describe(*choice.algorithm, choice.parameters), "reduce-broadcast(8)");
  ASSERT_EQ(choice.passed_over.size(), 2U);
  EXPECT_NE(choice.passed_over[0].find("UNISONO_HETEROGENEOUS"), std::string::npos);
}

// The rows that are made for it are chosen for nothing else.
TEST(ByOne, RowsForItAreNoCandidatesOfOtherShapes) {
  for (const Collective collective : kReductions) {
    const Shape shape{.collective = collective, .ranks = 8, .count = 1};
    Circumstances now = with(true, true);
    now.nic = std::nullopt;
    const auto priced = price_candidates(shape, pricing_of(shape, now, EngineKind::inline_));
    ASSERT_TRUE(priced.ok());
    for (const Priced& each : *priced) EXPECT_FALSE(each.row->only_for_by_one) << each.row->name;
    EXPECT_FALSE(choose(shape, now).algorithm->only_for_by_one);
  }
}

}  // namespace
}  // namespace unisono::select::by_one_test
