// SPDX-License-Identifier: BSD-3-Clause
#include "network/network.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "transport/virtual/datagrams.hpp"

namespace unisono::network::network_test {
namespace {

constexpr std::size_t kRegion = 1 << 20;
constexpr int kThreads = 3;
constexpr std::size_t kMessages = 100;
constexpr std::size_t kPieces = 5;

class TwoHosts {
 public:
  TwoHosts() : network_(2, options()) {
    for (int rank = 0; rank < 2; ++rank) {
      regions_[rank].resize(kRegion / 8);
      reliable::ReliableOptions reliable;
      reliable.key = wire::key_of("test");
      reliable.ranks = 2;
      reliable.region = region(rank);
      reliable.region_bytes = kRegion;
      reliable.now_ns = [this] { return network_.now_ns(); };
      ranks_.push_back(std::make_unique<Network>(
          std::make_unique<reliable::Reliable>(network_.attach(rank), reliable)));
    }
  }

  Network& at(int rank) { return *ranks_[static_cast<std::size_t>(rank)]; }
  std::byte* region(int rank) { return reinterpret_cast<std::byte*>(regions_[rank].data()); }
  std::uint64_t word(int rank, std::size_t number) { return regions_[rank][number]; }
  void step() {
    at(0).progress();
    at(1).progress();
    if (!network_.advance()) network_.advance_to(network_.now_ns() + 100'000);
  }

 private:
  static transport::VirtualDatagramOptions options() {
    transport::VirtualDatagramOptions options;
    options.reorder = true;
    options.loss = 0.05;
    return options;
  }

  std::array<std::vector<std::uint64_t>, 2> regions_;
  transport::VirtualDatagramNetwork network_;
  std::vector<std::unique_ptr<Network>> ranks_;
};

// A message's words: its pieces, then its flag.
std::size_t first_word(int thread, std::size_t message) {
  return (static_cast<std::size_t>(thread) * kMessages + message) * (kPieces + 1);
}

void send_all(TwoHosts& hosts, int thread) {
  const std::uint64_t value = 1;
  for (std::size_t m = 0; m < kMessages; ++m) {
    std::byte* const place = hosts.region(0) + first_word(thread, m) * 8;
    for (std::size_t p = 0; p < kPieces; ++p) {
      hosts.at(0).put({.target = 1,
                       .source = reinterpret_cast<const std::byte*>(&value),
                       .place = place + p * 8,
                       .bytes = sizeof value});
      std::this_thread::yield();  // here the others would come between
    }
    hosts.at(0).put({.target = 1,
                     .flag = reinterpret_cast<std::uint64_t*>(place + kPieces * 8),
                     .flag_value = value});
  }
}

// The number of messages with a raised flag; a missing piece is then a failure.
std::size_t whole_messages(TwoHosts& hosts) {
  std::size_t whole = 0;
  for (int t = 0; t < kThreads; ++t) {
    for (std::size_t m = 0; m < kMessages; ++m) {
      const std::size_t first = first_word(t, m);
      if (hosts.word(1, first + kPieces) == 0) continue;
      ++whole;
      for (std::size_t p = 0; p < kPieces; ++p) EXPECT_EQ(hosts.word(1, first + p), 1U);
    }
  }
  return whole;
}

TEST(Network, AMessageOfSeveralPutsStaysWholeBetweenThreads) {
  TwoHosts hosts;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) threads.emplace_back([&hosts, t] { send_all(hosts, t); });
  for (std::thread& thread : threads) thread.join();
  constexpr std::size_t kAll = kThreads * kMessages;
  std::size_t whole = 0;
  for (int steps = 0; steps < 100'000 && whole < kAll && !testing::Test::HasFailure(); ++steps) {
    hosts.at(1).awaits(0);
    hosts.step();
    whole = whole_messages(hosts);
  }
  EXPECT_EQ(whole, kAll);
}

// Standard input is at its end as long as it lasts, as with /dev/null.
class InputAtItsEnd {
 public:
  InputAtItsEnd() {
    const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    EXPECT_EQ(dup2(null, STDIN_FILENO), STDIN_FILENO);
    close(null);
  }
  ~InputAtItsEnd() {
    if (before_ < 0) {
      close(STDIN_FILENO);
    } else {
      dup2(before_, STDIN_FILENO);
      close(before_);
    }
  }

 private:
  const int before_ = dup(STDIN_FILENO);
};

// Each turn sleeps for a millisecond: a busy machine makes fewer turns, and none makes more.
TEST(Network, SettlingSleepsBetweenItsTurnsWhateverStandardInputIs) {
  const InputAtItsEnd input;
  constexpr int kMilliseconds = 20;
  TwoHosts hosts;
  std::uint64_t value = 1;
  hosts.at(0).put({.target = 1,
                   .flag = reinterpret_cast<std::uint64_t*>(hosts.region(0)),
                   .flag_value = value});
  int turns = 0;
  const bool settled = hosts.at(0).settle(kMilliseconds * base::kMillisecond, [&turns](int rank) {
    turns += rank == 0 ? 1 : 0;
    return std::nullopt;
  });
  EXPECT_FALSE(settled) << "nobody has carried the other rank on";
  EXPECT_LE(turns, kMilliseconds + 2);
}

}  // namespace
}  // namespace unisono::network::network_test
