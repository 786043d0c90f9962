// SPDX-License-Identifier: BSD-3-Clause
// bootstrap with few file descriptors: the limit is raised if possible, other hosts need one
// connection each, and if neither helps the error says what to do.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bootstrap/rendezvous/acceptor.hpp"
#include "bootstrap/rendezvous/descriptor_limit.hpp"
#include "bootstrap/rendezvous/rendezvous.hpp"
#include "unit/bootstrap/raw_rank.hpp"
#include "unit/bootstrap/served_rendezvous.hpp"

namespace unisono::bootstrap::descriptors_test {
namespace {

using base::Code;
using base::kSecond;
using test::expect_text;
using test::hello_from;
using test::host_of;
using test::kKey;
using test::RawRank;

void limit_descriptors(rlim_t soft, rlim_t hard) {
  const rlimit limit{soft, hard};
  EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

rlim_t soft_limit() {
  rlimit limit{};
  EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  return limit.rlim_cur;
}

// Runs in a process of its own, whose limits it may change.
class Child {
 public:
  explicit Child(const std::function<void()>& body) : pid_(fork()) {
    if (pid_ != 0) return;
    body();
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int wait() const {
    int status = 0;
    waitpid(pid_, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t pid_;
};

TEST(BootstrapDescriptors, TheLimitIsRaisedAndSetBack) {
  const Child child([] {
    limit_descriptors(128, 1024);
    {
      DescriptorLimit limit(500);
      limit.keep_room_beyond(20);
      EXPECT_EQ(soft_limit(), 128U) << "there is room";
      limit.keep_room_beyond(100);
      EXPECT_GE(soft_limit(), 628U);
      EXPECT_LT(soft_limit(), 1024U);
      EXPECT_TRUE(limit.raise());
      EXPECT_EQ(soft_limit(), 1024U) << "the hard limit";
      EXPECT_FALSE(limit.raise());
      limit.leave_open(3);
    }
    EXPECT_EQ(soft_limit(), 131U);
    {
      DescriptorLimit limit(500);
      EXPECT_TRUE(limit.raise());
      limit_descriptors(800, 1024);
    }
    EXPECT_EQ(soft_limit(), 800U) << "a limit that other code has set stays";
  });
  EXPECT_EQ(child.wait(), 0);
}

// Serves in a child with limits of its own, and tells its address.
class LimitedHost {
 public:
  LimitedHost(int ranks, const std::string& address, rlim_t soft, rlim_t hard) {
    EXPECT_EQ(pipe(ends_.data()), 0);
    child_ = std::make_unique<Child>([&] { serve(ranks, address, soft, hard); });
    close(ends_[1]);
    std::array<char, 128> text{};
    const ssize_t length = read(ends_[0], text.data(), text.size());
    EXPECT_GT(length, 0);
    address_ = *parse_address(std::string(text.data(), static_cast<std::size_t>(length)));
    close(ends_[0]);
  }
  const Address& address() const { return address_; }
  int wait() const { return child_->wait(); }

 private:
  // Exits with 2 if it has failed for lack of descriptors.
  void serve(int ranks, const std::string& address, rlim_t soft, rlim_t hard) const {
    limit_descriptors(soft, hard);
    Rendezvous::Options options;
    options.ranks = ranks;
    if (!address.empty()) options.address = *parse_address(address);
    options.key = kKey;
    options.memory_bytes = 1 << 20;
    options.timeout_ns = 60 * kSecond;
    auto server = Rendezvous::open(options);
    ASSERT_TRUE(server.ok()) << server.error().message;
    const std::string told = (*server)->address();
    ASSERT_EQ(write(ends_[1], told.data(), told.size()), static_cast<ssize_t>(told.size()));
    const base::Status served = (*server)->serve(base::now_ns() + 60 * kSecond);
    if (!served.ok() && served.error().code == Code::resources) _exit(2);
    EXPECT_TRUE(served.ok()) << served.error().message;
    const auto left_open = (*server)->release_connections();
    server->reset();
    EXPECT_EQ(soft_limit(), soft == hard ? hard : soft + left_open.size());
  }

  std::array<int, 2> ends_{};
  std::unique_ptr<Child> child_;
  Address address_;
};

TEST(BootstrapDescriptors, MoreRanksThanDescriptorsJoinIfTheLimitCanBeRaised) {
  constexpr std::uint32_t kRanks = 100;
  const LimitedHost host(kRanks, "", 40, 512);
  std::vector<std::unique_ptr<RawRank>> ranks;
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    ranks.push_back(
        std::make_unique<RawRank>(host.address(), hello_from(*own_host_id(), rank, kRanks)));
  }
  for (const auto& rank : ranks) EXPECT_EQ(rank->receive<Welcome>().members.size(), kRanks);
  EXPECT_EQ(host.wait(), 0);
}

// All connect before the first sends its Hello.
TEST(BootstrapDescriptors, RanksOfFewOtherHostsNeedFewDescriptors) {
  constexpr std::uint32_t kRanks = 100;
  constexpr std::uint32_t kHosts = 3;
  const LimitedHost host(kRanks, "tcp:127.0.0.1:0", 40, 40);
  std::vector<base::Descriptor> connections;
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    connections.push_back(RawRank::connect_to(host.address()));
  }
  std::vector<std::unique_ptr<RawRank>> relays;
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    const Hello hello = hello_from(host_of(static_cast<char>('a' + rank % kHosts)), rank, kRanks);
    auto raw = std::make_unique<RawRank>(std::move(connections[rank]), hello);
    if (rank < kHosts) {
      relays.push_back(std::move(raw));
      continue;
    }
    EXPECT_EQ(raw->receive<Redirect>().relay, rank % kHosts);
    relays[rank % kHosts]->send(hello);
  }
  for (const auto& relay : relays) EXPECT_EQ(relay->receive<Welcome>().hosts, kHosts);
  EXPECT_EQ(host.wait(), 0);
}

// Silent connections that hold all descriptors are dropped after a while.
TEST(BootstrapDescriptors, SilentConnectionsDoNotKeepARankOut) {
  const LimitedHost host(1, "", 24, 24);
  std::vector<base::Descriptor> silent;
  for (int i = 0; i < 40; ++i) silent.push_back(RawRank::connect_to(host.address()));
  JobDescription job;
  job.address = host.address();
  job.address_given = true;
  job.key = kKey;
  const auto info = join(job, test::settings_with("60s"));
  EXPECT_TRUE(info.ok()) << info.error().message;
  EXPECT_EQ(host.wait(), 0);
}

TEST(BootstrapDescriptors, ALimitThatCannotBeRaisedIsNamed) {
  constexpr std::uint32_t kRanks = 100;
  const LimitedHost host(kRanks, "", 40, 40);
  std::vector<base::Descriptor> connections;
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    connections.push_back(RawRank::connect_to(host.address()));
  }
  // All accepted ones send Hello; then no connection is about to end.
  std::vector<std::unique_ptr<RawRank>> ranks;
  for (base::Descriptor& connection : connections) {
    pollfd waiting[] = {{connection.get(), POLLIN, 0},
                        {ranks.empty() ? -1 : ranks.front()->descriptor(), POLLIN, 0}};
    ASSERT_GT(poll(waiting, 2, 30000), 0);
    if (waiting[1].revents != 0) break;
    const auto rank = static_cast<std::uint32_t>(ranks.size());
    ranks.push_back(
        std::make_unique<RawRank>(std::move(connection), hello_from(*own_host_id(), rank, kRanks)));
  }
  EXPECT_GT(ranks.size(), 10U);
  const auto refused = ranks.front()->receive<Refused>();
  expect_text(refused, Code::resources, "raise the limit (ulimit -n), which is 40 at most");
  EXPECT_EQ(host.wait(), 2);
}

}  // namespace
}  // namespace unisono::bootstrap::descriptors_test
