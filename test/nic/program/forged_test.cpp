// SPDX-License-Identifier: BSD-3-Clause
// Hundreds of thousands of forged and malformed packets, for groups of each kind. Through the
// kernel's trial run, each is dropped or passed on and no group's memory changes. On the wire,
// while operations run, their results stay right. `--seed N` starts elsewhere; `--seeds N` makes N
// thousand packets for each kind of group (label slow: a million).
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <barrier>
#include <cerrno>
#include <cstring>
#include <thread>

#include "base/clock.hpp"
#include "base/prng.hpp"
#include "harness/scale.hpp"
#include "harness/seeds.hpp"
#include "nic/harness/gather_rows.hpp"
#include "nic/harness/hosts.hpp"
#include "nic/harness/jobs.hpp"
#include "nic/harness/trial_device.hpp"
#include "nic/lowering/lower.hpp"
#include "nic/program/forger.hpp"

namespace unisono::nic::test::forged_test {
namespace {

unisono::test::Seeds seeds{.count = 100};

std::int64_t packets() { return harness::scaled(std::int64_t{1000} * seeds.count); }

std::string how_to_repeat(std::int64_t packet) {
  return "repeat with: nic_forged --seed " + std::to_string(seeds.first) + " --seeds " +
         std::to_string(seeds.count) + "; packet " + std::to_string(packet);
}

// Kinds of groups.
enum class Of : std::uint8_t { trees, forwarded_blocks, joined_blocks };

// A group, and packets of every kind that may come to it next.
struct Busy {
  unisono_nic_row row;
  std::vector<Frame> next;
};

constexpr int kKinds = UNISONO_NIC_ASK_BLOCKS - UNISONO_NIC_GIVE + 1;

class Forged : public TrialDevice, public testing::WithParamInterface<Of> {
 protected:
  std::vector<Busy> add_busy() {
    switch (GetParam()) {
      case Of::trees:
        return {busy_tree(inner_row()), busy_tree(root_row())};
      case Of::forwarded_blocks:
        return {busy_forwarding()};
      case Of::joined_blocks:
        return {busy_doubling()};
    }
    return {};
  }

  static std::string memory_of_all(const std::vector<Busy>& groups) {
    std::string memory;
    for (const Busy& each : groups) memory += memory_of(each.row);
    return memory;
  }

  static std::uint64_t sum_of(const Counters& counters, int from, int to) {
    std::uint64_t sum = 0;
    for (int i = from; i < to; ++i) sum += counters[static_cast<std::size_t>(i)];
    return sum;
  }

 private:
  // In the middle of two operations. One child has contributed to the first, and only the own
  // process to the second.
  Busy busy_tree(const unisono_nic_row& wanted) {
    const unisono_nic_row row = add(wanted);
    for (const std::uint64_t sequence : {0, 1}) post(row, sequence, kSum, {5, 6, 7});
    run(Entry::receive, frame_of(row, give(row, 1, 0, kSum), {1, 10, 100}));
    Busy busy{row, {}};
    for (const std::uint64_t sequence : {0, 1}) {
      unisono_packet packet = give(row, 0, sequence, kSum);
      for (const std::uint8_t kind : {UNISONO_NIC_GIVE, UNISONO_NIC_ASK_RESULT}) {
        packet.kind = kind;
        busy.next.push_back(frame_of(row, packet, {2, 20, 200}));
      }
      packet = packet_of(UNISONO_NIC_RESULT, row.id, 0, sequence);
      packet.place = kSum;
      busy.next.push_back(frame_of(row, packet, {8, 36, 307}));
      packet.kind = UNISONO_NIC_QUERY;
      busy.next.push_back(frame_of(row, packet, {}));
      packet.kind = UNISONO_NIC_ASK_GIVE;
      packet.target = row.rank;
      busy.next.push_back(frame_of(row, packet, {0, 0, 0}));
    }
    return busy;
  }

