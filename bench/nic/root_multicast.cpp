// SPDX-License-Identifier: BSD-3-Clause
// What a broadcast takes whose root multicasts the block itself in the NIC path, against
// unisono_broadcast by processes, by turns. This is the trial before decision 78: the library's
// broadcasts have other acknowledgements, and bench/nic/compare.py measures them. The blocks go by
// an allgather's group. Every rank marks all blocks but the root's as arrived, so an operation is
// done when the root's has come. A barrier on a tree follows each kCredit operations. No rank waits
// for it at once: its end tells the roots which slots are free. To be started on every host, as
// bench/nic/allgather.cpp, with UNISONO_NIC=off. Rank 0 prints microseconds and ratios:
//
//   in a row  calls as rank 0 sees them
//   apart     from the root's call, which comes last, until all have returned
#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "algorithm/algorithm.hpp"
#include "base/clock.hpp"
#include "nic/loader/device.hpp"
#include "nic/loader/interface.hpp"
#include "nic/lowering/lower.hpp"
#include "nic/lowering/lower_allgather.hpp"
#include "nic/lowering/row.hpp"
#include "nic/port/doorbell_socket.hpp"
#include "nic/port/port.hpp"
#include "options.hpp"
#include "select/nic/tree_choice.hpp"
#include "unisono/unisono.h"
#include "wait/wait_until.hpp"

namespace {

using namespace unisono;

constexpr std::size_t kWays = 2;
constexpr const char* kNames[kWays] = {"NIC, root", "processes"};
constexpr std::uint64_t kCredit = 8;
constexpr std::uint32_t kInFlight = UNISONO_NIC_DEPTH_MAX / 2;
// After so long, a waiting rank asks for the packet.
constexpr std::int64_t kRepair = 20 * base::kMillisecond;
constexpr std::int64_t kApart = 60 * base::kMicrosecond;

[[noreturn]] void die(const std::string& message) {
  fmt::print(stderr, "root_multicast: {}\n", message);
  std::exit(1);
}

void expect(int code) {
  if (code != UNISONO_OK) die(unisono_last_error());
}

template <class Value>
Value value_of(base::Result<Value> result) {
  if (!result.ok()) die(result.error().message);
  return *std::move(result);
}

schedule::Shape gathering(int ranks) {
  schedule::Shape shape;
  shape.collective = schedule::Collective::allgather;
  shape.ranks = ranks;
  shape.count = 1;
  return shape;
}

// A rank's side of the operations.
class Casts {
 public:
  Casts(nic::Device& device, int rank, std::vector<unisono_nic_address> addresses) : rank_(rank) {
    const auto ranks = static_cast<int>(addresses.size());
    nic::GroupAddresses group;
    group.id = {1, 1};
    group.key = {3, 5};
    group.ranks = addresses;
    group.depth = kInFlight;
    group.multicast = nic::multicast_address(htonl(0xEF4D0001), addresses[0].port);
    const auto direct = value_of(algorithm::build(
        *algorithm::find(schedule::Collective::allgather, "direct"), gathering(ranks), {}, rank));
    const auto routes = value_of(nic::lower_allgather(direct));
    const auto blocks = value_of(device.add_group(value_of(nic::make_row(routes, group))));
    row_ = device.row(blocks);
    memory_ = device.memory(blocks);
    doorbell_ = value_of(nic::DoorbellSocket::open(row_));

    const select::NicTrees trees = select::nic_trees(ranks, 0, true);
    const auto tree =
        value_of(algorithm::build(*trees.algorithm, trees.shape, trees.parameters, rank));
    group.id = {1, 2};
    const auto barriers =
        value_of(device.add_group(value_of(nic::make_row(value_of(nic::lower(tree)), group))));
    barrier_ = value_of(nic::Port::open(device.row(barriers), device.memory(barriers)));
  }

  void broadcast(std::vector<std::byte>& block, int root) {
    const std::uint64_t sequence = next_++;
    // The slots of these kCredit operations have been read by all ranks.
    const std::uint64_t credits = sequence / kCredit;
    if (sequence % kCredit == 0 && credits >= 3) {
      wait([this, credits] { return barrier_->is_done(credits - 3); },
           [this] { return barrier_->repair(base::now_ns(), kRepair).ok(); });
    }
    if (root == rank_) give(sequence, block);
    open(sequence, root);
    if (root == rank_) {
      if (!doorbell_->send(UNISONO_NIC_DOORBELL, sequence, place(sequence, root).words).ok()) {
        die("no doorbell packet");
      }
    } else {
      wait([this, sequence] { return is_done(sequence); },
           [this, sequence] {
             ++asked_;
             return doorbell_->send(UNISONO_NIC_ASK, sequence, UNISONO_NIC_WORDS_MAX).ok();
           });
      std::memcpy(block.data(), place(sequence, root).data, block.size());
    }
    if (sequence % kCredit == kCredit - 1 && !barrier_->post(UNISONO_NIC_NOTHING, {}).ok()) {
      die("no barrier");
    }
  }
  std::int64_t asked() const { return asked_; }

