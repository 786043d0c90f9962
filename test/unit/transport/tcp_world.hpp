// SPDX-License-Identifier: BSD-3-Clause
// Ranks with a region each and streams between them on loopback, all in one process and one thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "loopback.hpp"
#include "region.hpp"
#include "transport/table.hpp"
#include "transport/tcp/tcp.hpp"

namespace unisono::transport {

inline constexpr std::size_t kTcpFlags = kRegionBytes - 4096;  // a line each

class TcpWorld {
 public:
  // `key_of_last`: the last rank's, if it is not the job's. The first `without_tags` ranks have
  // UNISONO_BULK_TAGS=off. All are made as a job makes them.
  static base::Result<std::unique_ptr<TcpWorld>> make(int ranks, Family family = Family::v4,
                                                      const wire::Key* key_of_last = nullptr,
                                                      int without_tags = 0) {
    UNISONO_ASSIGN(const LocalAddress local, loopback(family));
    const auto row = std::ranges::find(remote_memory_rows(), "tcp", &RemoteMemoryRow::name);
    auto world = std::make_unique<TcpWorld>();
    for (int rank = 0; rank < ranks; ++rank) {
      world->regions.push_back(std::make_unique<Region>());
      const bool is_other = key_of_last != nullptr && rank + 1 == ranks;
      UNISONO_ASSIGN(
          const base::Settings settings,
          base::Settings::from({{"UNISONO_BULK_TAGS", rank < without_tags ? "off" : "on"}}));
      UNISONO_ASSIGN(auto opened,
                     row->open(settings, {.address = local.address,
                                          .rank = rank,
                                          .ranks = ranks,
                                          .key = is_other ? *key_of_last : wire::key_of("test"),
                                          .silence_ns = 10 * base::kSecond,
                                          .region = world->region(rank),
                                          .region_bytes = kRegionBytes}));
      world->all.push_back(std::move(opened));
    }
    for (int rank = 0; rank < ranks; ++rank) {
      for (int other = 0; other < ranks; ++other) {
        if (other != rank) UNISONO_TRY(world->at(rank).meet(other, world->at(other).card()));
      }
    }
    return world;
  }

  RemoteMemory& at(int rank) { return *all[static_cast<std::size_t>(rank)]; }
  std::byte* region(int rank) { return regions[static_cast<std::size_t>(rank)]->data(); }
  std::uint64_t value(int rank, int number) {
    auto* const word = reinterpret_cast<std::uint64_t*>(region(rank) + kTcpFlags + 64 * number);
    return std::atomic_ref(*word).load(std::memory_order_acquire);
  }
  void step() {
    for (auto& each : all) {
      if (each == nullptr) continue;
      each->may_sleep();  // so that the next poll asks the kernel
      each->poll({});
    }
  }
  // Until a message from one rank to the other may begin.
  void connect(int from, int to) {
    while (!at(from).accepts_message(to)) step();
  }
  // `value` 0: without a flag.
  void write(int from, int to, std::uint64_t offset, std::span<const std::byte> bytes, int number,
             std::uint64_t value, bool forward = false) {
    at(from).write(
        {.rank = to,
         .offset = offset,
         .from = bytes.data(),
         .bytes = bytes.size(),
         .flag = value == 0 ? kNoFlag : kTcpFlags + 64 * static_cast<std::uint64_t>(number),
         .flag_value = value,
         .forward = forward});
  }

  std::vector<std::unique_ptr<Region>> regions;
  std::vector<std::unique_ptr<RemoteMemory>> all;
};

}  // namespace unisono::transport