  // Rank 1 of eight, which has its own block and that of rank 7 of the first operation, and only
  // its own of the second.
  Busy busy_forwarding() {
    const unisono_nic_row row = add(forwarding_row(8, 1));
    for (const std::uint64_t sequence : {0, 1}) {
      post_block(row, sequence);
      slot(row, sequence).arrived |= std::uint64_t{1} << row.rank;
    }
    const auto block_from = [&](int origin, std::uint64_t sequence) {
      return frame_to(row, row.route[origin].from,
                      packet_of(UNISONO_NIC_BLOCK, row.id, origin, sequence), {4, 5, 6});
    };
    run(Entry::receive, block_from(7, 0));
    Busy busy{row, {}};
    for (const std::uint64_t sequence : {0, 1}) {
      for (const int origin : {0, 2, 3, 4, 5, 6}) {
        busy.next.push_back(block_from(origin, sequence));
        unisono_packet question = packet_of(UNISONO_NIC_ASK_BLOCK, row.id, 5, sequence);
        question.target = row.rank;
        question.origin = static_cast<std::uint32_t>(origin == 5 ? 1 : origin);
        busy.next.push_back(frame_to(row, 5, question, {0, 0, 0}));
      }
    }
    return busy;
  }

  // Rank 1 of eight, which has sent its own blocks and has the first message of the first
  // operation.
  Busy busy_doubling() {
    const unisono_nic_row row = add(doubling_row(8, 1));
    for (const std::uint64_t sequence : {0, 1}) {
      post_block(row, sequence);
      run(Entry::leave, from_process(row, UNISONO_NIC_DOORBELL, sequence, 8));
    }
    const auto message = [&](std::uint32_t number, std::uint64_t sequence) {
      const unisono_nic_message& take = row.take[number];
      Words words;
      for (int i = 0; i < take.count; ++i) words.insert(words.end(), {1, 7});
      return frame_to(row, take.peer, about(row, UNISONO_NIC_BLOCKS, take, take.peer, sequence),
                      words);
    };
    run(Entry::receive, message(0, 0));
    Busy busy{row, {}};
    for (const std::uint64_t sequence : {0, 1}) {
      for (std::uint32_t number = 0; number < row.takes; ++number) {
        if (sequence > 0 || number > 0) busy.next.push_back(message(number, sequence));
      }
      for (std::uint32_t number = 0; number < row.gives; ++number) {
        const unisono_nic_message& give = row.give[number];
        busy.next.push_back(frame_to(row, give.peer,
                                     about(row, UNISONO_NIC_ASK_BLOCKS, give, give.peer, sequence),
                                     Words(2 * row.largest)));
      }
    }
    return busy;
  }

  // The own block of an allgather.
  static void post_block(const unisono_nic_row& row, std::uint64_t sequence) {
    unisono_nic_block& own = block(row, sequence, static_cast<int>(row.rank));
    own.words = 1;
    own.data[0] = 5;
    own.sequence = sequence;
  }
  static unisono_packet about(const unisono_nic_row& row, std::uint8_t kind,
                              const unisono_nic_message& message, int from,
                              std::uint64_t sequence) {
    unisono_packet packet = packet_of(kind, row.id, from, sequence);
    packet.target = row.rank;
    packet.position = message.slot;
    packet.place = UNISONO_PACKET_NONE;
    packet.value = message.blocks;
    return packet;
  }
  static Frame frame_to(const unisono_nic_row& row, int from, const unisono_packet& packet,
                        const Words& words) {
    return make_frame(host_address(from), row.own, packet, words, row.key);
  }