 private:
  unisono_nic_slot& slot(std::uint64_t sequence) const {
    return memory_.slots[sequence % row_.depth];
  }
  unisono_nic_block& place(std::uint64_t sequence, int origin) const {
    return memory_.blocks[(sequence % row_.depth) * row_.ranks + static_cast<unsigned>(origin)];
  }
  bool is_done(std::uint64_t sequence) const {
    const std::uint64_t done = std::atomic_ref(slot(sequence).done).load();
    return static_cast<std::int64_t>(done - sequence) >= 0;
  }

  void give(std::uint64_t sequence, const std::vector<std::byte>& block) const {
    unisono_nic_block& own = place(sequence, rank_);
    std::memcpy(own.data, block.data(), block.size());
    own.combine = 1;
    own.words = static_cast<std::uint32_t>((block.size() + 7) / 8);
  }

  // All blocks but the root's are there; at the root, its own too.
  void open(std::uint64_t sequence, int root) const {
    const std::uint64_t all = unisono_nic_all_arrived(&row_);
    std::uint64_t bits = all;
    for (int origin = 0; std::cmp_less(origin, row_.ranks); ++origin) {
      if (origin == root && root != rank_) {
        bits &= ~(std::uint64_t{1} << origin);
        continue;
      }
      if (origin != root) place(sequence, origin).words = 0;
      std::atomic_ref(place(sequence, origin).sequence).store(sequence, std::memory_order_release);
    }
    if ((std::atomic_ref(slot(sequence).arrived).fetch_or(bits) | bits) != all) return;
    std::atomic_ref(slot(sequence).arrived).store(0);
    std::atomic_ref(slot(sequence).done).store(sequence);
  }

  // Processes sleep for short times here; those of the library are woken. So the figures of a busy
  // machine are worse than they would be.
  void wait(const auto& done, const auto& repair) {
    std::int64_t due_ns = base::now_ns() + kRepair;
    const auto sleep = [&] {
      std::this_thread::sleep_for(std::chrono::microseconds(20));
      if (base::now_ns() > due_ns) {
        if (!repair()) die("no question");
        due_ns = base::now_ns() + kRepair;
      }
      return false;
    };
    wait::Waiter waiter({.short_slices = wait::ShortSlices::never}, contention_);
    wait::wait_until(
        waiter, done, [] { return false; }, sleep);
  }

  const int rank_;
  unisono_nic_row row_ = {};
  nic::GroupMemory memory_;
  std::unique_ptr<nic::DoorbellSocket> doorbell_;
  std::unique_ptr<nic::Port> barrier_;
  wait::CoreContention contention_;
  std::uint64_t next_ = 0;
  std::int64_t asked_ = 0;
};

struct Times {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
};

class Rank {
 public:
  Rank(const std::string& interface, std::size_t bytes, bool one_root)
      : one_root_(one_root), block_(bytes) {
    expect(unisono_init(&world_));
    expect(unisono_comm_rank(world_, &rank_));
    expect(unisono_comm_size(world_, &ranks_));
    nic::DeviceOptions options;
    options.interface = interface;
    device_ = value_of(nic::load_device(options));
    const auto own = value_of(nic::read_interface(interface));
    unisono_nic_address address = {};
    std::copy(std::begin(own.mac), std::end(own.mac), address.mac);
    address.ipv4 = own.ipv4;
    address.port = htons(47300);
    std::vector<unisono_nic_address> addresses(static_cast<std::size_t>(ranks_));
    expect(unisono_allgather(&address, addresses.data(), sizeof address, UNISONO_BYTE, world_));
    casts_.emplace(*device_, rank_, addresses);
    expect(unisono_barrier(world_));
  }

  void run(int operations, int rounds) {
    for (int round = 0; round < rounds; ++round) {
      for (std::size_t way = 0; way < kWays; ++way) call_in_a_row(way, operations);
      for (int i = 0; i < operations / 4; ++i) {
        for (std::size_t way = 0; way < kWays; ++way) call_apart(way);
      }
    }
    report();
    expect(unisono_barrier(world_));
    expect(unisono_finalize(world_));
  }

