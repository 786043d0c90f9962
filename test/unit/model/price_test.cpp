// SPDX-License-Identifier: BSD-3-Clause
// The price of schedules: worked by hand, against the papers' closed forms, and from one rank.
#include "model/price.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "algorithm/algorithm.hpp"
#include "model/closed_form/fat_tree.hpp"
#include "model/closed_form/nic_reduce.hpp"
#include "schedule/builder.hpp"
#include "unit/model/shipped.hpp"

namespace unisono::model::price_test {
namespace {

using algorithm::Collective;
using algorithm::Parameters;
using schedule::Builder;
using schedule::Schedule;
using schedule::Shape;

std::vector<Schedule> build_all(Collective collective, std::string_view name, int ranks,
                                std::int64_t count, const Parameters& parameters) {
  const algorithm::Algorithm& row = *algorithm::find(collective, name);
  const Shape shape{.collective = collective, .ranks = ranks, .count = count};
  std::vector<Schedule> set;
  for (int r = 0; r < ranks; ++r) set.push_back(row.build(shape, parameters, r));
  return set;
}

Value ns(double number, Unit unit = Unit::ns) {
  return {.number = number, .unit = unit, .where = "test"};
}

// One path with numbers that are easy to add.
Machine plain() {
  Machine machine;
  machine.cores_per_host = 64;
  PathParameters path;
  path.level = Level::memory;
  path.latency = ns(1000);
  path.overhead = ns(100);
  path.overhead_per_byte = ns(1, Unit::ns_per_byte);
  path.gap = ns(0);
  path.gap_per_byte = ns(0, Unit::ns_per_byte);
  path.copy_per_byte = ns(2, Unit::ns_per_byte);
  path.reception = {{{0, ns(10)}, {100, ns(110)}}};
  path.reduction = {{{}, {}, {{{1, ns(5)}, {101, ns(505)}}}}};
  path.start_up = {{{}, ns(7)}};
  machine.paths = {path};
  return machine;
}

constexpr Work kBytes{.type = arith::Type::byte};
constexpr Work kMaxOfBytes{.type = arith::Type::uint8, .op = arith::Operator::max};

// Rank 0 sends `messages` messages of `count` bytes, which rank 1 awaits in turn and puts in place.
std::vector<Schedule> messages(int number, std::int64_t count) {
  const Shape shape{.collective = Collective::broadcast, .ranks = 2, .count = count};
  Builder sender(shape, 0), receiver(shape, 1);
  for (int i = 0; i < number; ++i) sender.send(1, i, schedule::input(i * count, count));
  for (int i = 0; i < number; ++i) {
    const auto slot = receiver.slot(0, count);
    const auto arrived = receiver.wait(slot);
    receiver.copy(schedule::output(0, count), receiver.of(slot), {arrived});
  }
  return {std::move(sender).take(), std::move(receiver).take()};
}

TEST(Price, OfOneMessageByHand) {
  const Price one = price(messages(1, 50), plain(), kBytes);
  // C, o + O m, L, r(m), gamma m
  EXPECT_DOUBLE_EQ(one.ns, 7 + 150 + 1000 + 60 + 100);
  EXPECT_EQ(one.last_rank, 1);
  EXPECT_EQ(one.parts, (Parts{.latency = 7 + 100 + 1000 + 10, .bytes = 50 + 50 + 100}));
}

TEST(Price, OfSeveralMessagesByHand) {
  // The second one is sent 150 later, and arrives before the first is in place.
  EXPECT_DOUBLE_EQ(price(messages(2, 50), plain(), kBytes).ns, 7 + 150 + 1000 + 2 * (60 + 100));
  Machine machine = plain();
  machine.paths[0].gap = ns(300);
  machine.paths[0].gap_per_byte = ns(4, Unit::ns_per_byte);
  // It leaves g + G m after the first, and each is on its way for L + G m.
  EXPECT_DOUBLE_EQ(price(messages(2, 50), machine, kBytes).ns,
                   7 + 150 + (300 + 200) + (1000 + 200) + 60 + 100);
}

TEST(Price, OfNothingIsTheStart) { EXPECT_DOUBLE_EQ(price(messages(0, 1), plain(), kBytes).ns, 7); }

TEST(Price, OfAReductionHasItsParts) {
  const auto set = build_all(Collective::reduce, "serial", 3, 51, {});
  const Price of_max = price(set, plain(), kMaxOfBytes);
  EXPECT_DOUBLE_EQ(of_max.parts.reduction, 2 * 255);
  EXPECT_DOUBLE_EQ(of_max.ns, 7 + 151 + 1000 + 2 * (61 + 255));
  EXPECT_NEAR(of_max.parts.sum(), of_max.ns, 1e-9);
}

// A rank multicasts to three others.
std::vector<Schedule> multicast(std::int64_t count) {
  return build_all(Collective::broadcast, "flat", 4, count, {});
}

TEST(Price, OfAMulticastByWhatThePathCanDo) {
  Machine machine = plain();
  const double rest = 7 + 1000 + 30;  // C, L, r
  machine.paths[0].copy_per_byte = ns(0, Unit::ns_per_byte);
  EXPECT_DOUBLE_EQ(price(multicast(20), machine, kBytes).ns, rest + 3 * 120);

  Machine hardware = machine;
  hardware.paths[0].multicast_latency = ns(1500);
  EXPECT_DOUBLE_EQ(price(multicast(20), hardware, kBytes).ns, rest + 120 + 500);

  Machine staging = machine;
  staging.paths[0].staged_per_byte = ns(0.5, Unit::ns_per_byte);
  staging.paths[0].staging_per_byte = ns(3, Unit::ns_per_byte);
  staging.paths[0].level = Level::hosts;
  Work apart = kBytes;
  apart.apart = true;
  EXPECT_DOUBLE_EQ(price(multicast(20), staging, apart).ns, rest + 60 + 3 * 110);
  // One message alone is not staged.
  EXPECT_DOUBLE_EQ(price(build_all(Collective::broadcast, "flat", 2, 20, {}), staging, apart).ns,
                   rest + 120);
}

TEST(Price, OfAMulticastThatIsReadFromOnePlace) {
  Machine machine = plain();
  machine.paths[0].copy_per_byte = ns(0, Unit::ns_per_byte);
  Work staged = kBytes;
  staged.staged_multicast = true;
  EXPECT_DOUBLE_EQ(price(multicast(20), machine, staged).ns, 7 + 120 + 1000 + 30);
  // Hosts do not share memory.
  staged.apart = true;
  EXPECT_DOUBLE_EQ(price(multicast(20), machine, staged).ns, 7 + 3 * 120 + 1000 + 30);
  machine.paths[0].level = Level::hosts;
  machine.paths[0].multicast_latency = ns(1500);
  EXPECT_DOUBLE_EQ(price(multicast(20), machine, staged).ns, 7 + 120 + 1500 + 30);
  staged.multicast_between_hosts = false;
  EXPECT_DOUBLE_EQ(price(multicast(20), machine, staged).ns, 7 + 3 * 120 + 1000 + 30);
}

TEST(Price, OfSegmentsIsTheFirstAndWhatTheBusiestRankAdds) {
  // The receiver takes r(m) + gamma m for each, more than the sender's o + O m.
  const double first = price(messages(1, 50), plain(), kBytes).ns;
  EXPECT_DOUBLE_EQ(price(messages(1, 50), plain(), kBytes, {.segments = 3}).ns, first + 2 * 160);
  Machine slow = plain();
  slow.paths[0].overhead = ns(1000);
  const Price many = price(messages(1, 50), slow, kBytes, {.segments = 101});
  EXPECT_DOUBLE_EQ(many.ns, first + 900 + 100 * 1050);
  EXPECT_NEAR(many.parts.sum(), many.ns, 1e-6);
  // An exchange in which each waits for the other has no overlap.
  const auto set = build_all(Collective::barrier, "dissemination", 8, 0, {});
  EXPECT_DOUBLE_EQ(price(set, plain(), kBytes, {.segments = 5}).ns, 7 + 5 * 3 * (100 + 1000 + 10));
  EXPECT_DOUBLE_EQ(price_of_alike(set[3], plain(), kBytes, {.segments = 5}).ns,
                   7 + 5 * 3 * (100 + 1000 + 10));
}

// ---- calls in a row ----

double in_row(const std::vector<Schedule>& set, const Machine& machine, const Work& work,
              const Calls& calls = {.slot_indexes = 64}) {
  return price(set, machine, work, calls).in_row_ns;
}

TEST(PriceInARow, IsThatOfTheBusiestRankIfNoneWaitsForItsReceivers) {
  EXPECT_DOUBLE_EQ(price(messages(1, 50), plain(), kBytes).in_row_ns, 0);
  // C, r(m) and gamma m of the receiver are more than C and o + O m of the sender. L does not
  // count.
  EXPECT_DOUBLE_EQ(in_row(messages(1, 50), plain(), kBytes), 7 + 60 + 100);
  Machine slow = plain();
  slow.paths[0].overhead = ns(1000);
  EXPECT_DOUBLE_EQ(in_row(messages(1, 50), slow, kBytes), 7 + 1050);
  EXPECT_DOUBLE_EQ(in_row(messages(3, 50), slow, kBytes), 7 + 3 * 1050);
  slow.paths[0].gap = ns(5000);
  EXPECT_DOUBLE_EQ(in_row(messages(3, 50), slow, kBytes), 3 * 5000);
  // In a chain, the middle does what both ends do.
  EXPECT_DOUBLE_EQ(
      in_row(build_all(Collective::reduce, "chain", 8, 51, {{1, 0}}), plain(), kMaxOfBytes),
      7 + 61 + 255 + 151);
}

TEST(PriceInARow, IsThatOfOneCallIfRanksWaitForEachOther) {
  for (const int ranks : {2, 3, 8}) {
    const auto set = build_all(Collective::barrier, "dissemination", ranks, 0, {});
    const double alone = price(set, plain(), kBytes).ns;
    EXPECT_DOUBLE_EQ(in_row(set, plain(), kBytes), alone) << ranks;
    EXPECT_DOUBLE_EQ(price_of_alike(set[0], plain(), kBytes, {.slot_indexes = 64}).in_row_ns,
                     alone);
  }
  // The last one gets its release while the first one already sends again.
  const auto released = build_all(Collective::barrier, "gather-release", 3, 0, {{2}});
  EXPECT_LE(in_row(released, plain(), kBytes), price(released, plain(), kBytes).ns);
  EXPECT_GE(in_row(released, plain(), kBytes), 7 + 2 * (100 + 1000 + 10));
}

TEST(PriceInARow, NoRankIsFurtherAheadThanItsSlotIndexes) {
  const double alone = price(messages(1, 50), plain(), kBytes).ns;
  for (const int slots : {2, 4}) {
    EXPECT_DOUBLE_EQ(in_row(messages(1, 50), plain(), kBytes, {.slot_indexes = slots}),
                     alone / slots);
  }
}

TEST(PriceInARow, OfSegmentsIsTheirTimesAndOneStart) {
  EXPECT_DOUBLE_EQ(in_row(messages(1, 50), plain(), kBytes, {.segments = 5, .slot_indexes = 64}),
                   7 + 5 * (60 + 100));
  const auto set = build_all(Collective::barrier, "dissemination", 8, 0, {});
  const Calls calls{.segments = 5, .slot_indexes = 64};
  EXPECT_DOUBLE_EQ(in_row(set, plain(), kBytes, calls), price(set, plain(), kBytes, calls).ns);
  EXPECT_DOUBLE_EQ(price_of_alike(set[3], plain(), kBytes, calls).in_row_ns,
                   in_row(set, plain(), kBytes, calls));
}

TEST(PriceInARow, WhereRanksHelpOnlyThoseThatWaitForEachOtherNeedACoreInEachCall) {
  Machine small = plain();
  small.hand_over = ns(640);
  Work helping = kBytes;
  helping.engine = Engine::helping;
  helping.cores = 2;
  const double in_turns = 4.0 / 64 / 2 * 640;
  // The three receivers and the sender have work for two cores.
  const double work = (4 * 7 + 3 * 120 + 3 * (20 + 10 * 0.5)) / 2;
  const auto flat = build_all(Collective::broadcast, "flat", 4, 20, {});
  small.paths[0].copy_per_byte = ns(0, Unit::ns_per_byte);
  EXPECT_GE(in_row(flat, small, helping), 7 + 3 * 120 + in_turns);
  EXPECT_LT(in_row(flat, small, helping), 7 + 3 * 120 + work + in_turns);
  const auto exchange = build_all(Collective::barrier, "dissemination", 4, 0, {});
  EXPECT_DOUBLE_EQ(in_row(exchange, small, helping), price(exchange, small, helping).ns);
  EXPECT_DOUBLE_EQ(price_of_alike(exchange[0], small, helping, {.slot_indexes = 64}).in_row_ns,
                   in_row(exchange, small, helping));
}

TEST(Price, WhereRanksHelpEachNeedsACoreOnce) {
  const auto set = build_all(Collective::barrier, "dissemination", 8, 0, {});
  const double alone = price(set, plain(), kBytes).ns;
  Machine small = plain();
  small.hand_over = ns(50);
  Work helping = kBytes;
  helping.engine = Engine::helping;
  helping.cores = 2;
  EXPECT_DOUBLE_EQ(price(set, small, helping).ns, alone + 8 / 2 * 50);
  EXPECT_DOUBLE_EQ(price_of_alike(set[0], small, helping).ns, alone + 8 / 2 * 50);
  small.paths[0].latency = ns(0);
  helping.cores = 1;
  EXPECT_DOUBLE_EQ(price(set, small, helping).ns, 8 * (7 + 3 * (100 + 10)) + 8 * 50);
  helping.cores = 8;
  EXPECT_DOUBLE_EQ(price(set, small, helping).parts.hand_over, 0);
}

TEST(Price, WhereRanksHelpEachNeedsACoreOnceForEachSegment) {
  const auto set = build_all(Collective::barrier, "dissemination", 8, 0, {});
  Machine small = plain();
  small.hand_over = ns(50);
  Work helping = kBytes;
  helping.engine = Engine::helping;
  helping.cores = 4;
  EXPECT_DOUBLE_EQ(price(set, small, helping).parts.hand_over, 8 / 4 * 50);
  EXPECT_DOUBLE_EQ(price(set, small, helping, {.segments = 3}).parts.hand_over, 3 * 8 / 4 * 50);
}

// Rank 0 sends 10 bytes to rank 1, which then sends 10 of its own to rank 2.
std::vector<Schedule> passed_on(std::int64_t input) {
  const Shape shape{.collective = Collective::allgather, .ranks = 3, .count = input};
  Builder first(shape, 0), second(shape, 1), third(shape, 2);
  first.send(1, 0, schedule::input(0, 10));
  const auto arrived = second.wait(second.slot(0, 10));
  second.send(2, 0, schedule::input(0, 10), {arrived});
  third.wait(third.slot(1, 10));
  return {std::move(first).take(), std::move(second).take(), std::move(third).take()};
}

TEST(Price, WhereRanksHelpTheyStageTheBuffersThatOthersMayNeed) {
  Machine machine = plain();
  machine.paths[0].latency = ns(0);
  EXPECT_DOUBLE_EQ(price(passed_on(500), machine, kBytes).ns, 7 + 2 * (110 + 20));
  // Rank 1 is through with it after the message has come. No other rank does steps of rank 0.
  Work helping = kBytes;
  helping.engine = Engine::helping;
  EXPECT_DOUBLE_EQ(price(passed_on(500), machine, helping).ns, 7 + 500 + 20 + (110 + 20));
}

TEST(Price, WhereRanksHelpSomeReadOnTheCoreOfTheSender) {
  Work helping = kBytes;
  helping.engine = Engine::helping;
  const auto reading = [&](int cores) {
    helping.cores = cores;
    const auto set = build_all(Collective::reduce, "serial", 5, 50, {});
    return price(set, plain(), helping).parts.bytes;
  };
  // The root has four messages of 50 bytes on the longest path, after one that is sent.
  EXPECT_DOUBLE_EQ(reading(5), 50 + 4 * 50);
  EXPECT_DOUBLE_EQ(reading(4), 50 + 4 * 50 * 3 / 4.);
  EXPECT_DOUBLE_EQ(reading(1), 50);
}

TEST(Price, WhereRanksOutnumberCoresTheLongestPathAndTheRestShareThem) {
  Machine machine = plain();
  machine.paths[0].latency = ns(0);
  Work work = kBytes;
  work.engine = Engine::helping;
  const auto set = build_all(Collective::barrier, "dissemination", 8, 0, {});
  const double path = 7 + 3 * (100 + 10);
  for (const int cores : {1, 2, 4, 7}) {
    work.cores = cores;
    EXPECT_DOUBLE_EQ(price(set, machine, work).ns, path + (8 * path - path) / cores);
    EXPECT_DOUBLE_EQ(price_of_alike(set[0], machine, work).ns, price(set, machine, work).ns);
  }
}

TEST(Price, OfElementsOfAnotherLengthThanTheirTypes) {
  Work wide = kBytes;
  wide.element_bytes = 10;
  EXPECT_DOUBLE_EQ(price(messages(1, 5), plain(), wide).ns,
                   price(messages(1, 50), plain(), kBytes).ns);
}

TEST(Price, WhereRanksOutnumberCoresWaitsPassThemOn) {
  const auto set = build_all(Collective::barrier, "dissemination", 8, 0, {});
  const double alone = price(set, plain(), kBytes).ns;
  EXPECT_DOUBLE_EQ(alone, 7 + 3 * (100 + 1000 + 10));
  Machine small = plain();
  small.cores_per_host = 7;
  small.hand_over = ns(50);
  // The work of all is more than the longest path, without the messages' flights or with them.
  const double shared = (8 * (7 + 3 * (100 + 10 + 50)) - (alone + 3 * 50)) / 7;
  EXPECT_DOUBLE_EQ(price(set, small, kBytes).ns, alone + 3 * 50 + shared);
  EXPECT_DOUBLE_EQ(price(set, small, kBytes).parts.hand_over, 3 * 50 + shared);
  // One core does the work of all.
  small.cores_per_host = 1;
  EXPECT_DOUBLE_EQ(price(set, small, kBytes).ns, 8 * (7 + 3 * (100 + 10 + 50)));
  Work apart = kBytes;
  apart.apart = true;
  EXPECT_DOUBLE_EQ(price(set, small, apart).ns, alone);
}

// As if they were one host, but for their messages.
TEST(Price, HostsThatShareCoresShareTheWorkOfAll) {
  Machine small = plain();
  small.cores_per_host = 1;
  small.hand_over = ns(50);
  const auto set = build_all(Collective::barrier, "dissemination", 8, 0, {});
  Work work = kBytes;
  work.apart = true;
  const double alone = price(set, small, work).ns;
  for (const int cores : {1, 3, 7}) {
    Work on_one_host = kBytes;
    work.shared_cores = on_one_host.cores = cores;
    const Price price_of_all = price(set, small, work);
    EXPECT_DOUBLE_EQ(price_of_all.ns, price(set, small, on_one_host).ns);
    EXPECT_EQ(price_of_all.parts, price(set, small, on_one_host).parts);
    EXPECT_GT(price_of_all.ns, alone);
    EXPECT_LE(least_ns(set[0], small, work, {}, Segments::as_many_or_more), price_of_all.ns);
  }
  for (const int cores : {0, 8}) {
    work.shared_cores = cores;
    EXPECT_DOUBLE_EQ(price(set, small, work).ns, alone);
  }
}

TEST(Price, OfRanksOnSeveralHostsByWhereTheirPeersAre) {
  Machine machine = plain();
  machine.paths.push_back(machine.paths[0]);
  machine.paths[1].level = Level::hosts;
  machine.paths[1].latency = ns(5000);
  auto set = build_all(Collective::barrier, "dissemination", 4, 0, {});
  for (Schedule& schedule : set) {
    schedule.shape.hosts = topology::HostMap::of_labels(std::vector{0, 0, 1, 1});
  }
  // Some path crosses hosts in both steps.
  EXPECT_DOUBLE_EQ(price(set, machine, kBytes).ns, 7 + 2 * (100 + 5000 + 10));
}

// ---- nic-reduce ----

Work float64_sum() {
  return {.engine = Engine::nic,
          .type = arith::Type::float64,
          .op = arith::Operator::sum,
          .apart = true};
}

TEST(PriceOfNicReduce, SerialReductionIsTheClosedForm) {
  const Machine crescendo = shipped("crescendo");
  for (const std::int64_t count : {1, 2, 4, 8}) {
    const auto p = nic_reduce::parameters_of(crescendo.paths[1], arith::Operator::sum,
                                             arith::Type::float64, count * 8);
    for (int ranks = 2; ranks <= 32; ++ranks) {
      const auto set = build_all(Collective::reduce, "serial", ranks, count, {});
      EXPECT_NEAR(price(set, crescendo, float64_sum()).ns, nic_reduce::serial(p, ranks), 1e-6);
    }
  }
}

int largest_power(int base, int most) {
  int power = 1;
  while (power * base <= most) power *= base;
  return power;
}

// T(P, f) where the root's last phase brings a whole subtree, or there is none. A smaller one is
// there earlier, so that the root waits less than the L that T counts for it. Two degrees may give
// the same schedules, as 4 and 5 do for 5 ranks, and different T: no price equals both.
void compare_tree(const Machine& machine, int ranks, int degree) {
  const Work work = float64_sum();
  const auto p = nic_reduce::parameters_of(machine.paths[1], *work.op, work.type, 8);
  const double closed = nic_reduce::fnomial(p, ranks, degree);
  const double ours =
      price(build_all(Collective::reduce, "fnomial", ranks, 1, {{degree}}), machine, work).ns;
  const int covered = largest_power(degree, ranks);
  if (ranks == covered || ranks >= 2 * covered) {
    ASSERT_NEAR(ours, closed, 1e-9 * closed) << ranks << " ranks, degree " << degree;
  } else {
    ASSERT_LE(ours, closed * (1 + 1e-9)) << ranks << " ranks, degree " << degree;
    ASSERT_GE(ours, closed * (1 - 1e-9) - p.latency) << ranks << " ranks, degree " << degree;
  }
}

TEST(PriceOfNicReduce, TreesOfAllDegreesAreTheClosedForm) {
  const Machine crescendo = shipped("crescendo");
  for (int degree = 2; degree <= 16; ++degree) {
    for (int ranks = 1; ranks <= 130; ++ranks) compare_tree(crescendo, ranks, degree);
    for (int power = degree; power <= 4096; power *= degree) {
      for (const int ranks : {power - 1, power, power + 1, 2 * power - 1, 2 * power, 2 * power + 1,
                              3 * power - 1, 3 * power}) {
        if (ranks > 130 && ranks <= 4096) compare_tree(crescendo, ranks, degree);
      }
    }
    compare_tree(crescendo, 4096, degree);
  }
}

// All of them: minutes.
TEST(PriceOfNicReduce, DISABLED_TreesOfAllRanksAreTheClosedForm) {
  const Machine crescendo = shipped("crescendo");
  for (int degree = 2; degree <= 16; ++degree) {
    for (int ranks = 1; ranks <= 4096; ++ranks) compare_tree(crescendo, ranks, degree);
  }
}

TEST(PriceOfNicReduce, FiveRanksHaveTheSameTreeOfDegreeFourAndFive) {
  const auto four = build_all(Collective::reduce, "fnomial", 5, 1, {{4}});
  const auto five = build_all(Collective::reduce, "fnomial", 5, 1, {{5}});
  EXPECT_TRUE(std::ranges::equal(four, five));
  const nic_reduce::Parameters p{.latency = 100, .reception = 1};
  EXPECT_EQ(nic_reduce::fnomial(p, 5, 4), nic_reduce::fnomial(p, 5, 5) + 100);
}

// By T, the best degrees are 4, 2, 2, 2 (nic_reduce_forms_test.cpp). The schedule of degree 2 is
// one latency cheaper than T, because the last child of the root brings 15 ranks and not 16.
TEST(PriceOfNicReduce, On31NodesDegreeTwoIsALatencyCheaperThanItsClosedForm) {
  const Machine crescendo = shipped("crescendo");
  for (const int count : {1, 2, 4, 8}) {
    const auto p = nic_reduce::parameters_of(crescendo.paths[1], arith::Operator::sum,
                                             arith::Type::float64, count * 8);
    const auto ours = [&](int degree) {
      const auto set = build_all(Collective::reduce, "fnomial", 31, count, {{degree}});
      return price(set, crescendo, float64_sum()).ns;
    };
    EXPECT_NEAR(ours(4), nic_reduce::fnomial(p, 31, 4), 1e-6);
    EXPECT_NEAR(ours(2), nic_reduce::fnomial(p, 31, 2) - p.latency, 1e-6);
    for (int degree = 3; degree <= 31; ++degree) EXPECT_LT(ours(2), ours(degree)) << degree;
  }
}

// ---- fat-tree ----

constexpr Work kApart{.type = arith::Type::byte, .apart = true};

// Lemieux, without the latency that its forms count once, and without the copies that put blocks in
// place: there the NIC writes where they belong.
Machine lemieux(bool stages) {
  Machine machine = shipped("lemieux");
  PathParameters& path = machine.paths[1];
  path.latency.number = 0;
  path.copy_per_byte.number = 0;
  if (!stages) {
    path.staged_per_byte.reset();
    path.staging_per_byte.reset();
  }
  return machine;
}

double of_allgather(std::string_view name, int ranks, std::int64_t bytes, const Machine& machine,
                    const Parameters& parameters = {}) {
  return price(build_all(Collective::allgather, name, ranks, bytes, parameters), machine, kApart)
      .ns;
}

TEST(PriceOfFatTree, DirectStrategiesAreTheirEquations) {
  const Machine staged = lemieux(true), plain_machine = lemieux(false);
  const auto p = fat_tree::parameters_of(staged.paths[1]);
  for (const std::int64_t m : {1, 1000, 256 * 1024}) {
    const auto near = [](double ours, double equation, const char* which) {
      EXPECT_NEAR(ours, equation, 1e-9 * equation) << which;
    };
    for (const int ranks : {3, 16, 24, 64, 144}) {
      near(of_allgather("direct", ranks, m, plain_machine), fat_tree::direct(p, ranks, m), "(2)");
      near(of_allgather("ring", ranks, m, staged), fat_tree::ring(p, ranks, m), "(7)");
    }
    for (const int ranks : {4, 16, 64, 128}) {
      near(of_allgather("recursive-doubling", ranks, m, staged), fat_tree::hypercube(p, ranks, m),
           "(4)");
      near(of_allgather("prefix-send", ranks, m, staged), fat_tree::prefix_send(p, ranks, m),
           "(8)");
    }
  }
}

// A round stages its block if it sends it to several ranks. The last one reaches k - 1 ranks.
double unstaged_rounds(const fat_tree::Parameters& p, int ranks, int k, std::int64_t m) {
  const int alone = k == 1 ? ranks - 1 : k == 2 ? 1 : 0;
  const int rounds = k == 1 ? ranks : alone;  // k = 1: in the last round nothing is sent
  return static_cast<double>(m) * (alone * (p.beta - p.beta_em) - rounds * p.delta);
}

// Equations 9 and 10 for every k of the paper. They stage a block in each of P/k rounds.
TEST(PriceOfFatTree, RoundsOfKAreTheirEquations) {
  const Machine staged = lemieux(true);
  const auto p = fat_tree::parameters_of(staged.paths[1]);
  for (const int k : {1, 2, 3, 4, 8}) {
    for (const int factor : {1, 2, 8, 18, 24}) {
      const int ranks = factor * k;
      if (ranks < 2) continue;
      for (const std::int64_t m : {1, 1000, 256 * 1024}) {
        SCOPED_TRACE("k " + std::to_string(k) + ", " + std::to_string(ranks) + " ranks, " +
                     std::to_string(m) + " bytes");
        const double unstaged = unstaged_rounds(p, ranks, k, m);
        const double shift = fat_tree::kshift(p, ranks, k, m) + unstaged;
        EXPECT_NEAR(of_allgather("kshift", ranks, m, staged, {{k, 1}}), shift, 1e-9 * shift);
        if (k == 3) continue;  // no power of two
        const double prefix = fat_tree::kprefix(p, ranks, k, m) + unstaged;
        EXPECT_NEAR(of_allgather("kprefix", ranks, m, staged, {{k, 1}}), prefix, 1e-9 * prefix);
      }
    }
  }
}

// ... so that k = 1 is the ring.
TEST(PriceOfFatTree, RoundsOfOneAreTheRing) {
  const Machine staged = lemieux(true);
  const auto p = fat_tree::parameters_of(staged.paths[1]);
  for (const int ranks : {2, 3, 16, 100}) {
    const double ring = fat_tree::ring(p, ranks, 1000);
    EXPECT_NEAR(of_allgather("kshift", ranks, 1000, staged, {{1, 1}}), ring, 1e-9 * ring);
    EXPECT_NEAR(of_allgather("kprefix", ranks, 1000, staged, {{1, 1}}), ring, 1e-9 * ring);
  }
}

// Section 3 says "approximately". (3) counts sqrt(P) messages in place of sqrt(P) - 1 in each
// phase. (5) ignores the savings of folding, (6) the messages that its direct stages add.
TEST(PriceOfFatTree, CombiningStrategiesAreNearTheirEquations) {
  const Machine staged = lemieux(true);
  const auto p = fat_tree::parameters_of(staged.paths[1]);
  for (const std::int64_t m : {1, 1000, 16 * 1024}) {
    for (const int ranks : {16, 64, 144, 256}) {
      const double equation = fat_tree::mesh(p, ranks, m);
      EXPECT_NEAR(of_allgather("mesh2d", ranks, m, staged), equation,
                  1.5 / std::sqrt(ranks) * equation);
    }
    for (const int ranks : {64, 256}) {
      for (const int zeta : {2, 3, 4}) {
        const double added = (1 << zeta) - 1 - zeta;
        const double equation = fat_tree::hybrid(p, ranks, zeta, m) + added * p.alpha;
        EXPECT_NEAR(of_allgather("hypercube", ranks, m, staged, {{zeta}}), equation, 0.1 * equation)
            << ranks << " ranks, " << m << " bytes, zeta " << zeta;
      }
    }
    for (const int ranks : {65, 100, 144, 200}) {
      const double equation = fat_tree::hypercube_with_holes(p, ranks, m);
      const double ours = of_allgather("recursive-doubling", ranks, m, staged);
      EXPECT_LT(ours, 1.25 * equation);
      EXPECT_GT(ours, 0.6 * equation);
    }
  }
}

// Latency comes once a step, because a rank of a direct strategy waits for its block of each step.
TEST(PriceOfFatTree, LatencyAddsAtMostOnceAStep) {
  Machine machine = lemieux(true);
  const auto p = fat_tree::parameters_of(machine.paths[1]);
  machine.paths[1].latency = ns(2100);
  EXPECT_NEAR(of_allgather("kshift", 64, 1000, machine, {{8, 1}}),
              fat_tree::kshift(p, 64, 8, 1000) + 63 * 2100, 1e-3);
}

// ---- one rank for all ----

TEST(PriceOfAlike, IsThePriceOfAllRanks) {
  const Machine machines[] = {shipped("default"), shipped("crescendo"), shipped("lemieux"),
                              shipped("infiniband-16")};
  int compared = 0;
  for (const algorithm::Algorithm& row : algorithm::table()) {
    if (row.alike == algorithm::Alike::never) continue;
    for (const int ranks : {1, 2, 3, 4, 7, 8, 12, 16, 32, 48}) {
      Shape shape{.collective = row.collective, .ranks = ranks, .count = 12 * ranks};
      if (row.collective == Collective::barrier) shape.count = 0;
      const Parameters parameters = algorithm::default_parameters(row, shape);
      if (!algorithm::why_illegal(row, shape, parameters).empty()) continue;
      if (!algorithm::ranks_are_alike(row, shape)) continue;
      std::vector<Schedule> set;
      for (int r = 0; r < ranks; ++r) set.push_back(row.build(shape, parameters, r));
      for (const Machine& machine : machines) {
        for (const int shared_cores : {-1, 0, 2}) {  // -1: one host
          Work work{.type = arith::Type::int32,
                    .apart = shared_cores >= 0,
                    .shared_cores = std::max(0, shared_cores)};
          if (schedule::is_reduction(row.collective)) work.op = arith::Operator::sum;
          const Price all = price(set, machine, work);
          const Price one = price_of_alike(set[static_cast<std::size_t>(ranks / 2)], machine, work);
          ASSERT_NEAR(one.ns, all.ns, 1e-9 * all.ns) << row.name << " " << ranks;
          EXPECT_NEAR(one.parts.sum(), one.ns, 1e-9 * one.ns);
          ++compared;
        }
      }
    }
  }
  EXPECT_GT(compared, 500);
}

TEST(PriceOfAlike, OfAMillionRanksNeedsOneSchedule) {
  const Shape shape{.collective = Collective::barrier, .ranks = 1 << 20};
  const Schedule one =
      algorithm::find(Collective::barrier, "dissemination")->build(shape, {}, 12345);
  EXPECT_EQ(one.ops.size(), 40U);
  Work apart = kBytes;
  apart.apart = true;
  EXPECT_DOUBLE_EQ(price_of_alike(one, plain(), apart).ns, 7 + 20 * (100 + 1000 + 10));
}

}  // namespace
}  // namespace unisono::model::price_test
