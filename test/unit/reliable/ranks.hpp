// SPDX-License-Identifier: BSD-3-Clause
// Ranks over virtual datagrams, with a region each, as on hosts of their own, and time as a number:
// for tests that look at single packets. In one thread.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "reliable/reliable.hpp"
#include "transport/virtual/datagrams.hpp"

namespace unisono::reliable {

inline constexpr std::size_t kRegion = 1 << 16;
inline constexpr std::size_t kFlag = kRegion - 64;  // in the region
inline constexpr std::int64_t kDelayNs = 10'000;
inline constexpr std::int64_t kMillisecond = 1'000'000;

// A network in which nothing is lost or overtaken.
inline transport::VirtualDatagramOptions steady() {
  transport::VirtualDatagramOptions options;
  options.delay_min_ns = options.delay_max_ns = kDelayNs;
  return options;
}

class Ranks {
 public:
  explicit Ranks(int ranks, const transport::VirtualDatagramOptions& network = steady(),
                 const ReliableOptions& base = {})
      : network_(ranks, network) {
    for (int rank = 0; rank < ranks; ++rank) {
      regions_.emplace_back(kRegion / 8);
      ReliableOptions options = base;
      options.key = wire::key_of("test");
      options.ranks = ranks;
      options.region = region(rank);
      options.region_bytes = kRegion;
      options.now_ns = [this] { return network_.now_ns(); };
      all_.push_back(std::make_unique<Reliable>(network_.attach(rank), options));
    }
  }

  transport::VirtualDatagramNetwork& network() { return network_; }
  Reliable& at(int rank) { return *all_[static_cast<std::size_t>(rank)]; }
  int size() const { return static_cast<int>(all_.size()); }
  std::byte* region(int rank) {
    return reinterpret_cast<std::byte*>(regions_[static_cast<std::size_t>(rank)].data());
  }
  std::uint64_t word(int rank, std::size_t offset = kFlag) {
    std::uint64_t value = 0;
    std::memcpy(&value, region(rank) + offset, sizeof value);
    return value;
  }

  // A put in the terms of its sender: `place` and `flag` are offsets.
  void put(int from, int to, const std::vector<std::byte>& bytes, std::size_t place,
           std::size_t flag, std::uint64_t value) {
    at(from).put({.target = to,
                  .source = bytes.data(),
                  .place = region(from) + place,
                  .bytes = bytes.size(),
                  .flag = reinterpret_cast<std::uint64_t*>(region(from) + flag),
                  .flag_value = value});
  }
  void put_bytes(int from, int to, const std::vector<std::byte>& bytes, std::size_t place) {
    at(from).put({.target = to,
                  .source = bytes.data(),
                  .place = region(from) + place,
                  .bytes = bytes.size()});
  }
  void raise(int from, int to, std::size_t flag, std::uint64_t value) {
    put(from, to, {}, 0, flag, value);
  }

  // Until `end_ns` or until `done`, whoever waits saying so at each turn.
  template <class Done, class Wait>
  bool run_until(std::int64_t end_ns, const Done& done, const Wait& wait) {
    while (network_.now_ns() < end_ns) {
      progress();
      if (done()) return true;
      wait();
      std::int64_t next = network_.next_arrival_ns();
      for (auto& each : all_) next = std::min(next, each->next_deadline_ns());
      network_.advance_to(std::clamp(next, network_.now_ns() + 1, end_ns));
    }
    progress();
    return done();
  }
  template <class Done>
  bool run_until(std::int64_t end_ns, const Done& done) {
    return run_until(end_ns, done, [] {});
  }
  void run_for(std::int64_t time_ns) {
    run_until(network_.now_ns() + time_ns, [] { return false; });
  }

 private:
  void progress() {
    for (auto& each : all_) each->progress();
  }

  std::vector<std::vector<std::uint64_t>> regions_;
  transport::VirtualDatagramNetwork network_;
  std::vector<std::unique_ptr<Reliable>> all_;
};

// Bytes of which no two neighbours are alike.
inline std::vector<std::byte> pattern(std::size_t bytes, unsigned first = 1) {
  std::vector<std::byte> result(bytes);
  for (std::size_t i = 0; i < bytes; ++i) result[i] = static_cast<std::byte>(first + i * 7);
  return result;
}

}  // namespace unisono::reliable