 private:
  static constexpr int kWarmUp = 32;

  int next_root() const { return one_root_ ? 0 : calls_ % ranks_; }

  void call(std::size_t way) {
    const int root = next_root();
    const auto value = static_cast<std::byte>(++calls_);
    if (rank_ == root) std::ranges::fill(block_, value);
    if (way == 0) {
      casts_->broadcast(block_, root);
    } else {
      expect(unisono_broadcast(block_.data(), static_cast<std::int64_t>(block_.size()),
                               UNISONO_BYTE, root, world_));
    }
    if (std::ranges::count(block_, value) != std::ssize(block_)) die("a wrong result");
  }

  void call_in_a_row(std::size_t way, int operations) {
    expect(unisono_barrier(world_));
    for (int i = 0; i < kWarmUp; ++i) call(way);
    expect(unisono_barrier(world_));
    for (int i = 0; i < operations; ++i) {
      const std::int64_t begin_ns = base::now_ns();
      call(way);
      in_a_row_[way].push_back(static_cast<double>(base::now_ns() - begin_ns) / 1e3);
    }
  }

  void call_apart(std::size_t way) {
    expect(unisono_barrier(world_));
    const bool gives = rank_ == next_root();
    const std::int64_t begin_ns = base::now_ns() + kApart + (gives ? kApart : 0);
    while (base::now_ns() < begin_ns) std::this_thread::yield();
    Times times = {.begin_ns = base::now_ns()};
    call(way);
    times.end_ns = base::now_ns();
    apart_[way].push_back(times);
  }

  static double at(const std::vector<double>& sorted, std::size_t percent) {
    return sorted[sorted.size() * percent / 100];
  }

  void report() {
    std::array<double, kWays> means = {}, medians = {}, apart = {};
    std::string lines;
    for (std::size_t way = 0; way < kWays; ++way) {
      std::vector<double>& calls = in_a_row_[way];
      std::ranges::sort(calls);
      means[way] =
          std::accumulate(calls.begin(), calls.end(), 0.0) / static_cast<double>(calls.size());
      medians[way] = at(calls, 50);
      const std::vector<double> taken = taken_apart(way);
      apart[way] = at(taken, 50);
      lines += fmt::format("{:>10} {:>8.1f} {:>8.1f} {:>8.1f} {:>8.1f} {:>8.1f}\n", kNames[way],
                           means[way], medians[way], at(calls, 99), apart[way], at(taken, 99));
    }
    const std::int64_t own = casts_->asked();
    std::int64_t asked = 0;
    expect(unisono_allreduce(&own, &asked, 1, UNISONO_INT64, UNISONO_SUM, world_));
    if (rank_ != 0) return;
    fmt::print("{} hosts, {} bytes, {}, {} calls of each in a row, {} questions; us\n", ranks_,
               block_.size(), one_root_ ? "one root" : "each rank in turn", in_a_row_[0].size(),
               asked);
    fmt::print("{:>10} {:>8} {:>8} {:>8} {:>8} {:>8}\n{}", "", "mean", "median", "p99", "apart",
               "its p99", lines);
    fmt::print("processes over NIC: mean {:.2f}, median {:.2f}, apart {:.2f}\n",
               means[1] / means[0], medians[1] / medians[0], apart[1] / apart[0]);
  }

  // From the last that began to the last that ended, in microseconds, sorted.
  std::vector<double> taken_apart(std::size_t way) {
    const std::vector<Times>& own = apart_[way];
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
    std::ranges::sort(taken);
    return taken;
  }

  const bool one_root_;
  unisono_comm_t world_ = nullptr;
  int rank_ = 0;
  int ranks_ = 0;
  int calls_ = 0;
  std::vector<std::byte> block_;
  std::unique_ptr<nic::Device> device_;
  std::optional<Casts> casts_;
  std::array<std::vector<double>, kWays> in_a_row_;
  std::array<std::vector<Times>, kWays> apart_;
};

}  // namespace

int main(int count, char** arguments) {
  std::string interface = "eth0";
  std::size_t bytes = 8;
  int operations = 600;
  int rounds = 4;
  bool one_root = false;
  bench::Options given("Time of broadcasts: the root multicasts in the NIC path, and processes");
  given.word("--interface", interface);
  given.number("--bytes", bytes, 1, UNISONO_NIC_WORDS_MAX * 8);
  given.number("--operations", operations, 4);
  given.number("--rounds", rounds, 1);
  given.flag("--one-root", one_root, "rank 0 is the root of all calls");
  given.parse(count, arguments);
  Rank(interface, bytes, one_root).run(operations, rounds);
  return 0;
}
