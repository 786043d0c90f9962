// SPDX-License-Identifier: BSD-3-Clause
// How long an allgather takes, from the last rank's call until the last rank has all blocks: in the
// NIC path with blocks that hop from host to host, with blocks that are multicast and with blocks
// that are joined to messages that double, and by unisono_allgather. They take turns, so that
// whatever else the machine does hits them alike. To be started on every host, as a rank of a job;
// needs root, and one clock for all ranks:
//
//   unisono hosts up 4
//   unisono hosts exec all sh -c 'h=$(hostname); UNISONO_RANK=$((${h#h} - 1)) UNISONO_SIZE=4
//     UNISONO_RENDEZVOUS=tcp:10.77.0.1:7000 UNISONO_JOB_KEY=a-key-of-this-benchmark
//     build/release/bench/allgather --bytes 8'
//
// Rank 0 prints microseconds, and ratios of the medians to that of unisono_allgather.
#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "algorithm/algorithm.hpp"
#include "base/clock.hpp"
#include "nic/loader/device.hpp"
#include "nic/loader/interface.hpp"
#include "nic/lowering/row.hpp"
#include "nic/port/allgather_segments.hpp"
#include "options.hpp"
#include "unisono/unisono.h"

namespace {

using namespace unisono;

constexpr int kWays = 4;
constexpr const char* kNames[kWays] = {"NIC, hops", "NIC, multicast", "NIC, doubling",
                                       "unisono_allgather"};
constexpr int kDoubling = 2;
constexpr int kLibrary = 3;

[[noreturn]] void die(const std::string& message) {
  fmt::print(stderr, "allgather: {}\n", message);
  std::exit(1);
}

void expect(int code) {
  if (code != UNISONO_OK) die(unisono_last_error());
}

// When an operation began and ended at a rank.
struct Times {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
};

class Rank {
 public:
  Rank(const std::string& interface, std::size_t bytes) : block_(bytes) {
    expect(unisono_init(&world_));
    expect(unisono_comm_rank(world_, &rank_));
    expect(unisono_comm_size(world_, &ranks_));
    result_.resize(bytes * static_cast<std::size_t>(ranks_));
    open_nic(interface);
  }

  void run(int operations) {
    for (int operation = 0; operation < operations + kWarmUp; ++operation) {
      for (int way = 0; way < kWays; ++way) {
        for (auto& byte : block_) byte = static_cast<std::byte>(operation + way + rank_);
        expect(unisono_barrier(world_));
        Times times;
        times.begin_ns = base::now_ns();
        way == kLibrary ? by_library() : by_nic(way);
        times.end_ns = base::now_ns();
        check(operation + way);
        if (operation >= kWarmUp) times_[static_cast<std::size_t>(way)].push_back(times);
      }
    }
    report();
    expect(unisono_barrier(world_));
    expect(unisono_finalize(world_));
  }

 private:
  static constexpr int kWarmUp = 20;

  void open_nic(const std::string& interface) {
    nic::DeviceOptions options;
    options.interface = interface;
    auto loaded = nic::load_device(options);
    if (!loaded.ok()) die(loaded.error().message);
    device_ = *std::move(loaded);
    const auto own = nic::read_interface(interface);
    if (!own.ok()) die(own.error().message);
    unisono_nic_address address = {};
    std::copy(std::begin(own->mac), std::end(own->mac), address.mac);
    address.ipv4 = own->ipv4;
    address.port = htons(47300);
    std::vector<unisono_nic_address> addresses(static_cast<std::size_t>(ranks_));
    expect(unisono_allgather(&address, addresses.data(), sizeof address, UNISONO_BYTE, world_));
    add(0, "concurrent-broadcast", addresses, {});
    add(1, "direct", addresses, nic::multicast_address(htonl(0xEF4D0001), address.port));
    add(kDoubling, "bruck", addresses, {});
    expect(unisono_barrier(world_));
  }

  void add(int way, const char* algorithm, const std::vector<unisono_nic_address>& addresses,
           const unisono_nic_address& multicast) {
    schedule::Shape shape;
    shape.collective = schedule::Collective::allgather;
    shape.ranks = ranks_;
    shape.count = 1;
    const auto* found = algorithm::find(shape.collective, algorithm);
    const auto schedule = algorithm::build(*found, shape, {}, rank_);
    if (!schedule.ok()) die(schedule.error().message);
    nic::GroupAddresses group;
    group.id = {1, static_cast<std::uint32_t>(way) + 1};
    group.key = {3, 5};
    group.ranks = addresses;
    group.multicast = multicast;
    const auto row = way == kDoubling ? row_of(nic::lower_doubling(*schedule), group)
                                      : row_of(nic::lower_allgather(*schedule), group);
    const auto index = device_->add_group(row);
    if (!index.ok()) die(index.error().message);
    auto port = nic::AllgatherPort::open(device_->row(*index), device_->memory(*index));
    if (!port.ok()) die(port.error().message);
    ports_[static_cast<std::size_t>(way)] = *std::move(port);
    segments_[static_cast<std::size_t>(way)] =
        std::make_unique<nic::AllgatherSegments>(*ports_[static_cast<std::size_t>(way)]);
  }

