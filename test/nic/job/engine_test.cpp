// SPDX-License-Identifier: BSD-3-Clause
// The engine of the NIC path passes the conformance suite of engines (harness/engine_conformance),
// as the inline and the helping engine do in test/process/engine_test.cpp. So split-phase and
// persistent calls take the NIC path like blocking ones.
#include <functional>

#include "harness/engine_conformance.hpp"
#include "nic/job/nic_job.hpp"

namespace unisono::harness::engine_test {
namespace {

class NicEngineConformance : public NicJob {
 protected:
  void expect_conformance(const std::function<void(const EngineRank&)>& check, int victim = -1) {
    start_daemons();
    auto processes = start_job([&check](const NicRank& self) {
      check({self.rank, self.ranks, self.world, "nic"});
      leave(self);
    });
    expect_all_clean(processes, victim);
    EXPECT_GT(operations(), 0U);
  }
};

TEST_F(NicEngineConformance, EachKindOfCallIsRight) { expect_conformance(check_kinds); }
TEST_F(NicEngineConformance, ManyOperationsAtOnceKeepOneOrder) { expect_conformance(check_order); }
TEST_F(NicEngineConformance, CallsThatDifferAreAnErrorForAll) {
  expect_conformance(check_mismatch);
}
TEST_F(NicEngineConformance, ACancellationIsAnErrorForAll) { expect_conformance(check_cancel); }
TEST_F(NicEngineConformance, ADeathIsNamedAndSurvived) {
  constexpr int kVictim = 2;
  for (const CallKind kind : kCallKinds) {
    SCOPED_TRACE(call_kind_name(kind));
    expect_conformance([kind](const EngineRank& self) { check_death(self, kVictim, kind); },
                       kVictim);
  }
}

}  // namespace
}  // namespace unisono::harness::engine_test
