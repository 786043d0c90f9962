// SPDX-License-Identifier: BSD-3-Clause
// The fan-in of a barrier between hosts: the cheapest of all by price.
#include <gtest/gtest.h>

#include <string>

#include "model/default_machine.hpp"
#include "select/pricing.hpp"
#include "select/select.hpp"

namespace unisono::select::fan_in_test {
namespace {

using schedule::Collective;
using schedule::Shape;

TEST(FanIn, OfABarrierBetweenHostsIsTheCheapest) {
  int other_than_usual = 0;
  model::Machine far = model::default_machine();
  for (model::PathParameters& path : far.paths) {
    path.latency = {.number = 1, .unit = model::Unit::ms, .where = "test"};
  }
  for (const model::Machine& machine : {model::default_machine(), far}) {
    for (const int hosts : {3, 4, 5, 8, 9, 13, 16, 27, 32, 48, 64}) {
      SCOPED_TRACE(machine.name + " " + std::to_string(hosts));
      const Shape shape{.collective = Collective::barrier,
                        .ranks = hosts,
                        .hosts = topology::HostMap::apart(hosts)};
      const Circumstances now{.multicast = true, .machine = &machine};
      const Choice choice = choose(shape, now);
      ASSERT_EQ(choice.algorithm->name, "gather-release");
      const Pricing pricing = pricing_of(shape, now, choice.engine);
      const auto ns = [&](const algorithm::Parameters& parameters) {
        return price_of(*choice.algorithm, parameters, shape, pricing)->ns;
      };
      const double chosen_ns = ns(choice.parameters);
      for (int fan_in = 1; fan_in <= hosts; ++fan_in) {
        EXPECT_LE(chosen_ns, ns({{fan_in}})) << fan_in;
      }
      const auto usual = algorithm::default_parameters(*choice.algorithm, shape);
      if (choice.parameters != usual) {
        EXPECT_LT(chosen_ns, ns(usual));
        ++other_than_usual;
      }
    }
  }
  EXPECT_GT(other_than_usual, 3);
}

}  // namespace
}  // namespace unisono::select::fan_in_test
