// SPDX-License-Identifier: BSD-3-Clause
// The cost of a packet before and after the network: header and tag made, header and tag checked.
// Also the cost of the network on loopback: batches of datagrams there and back by UDP.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "transport/udp/options.hpp"
#include "transport/udp/udp.hpp"
#include "wire/packet_filter.hpp"

namespace unisono {
namespace {

constexpr wire::Key kKey{1, 2};

void seal(benchmark::State& state) {
  const wire::PacketFilter filter(kKey, 0, 2);
  const std::vector<std::byte> payload(static_cast<std::size_t>(state.range(0)));
  std::uint64_t sequence = 0;
  for (auto turn : state) {
    static_cast<void>(turn);
    benchmark::DoNotOptimize(filter.seal(filter.header(wire::Kind::put, 1, ++sequence), payload));
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(seal)->Arg(0)->Arg(64)->Arg(1400)->Arg(8900);

// Each packet is checked once as fresh, as in life; the packets are made beforehand.
void admit(benchmark::State& state) {
  constexpr std::uint64_t kPackets = 4096;
  const wire::PacketFilter sender(kKey, 0, 2);
  const std::vector<std::byte> payload(static_cast<std::size_t>(state.range(0)));
  std::vector<std::vector<std::byte>> packets;
  for (std::uint64_t i = 0; i < kPackets; ++i) {
    const wire::Envelope envelope = sender.seal(sender.header(wire::Kind::put, 1, i), payload);
    packets.emplace_back(envelope.size() + payload.size());
    std::copy(envelope.begin(), envelope.end(), packets.back().begin());
  }
  auto filter = std::make_unique<wire::PacketFilter>(kKey, 1, 2);
  std::uint64_t i = 0;
  for (auto turn : state) {
    static_cast<void>(turn);
    benchmark::DoNotOptimize(filter->admit(packets[i]));
    if (++i < kPackets) continue;
    state.PauseTiming();
    if (filter->drops().total() != 0) state.SkipWithError("a packet was dropped");
    filter = std::make_unique<wire::PacketFilter>(kKey, 1, 2);
    i = 0;
    state.ResumeTiming();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(admit)->Arg(0)->Arg(64)->Arg(1400)->Arg(8900);

std::vector<std::unique_ptr<transport::Udp>> open_pair(benchmark::State& state) {
  const std::vector<transport::IpAddress> peers{*transport::parse_ip("127.0.0.1")};
  std::vector<std::unique_ptr<transport::Udp>> pair;
  std::vector<transport::Endpoint> endpoints;
  transport::NetworkSettings settings;
  settings.multicast = base::Toggle::off;
  for (int rank = 0; rank < 2; ++rank) {
    auto options = transport::udp_options(settings, 1, rank, peers);
    auto udp = options.ok() ? transport::Udp::open(*options) : options.error();
    if (!udp.ok()) {
      state.SkipWithError(udp.error().message.c_str());
      return {};
    }
    endpoints.push_back((*udp)->endpoint());
    pair.push_back(std::move(*udp));
  }
  for (auto& udp : pair) {
    if (!udp->meet(endpoints, 9000).ok()) state.SkipWithError("meet");
  }
  return pair;
}

// `range(0)` datagrams of `range(1)` bytes there, the same back. One thread, so this is the cost of
// the system calls and of the kernel's work, not the latency between two processors.
void ping_pong(benchmark::State& state) {
  auto pair = open_pair(state);
  if (pair.empty()) return;
  const auto count = static_cast<std::size_t>(state.range(0));
  const std::vector<std::byte> bytes(static_cast<std::size_t>(state.range(1)));
  std::array<transport::Incoming, 64> incoming;
  const std::vector<transport::Outgoing> to_zero(count, {.target = 0, .body = bytes});
  const std::vector<transport::Outgoing> to_one(count, {.target = 1, .body = bytes});
  const auto carry = [&](int from) {
    const std::span<const transport::Outgoing> batch = from == 0 ? to_one : to_zero;
    std::size_t sent = 0;
    while (sent < count) {
      sent += pair[static_cast<std::size_t>(from)]->send(batch.subspan(sent));
    }
    std::size_t received = 0;
    while (received < count) {
      received += pair[static_cast<std::size_t>(1 - from)]->receive(incoming);
    }
  };
  for (auto turn : state) {
    static_cast<void>(turn);
    carry(0);
    carry(1);
  }
  state.SetItemsProcessed(state.iterations() * 2 * state.range(0));
}
BENCHMARK(ping_pong)->Args({1, 64})->Args({1, 1400})->Args({32, 64})->Args({32, 1400});

}  // namespace
}  // namespace unisono