  static constexpr std::uint32_t kSum = UNISONO_NIC_SUM_INT64;
};

TEST_P(Forged, WhatComesInIsRefusedAndCounted) {
  std::vector<Busy> groups = add_busy();
  Forger forger(seeds.first);
  for (const Busy& group : groups) {
    for (const Frame& frame : group.next) forger.show(frame);
  }
  const std::string memory = memory_of_all(groups);
  const Counters before = *device->counters();
  const std::int64_t total = packets();
  std::array<std::int64_t, kKinds> of_kind = {};
  for (std::int64_t i = 0; i < total; ++i) {
    const Frame frame = forger.next();
    if (frame.size() >= kPayload) {
      const int kind = packet_in(frame).kind - UNISONO_NIC_GIVE;
      if (kind >= 0 && kind < kKinds) ++of_kind[static_cast<std::size_t>(kind)];
    }
    const TrialRun seen = run(Entry::receive, frame);
    ASSERT_TRUE(seen.verdict == kPass || seen.verdict == kDrop) << how_to_repeat(i);
    ASSERT_EQ(seen.frame, frame) << how_to_repeat(i);
    if (i % 256 == 0) {
      ASSERT_EQ(memory_of_all(groups), memory) << how_to_repeat(i);
    }
  }
  EXPECT_EQ(memory_of_all(groups), memory) << how_to_repeat(total);
  Counters counted = *device->counters();
  for (std::size_t i = 0; i < counted.size(); ++i) counted[i] -= before[i];
  EXPECT_EQ(sum_of(counted, 0, UNISONO_NIC_COUNTERS), static_cast<std::uint64_t>(total));
  EXPECT_EQ(sum_of(counted, UNISONO_NIC_TAKEN_IN, UNISONO_NIC_COUNTERS), 0U);
  for (const auto reason :
       {UNISONO_NIC_FOREIGN, UNISONO_NIC_SHORT, UNISONO_NIC_NO_GROUP, UNISONO_NIC_BAD_TAG}) {
    EXPECT_GT(counted[reason], 0U) << counter_name(reason);
  }
  for (int kind = 0; kind < kKinds; ++kind) {
    EXPECT_GT(of_kind[static_cast<std::size_t>(kind)], total / 100) << UNISONO_NIC_GIVE + kind;
  }
}

// Or the forger has nothing to begin with. Nobody is above a root, so other kinds are not for it.
TEST_P(Forged, GenuineOnesAreTakenOrAnswered) {
  for (const Busy& group : add_busy()) {
    for (std::size_t i = 0; i < group.next.size(); ++i) {
      const std::uint8_t kind = packet_in(group.next[i]).kind;
      SCOPED_TRACE(testing::Message() << "packet " << i << ", kind " << static_cast<int>(kind));
      const bool is_root = (group.row.flags & UNISONO_NIC_ROOT) != 0;
      if (is_root && kind != UNISONO_NIC_GIVE && kind != UNISONO_NIC_ASK_RESULT) continue;
      const Counters before = *device->counters();
      run(Entry::receive, group.next[i]);
      Counters counted = *device->counters();
      for (std::size_t c = 0; c < counted.size(); ++c) counted[c] -= before[c];
      EXPECT_EQ(counted[UNISONO_NIC_BAD_TAG] + counted[UNISONO_NIC_BAD_SENDER] +
                    counted[UNISONO_NIC_SHORT] + counted[UNISONO_NIC_FOREIGN],
                0U);
    }
  }
}

// The minimum of Ethernet, without its checksum.
constexpr std::size_t kLeast = 60;

// Any process with a socket can make these: a process's packets to its program have no tag.
TEST_P(Forged, WhatLeavesChangesNoMemory) {
  std::vector<Busy> groups = add_busy();
  Forger forger(seeds.first);
  for (const Busy& group : groups) {
    for (const std::uint8_t kind : {UNISONO_NIC_DOORBELL, UNISONO_NIC_ASK, UNISONO_NIC_QUERY}) {
      for (const std::uint64_t sequence : {0, 1, 2}) {
        forger.show(from_process(group.row, kind, sequence, sequence));
      }
    }
    for (const Frame& frame : group.next) forger.show(frame);
  }
  const std::string memory = memory_of_all(groups);
  const std::int64_t total = packets() / 2;
  for (std::int64_t i = 0; i < total; ++i) {
    // Genuine ones, too: the group is not ready for what they ask, or has done it.
    const bool genuine = i % 4 == 0;
    Frame frame = genuine ? forger.any() : forger.next();
    frame.resize(std::max(frame.size(), kLeast));
    const std::uint32_t verdict = run(Entry::leave, frame).verdict;
    ASSERT_TRUE(verdict == kTcNext || verdict == kTcDrop) << how_to_repeat(i);
    // A genuine block goes on from there.
    if (!genuine || GetParam() == Of::trees) {
      const std::uint32_t spread = run(Entry::spread, frame).verdict;
      ASSERT_TRUE(spread == kTcNext || spread == kTcDrop) << how_to_repeat(i);
    }
    if (i % 256 == 0) {
      ASSERT_EQ(memory_of_all(groups), memory) << how_to_repeat(i);
    }
  }
  EXPECT_EQ(memory_of_all(groups), memory) << how_to_repeat(total);
}

std::string name_of(const testing::TestParamInfo<Of>& each) {
  switch (each.param) {
    case Of::trees:
      return "trees";
    case Of::forwarded_blocks:
      return "forwarded_blocks";
    case Of::joined_blocks:
      return "joined_blocks";
  }
  return "";
}

INSTANTIATE_TEST_SUITE_P(Groups, Forged,
                         testing::Values(Of::trees, Of::forwarded_blocks, Of::joined_blocks),
                         name_of);

// Three hosts with a rank each, and an attacker on their network.
class ForgedOnTheWire : public testing::Test {
 protected:
  static constexpr int kRanks = 3;
  static constexpr int kStranger = kRanks;

