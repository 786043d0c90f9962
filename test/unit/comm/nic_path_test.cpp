// SPDX-License-Identifier: BSD-3-Clause
// What ranks in the NIC path conclude from each other's standings, and which calls go there.
#include "comm/nic/nic_path.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "algorithm/algorithm.hpp"
#include "arith/type.hpp"
#include "base/settings/settings.hpp"
#include "nic/program/tables.h"
#include "nic/service/client.hpp"
#include "nic/service/probe.hpp"
#include "plan/plan_cache.hpp"
#include "select/nic/by_nic.hpp"

namespace unisono::comm::nic_path_test {
namespace {

using schedule::Collective;

// The state of a rank that waits in its call number 11, the fifth in the NIC path.
constexpr NicProgress kOwn = {.history = 0xABCDEF, .calls = 11, .completed = 4};

NicProgress with(std::uint64_t calls, std::uint64_t completed, std::uint32_t history = 0xABCDEF) {
  NicProgress progress;
  progress.calls = calls;
  progress.completed = completed;
  progress.history = history;
  return progress;
}

TEST(NicProgress, FitsAWord) {
  NicProgress progress = with((1 << 18) - 1, (1 << 14) - 1, 0xFFFFFF);
  EXPECT_EQ(NicProgress::of_word(progress.word()), progress);
  progress.given = 0b1010;
  progress.returned = 4;
  EXPECT_EQ(NicProgress::of_word(progress.word()), progress);
  progress = with(0, 0, 1);
  progress.ended = true;
  EXPECT_EQ(NicProgress::of_word(progress.word()), progress);
  EXPECT_NE(with(0, 0, 1).word(), 0U) << "zero says that there is none";
}

TEST(NicProgress, CallsDiffer) {
  EXPECT_FALSE(calls_differ(kOwn, kOwn));
  EXPECT_FALSE(calls_differ(kOwn, with(10, 4, 1))) << "it may still come";
  EXPECT_TRUE(calls_differ(kOwn, with(11, 4, 1))) << "another call, or in the other path";
  EXPECT_TRUE(calls_differ(kOwn, with(12, 4, 1))) << "it got past without the result";
  EXPECT_FALSE(calls_differ(kOwn, with(11, 5))) << "it has the result";
  EXPECT_FALSE(calls_differ(kOwn, with(15, 7, 1)));
  NicProgress gone = with(12, 4, 1);
  gone.ended = true;
  EXPECT_FALSE(calls_differ(kOwn, gone)) << "it is lost, and has not called something else";
}

// A rank that is ahead compares the other's calls with its own former ones.
TEST(NicProgress, CallsBehind) {
  EXPECT_EQ(calls_behind(11, with(11, 4)), 0U);
  EXPECT_EQ(calls_behind(11, with(8, 4)), 3U);
  EXPECT_EQ(calls_behind((1 << 18) + 1, with((1 << 18) - 1, 4)), 2U);
  EXPECT_GT(calls_behind(11, with(12, 4)), 1U << 18) << "it is ahead";
}

TEST(NicProgress, NumbersWrap) {
  NicProgress last = kOwn;
  last.calls = (1 << 18) - 1;
  last.completed = (1 << 14) - 1;
  EXPECT_TRUE(has_result(last, with(0, 0)));
  EXPECT_FALSE(has_result(with(0, 0), last));
  EXPECT_TRUE(calls_differ(last, with(0, (1 << 14) - 1, 1)));
  EXPECT_FALSE(calls_differ(with(0, 4), with((1 << 18) - 1, 4, 1)));
}

TEST(NicProgress, WhoHasGiven) {
  NicProgress other = kOwn;
  EXPECT_FALSE(has_given(kOwn, other, 0));
  other.given = 0b10;
  EXPECT_FALSE(has_given(kOwn, other, 0)) << "on another tree";
  EXPECT_TRUE(has_given(kOwn, other, 1));
  other.calls = 10;
  EXPECT_FALSE(has_given(kOwn, other, 1)) << "to an earlier one";
  EXPECT_TRUE(has_given(kOwn, with(12, 5), 1));
}

// It describes its first operation, and has returned from the calls of more.
TEST(NicProgress, WhoHasReturnedHasGiven) {
  NicProgress other = with(9, 3);
  other.returned = 1;
  EXPECT_FALSE(has_given(kOwn, other, 0)) << "only to the one before";
  other.returned = 2;
  EXPECT_TRUE(has_given(kOwn, other, 0));
  EXPECT_TRUE(has_given(kOwn, other, 3)) << "on all trees";
  EXPECT_FALSE(has_result(kOwn, other));
  EXPECT_FALSE(calls_differ(kOwn, other));
  other.completed = (1 << 14) - 1;
  NicProgress own = kOwn;
  own.completed = 0;
  EXPECT_TRUE(has_given(own, other, 0)) << "numbers wrap";
  own.completed = 1;
  EXPECT_FALSE(has_given(own, other, 0));
}

// Pieces are counted modulo 16. A rank may be up to twice the depth ahead of this one.
TEST(NicProgress, WhoHasGivenAPiece) {
  NicProgress other = kOwn;
  for (std::uint32_t finished = 0; finished < 100; ++finished) {
    for (std::uint32_t given = finished > 3 ? finished - 3 : 0; given <= finished; ++given) {
      other.given = given & 15;
      EXPECT_FALSE(has_given_piece(kOwn, other, finished)) << given << " of " << finished;
    }
    for (std::uint32_t given = finished + 1; given <= finished + 8; ++given) {
      other.given = given & 15;
      EXPECT_TRUE(has_given_piece(kOwn, other, finished)) << given << " of " << finished;
    }
  }
  other.calls = 10;
  EXPECT_FALSE(has_given_piece(kOwn, other, 99)) << "of an earlier one";
  EXPECT_TRUE(has_given_piece(kOwn, with(12, 5), 0)) << "it has the result";
}

TEST(NicFarewell, IsOfItsCommunicator) {
  const std::uint64_t mark = (std::uint64_t{1} << 60) + 77;
  const auto read = read_leave_record(mark, nic_leave_record(mark, 5));
  ASSERT_TRUE(read.has_value());
  EXPECT_TRUE(read->ended);
  EXPECT_TRUE(has_result(kOwn, *read));
  EXPECT_FALSE(has_result(kOwn, *read_leave_record(mark, nic_leave_record(mark, 4))));
  EXPECT_FALSE(read_leave_record(mark + 1, nic_leave_record(mark, 5)).has_value());
  EXPECT_FALSE(read_leave_record(0, 0).has_value());
}

plan::Call call_of(Collective collective, arith::Type type, std::int64_t count) {
  plan::Call call;
  call.collective = collective;
  call.type = static_cast<std::int32_t>(type);
  call.element_bytes = static_cast<std::int64_t>(arith::type_size(type));
  call.count = count;
  if (schedule::is_reduction(collective)) call.op = static_cast<std::int32_t>(arith::Operator::sum);
  return call;
}

std::string refusal(const plan::Call& call, select::Origin origin = select::Origin::rule,
                    const std::vector<int>& hosts = {0, 1, 2},
                    const nic::Preferences& preferences = {},
                    base::Reproducible reproducible = base::Reproducible::no,
                    bool multicasts = false) {
  select::Choice choice;
  choice.algorithm = algorithm::find(Collective::allreduce, "ring");
  choice.origin = origin;
  plan::PlanContext context;
  context.ranks = static_cast<int>(hosts.size());
  context.hosts = topology::HostMap::of_labels(hosts);
  context.nic = preferences;
  context.reproducible = reproducible;
  context.nic_multicasts = multicasts;
  const auto checked = select::check_nic_call(plan::shape_of(call, context),
                                              plan::circumstances_of(call, context), choice);
  return checked.ok() ? "" : checked.error().message;
}

TEST(NicCallOf, SmallReductionsOfBuiltInTypes) {
  EXPECT_EQ(refusal(call_of(Collective::barrier, arith::Type::byte, 0)), "");
  EXPECT_EQ(refusal(call_of(Collective::allreduce, arith::Type::float64, 350)), "");
  EXPECT_EQ(refusal(call_of(Collective::allreduce, arith::Type::float64, 351)),
            "a vector of 2808 bytes is faster without it; up to 2800 bytes go by it");
  EXPECT_EQ(refusal(call_of(Collective::allreduce, arith::Type::int64, 700)), "");
  EXPECT_NE(refusal(call_of(Collective::allreduce, arith::Type::int64, 701)), "");
  EXPECT_EQ(refusal(call_of(Collective::allreduce, arith::Type::int8, 1)), "");
  plan::Call product = call_of(Collective::allreduce, arith::Type::complex64, 1);
  product.op = static_cast<std::int32_t>(arith::Operator::prod);
  EXPECT_NE(refusal(product), "");
  EXPECT_EQ(refusal(call_of(Collective::allreduce, arith::Type::int64, 0)),
            "there is nothing to send");
  EXPECT_EQ(
      refusal(call_of(Collective::allreduce, arith::Type::int64, 1), select::Origin::override_),
      "UNISONO_ALGORITHM asks for ring");
  plan::Call call = call_of(Collective::allreduce, arith::Type::int64, 1);
  call.op = plan::kFirstUserNumber;
  EXPECT_EQ(refusal(call), "the NIC knows no types and operators of the user's");
  call.op = 0;
  call.purpose = plan::Purpose::duplicate;
  EXPECT_EQ(refusal(call), "it makes a communicator");
}

TEST(NicCallOf, NoSumsThatHaveToBeReproducible) {
  const auto of = [](arith::Type type, base::Reproducible reproducible) {
    return refusal(call_of(Collective::allreduce, type, 1), select::Origin::rule, {0, 1, 2}, {},
                   reproducible);
  };
  const std::string why = "it rounds partial sums, and UNISONO_REPRODUCIBLE is on";
  EXPECT_EQ(of(arith::Type::float64, base::Reproducible::exact), why);
  EXPECT_EQ(of(arith::Type::float32, base::Reproducible::of_ranks), why);
  EXPECT_EQ(of(arith::Type::int64, base::Reproducible::exact), "");
}

TEST(NicCallOf, BroadcastsOfAnyTypeIfAskedFor) {
  const auto asked = [](const plan::Call& call) {
    return refusal(call, select::Origin::rule, {0, 1, 2}, {.rooted = base::Toggle::on});
  };
  EXPECT_EQ(asked(call_of(Collective::broadcast, arith::Type::int8, 1400)), "");
  EXPECT_EQ(asked(call_of(Collective::broadcast, arith::Type::int8, 1401)),
            "a vector of 1401 bytes is faster without it; up to 1400 bytes go by it");
  plan::Call call = call_of(Collective::broadcast, arith::Type::byte, 100);
  call.type = plan::kFirstUserNumber;
  call.element_bytes = 14;
  EXPECT_EQ(asked(call), "");
  ++call.count;
  EXPECT_NE(asked(call), "");
}

TEST(NicCallOf, BroadcastsWhoseRootMulticasts) {
  const auto on = [](std::int64_t bytes, bool multicasts, base::Toggle wish,
                     const std::vector<int>& hosts = {0, 1, 2, 3, 4, 5, 6, 7}) {
    return refusal(call_of(Collective::broadcast, arith::Type::byte, bytes), select::Origin::rule,
                   hosts, {.rooted = wish}, base::Reproducible::no, multicasts);
  };
  using base::Toggle;
  EXPECT_EQ(on(1400, true, Toggle::on), "");
  EXPECT_NE(on(1401, true, Toggle::on), "");
  EXPECT_EQ(on(1400, true, Toggle::automatic), "");
  EXPECT_NE(on(1401, true, Toggle::automatic), "");
  EXPECT_NE(on(8, false, Toggle::automatic), "") << "by a tree all wait for all";
  EXPECT_NE(on(8, true, Toggle::off), "");
  EXPECT_EQ(on(8, true, Toggle::automatic, {0, 1, 1, 2, 3, 4, 5, 6, 7}), "");
  EXPECT_NE(on(8, true, Toggle::automatic, {0, 1, 2, 3, 4, 5, 6, 6}), "") << "seven hosts";
  EXPECT_EQ(on(8, true, Toggle::on, {0, 1, 1, 2}), "");
  std::vector<int> many(UNISONO_NIC_RANKS_MAX + 1);
  std::iota(many.begin(), many.end(), 0);
  EXPECT_NE(on(8, true, Toggle::automatic, many), "");
  many.pop_back();
  EXPECT_EQ(on(8, true, Toggle::automatic, many), "");
}

TEST(NicCallOf, WhatHasARootWhereHostsWouldPassItOn) {
  const auto on = [](Collective collective, int hosts, base::Toggle wish) {
    std::vector<int> one_a_host(static_cast<std::size_t>(hosts));
    std::iota(one_a_host.begin(), one_a_host.end(), 0);
    return refusal(call_of(collective, arith::Type::int64, 1), select::Origin::rule, one_a_host,
                   {.rooted = wish});
  };
  using base::Toggle;
  const std::string receivers_wait =
      "receivers would wait for all ranks there (UNISONO_NIC_ROOTED=on)";
  EXPECT_EQ(on(Collective::reduce, 8, Toggle::automatic), receivers_wait);
  EXPECT_EQ(on(Collective::reduce, 9, Toggle::automatic), "");
  EXPECT_EQ(on(Collective::reduce, 2, Toggle::on), "");
  EXPECT_EQ(on(Collective::reduce, 9, Toggle::off), "UNISONO_NIC_ROOTED is off");
  EXPECT_EQ(on(Collective::broadcast, 9, Toggle::automatic), receivers_wait);
  EXPECT_EQ(on(Collective::broadcast, 2, Toggle::on), "");
  EXPECT_EQ(on(Collective::broadcast, 2, Toggle::off), "UNISONO_NIC_ROOTED is off");
  EXPECT_EQ(on(Collective::allreduce, 2, Toggle::off), "");
  EXPECT_EQ(on(Collective::barrier, 2, Toggle::off), "");
}

// The blocks of a host count together. More than 64 hosts use the tree.
TEST(NicCallOf, AllgathersOfShortBlocks) {
  const auto on = [](const std::vector<int>& hosts, std::int64_t bytes) {
    return refusal(call_of(Collective::allgather, arith::Type::byte, bytes), select::Origin::rule,
                   hosts);
  };
  EXPECT_EQ(on({0, 1, 2}, 2800), "");
  EXPECT_EQ(on({0, 1, 2}, 2801),
            "blocks of 2801 bytes are faster without it; up to 2800 bytes of a host go by it");
  EXPECT_EQ(on({0, 1, 1}, 1400), "");
  EXPECT_EQ(on({0, 1, 1}, 1401),
            "blocks of 1401 bytes are faster without it; up to 2800 bytes of a host go by it");
  std::vector<int> many(UNISONO_NIC_RANKS_MAX + 1);
  std::iota(many.begin(), many.end(), 0);
  EXPECT_EQ(on(many, 8), "");
  EXPECT_NE(on(many, 1400), "");
  plan::Call unequal = call_of(Collective::allgather, arith::Type::byte, 8);
  unequal.purpose = plan::Purpose::user_typed_blocks;
  EXPECT_NE(refusal(unequal), "");
}

TEST(NicProbe, WithoutADaemonItSaysWhatToStart) {
  const auto capabilities = nic::probe_capabilities(
      "/nonexistent/nic.sock", {}, [](const std::string&, std::uint32_t) { return true; });
  ASSERT_FALSE(capabilities.ok());
  EXPECT_EQ(capabilities.error().code, base::Code::unsupported);
  EXPECT_NE(capabilities.error().message.find("/nonexistent/nic.sock"), std::string::npos);
  EXPECT_EQ(base::Settings().text(base::Setting::nic_socket), nic::kServicePath);
}

}  // namespace
}  // namespace unisono::comm::nic_path_test
