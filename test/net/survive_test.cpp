// SPDX-License-Identifier: BSD-3-Clause
// Jobs of several hosts that lose ranks, hosts and links. The others get an error that names the
// lost ranks, shrink their communicator and continue with right results. A rank that was only cut
// off or stopped gets an error that says so.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/descriptor.hpp"
#include "net/host_ranks.hpp"

namespace unisono::harness::survive_test {
namespace {

// In a test with this limit an event reports the loss: no rank is silent for so long.
const Environment kNobodyIsSilent = {{"UNISONO_DETECT_TIMEOUT_HOSTS", "1h"}};

class HostsSurvive : public HostsTest {};

// This host's link.
void set_link(bool up) {
  const base::Descriptor any(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq link{};
  std::strcpy(link.ifr_name, "eth0");
  ASSERT_EQ(ioctl(any.get(), SIOCGIFFLAGS, &link), 0);
  const int flags = up ? link.ifr_flags | IFF_UP : link.ifr_flags & ~IFF_UP;
  link.ifr_flags = static_cast<short>(flags);
  ASSERT_EQ(ioctl(any.get(), SIOCSIFFLAGS, &link), 0);
}
void cut_link() { set_link(false); }

enum class Loss { kill, stop, cut };

void lose(Loss loss) {
  switch (loss) {
    case Loss::kill:
      raise(SIGKILL);
      break;
    case Loss::stop:
      raise(SIGSTOP);
      break;
    case Loss::cut:
      cut_link();
      break;
  }
}

// The other ranks are lost: calls return RANK_LOST and name the rank and its host, also if
// repeated. All ranks lost at once are on one host. The survivors shrink, and their sums are right.
void survive(const HostRank& self, const std::vector<int>& lost) {
  EXPECT_TRUE(failed(unisono_barrier(self.world), UNISONO_ERROR_RANK_LOST,
                     {"rank " + (lost.size() == 1 ? std::to_string(lost[0]) + " is lost" : ""),
                      "is lost (" + place_of(lost[0]) + "; "}));
  EXPECT_TRUE(failed(unisono_barrier(self.world), UNISONO_ERROR_RANK_LOST,
                     {"is lost (" + place_of(lost[0]) + "; "}));
  unisono_comm_t survivors = nullptr;
  ASSERT_TRUE(succeeded(unisono_shrink(self.world, &survivors)));
  int size = 0;
  ASSERT_TRUE(succeeded(unisono_comm_size(survivors, &size)));
  ASSERT_EQ(size, kRanks - static_cast<int>(lost.size()));
  std::int64_t expected = 0;
  for (int rank = 0; rank < kRanks; ++rank) expected += is_one_of(lost, rank) ? 0 : rank;
  for (int i = 0; i < 200; ++i) {
    const std::vector<std::int64_t> in(static_cast<std::size_t>(1 + i * 37 % 5000), self.rank);
    std::vector<std::int64_t> out(in.size());
    ASSERT_TRUE(
        succeeded(unisono_allreduce(in.data(), out.data(), static_cast<std::int64_t>(in.size()),
                                    UNISONO_INT64, UNISONO_SUM, survivors)));
    ASSERT_EQ(out.back(), expected);
  }
  EXPECT_TRUE(succeeded(unisono_comm_free(survivors)));
  leave(self);
}

void expect_survival(const TestHosts& hosts, const std::vector<int>& lost, Loss loss,
                     const Environment& environment = {}) {
  auto processes = start_job(
      hosts,
      [&lost, loss](const HostRank& self) {
        ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
        if (is_one_of(lost, self.rank)) {
          self.line.hear();
          lose(loss);
          self.line.hear();  // until the test ends
          return;
        }
        self.line.say("ready");
        survive(self, lost);
      },
      environment);
  lose_when_others_are_ready(processes, lost);
  for (int rank = 0; rank < kRanks; ++rank) {
    if (is_one_of(lost, rank)) continue;
    EXPECT_EQ(processes[static_cast<std::size_t>(rank)].wait(), 0) << "rank " << rank;
  }
}

// Its host's other rank tells.
TEST_F(HostsSurvive, ARankThatIsKilled) {
  expect_survival(hosts_, {3}, Loss::kill, kNobodyIsSilent);
}

TEST_F(HostsSurvive, TheFirstRank) { expect_survival(hosts_, {0}, Loss::kill, kNobodyIsSilent); }

// Rank 1, on the same host as rank 4, tells of its end while it calls nothing of the library.
TEST_F(HostsSurvive, ADeathIsToldToOtherHostsByARankThatComputes) {
  auto processes = start_job(
      hosts_,
      [](const HostRank& self) {
        ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
        self.line.say("ready");
        if (self.rank == 1) {
          self.line.hear();  // until the others have got the error
        } else if (self.rank == 4) {
          self.line.hear();
          lose(Loss::kill);
        }
        EXPECT_TRUE(failed(unisono_barrier(self.world), UNISONO_ERROR_RANK_LOST,
                           {"rank 4 is lost (" + place_of(4) + "; its process ended"}));
        leave(self);
      },
      kNobodyIsSilent);
  for (const HostProcess& process : processes) ASSERT_EQ(process.line().hear(), "ready");
  processes[4].line().say("die");
  for (const std::size_t rank : {0U, 2U, 3U}) EXPECT_EQ(processes[rank].wait(), 0);
  processes[1].line().say("go on");
  EXPECT_EQ(processes[1].wait(), 0);
}

// Until the file has the text; false if it ends before.
bool read_until(int file, const std::string& text) {
  std::string all;
  char c = 0;
  while (all.find(text) == std::string::npos) {
    const ssize_t count = read(file, &c, 1);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    all += c;
  }
  return true;
}

// A second at least, for only then its rank is suspected.
TEST_F(HostsSurvive, AnOutageIsWaitedThrough) {
  std::array<int, 2> log{};
  ASSERT_EQ(pipe2(log.data(), O_CLOEXEC), 0);
  const base::Descriptor reading(log[0]);
  base::Descriptor writing(log[1]);
  const auto body = [&writing](const HostRank& self) {
    // One of them logs it.
    if (host_of(self.rank) == 0) dup2(writing.get(), STDERR_FILENO);
    ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
    if (self.rank == 2) {
      set_link(false);
      self.line.say("cut off");
      self.line.hear();
      set_link(true);
      ASSERT_EQ(std::system("ip route add default dev eth0"), 0);  // as it was
    }
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
    if (host_of(self.rank) != 1) self.line.hear();  // until the log is complete
    leave(self);
  };
  auto processes = start_job(hosts_, body, kNobodyIsSilent);
  writing.reset();
  ASSERT_EQ(processes[2].line().hear(), "cut off");
  EXPECT_TRUE(read_until(reading.get(), "rank 2 (host 10.77.0.3) has not answered for "));
  processes[2].line().say("mend it");
  EXPECT_TRUE(read_until(reading.get(), "rank 2 (host 10.77.0.3) is no longer suspected"));
  for (const std::size_t rank : {0U, 2U, 3U}) processes[rank].line().say("leave");
  expect_all_clean(processes);
}

TEST_F(HostsSurvive, AllRanksOfAHost) { expect_survival(hosts_, {0, 3}, Loss::kill); }

TEST_F(HostsSurvive, AHostThatHangs) { expect_survival(hosts_, {2}, Loss::stop); }

// The second rank of its host, and the first, which is the one that goes between hosts for both;
// the other one lives.
TEST_F(HostsSurvive, ARankThatHangs) { expect_survival(hosts_, {3}, Loss::stop); }

TEST_F(HostsSurvive, TheFirstRankOfAHostHangs) { expect_survival(hosts_, {1}, Loss::stop); }

TEST_F(HostsSurvive, AllRanksOfAHostHang) { expect_survival(hosts_, {1, 4}, Loss::stop); }

TEST_F(HostsSurvive, AHostOfTwoRanksIsCutOff) { expect_survival(hosts_, {1, 4}, Loss::cut); }

TEST_F(HostsSurvive, AHostThatIsCutOff) { expect_survival(hosts_, {2}, Loss::cut); }

// Stops the process; a child of it waits for the word to continue it.
void sleep_until_told(const HostRank& self) {
  const pid_t sleeper = getpid();
  if (fork() == 0) {
    self.line.hear();
    kill(sleeper, SIGCONT);
    _exit(0);
  }
  raise(SIGSTOP);
}

// The victim sleeps while the others go on without it.
void expect_exclusion(const TestHosts& hosts, int victim) {
  auto processes = start_job(hosts, [victim](const HostRank& self) {
    ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
    unisono_comm_t survivors = nullptr;
    if (self.rank == victim) {
      self.line.hear();
      sleep_until_told(self);
      // One may find all that it needs, and be over.
      int error = UNISONO_OK;
      while (error == UNISONO_OK) error = unisono_barrier(self.world);
      EXPECT_TRUE(failed(error, UNISONO_ERROR_RANK_LOST));
      EXPECT_TRUE(failed(unisono_shrink(self.world, &survivors), UNISONO_ERROR_RANK_LOST,
                         {"taken for lost", "cannot come back"}));
      unisono_finalize(self.world);
      return;
    }
    self.line.say("ready");
    EXPECT_TRUE(failed(unisono_barrier(self.world), UNISONO_ERROR_RANK_LOST,
                       {"rank " + std::to_string(victim) + " is lost (" + place_of(victim)}));
    ASSERT_TRUE(succeeded(unisono_shrink(self.world, &survivors)));
    self.line.say("shrunk");
    self.line.hear();  // the victim has ended
    EXPECT_TRUE(succeeded(unisono_barrier(survivors)));
    leave(self);
  });
  lose_when_others_are_ready(processes, {victim});
  for (int rank = 0; rank < kRanks; ++rank) {
    if (rank == victim) continue;
    EXPECT_EQ(processes[static_cast<std::size_t>(rank)].line().hear(), "shrunk");
  }
  processes[static_cast<std::size_t>(victim)].line().say("wake up");
  EXPECT_EQ(processes[static_cast<std::size_t>(victim)].wait(), 0);
  for (int rank = 0; rank < kRanks; ++rank) {
    if (rank != victim) processes[static_cast<std::size_t>(rank)].line().say("go on");
  }
  for (int rank = 0; rank < kRanks; ++rank) {
    if (rank == victim) continue;
    EXPECT_EQ(processes[static_cast<std::size_t>(rank)].wait(), 0) << "rank " << rank;
  }
}

TEST_F(HostsSurvive, WhoComesBackIsToldThatItIsOut) { expect_exclusion(hosts_, 2); }

// Rank 3 lives on the same host, and rank 0 would be the first.
TEST_F(HostsSurvive, WhoComesBackToAHostThatGoesOn) { expect_exclusion(hosts_, 0); }

// Rank 2 is alone; it cannot know whether the others live.
TEST_F(HostsSurvive, WhoIsCutOffDoesNotGoOn) {
  auto processes = start_job(hosts_, [](const HostRank& self) {
    ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
    if (self.rank != 2) {
      self.line.say("ready");
      return survive(self, {2});
    }
    self.line.hear();
    cut_link();
    EXPECT_TRUE(
        failed(unisono_barrier(self.world), UNISONO_ERROR_RANK_LOST, {"is lost (host 10.77.0."}));
    unisono_comm_t survivors = nullptr;
    EXPECT_TRUE(failed(unisono_shrink(self.world, &survivors), UNISONO_ERROR_RANK_LOST,
                       {"(" + place_of(0) + ")", "(" + place_of(1) + ")", "too many hosts"}));
    unisono_finalize(self.world);
  });
  lose_when_others_are_ready(processes, {2});
  expect_all_clean(processes);
}

// ---- query -------------------------------------------------------------------------------------

// While the others compute and do not call anything, rank 0 sees how far they are.
TEST_F(HostsSurvive, AQueryIsAnsweredByRanksThatCompute) {
  auto processes = start_job(hosts_, [](const HostRank& self) {
    ASSERT_TRUE(succeeded(unisono_publish(self.world, self.rank == 0 ? 3 : 1)));
    ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
    if (self.rank == 0) {
      int holds = 0;
      EXPECT_TRUE(succeeded(unisono_query(self.world, UNISONO_GREATER_EQUAL, 1, &holds)));
      EXPECT_EQ(holds, 1);
      EXPECT_TRUE(succeeded(unisono_query(self.world, UNISONO_GREATER_EQUAL, 2, &holds)));
      EXPECT_EQ(holds, 0);
      unisono_request_t request = nullptr;  // a query may come in between
      ASSERT_TRUE(succeeded(unisono_barrier_start(self.world, &request)));
      EXPECT_TRUE(succeeded(unisono_query(self.world, UNISONO_LESS, 4, &holds)));
      EXPECT_EQ(holds, 1);
      self.line.say("seen");
      ASSERT_TRUE(succeeded(unisono_wait(&request)));
      holds = 0;
      while (holds == 0) {
        ASSERT_TRUE(succeeded(unisono_query(self.world, UNISONO_EQUAL, 3, &holds)));
      }
    } else {
      self.line.hear();  // no call of the library
      ASSERT_TRUE(succeeded(unisono_publish(self.world, 3)));
      ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
    }
    ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
    leave(self);
  });
  EXPECT_EQ(processes[0].line().hear(), "seen");
  for (const std::size_t rank : {1U, 2U, 3U, 4U}) processes[rank].line().say("compute");
  expect_all_clean(processes);
}

// Each of them says "told", and then waits for a word.
void let_others_leave_once_told(std::vector<HostProcess>& processes, int victim) {
  for (int rank = 0; rank < kRanks; ++rank) {
    if (rank == victim) continue;
    EXPECT_EQ(processes[static_cast<std::size_t>(rank)].line().hear(), "told");
  }
  for (int rank = 0; rank < kRanks; ++rank) {
    if (rank == victim) continue;
    processes[static_cast<std::size_t>(rank)].line().say("leave");
    EXPECT_EQ(processes[static_cast<std::size_t>(rank)].wait(), 0) << "rank " << rank;
  }
}

bool is_lost(unisono_comm_t comm, int rank) {
  unisono_rank_state_t state{};
  state.size = sizeof state;
  EXPECT_TRUE(succeeded(unisono_comm_rank_state(comm, rank, &state)));
  if (state.state == UNISONO_RANK_PRESENT) return false;
  EXPECT_EQ(state.state, UNISONO_RANK_LOST);
  const std::string begin = "rank " + std::to_string(rank) + " is lost (" + place_of(rank);
  EXPECT_EQ(std::string(state.why).substr(0, begin.size()), begin);
  return true;
}

// Nothing but the state is asked for.
void expect_state_is_lost(const TestHosts& hosts, int victim, Loss loss,
                          const Environment& environment = {}) {
  auto processes = start_job(
      hosts,
      [victim, loss](const HostRank& self) {
        for (int rank = 0; rank < kRanks; ++rank) EXPECT_FALSE(is_lost(self.world, rank));
        ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
        if (self.rank == victim) {
          self.line.hear();
          lose(loss);
          self.line.hear();
          return;
        }
        self.line.say("ready");
        while (!is_lost(self.world, victim)) sched_yield();
        for (int rank = 0; rank < kRanks; ++rank) {
          EXPECT_EQ(is_lost(self.world, rank), rank == victim) << rank;
        }
        self.line.say("told");
        self.line.hear();  // all are
        leave(self);
      },
      environment);
  lose_when_others_are_ready(processes, {victim});
  let_others_leave_once_told(processes, victim);
}

TEST_F(HostsSurvive, AStateTellsWhoWasKilled) {
  expect_state_is_lost(hosts_, 4, Loss::kill, kNobodyIsSilent);
}
TEST_F(HostsSurvive, AStateTellsWhoIsCutOff) { expect_state_is_lost(hosts_, 2, Loss::cut); }

// Repeats the call until it returns a loss.
void expect_heartbeat_stops(const TestHosts& hosts, int victim, Loss loss,
                            const Environment& environment = {}) {
  auto processes = start_job(
      hosts,
      [victim, loss](const HostRank& self) {
        ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
        int holds = 0;
        ASSERT_TRUE(succeeded(unisono_query(self.world, UNISONO_EQUAL, 0, &holds)));
        ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
        if (self.rank == victim) {
          self.line.hear();
          lose(loss);
          self.line.hear();
          return;
        }
        self.line.say("ready");
        const std::int64_t before = base::now_ns();
        int error = UNISONO_OK;
        while (error == UNISONO_OK) error = unisono_query(self.world, UNISONO_EQUAL, 0, &holds);
        std::printf("             rank %d knew after %.0f ms\n", self.rank,
                    static_cast<double>(base::now_ns() - before) / 1e6);
        EXPECT_TRUE(failed(error, UNISONO_ERROR_RANK_LOST,
                           {"rank " + std::to_string(victim) + " is lost (" + place_of(victim)}));
        self.line.say("told");
        self.line.hear();  // all are
        leave(self);
      },
      environment);
  lose_when_others_are_ready(processes, {victim});
  let_others_leave_once_told(processes, victim);
}

TEST_F(HostsSurvive, AQueryNamesWhoWasKilled) {
  expect_heartbeat_stops(hosts_, 4, Loss::kill, kNobodyIsSilent);
}
TEST_F(HostsSurvive, AQueryNamesWhoHangs) { expect_heartbeat_stops(hosts_, 2, Loss::stop); }
TEST_F(HostsSurvive, AQueryNamesWhoHangsBesideOthers) {
  expect_heartbeat_stops(hosts_, 3, Loss::stop);
}
TEST_F(HostsSurvive, AQueryNamesWhoIsCutOff) { expect_heartbeat_stops(hosts_, 2, Loss::cut); }

}  // namespace
}  // namespace unisono::harness::survive_test
