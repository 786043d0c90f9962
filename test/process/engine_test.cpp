// SPDX-License-Identifier: BSD-3-Clause
// The inline and the helping engine pass the conformance suite of engines; the engine of the NIC
// path does in test/nic/job/engine_test.cpp.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <tuple>

#include "harness/engine_conformance.hpp"
#include "process/ranks.hpp"

namespace unisono::harness::engine_test {
namespace {

using Check = std::function<void(const EngineRank&)>;

void expect_conformance(const char* engine, const Check& check, int victim = -1) {
  ProcessJob::Options options;
  options.environment["UNISONO_ENGINE"] = engine;
  ProcessJob job(
      4,
      [&](const ProcessRank& self) {
        check({self.rank, self.ranks, self.world, engine});
      },
      options);
  job.expect_all_clean(victim);
}

class EngineConformance : public testing::TestWithParam<const char*> {};

TEST_P(EngineConformance, EachKindOfCallIsRight) { expect_conformance(GetParam(), check_kinds); }
TEST_P(EngineConformance, ManyOperationsAtOnceKeepOneOrder) {
  expect_conformance(GetParam(), check_order);
}
TEST_P(EngineConformance, CallsThatDifferAreAnErrorForAll) {
  expect_conformance(GetParam(), check_mismatch);
}
TEST_P(EngineConformance, ACancellationIsAnErrorForAll) {
  expect_conformance(GetParam(), check_cancel);
}
TEST_P(EngineConformance, ADeathIsNamedAndSurvived) {
  constexpr int kVictim = 2;
  for (const CallKind kind : kCallKinds) {
    SCOPED_TRACE(call_kind_name(kind));
    expect_conformance(
        GetParam(), [kind](const EngineRank& self) { check_death(self, kVictim, kind); }, kVictim);
  }
}

INSTANTIATE_TEST_SUITE_P(Engines, EngineConformance, testing::Values("inline", "helping"),
                         [](const auto& engine) { return std::string(engine.param); });

}  // namespace
}  // namespace unisono::harness::engine_test
