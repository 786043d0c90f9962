// SPDX-License-Identifier: BSD-3-Clause
// A rank of a job of several hosts that is lost after the rendezvous and before the job has begun:
// unisono_init of all others names it and says how it was lost. The deadline of the start lies
// behind this test's own guard, so none of them waits for it.
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "harness/start_by_hand.hpp"
#include "net/host_ranks.hpp"

namespace unisono::harness::start_test {
namespace {

constexpr const char* kEnded = "its process ended without finalize";
constexpr const char* kSilent = "it does not answer";

class HostsStart : public HostsTest {};

enum class Moment { before_it_is_present, before_all_confirm };

struct LossAtStart {
  int victim = 0;
  Moment moment = Moment::before_it_is_present;
  int signal = SIGKILL;  // 0: it exits
  std::string how;
  std::string silence = "1h";  // UNISONO_DETECT_TIMEOUT_HOSTS
};

void be_lost(const LossAtStart& loss) {
  StartByHand start;
  ASSERT_NO_FATAL_FAILURE(start.meet());
  if (loss.moment == Moment::before_all_confirm) {
    const base::Status entered = start.enter();
    ASSERT_TRUE(entered.ok()) << entered.error().message;
  }
  if (loss.signal == 0) _exit(0);
  raise(loss.signal);
  FAIL() << "goes on";
}

void expect_all_to_name(const TestHosts& hosts, const LossAtStart& loss) {
  SCOPED_TRACE(loss.victim);
  std::vector<HostProcess> processes;
  for (int rank = 0; rank < kRanks; ++rank) {
    processes.push_back(hosts.start(host_of(rank), [rank, &loss](const Line&) {
      set_environment(rank);
      setenv("UNISONO_START_TIMEOUT", "1h", 1);
      setenv("UNISONO_DETECT_TIMEOUT_HOSTS", loss.silence.c_str(), 1);
      if (rank == loss.victim) return be_lost(loss);
      unisono_comm_t world = nullptr;
      EXPECT_TRUE(failed(unisono_init(&world), UNISONO_ERROR_RANK_LOST,
                         {"unisono_init", "rank " + std::to_string(loss.victim) + " is lost (" +
                                              place_of(loss.victim) + "; " + loss.how,
                          "the job cannot start"}));
    }));
  }
  for (int rank = 0; rank < kRanks; ++rank) {
    if (rank == loss.victim) continue;
    EXPECT_EQ(processes[static_cast<std::size_t>(rank)].wait(), 0) << "rank " << rank;
  }
}

// Another rank of its host sees its end, and tells the other hosts: nobody waits for silence.
TEST_F(HostsStart, ARankThatIsKilledBeforeItIsPresentIsNamedOnAllHosts) {
  for (const int victim : {4, 1, 3, 0}) {
    expect_all_to_name(hosts_, {.victim = victim, .how = kEnded});
  }
}

TEST_F(HostsStart, ARankThatIsKilledBeforeAllConfirmIsNamedOnAllHosts) {
  for (const int victim : {4, 1, 3, 0}) {
    expect_all_to_name(
        hosts_, {.victim = victim, .moment = Moment::before_all_confirm, .how = kEnded});
  }
}

TEST_F(HostsStart, ARankThatExitsIsNamedOnAllHosts) {
  expect_all_to_name(hosts_, {.victim = 1, .signal = 0, .how = kEnded});
}

// The only rank of its host. The others cannot know whether its process has ended.
TEST_F(HostsStart, AHostThatDoesNotAnswerIsNotSaidToHaveEnded) {
  for (const int signal : {SIGKILL, SIGSTOP}) {
    for (const Moment moment : {Moment::before_it_is_present, Moment::before_all_confirm}) {
      expect_all_to_name(hosts_, {.victim = 2,
                                  .moment = moment,
                                  .signal = signal,
                                  .how = kSilent,
                                  .silence = kDetectTimeout});
    }
  }
}

}  // namespace
}  // namespace unisono::harness::start_test
