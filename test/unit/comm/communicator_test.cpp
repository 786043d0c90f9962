// SPDX-License-Identifier: BSD-3-Clause
// The communicator below the C API, in one thread: plans, failures (failure_state), helping, waits
// (communicator_wait, rank_sleep).
#include "comm/communicator.hpp"

#include <gtest/gtest.h>

#include "arith/type.hpp"
#include "base/log.hpp"
#include "comm/segment.hpp"
#include "harness/calls.hpp"
#include "harness/world.hpp"
#include "plan/plan_cache.hpp"

namespace unisono::comm::communicator_test {
namespace {

using schedule::Collective;
using test::allreduce;
using test::World;
using test::WorldOptions;

WorldOptions ranks(int number, base::Environment settings = {}) {
  WorldOptions options;
  options.ranks = number;
  options.settings = std::move(settings);
  return options;
}

TEST(PlanCache, TheSameCallFindsTheSamePlanAndOthersDoNot) {
  World world(ranks(2));
  Communicator& comm = world.at(0);
  const plan::Plan* plan = *comm.plan(allreduce(4));
  EXPECT_EQ(*comm.plan(allreduce(4)), plan);
  EXPECT_NE(*comm.plan(allreduce(5)), plan);
  EXPECT_EQ(*comm.plan(allreduce(4)), plan);
  EXPECT_EQ((*world.at(1).plan(allreduce(4)))->digest, plan->digest);
  EXPECT_NE((*comm.plan(allreduce(5)))->digest, plan->digest);
}

TEST(PlanCache, EverNewCountsDoNotFillTheMemoryButPinnedPlansStay) {
  World world(ranks(1));
  Communicator& comm = world.at(0);
  const std::shared_ptr<const plan::Plan> pinned = (*comm.plan(allreduce(1)))->shared_from_this();
  for (int count = 2; count < 2000; ++count) ASSERT_TRUE(comm.plan(allreduce(count)).ok());
  EXPECT_EQ(*comm.plan(allreduce(1)), pinned.get());
}

TEST(PlanCache, ThePlanThatStatisticsTellOfIsNotEvicted) {
  World world(ranks(1));
  Communicator& comm = world.at(0);
  double value = 1;
  ASSERT_TRUE(comm.run(allreduce(1), &value, &value).ok());
  const plan::Plan* const used = comm.statistics().last_plan;
  ASSERT_NE(used, nullptr);
  const std::weak_ptr<const plan::Plan> kept = used->weak_from_this();
  const std::uint64_t generation = comm.plans().generation();
  for (int count = 2; comm.plans().generation() == generation; ++count) {
    ASSERT_LT(count, 10'000);
    ASSERT_TRUE(comm.plan(allreduce(count)).ok());
  }
  EXPECT_FALSE(kept.expired());
  EXPECT_EQ(comm.statistics().last_plan, used);
}

// As the set-up of the NIC path does.
TEST(PlanCache, StatisticsTellOfNoPlanThatWasForgotten) {
  World world(ranks(1));
  Communicator& comm = world.at(0);
  double value = 1;
  ASSERT_TRUE(comm.run(allreduce(1), &value, &value).ok());
  comm.plans().use_nic({});
  EXPECT_EQ(comm.statistics().last_plan, nullptr);
}

TEST(PlanCache, LongVectorsGoInSegmentsThroughTheBulkLane) {
  World world(ranks(3));
  const plan::Plan& small = **world.at(0).plan(allreduce(10));
  EXPECT_EQ(small.size, plan::SizeClass::small);
  EXPECT_EQ(small.segments, 1);
  const plan::Plan& bulk = **world.at(0).plan(allreduce(1 << 20));
  EXPECT_EQ(bulk.size, plan::SizeClass::bulk);
  EXPECT_GT(bulk.segments, 8);
}

// 16 KiB, which are several packets.
TEST(PlanCache, MessagesOfSomePacketsHaveManySlotIndexesBetweenHostsOnly) {
  World one_host(ranks(4));
  EXPECT_EQ((*one_host.at(0).plan(allreduce(1 << 11)))->size, plan::SizeClass::bulk);
  WorldOptions options = ranks(4);
  options.virtual_datagrams = true;
  options.hosts = {0, 1, 2, 3};
  World hosts(options);
  const plan::Plan& middle = **hosts.at(0).plan(allreduce(1 << 11));
  EXPECT_EQ(middle.size, plan::SizeClass::middle);
  EXPECT_EQ(middle.segments, 1);
  EXPECT_EQ((*hosts.at(0).plan(allreduce(1)))->size, plan::SizeClass::small);
  EXPECT_EQ((*hosts.at(0).plan(allreduce(1 << 20)))->size, plan::SizeClass::bulk);
}

// Their data then goes a long round through receive buffers, if each has a core.
TEST(PlanCache, TwoRanksOfAHostHaveThemToo) {
  World world(ranks(2));
  Communicator& comm = world.at(0);
  if (comm.members().job().cores().are_oversubscribed()) {
    const plan::Plan& shared = **comm.plan(allreduce(1 << 11));
    EXPECT_EQ(shared.size, plan::SizeClass::bulk);
    EXPECT_EQ(shared.rotation.mask, 0U);
    return;
  }
  const plan::Plan& small = **comm.plan(allreduce(256));
  EXPECT_EQ(small.size, plan::SizeClass::small);
  EXPECT_EQ(small.rotation.mask, 0U);
  const plan::Plan& middle = **comm.plan(allreduce(1 << 11));
  EXPECT_EQ(middle.size, plan::SizeClass::middle);
  EXPECT_EQ(middle.segments, 1);
  EXPECT_GT(middle.rotation.mask, 0U);
  EXPECT_TRUE(middle.rotation.is_long);
  const plan::Plan& bulk = **comm.plan(allreduce(1 << 20));
  EXPECT_EQ(bulk.size, plan::SizeClass::bulk);
  EXPECT_FALSE(bulk.rotation.is_long);
}

TEST(PlanSegment, StaysWithinItsMemoryWithAnyNumberOfRanks) {
  for (const Links links : {Links::none, Links::datagrams, Links::streams}) {
    int with_middle = 0;
    for (int members = 2; members <= 48; ++members) {
      const SegmentLayout layout = plan_segment(members, base::Settings(), links);
      std::int64_t bytes = 0;
      for (const plan::ReceiveGeometry& geometry : layout.receive_buffers) {
        bytes += geometry.total_bytes();
        if (geometry.given()) {
          EXPECT_GE(geometry.slot_indexes, 2) << members;
        }
      }
      EXPECT_LE(bytes, base::Settings().bytes(base::Setting::buffers)) << members;
      if (!layout.receive_buffers[plan::SizeClass::middle].given()) {
        EXPECT_EQ(layout.receive_buffers[plan::SizeClass::middle].data_bytes, 0) << members;
        continue;
      }
      ++with_middle;
      EXPECT_GE(layout.receive_buffers[plan::SizeClass::middle].slot_indexes, 16) << members;
    }
    EXPECT_EQ(with_middle > 20, links != Links::none);
  }
}

TEST(PlanCache, ProvesBeforeTheFirstUseWhereAsked) {
  World world(ranks(5, {{"UNISONO_CHECK", "on"}}));
  for (int c = 0; c < schedule::kCollectiveCount; ++c) {
    plan::Call call = allreduce(3);
    call.collective = static_cast<Collective>(c);
    EXPECT_TRUE(world.at(0).plan(call).ok());
  }
}

// An exchange as rank 1 of 3 knows it.
plan::Call local_counts(Collective collective) {
  plan::Call call;
  call.collective = collective;
  call.purpose = plan::Purpose::user_blocks;
  call.local_counts = true;
  call.type = static_cast<int>(arith::Type::float64);
  call.element_bytes = 8;
  call.blocks = schedule::has_pairs(collective)
                    ? *schedule::Blocks::of_pairs_of(1, {3, 2, 0}, {5, 2, 4})
                    : *schedule::Blocks::of_ranks({0, 2, 0});
  call.count = 2;
  return call;
}

TEST(PlanCache, ProvesWhatARankKnowsWhereAsked) {
  World world(ranks(3, {{"UNISONO_CHECK", "on"}}));
  for (const Collective collective :
       {Collective::gather, Collective::scatter, Collective::alltoall}) {
    const auto plan = world.at(1).plan(local_counts(collective));
    EXPECT_TRUE(plan.ok()) << plan.error().message;
  }
}

// The first op of rank 1 moves an element too few.
schedule::Schedule too_short(const schedule::Shape& shape, const algorithm::Parameters& parameters,
                             int rank) {
  auto schedule = algorithm::find(shape.collective, "linear")->build(shape, parameters, rank);
  for (schedule::Op& op : schedule.ops) {
    if (rank != 1 || op.left.count == 0) continue;
    --op.left.count;
    break;
  }
  return schedule;
}

TEST(PlanCache, FindsABrokenScheduleOfARankThatKnowsItsOwnCountsOnly) {
  for (const char* check : {"on", "off"}) {
    World world(ranks(3, {{"UNISONO_CHECK", check}}));
    algorithm::Algorithm broken = *algorithm::find(Collective::alltoall, "linear");
    broken.build = too_short;
    world.override_with(broken, {});
    const auto plan = world.at(1).plan(local_counts(Collective::alltoall));
    EXPECT_EQ(plan.ok(), check == std::string("off"));
    if (plan.ok()) continue;
    EXPECT_EQ(plan.error().code, base::Code::unsupported);
    EXPECT_EQ(plan.error().message,
              "algorithm linear failed its proof: rank 1, op 0 (send input[0:2] to 0 slot 0): 2 "
              "elements for slot 0 of rank 0, which holds 3 (a defect: please report it)");
  }
}

TEST(PlanCache, WindowsTooSmallForOneElementAreAnError) {
  World world(ranks(2, {{"UNISONO_BUFFERS", "1M"}}));
  plan::Call call = allreduce(1);
  call.element_bytes = 16 << 20;
  const auto plan = world.at(0).plan(call);
  ASSERT_FALSE(plan.ok());
  EXPECT_NE(plan.error().message.find("UNISONO_BUFFERS"), std::string::npos);
}

TEST(PlanCache, TheOverridesOfTheSettingsCountInPlanAndDigest) {
  World world(ranks(3, {{"UNISONO_ALGORITHM", "allreduce:ring"}}));
  const plan::Plan* plan = *world.at(0).plan(allreduce(4));
  EXPECT_EQ(plan->algorithm, "ring");
  EXPECT_EQ((*world.at(1).plan(allreduce(4)))->digest, plan->digest);
  world.at(1).plans().override_with(*select::parse_overrides("allreduce:^ring"));
  const plan::Plan* other = *world.at(1).plan(allreduce(4));
  EXPECT_NE(other->algorithm, "ring");
  EXPECT_NE(other->digest, plan->digest);
}

TEST(PlanCache, SaysWhichOverridesItPassesOverAndWhy) {
  World world(ranks(3, {{"UNISONO_ALGORITHM", "allreduce:ring"}}));
  plan::Call call = allreduce(4);
  call.ordered = true;
  base::set_log_level(base::LogLevel::info);
  testing::internal::CaptureStderr();
  const plan::Plan* plan = *world.at(0).plan(call);
  const std::string lines = testing::internal::GetCapturedStderr();
  base::set_log_level(base::LogLevel::warn);
  EXPECT_NE(plan->algorithm, "ring");
  EXPECT_NE(
      lines.find("[select] allreduce(count 4, float64, sum): passed over ring: allreduce ring "
                 "does not combine in the order of ranks"),
      std::string::npos)
      << lines;
}

// Another row would need what other ranks alone know.
TEST(PlanCache, RanksThatKnowTheirOwnCountsOnlyTakeNoOverride) {
  World world(ranks(3, {{"UNISONO_ALGORITHM", "gather:fnomial|alltoall:pairwise"}}));
  plan::Call call;
  call.collective = Collective::gather;
  call.purpose = plan::Purpose::user_blocks;
  call.type = static_cast<int>(arith::Type::byte);
  call.blocks = *schedule::Blocks::of_ranks({5, 0, 0});
  call.count = 5;
  call.local_counts = true;
  EXPECT_EQ((*world.at(0).plan(call))->algorithm, "linear");
  call.collective = Collective::alltoall;
  call.blocks = *schedule::Blocks::of_pairs_of(0, {1, 2, 3}, {1, 0, 4});
  EXPECT_EQ((*world.at(0).plan(call))->algorithm, "linear");
  // With equal blocks all is known.
  call = {};
  call.collective = Collective::gather;
  call.count = 5;
  EXPECT_EQ((*world.at(0).plan(call))->algorithm, "fnomial(3)");
}

// Rank 0 combines for all; once it has given its part, the others do not need it any more.
TEST(Helping, ARankThatGaveItsPartAndNeverRunsAgainHoldsNobodyUp) {
  for (const Collective collective :
       {Collective::barrier, Collective::allreduce, Collective::allgather}) {
    World world(ranks(5, {{"UNISONO_ENGINE", "helping"}}));
    const auto* row = algorithm::find(collective, "gather-release");
    ASSERT_NE(row, nullptr);
    plan::Call call = allreduce(2);
    call.collective = collective;
    if (!schedule::is_reduction(collective)) call.op = -1;
    if (collective == Collective::barrier) call.count = 0;
    std::vector<double> inputs = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    std::vector<std::vector<double>> outputs(5, std::vector<double>(10, 0.0));
    std::vector<Pending> pending(5);
    world.override_with(*row, {{2}});
    for (int r = 0; r < 5; ++r) {
      ASSERT_TRUE(world.at(r)
                      .start(**world.at(r).plan(call), &inputs[static_cast<std::size_t>(2 * r)],
                             outputs[static_cast<std::size_t>(r)].data(),
                             pending[static_cast<std::size_t>(r)])
                      .ok());
    }
    std::int64_t helped = 0;
    for (int turn = 0; turn < 10; ++turn) {
      for (int r = 1; r < 5; ++r) world.at(r).progress();  // never rank 0
    }
    for (int r = 1; r < 5; ++r) {
      EXPECT_EQ(pending[static_cast<std::size_t>(r)].state, Pending::State::complete)
          << "rank " << r << " of " << schedule::collective_name(collective);
      helped += world.at(r).statistics().helped_steps;
    }
    EXPECT_GT(helped, 0);
    if (collective == Collective::allreduce) {
      EXPECT_EQ(outputs[3][0], 1 + 3 + 5 + 7 + 9);
    }
    world.at(0).progress();
    EXPECT_EQ(pending[0].state, Pending::State::complete);
    EXPECT_EQ(outputs[0], outputs[1]);
  }
}

// Rank 3 gives to 2, which gives to the root. Rank 2 does not run, and the root may sleep: rank 3,
// which waits for nothing, sees to it that its message goes on.
TEST(Helping, WhoSendsLooksAfterItsReceivers) {
  World world(ranks(4, {{"UNISONO_ENGINE", "helping"}}));
  const auto* row = algorithm::find(Collective::reduce, "fnomial");
  ASSERT_NE(row, nullptr);
  world.override_with(*row, {{2}});
  plan::Call call = allreduce(1);
  call.collective = Collective::reduce;
  const double inputs[4] = {1, 2, 4, 8};
  double output = 0;
  std::vector<Pending> pending(4);
  for (const int r : {2, 0, 1, 3}) {
    ASSERT_TRUE(world.at(r)
                    .start(**world.at(r).plan(call), &inputs[r], r == 0 ? &output : nullptr,
                           pending[static_cast<std::size_t>(r)])
                    .ok());
  }
  EXPECT_EQ(pending[3].state, Pending::State::complete);
  EXPECT_GT(world.at(3).statistics().helped_steps, 0);
  EXPECT_EQ(world.at(0).statistics().helped_steps, 0);
  world.at(0).progress();
  EXPECT_EQ(pending[0].state, Pending::State::complete);
  EXPECT_EQ(world.at(0).statistics().helped_steps, 0);
  EXPECT_EQ(output, 15);
  world.at(2).progress();
  EXPECT_EQ(pending[2].state, Pending::State::complete);
}

// Blocks in several segments, and blocks with gaps, are helped as well.
TEST(Helping, OfBlocksDoesNotDependOnHowTheyLie) {
  World world(ranks(3, {{"UNISONO_ENGINE", "helping"}}));
  plan::Call call = allreduce(100'000);
  call.op = -1;
  call.collective = Collective::allgather;
  const plan::Plan* segments = *world.at(0).plan(call);
  EXPECT_GT(segments->segments, 1);
  EXPECT_TRUE(segments->engine == select::EngineKind::helping);
  call.count = 6;
  call.purpose = plan::Purpose::user_blocks;
  call.blocks = *schedule::Blocks::of_ranks({1, 2, 3});
  call.output_places =
      std::make_shared<const std::vector<std::int64_t>>(std::vector<std::int64_t>{9, 0, 4});
  EXPECT_TRUE((*world.at(0).plan(call))->engine == select::EngineKind::helping);
  call.local_counts = true;
  call.collective = Collective::gather;
  EXPECT_FALSE((*world.at(0).plan(call))->engine == select::EngineKind::helping);
  call = allreduce(5);
  call.op = plan::kFirstUserNumber;
  EXPECT_FALSE((*world.at(0).plan(call))->engine == select::EngineKind::helping);
}

TEST(Failure, IsOneForAllAndSparesOperationsBefore) {
  World world(ranks(2));
  double in[2] = {1, 2}, out[2] = {};
  Pending before, after;
  ASSERT_TRUE(world.at(0).start(**world.at(0).plan(allreduce(1)), &in[0], &out[0], before).ok());
  ASSERT_TRUE(world.at(0).start(**world.at(0).plan(allreduce(1)), &in[0], &out[0], after).ok());
  world.at(1).failures().fail_all(base::Code::cancelled, "because of a test", 1);
  world.at(0).failures().adopt();
  EXPECT_EQ(before.state, Pending::State::running);
  EXPECT_EQ(after.state, Pending::State::failed);
  EXPECT_EQ(world.at(0).failures().tell().message, "rank 0: because of a test");
  Pending later;
  EXPECT_FALSE(world.at(0).start(**world.at(0).plan(allreduce(1)), &in[0], &out[0], later).ok());
  // Then it turns out that the first cannot end either.
  world.at(1).failures().fail_all(base::Code::cancelled, "because of a test again", 0);
  world.at(0).failures().adopt();
  EXPECT_EQ(before.state, Pending::State::failed);
  EXPECT_EQ(world.at(0).failures().tell().message, "rank 0: because of a test");
  EXPECT_EQ(world.at(1).failures().tell().message, "rank 1: because of a test again");
}

// Rank 0 made three calls. The second call of rank 1 is a long one instead, which has to wait for
// room. So it has no call record yet when the third call is seen to differ as well. Its digest is
// there.
TEST(Failure, OfCallsThatDifferEndsTheOneThatMetAnother) {
  World world(ranks(3, {{"UNISONO_ENGINE", "inline"}, {"UNISONO_BUFFERS", "512K"}}));
  constexpr std::int64_t kLong = 1 << 14;
  std::vector<double> in(kLong), out(kLong), other(kLong);
  const auto start = [&](int rank, plan::Call call, Pending& pending) {
    call.collective = Collective::broadcast;
    call.op = -1;
    call.root = 1;
    Communicator& comm = world.at(rank);
    EXPECT_TRUE(comm.start(**comm.plan(call), in.data(), out.data(), pending).ok());
  };
  std::vector<Pending> pending(3), theirs(3);
  for (Pending* first : {&pending[0], &theirs[0]}) {
    Communicator& comm = world.at(first == &pending[0] ? 0 : 1);
    EXPECT_TRUE(comm.start(**comm.plan(allreduce(kLong)), in.data(), other.data(), *first).ok());
  }
  start(0, allreduce(1), pending[1]);
  start(0, allreduce(2), pending[2]);
  start(1, allreduce(kLong), theirs[1]);
  EXPECT_FALSE(theirs[1].operation.host.entered());
  start(1, allreduce(1), theirs[2]);
  world.at(0).progress();
  EXPECT_EQ(pending[0].state, Pending::State::running) << "it may still end well";
  EXPECT_EQ(pending[1].state, Pending::State::failed);
  EXPECT_EQ(pending[2].state, Pending::State::failed);
  const base::Error error = world.at(0).failures().tell();
  EXPECT_EQ(error.code, base::Code::mismatch);
  EXPECT_NE(error.message.find("operation 1 of"), std::string::npos) << error.message;
  EXPECT_NE(error.message.find("but rank 1 something else"), std::string::npos) << error.message;
}

// Rank 3 dies. Rank 0 notices, is preempted while it tells, and rank 1 leaves because of it. Rank 2
// then names the dead one, not the one that left.
TEST(Failure, OfADeathIsNotLaidToWhoLeftBecauseOfIt) {
  World world(ranks(4));
  const double in = 1;
  double out = 0;
  Pending pending;
  ASSERT_TRUE(world.at(2).start(**world.at(2).plan(allreduce(1)), &in, &out, pending).ok());
  job::Job& told = world.at(1).members().job();
  auto& header =
      *reinterpret_cast<SegmentHeader*>(told.memory().at(*told.start_up().await_world()));
  header.failure.state = 1;
  told.leave();
  world.at(2).watchdog().examine(false);
  EXPECT_EQ(pending.state, Pending::State::running) << "rank 0 lives, and will say why";
  told.losses().mark_gone(3, job::RankState::dead);
  told.events().raise();
  world.at(2).watchdog().examine(false);
  EXPECT_EQ(pending.state, Pending::State::failed);
  EXPECT_NE(world.at(2).failures().tell().message.find("rank 3 is lost"), std::string::npos)
      << world.at(2).failures().tell().message;
}

TEST(FailureRecord, TheFirstReportStandsAndLongTextsAreCut) {
  auto record = std::make_unique<job::FailureRecord>();
  EXPECT_FALSE(job::read_failure(*record).has_value());
  EXPECT_TRUE(job::report_failure(*record, {7, {base::Code::timeout, std::string(2000, 'x')}}));
  EXPECT_FALSE(job::report_failure(*record, {8, {base::Code::system, "later"}}));
  const auto failure = job::read_failure(*record);
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->index, 7U);
  EXPECT_EQ(failure->error.code, base::Code::timeout);
  EXPECT_EQ(failure->error.message.size(), sizeof record->text - 1);
}

// Others have to wait for the text: the thread that writes it may be preempted for long.
TEST(FailureRecord, WhatIsBeingReportedIsNoFailureYet) {
  auto record = std::make_unique<job::FailureRecord>();
  EXPECT_FALSE(job::is_being_reported(*record));
  record->state = 1;
  EXPECT_TRUE(job::is_being_reported(*record));
  EXPECT_FALSE(job::read_failure(*record).has_value());
  record->state = 0;
  EXPECT_TRUE(job::report_failure(*record, {7, {base::Code::timeout, "told"}}));
  EXPECT_FALSE(job::is_being_reported(*record));
}

TEST(FailureRecord, ALaterReportOfAnEarlierOperationLowersTheNumberOnly) {
  auto record = std::make_unique<job::FailureRecord>();
  EXPECT_TRUE(job::report_failure(*record, {7, {base::Code::timeout, "first"}}));
  EXPECT_TRUE(job::report_failure(*record, {0, {base::Code::cancelled, "second"}}));
  EXPECT_FALSE(job::report_failure(*record, {0, {base::Code::cancelled, "third"}}));
  const auto failure = job::read_failure(*record);
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->index, 0U);
  EXPECT_EQ(failure->cause, 7U);
  EXPECT_EQ(failure->error.message, "first");
}

// Reports are messages of their own, and only the first brings the text.
TEST(FailureNotice, AReportThatOvertakesTheFirstSaysNothingYet) {
  job::FailureNotice notice{};
  notice.ends[1].store(4);
  EXPECT_FALSE(job::read_notice(notice).has_value());
  notice.text = job::notice_text({7, {base::Code::timeout, "first"}});
  notice.ends[0].store(8);
  const auto failure = job::read_notice(notice);
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->index, 3U);
  EXPECT_EQ(failure->cause, 7U);
  EXPECT_EQ(failure->error.code, base::Code::timeout);
  EXPECT_EQ(failure->error.message, "first");
}

TEST(DescribeCall, SaysWhatMattersToTheCollective) {
  const auto text = [](Collective c, plan::Purpose p = plan::Purpose::user) {
    return plan::describe_call(plan::call_code(c, p), 8, static_cast<int>(arith::Type::float32),
                               static_cast<int>(arith::Operator::max), 3);
  };
  EXPECT_EQ(text(Collective::barrier), "barrier()");
  EXPECT_EQ(text(Collective::broadcast), "broadcast(count 8, float32, root 3)");
  EXPECT_EQ(text(Collective::reduce), "reduce(count 8, float32, max, root 3)");
  EXPECT_EQ(text(Collective::allgather), "allgather(count 8, float32)");
  EXPECT_EQ(text(Collective::allgather, plan::Purpose::split), "comm_split");
  EXPECT_EQ(text(Collective::scatter), "scatter(count 8, float32, root 3)");
  EXPECT_EQ(text(Collective::reduce_scatter), "reduce_scatter_block(count 8, float32, max)");
  EXPECT_EQ(text(Collective::reduce_scatter, plan::Purpose::user_blocks),
            "reduce_scatter(blocks of 8 elements in all, float32, max)");
  EXPECT_EQ(text(Collective::allgather, plan::Purpose::user_blocks),
            "allgatherv(blocks of 8 elements in all, float32)");
  EXPECT_EQ(text(Collective::many_to_many, plan::Purpose::user_blocks),
            "many_to_many(blocks of 8 elements in all, float32)");
  EXPECT_EQ(text(Collective::gather, plan::Purpose::user_blocks),
            "gatherv(own blocks of 8 elements, float32, root 3)");
  EXPECT_EQ(text(Collective::alltoall, plan::Purpose::user_blocks),
            "alltoallv(own blocks of 8 elements, float32)");
  EXPECT_EQ(text(Collective::alltoall, plan::Purpose::user_typed_blocks),
            "alltoallw(own blocks of 8 elements, float32)");
}

}  // namespace
}  // namespace unisono::comm::communicator_test
