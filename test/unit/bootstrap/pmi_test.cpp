// SPDX-License-Identifier: BSD-3-Clause
// bootstrap/launchers: PMI's wire protocol, and its client with a launcher of this test's own that
// behaves like hydra. pmix_store.cpp needs a real launcher: net/launcher_test.py.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/descriptor.hpp"
#include "bootstrap/launchers/pmi_line.hpp"
#include "bootstrap/launchers/pmi_store.hpp"
#include "bootstrap/launchers/stores.hpp"
#include "harness/scale.hpp"
#include "unit/bootstrap/fake_launcher.hpp"

namespace unisono::bootstrap::pmi_test {
namespace {

using base::Code;
using base::Descriptor;
using test::FakeLauncher;

TEST(PmiLine, CommandAndValues) {
  const auto line = parse_pmi_line("cmd=get_result rc=0 msg=success value=tcp:1=2");
  ASSERT_TRUE(line.ok());
  EXPECT_EQ(line->command, "get_result");
  EXPECT_EQ(line->value("rc"), "0");
  EXPECT_EQ(line->value("value"), "tcp:1=2");
  EXPECT_EQ(line->value("none"), "");
}

TEST(PmiLine, WordsThatAreNoAssignmentAreIgnored) {
  const auto line = parse_pmi_line("  cmd=put_result rc=-1 msg=not a =key");
  ASSERT_TRUE(line.ok());
  EXPECT_EQ(line->value("msg"), "not");
  EXPECT_EQ(line->values.size(), 2U);
}

TEST(PmiLine, OtherTextsAreErrors) {
  for (const std::string& text :
       {std::string(), std::string("rc=0"), std::string("cmd="), std::string("cmd=a\tb"),
        std::string("cmd=a\0b", 7), "cmd=" + std::string(PmiLine::kMostBytes, 'x')}) {
    const auto line = parse_pmi_line(text);
    ASSERT_FALSE(line.ok()) << text;
    EXPECT_EQ(line.error().code, Code::state);
  }
}

TEST(PmiLine, ARoundTripChangesNothing) {
  const std::string text = pmi_line("put", {{"key", "a"}, {"value", "b=c"}});
  EXPECT_EQ(text, "cmd=put key=a value=b=c\n");
  EXPECT_EQ(parse_pmi_line(std::string_view(text).substr(0, text.size() - 1))->value("value"),
            "b=c");
}

TEST(PmiStore, AllRanksReadAValueAfterAFence) {
  constexpr int kRanks = 3;
  FakeLauncher launcher(kRanks);
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < kRanks; ++rank) {
    ranks.emplace_back([&, rank] {
      const auto store = open_store(launcher.options(rank));
      ASSERT_TRUE(store.ok()) << store.error().message;
      ASSERT_TRUE((*store)->put("host", "value-of-" + std::to_string(rank)).ok());
      ASSERT_TRUE((*store)->fence().ok());
      for (int other = 0; other < kRanks; ++other) {
        const auto value = (*store)->get(other, "host");
        ASSERT_TRUE(value.ok()) << value.error().message;
        EXPECT_EQ(*value, "value-of-" + std::to_string(other));
      }
      const auto missing = (*store)->get(0, "address");
      ASSERT_FALSE(missing.ok());
      EXPECT_NE(missing.error().message.find("_not_found"), std::string::npos)
          << missing.error().message;
    });
  }
  for (std::thread& rank : ranks) rank.join();
  EXPECT_EQ(launcher.finalized(), kRanks);
}

TEST(PmiStore, WithAnMpiLibraryItNeitherInitializesNorFinalizes) {
  FakeLauncher launcher(1);
  {
    const auto store = PmiStore::open(launcher.options(0), true);
    ASSERT_TRUE(store.ok()) << store.error().message;
    EXPECT_TRUE((*store)->fence().ok());
  }
  EXPECT_EQ(launcher.finalized(), 0);
}

// The handler at the end of the process is the rank's, and not that of a child that it has forked.
TEST(PmiStore, TheExitOfAForkedChildDoesNotFinalize) {
  FakeLauncher launcher(1);
  ASSERT_TRUE(PmiStore::open(launcher.options(0), true).ok());
  const pid_t child = fork();
  if (child == 0) {
    // A sanitizer's handler would look for leaks, without the stacks of the parent's threads.
    if (harness::kSanitized) _exit(0);
    exit(0);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(launcher.finalized(), 0);
}

TEST(PmiStore, AFenceWithoutTheOtherRanksTimesOut) {
  FakeLauncher launcher(2);
  StoreOptions options = launcher.options(1);
  const auto store = open_store(options);
  ASSERT_TRUE(store.ok());
  options.timeout_ns = 10 * base::kMillisecond;
  const auto impatient = PmiStore::open(options, true);
  ASSERT_TRUE(impatient.ok());
  const auto status = (*impatient)->fence();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Code::timeout);
  EXPECT_NE(status.error().message.find("have all ranks called unisono_init?"), std::string::npos);
}

// One end of a connection whose other end has sent `text` and perhaps closed its side.
struct Mute {
  Mute(std::string_view text, bool closes) {
    std::array<int, 2> ends{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    other.reset(ends[0]);
    own.reset(ends[1]);
    EXPECT_EQ(send(ends[0], text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
    if (closes) shutdown(ends[0], SHUT_WR);
  }
  base::Error error() const {
    const auto store = open_store({.kind = StoreKind::pmi,
                                   .descriptor = own.get(),
                                   .rank = 0,
                                   .ranks = 1,
                                   .timeout_ns = 10 * base::kMillisecond});
    EXPECT_FALSE(store.ok());
    return store.ok() ? base::Error{} : store.error();
  }
  Descriptor own, other;
};

TEST(PmiStore, OtherProtocolsAreErrors) {
  EXPECT_EQ(Mute("", false).error().code, Code::timeout);
  EXPECT_EQ(Mute("", true).error().code, Code::rank_lost);
  EXPECT_EQ(Mute("hello\n", false).error().code, Code::state);
  EXPECT_EQ(Mute("cmd=my_kvsname kvsname=a\n", false).error().code, Code::state);
  EXPECT_EQ(Mute("cmd=response_to_init rc=-1 msg=no\n", false).error().code, Code::state);
  EXPECT_EQ(Mute("cmd=response_to_init rc=0 pmi_version=2\n", false).error().code,
            Code::unsupported);
  EXPECT_EQ(Mute(std::string(3 * PmiLine::kMostBytes, 'x'), false).error().code, Code::state);
}

TEST(PmiStore, ALauncherThatReadsNothingTimesOut) {
  const Mute launcher("", false);
  const std::string junk(1 << 16, 'x');
  while (send(launcher.own.get(), junk.data(), junk.size(), MSG_DONTWAIT) > 0) {
  }
  ASSERT_EQ(errno, EAGAIN);
  const base::Error error = launcher.error();
  EXPECT_EQ(error.code, Code::timeout);
  EXPECT_NE(error.message.find("it has read nothing for 10ms"), std::string::npos) << error.message;
}

TEST(PmiStore, AnErrorNamesADescriptorThatIsNoSocket) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  const Descriptor reader(ends[0]), writer(ends[1]);
  const auto store = open_store({.kind = StoreKind::pmi, .descriptor = ends[1], .ranks = 1});
  ASSERT_FALSE(store.ok());
  EXPECT_EQ(store.error().code, Code::unsupported);
  EXPECT_NE(store.error().message.find("PMI_FD="), std::string::npos) << store.error().message;
}

TEST(KeyValueStore, NoneIsUnsupported) {
  const auto store = open_store({});
  ASSERT_FALSE(store.ok());
  EXPECT_EQ(store.error().code, Code::unsupported);
}

}  // namespace
}  // namespace unisono::bootstrap::pmi_test
