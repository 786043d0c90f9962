// SPDX-License-Identifier: BSD-3-Clause
// Long messages that the kernel has not taken, while the rank's thread makes no call. Here the
// answering thread leaves the datagrams alone for an hour, so only an order ends its rest.
#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/descriptor.hpp"
#include "network/network.hpp"
#include "transport/virtual/datagrams.hpp"

namespace unisono::network::transfers_test {
namespace {

constexpr std::int64_t kHour = 3600 * base::kSecond;
constexpr std::size_t kLong = 1024;

// Takes every message, and ends none. It counts how often somebody looks after them.
class StalledMemory final : public transport::RemoteMemory {
 public:
  std::string_view name() const override { return "stalled"; }
  const transport::RegionCard& card() const override { return card_; }
  base::Status meet(int, const transport::RegionCard&) override { return base::success(); }
  bool raises_flags() const override { return true; }
  bool write(const transport::Transfer&) override {
    begun = 1;
    return true;
  }
  bool read(const transport::Transfer&) override { return false; }
  std::size_t poll(std::span<transport::Completion>) override {
    ++polls;
    polls.notify_all();
    return 0;
  }
  std::size_t under_way() const override { return begun; }
  std::uint64_t moved(int) const override { return 0; }
  int descriptor() const override { return event_.get(); }
  bool may_sleep() override { return !has_room; }
  const std::string& error_of(int) const override { return error_; }

  std::size_t begun = 0;               // under the network's mutex
  std::atomic<bool> has_room = false;  // the kernel would take more: the next turn is at once
  std::atomic<int> polls = 0;

 private:
  base::Descriptor event_{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  transport::RegionCard card_;
  std::string error_;
};

// Rank 0 of two hosts. Nobody carries on the other one.
class Transfers : public testing::Test {
 protected:
  Transfers() : datagrams_(2, {.joins = true}), region_(kLong) {
    reliable::ReliableOptions options;
    options.key = wire::key_of("test");
    options.ranks = 2;
    options.region = reinterpret_cast<std::byte*>(region_.data());
    options.region_bytes = region_.size() * sizeof region_[0];
    options.now_ns = base::now_ns;
    network_ = std::make_unique<Network>(
        std::make_unique<reliable::Reliable>(datagrams_.attach(0), options));
    auto memory = std::make_unique<StalledMemory>();
    memory_ = memory.get();
    reliable::BulkOptions bulk;
    bulk.ranks = 2;
    bulk.region = options.region;
    bulk.from_bytes = kLong;
    EXPECT_TRUE(network_->use_bulk(std::move(memory), bulk).ok());
  }

  void start() {
    network_->agent().note_look();  // so that the thread begins with a rest
    ASSERT_TRUE(network_->agent().start(
        {.heard = [](bool) { return false; }, .someone_died = [] {}, .leave_ns = kHour}));
  }
  void put_long_message() {
    std::byte* const region = reinterpret_cast<std::byte*>(region_.data());
    network_->put({.target = 1,
                   .source = region,
                   .place = region,
                   .bytes = kLong,
                   .flag = region_.data() + kLong / sizeof region_[0],
                   .flag_value = 1});
  }
  // As a wait does. When it is over, the answering thread still rests for long.
  void sleep_until_thread_rests() {
    AnsweringThread& agent = network_->agent();
    const base::Descriptor end(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    const int sleeper = agent.announce();
    std::thread waker([&] {
      while (agent.rests_until_ns() < base::now_ns() + kHour / 2) std::this_thread::yield();
      eventfd_write(end.get(), 1);
    });
    while (agent.sleep(sleeper, kHour, {.first = end.get()}) != AnsweringThread::Woken::by_other) {
    }
    waker.join();
    agent.withdraw(sleeper);
    memory_->has_room = true;
  }

 private:
  transport::VirtualDatagramNetwork datagrams_;
  std::vector<std::uint64_t> region_;

 protected:
  std::unique_ptr<Network> network_;
  StalledMemory* memory_ = nullptr;
};

TEST_F(Transfers, GoOnAfterAWaitInWhichTheRankSlept) {
  put_long_message();
  start();
  sleep_until_thread_rests();
  const int polls = memory_->polls;
  network_->agent().note_transfers();
  memory_->polls.wait(polls);
  EXPECT_GT(memory_->polls, polls);
}

TEST_F(Transfers, GoOnWhereOneBeginsAfterTheWait) {
  start();
  sleep_until_thread_rests();
  const int polls = memory_->polls;
  put_long_message();
  memory_->polls.wait(polls);
  EXPECT_GT(memory_->polls, polls);
}

}  // namespace
}  // namespace unisono::network::transfers_test