  static unisono_nic_row row_of(const auto& lowered, const nic::GroupAddresses& group) {
    if (!lowered.ok()) die(lowered.error().message);
    const auto row = nic::make_row(*lowered, group);
    if (!row.ok()) die(row.error().message);
    return *row;
  }

  // Waits as engine/nic/nic_wait.cpp does.
  void by_nic(int way) {
    nic::AllgatherSegments& segments = *segments_[static_cast<std::size_t>(way)];
    segments.begin(block_, result_);
    auto sleep = std::chrono::microseconds(20);
    for (int turn = 0;; ++turn) {
      const auto done = segments.step();
      if (!done.ok()) die(done.error().message);
      if (*done) return;
      if (turn < 2000) continue;
      if (turn < 2050) {
        std::this_thread::yield();
        continue;
      }
      const auto asked =
          ports_[static_cast<std::size_t>(way)]->repair(base::now_ns(), 20 * base::kMillisecond);
      if (!asked.ok()) die(asked.error().message);
      std::this_thread::sleep_for(sleep);
      sleep = std::min(2 * sleep, std::chrono::microseconds(1000));
    }
  }

  void by_library() {
    expect(unisono_allgather(block_.data(), result_.data(),
                             static_cast<std::int64_t>(block_.size()), UNISONO_BYTE, world_));
  }

  void check(int value) const {
    for (std::size_t i = 0; i < result_.size(); ++i) {
      const int origin = static_cast<int>(i / block_.size());
      if (result_[i] != static_cast<std::byte>(value + origin)) die("a wrong result");
    }
  }

  void report() {
    std::array<double, kWays> medians = {};
    std::string lines;
    for (std::size_t way = 0; way < kWays; ++way) {
      const std::vector<double> taken = times_of(way);
      medians[way] = taken[taken.size() / 2];
      lines += fmt::format("{:>18} {:>10.1f} {:>10.1f}\n", kNames[way], medians[way],
                           taken[taken.size() * 99 / 100]);
    }
    if (rank_ != 0) return;
    fmt::print("{} hosts, {} bytes a rank, {} operations each; us\n{:>18} {:>10} {:>10}\n{}",
               ranks_, block_.size(), times_[0].size(), "", "median", "p99", lines);
    fmt::print("ratios: hops {:.2f}, multicast {:.2f}, doubling {:.2f}\n",
               medians[0] / medians[kLibrary], medians[1] / medians[kLibrary],
               medians[kDoubling] / medians[kLibrary]);
  }

  // From the last that began to the last that ended, in microseconds, sorted.
  std::vector<double> times_of(std::size_t way) {
    const std::vector<Times>& own = times_[way];
    std::vector<Times> all(own.size() * static_cast<std::size_t>(ranks_));
    expect(unisono_allgather(own.data(), all.data(),
                             static_cast<std::int64_t>(own.size() * sizeof(Times)), UNISONO_BYTE,
                             world_));
    std::vector<double> taken;
    for (std::size_t i = 0; i < own.size(); ++i) {
      Times last;
      for (std::size_t at = i; at < all.size(); at += own.size()) {
        last.begin_ns = std::max(last.begin_ns, all[at].begin_ns);
        last.end_ns = std::max(last.end_ns, all[at].end_ns);
      }
      taken.push_back(static_cast<double>(last.end_ns - last.begin_ns) / 1e3);
    }
    std::sort(taken.begin(), taken.end());
    return taken;
  }

  unisono_comm_t world_ = nullptr;
  int rank_ = 0;
  int ranks_ = 0;
  std::vector<std::byte> block_;
  std::vector<std::byte> result_;
  std::unique_ptr<nic::Device> device_;
  std::array<std::unique_ptr<nic::AllgatherPort>, kLibrary> ports_;
  std::array<std::unique_ptr<nic::AllgatherSegments>, kLibrary> segments_;
  std::array<std::vector<Times>, kWays> times_;
};

}  // namespace

int main(int count, char** arguments) {
  std::string interface = "eth0";
  std::size_t bytes = 8;
  int operations = 500;
  bench::Options given("Time of an allgather: NIC path and library");
  given.word("--interface", interface);
  given.number("--bytes", bytes, 1);  // of a rank's block
  given.number("--operations", operations, 1);
  given.parse(count, arguments);
  Rank(interface, bytes).run(operations);
  return 0;
}
