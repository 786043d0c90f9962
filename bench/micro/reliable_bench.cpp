// SPDX-License-Identifier: BSD-3-Clause
// The cost of a put over reliable datagrams, without a network: two ranks put to each other in
// turn, and datagrams are copies in memory.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "base/clock.hpp"
#include "reliable/reliable.hpp"
#include "transport/datagrams.hpp"

namespace unisono {
namespace {

constexpr std::size_t kDatagramBytes = 1472;
constexpr std::size_t kInbox = 64;
constexpr std::size_t kRegionBytes = std::size_t{1} << 20;

// Datagrams to the one other rank.
class MemoryDatagrams final : public transport::Datagrams {
 public:
  explicit MemoryDatagrams(int rank) : rank_(rank), inbox_(kInbox) {}
  void connect(MemoryDatagrams& other) { other_ = &other; }

  const transport::DatagramLimits& limits() const override { return limits_; }
  int rank() const override { return rank_; }
  std::size_t send(std::span<const transport::Outgoing> batch) override {
    std::size_t taken = 0;
    for (; taken < batch.size() && other_->came_ < kInbox; ++taken) {
      Datagram& datagram = other_->inbox_[other_->came_++];
      const transport::Outgoing& packet = batch[taken];
      std::ranges::copy(packet.head, datagram.bytes.begin());
      std::copy(packet.body.begin(), packet.body.end(),
                datagram.bytes.begin() + static_cast<std::ptrdiff_t>(packet.head.size()));
      datagram.size = packet.head.size() + packet.body.size();
    }
    return taken;
  }
  std::size_t receive(std::span<transport::Incoming> batch) override {
    const std::size_t count = std::min(batch.size(), came_ - taken_);
    for (std::size_t i = 0; i < count; ++i) {
      Datagram& datagram = inbox_[taken_++];
      batch[i].bytes = std::span(datagram.bytes).first(datagram.size);
    }
    if (taken_ == came_) taken_ = came_ = 0;
    return count;
  }
  int descriptor() const override { return -1; }
  transport::DatagramCounts counts() const override { return {}; }

 private:
  struct Datagram {
    alignas(8) std::array<std::byte, kDatagramBytes> bytes;
    std::size_t size;
  };

  transport::DatagramLimits limits_{
      .name = "memory", .max_payload = kDatagramBytes, .batch = kInbox, .multicast = false};
  int rank_;
  MemoryDatagrams* other_ = nullptr;
  std::vector<Datagram> inbox_;
  std::size_t taken_ = 0, came_ = 0;
};

struct Rank {
  Rank(std::unique_ptr<transport::Datagrams> datagrams)
      : region(kRegionBytes / 8), reliable(std::move(datagrams), options()) {}
  reliable::ReliableOptions options() {
    reliable::ReliableOptions all;
    all.key = {1, 2};
    all.ranks = 2;
    all.region = reinterpret_cast<std::byte*>(region.data());
    all.region_bytes = kRegionBytes;
    all.now_ns = base::now_ns;
    return all;
  }
  void put(int target, std::size_t bytes, std::uint64_t value) {
    reliable.put({.target = target,
                  .source = reinterpret_cast<const std::byte*>(region.data()) + 8,
                  .place = reinterpret_cast<std::byte*>(region.data()) + 8,
                  .bytes = bytes,
                  .flag = region.data(),
                  .flag_value = value});
  }

  std::vector<std::uint64_t> region;  // its first word is the flag
  reliable::Reliable reliable;
};

// There and back.
void put(benchmark::State& state) {
  auto first = std::make_unique<MemoryDatagrams>(0);
  auto second = std::make_unique<MemoryDatagrams>(1);
  first->connect(*second);
  second->connect(*first);
  std::array<std::unique_ptr<Rank>, 2> ranks{std::make_unique<Rank>(std::move(first)),
                                             std::make_unique<Rank>(std::move(second))};
  std::uint64_t value = 0;
  for (auto turn : state) {
    static_cast<void>(turn);
    ++value;
    for (const int target : {1, 0}) {
      ranks[static_cast<std::size_t>(1 - target)]->put(
          target, static_cast<std::size_t>(state.range(0)), value);
      Rank& reader = *ranks[static_cast<std::size_t>(target)];
      while (reader.region.front() != value) reader.reliable.progress();
    }
  }
  for (const auto& rank : ranks) {
    if (rank->reliable.counts().repeated != 0) state.SkipWithError("a packet was repeated");
  }
  state.SetBytesProcessed(2 * state.iterations() * state.range(0));
}
BENCHMARK(put)->Arg(8)->Arg(1024)->Arg(16384);

}  // namespace
}  // namespace unisono