  void SetUp() override {
    const auto trial = load_device({});
    auto made = trial.ok() ? Hosts::make(kRanks + 1) : trial.error();
    if (!made.ok() && made.error().code == base::Code::unsupported) {
      GTEST_SKIP() << made.error().message;
    }
    ASSERT_TRUE(made.ok()) << made.error().message;
    hosts = *std::move(made);
  }

  // Operations, until the attacker has finished, or one of their checks has failed.
  void operate(Port& port, int rank) {
    base::Prng random(static_cast<std::uint64_t>(rank) + 1);
    for (std::uint64_t operation = 0;; ++operation) {
      const bool ends = rank == 0 && stranger_is_done;
      const Words given = {operation * 10 + static_cast<std::uint64_t>(rank), ends ? 1U : 0U};
      ASSERT_TRUE(port.post(UNISONO_NIC_SUM_INT64, given).ok());
      double patience_ns = base::kMillisecond;
      while (!port.is_done(operation)) {
        if (HasFailure()) return;
        ASSERT_FALSE(port.is_broken(operation));
        // A flood fills the queues that genuine packets wait in.
        const auto asked = port.repair(
            base::now_ns(), static_cast<std::int64_t>(patience_ns * (0.5 + random.unit())));
        ASSERT_TRUE(asked.ok()) << asked.error().message;
        if (*asked > 0) patience_ns = std::min(patience_ns * 2, 16.0 * base::kMillisecond);
        std::this_thread::yield();
      }
      const auto result = port.result(operation);
      ASSERT_EQ(result.size(), 2U);
      ASSERT_EQ(result[0], operation * 10 * kRanks + kRanks * (kRanks - 1) / 2) << operation;
      if (rank == 0) operations = operation + 1;
      if (result[1] != 0) return;
    }
  }

  void disturb();

