// SPDX-License-Identifier: BSD-3-Clause
#include "nic/port/host_blocks.hpp"

#include "base/check.hpp"
#include "nic/port/vector_limit.hpp"
#include "nic/program/tables.h"

namespace unisono::nic {
namespace {

// More operations than ranks can be apart.
constexpr std::uint64_t kCounters = UNISONO_NIC_DEPTH_MAX;

}  // namespace

// Only grows: each operation that uses it adds the number of ranks.
struct alignas(64) HostBlocks::Counter {
  std::atomic<std::uint64_t> arrived;
};

struct alignas(64) HostBlocks::Place {
  std::uint32_t mark;
  std::uint64_t block_bytes;
};

std::int64_t HostBlocks::memory_bytes(int ranks) {
  return static_cast<std::int64_t>(kCounters * sizeof(Counter)) +
         ranks * static_cast<std::int64_t>(kInFlightMax * sizeof(Place));
}

HostBlocks::HostBlocks(std::byte* memory, int place, int ranks)
    : memory_(memory), place_(place), ranks_(ranks) {
  UNISONO_CHECK(place >= 0 && place < ranks, "HostBlocks of a place that the host has");
}

void HostBlocks::begin(std::uint64_t call, std::uint32_t mark, std::size_t block_bytes) {
  at(call, place_).mark = mark;
  at(call, place_).block_bytes = block_bytes;
}

bool HostBlocks::arrive(std::uint64_t sequence) {
  const std::uint64_t before = counter(sequence).arrived.fetch_add(1, std::memory_order_acq_rel);
  return before + 1 == all(sequence);
}

bool HostBlocks::is_complete(std::uint64_t sequence) const {
  return counter(sequence).arrived.load(std::memory_order_acquire) >= all(sequence);
}

std::optional<int> HostBlocks::mismatching_place(std::uint64_t call) const {
  const Place& own = at(call, place_);
  for (int i = 0; i < ranks_; ++i) {
    const Place& other = at(call, i);
    if (other.mark != own.mark || other.block_bytes != own.block_bytes) return i;
  }
  return std::nullopt;
}

HostBlocks::Counter& HostBlocks::counter(std::uint64_t sequence) const {
  return reinterpret_cast<Counter*>(memory_)[sequence % kCounters];
}

HostBlocks::Place& HostBlocks::at(std::uint64_t call, int place) const {
  auto* const places = reinterpret_cast<Place*>(memory_ + kCounters * sizeof(Counter));
  return places[call % kInFlightMax * static_cast<std::uint64_t>(ranks_) +
                static_cast<std::uint64_t>(place)];
}

std::uint64_t HostBlocks::all(std::uint64_t sequence) const {
  return (sequence / kCounters + 1) * static_cast<std::uint64_t>(ranks_);
}

}  // namespace unisono::nic
