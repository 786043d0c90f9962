// SPDX-License-Identifier: BSD-3-Clause
#include "model/machine.hpp"

#include <gtest/gtest.h>

#include <string>

#include "model/default_machine.hpp"
#include "unit/model/shipped.hpp"

namespace unisono::model::machine_test {
namespace {

Value in(double number, Unit unit) { return {.number = number, .unit = unit, .where = "test"}; }

TEST(Value, IsConvertedToNanoseconds) {
  EXPECT_EQ(in(3, Unit::ns).ns(), 3);
  EXPECT_EQ(in(3, Unit::us).ns(), 3e3);
  EXPECT_EQ(in(3, Unit::ms).ns(), 3e6);
  EXPECT_EQ(in(3, Unit::s).ns(), 3e9);
  EXPECT_EQ(in(0.5, Unit::ns_per_byte).ns(), 0.5);
  EXPECT_EQ(in(400, Unit::mb_per_s).ns(), 2.5);
}

TEST(Value, OfBytesOrRanksIsANumber) {
  EXPECT_EQ(in(4096, Unit::bytes).count(), 4096);
  EXPECT_EQ(in(8, Unit::ranks).count(), 8);
}

TEST(ValueDeathTest, ATimeIsNoNumberAndANumberNoTime) {
  EXPECT_DEATH((void)in(8, Unit::ranks).ns(), "the time of a number");
  EXPECT_DEATH((void)in(8, Unit::us).count(), "the number of a time");
}

TEST(Constants, OfAFileThatLacksThemAreTheDefaultMachines) {
  Machine machine = default_machine();
  auto& own = machine.constants[static_cast<std::size_t>(Constant::few_ranks)];
  own = in(3, Unit::ranks);
  EXPECT_EQ(constant_of(machine, Constant::few_ranks).count(), 3);
  own.reset();
  EXPECT_EQ(constant_of(machine, Constant::few_ranks).count(),
            constant_of(default_machine(), Constant::few_ranks).count());
}

TEST(Curve, IsLinearBetweenPointsAndGoesOnBeyond) {
  const Curve curve{{{8, in(1, Unit::us)}, {16, in(2, Unit::us)}, {32, in(6, Unit::us)}}};
  EXPECT_EQ(curve.ns(0), 1e3);
  EXPECT_EQ(curve.ns(8), 1e3);
  EXPECT_EQ(curve.ns(12), 1.5e3);
  EXPECT_EQ(curve.ns(16), 2e3);
  EXPECT_EQ(curve.ns(24), 4e3);
  EXPECT_EQ(curve.ns(48), 10e3);
  EXPECT_EQ((Curve{{{64, in(420, Unit::ns)}}}.ns(1 << 20)), 420);
}

TEST(Machine, AMessageTakesTheFirstPathThatFits) {
  const Machine machine = shipped("default");
  EXPECT_EQ(local_path(machine, Engine::inline_, 8).level, Level::cache);
  EXPECT_EQ(local_path(machine, Engine::helping, 1 << 20).level, Level::memory);
  EXPECT_EQ(remote_path(machine, Engine::inline_, 8).level, Level::hosts);
  EXPECT_EQ(remote_path(machine, Engine::nic, 8).level, Level::nic);
  EXPECT_EQ(find_path(machine, Level::nic, Engine::helping, 8), nullptr);
  // Where hosts have only the NIC path, a path of another engine is better than none.
  EXPECT_EQ(remote_path(shipped("crescendo"), Engine::inline_, 8).level, Level::nic);
}

TEST(Machine, TheNearestReductionCostIsTaken) {
  PathParameters path;
  const auto cost = [](std::optional<arith::Operator> op, std::optional<arith::Type> type,
                       double ns) {
    return ReductionCost{op, type, {{{8, in(ns, Unit::ns)}}}};
  };
  EXPECT_EQ(reduction_ns(path, arith::Operator::sum, arith::Type::int32, 8), 0);
  path.reduction = {cost({}, {}, 1), cost({}, arith::Type::int32, 2),
                    cost(arith::Operator::sum, {}, 3),
                    cost(arith::Operator::sum, arith::Type::int32, 4)};
  EXPECT_EQ(reduction_ns(path, arith::Operator::max, arith::Type::int64, 8), 1);
  EXPECT_EQ(reduction_ns(path, arith::Operator::max, arith::Type::int32, 8), 2);
  EXPECT_EQ(reduction_ns(path, arith::Operator::sum, arith::Type::int64, 8), 3);
  EXPECT_EQ(reduction_ns(path, arith::Operator::sum, arith::Type::int32, 8), 4);
  EXPECT_EQ(reduction_ns(path, arith::Operator::sum, arith::Type::int32, 0), 0);
  path.start_up = {{{}, in(5, Unit::ns)}, {arith::Operator::max, in(6, Unit::ns)}};
  EXPECT_EQ(start_up_ns(path, arith::Operator::sum), 5);
  EXPECT_EQ(start_up_ns(path, arith::Operator::max), 6);
  EXPECT_EQ(start_up_ns(path, std::nullopt), 5);
}

TEST(Machine, TheFilesHoldThePublishedNumbers) {
  const PathParameters elan = remote_path(shipped("crescendo"), Engine::nic, 8);
  EXPECT_DOUBLE_EQ(elan.latency.ns(), 2100);
  EXPECT_DOUBLE_EQ(elan.reception.ns(8), 420);
  EXPECT_DOUBLE_EQ(elan.reception.ns(64), 420);
  EXPECT_DOUBLE_EQ(start_up_ns(elan, arith::Operator::sum), 9200);
  EXPECT_DOUBLE_EQ(reduction_ns(elan, arith::Operator::sum, arith::Type::float64, 64), 11560);
  EXPECT_DOUBLE_EQ(reduction_ns(elan, arith::Operator::max, arith::Type::int32, 8), 460);

  const Machine lemieux = shipped("lemieux");
  const PathParameters& qsnet = remote_path(lemieux, Engine::any, 8);
  EXPECT_DOUBLE_EQ(qsnet.overhead.ns(), 7400);
  EXPECT_DOUBLE_EQ(qsnet.overhead_per_byte.ns(), 7.5);
  EXPECT_DOUBLE_EQ(qsnet.staged_per_byte->ns(), 3.13);
  EXPECT_DOUBLE_EQ(qsnet.staging_per_byte->ns(), 3.13);
  EXPECT_DOUBLE_EQ(lemieux.tree->link_per_byte.ns(), 2.5);
  EXPECT_DOUBLE_EQ(shipped("asci-q").hardware_barrier->ns(), 10e3);
}

}  // namespace
}  // namespace unisono::model::machine_test