  std::unique_ptr<Hosts> hosts;
  std::array<std::unique_ptr<Device>, kRanks> devices;
  std::atomic<bool> stranger_is_done = false;
  std::atomic<std::uint64_t> operations = 0;
  std::int64_t sent = 0;
};

// Frames that this host gets to see, from others.
void overhear(const base::Descriptor& socket, Forger& forger) {
  Frame frame(2048);
  sockaddr_ll from = {};
  socklen_t bytes = sizeof from;
  const ssize_t length = recvfrom(socket.get(), frame.data(), frame.size(), MSG_DONTWAIT,
                                  reinterpret_cast<sockaddr*>(&from), &bytes);
  if (length < static_cast<ssize_t>(kPayload) || from.sll_pkttype == PACKET_OUTGOING) return;
  frame.resize(static_cast<std::size_t>(length));
  if (packet_in(frame).magic == UNISONO_PACKET_MAGIC) forger.show(std::move(frame));
}

// Sends forgeries of overheard packets, and the same frames again, to every host.
void ForgedOnTheWire::disturb() {
  const base::Descriptor wire(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_IP)));
  sockaddr_ll place = {};
  place.sll_family = AF_PACKET;
  place.sll_protocol = htons(ETH_P_IP);
  place.sll_ifindex = static_cast<int>(if_nametoindex("u0"));
  ASSERT_EQ(bind(wire.get(), reinterpret_cast<sockaddr*>(&place), sizeof place), 0);
  Forger forger(seeds.first);
  base::Prng random(seeds.first);
  while (!forger.has_seen() && !HasFailure()) {
    overhear(wire, forger);
    std::this_thread::yield();
  }
  for (const std::int64_t total = packets(); sent < total && !HasFailure(); ++sent) {
    overhear(wire, forger);
    Frame frame = random.below(4) == 0 ? forger.any() : forger.next();
    const unisono_nic_address to = random.below(kRanks + 1) == 0
                                       ? group_address()
                                       : host_address(static_cast<int>(random.below(kRanks)));
    std::memcpy(frame.data(), to.mac, 6);
    std::memcpy(frame.data() + 6, host_address(kStranger).mac, 6);
    frame[12] = std::byte{8};
    while (send(wire.get(), frame.data(), frame.size(), 0) < 0) {
      ASSERT_EQ(errno, ENOBUFS);
      std::this_thread::yield();
    }
  }
}

TEST_F(ForgedOnTheWire, ResultsStayRight) {
  std::barrier<> together(kRanks + 1);
  std::atomic<bool> failed = false;
  hosts->run([&](int host) {
    Rank started;
    if (host != kStranger) {
      auto& device = devices[static_cast<std::size_t>(host)];
      auto loaded = load_device(host_options());
      if (loaded.ok()) device = *std::move(loaded);
      Job job;
      job.count = 2;
      job.parameter = 1;
      auto begun = loaded.ok() ? start_rank(*device, job, host, kRanks, 1) : loaded.error();
      if (begun.ok()) started = *std::move(begun);
      failed = failed || !begun.ok();
    }
    together.arrive_and_wait();
    if (failed) return;
    if (host == kStranger) {
      disturb();
      stranger_is_done = true;
    } else {
      operate(*started.port, host);
    }
    together.arrive_and_wait();
  });
  ASSERT_FALSE(failed);
  EXPECT_EQ(sent, packets());
  EXPECT_GT(operations, 1U);
  Counters counted = {};
  for (const auto& device : devices) {
    const Counters one = *device->counters();
    for (std::size_t i = 0; i < counted.size(); ++i) counted[i] += one[i];
  }
  for (const auto reason : {UNISONO_NIC_SHORT, UNISONO_NIC_BAD_TAG, UNISONO_NIC_STALE}) {
    EXPECT_GT(counted[reason], 0U) << counter_name(reason);
  }
  EXPECT_EQ(counted[UNISONO_NIC_MISMATCH], 0U);
  std::printf("%lld frames while %llu operations ran\n", static_cast<long long>(sent),
              static_cast<unsigned long long>(operations.load()));
}

}  // namespace
}  // namespace unisono::nic::test::forged_test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  unisono::nic::test::forged_test::seeds.read(argc, argv);
  return RUN_ALL_TESTS();
}
