// SPDX-License-Identifier: BSD-3-Clause
// How the NIC program wakes sleepers: only those with set bits, once, at the end of their
// operation, good or bad. A process that writes to its ring harms only itself.
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>

#include "nic/harness/trial_device.hpp"
#include "nic/memory/wake_ring.hpp"
#include "nic/port/port.hpp"

namespace unisono::nic::test::wake_test {
namespace {

constexpr std::uint32_t kSum = UNISONO_NIC_SUM_INT64;

class Wake : public TrialDevice {
 protected:
  static unisono_nic_row waiting_row(unisono_nic_row row, std::uint32_t waiters = 1) {
    row.waiters = waiters;
    return row;
  }
  static std::unique_ptr<WakeRing> ring(const unisono_nic_row& row, std::uint32_t waiter = 0) {
    const GroupMaps maps = device->maps(row.index);
    auto opened =
        WakeRing::open(base::Descriptor(fcntl(maps.wakes.at(waiter), F_DUPFD_CLOEXEC, 0)), waiter);
    if (!opened.ok()) ADD_FAILURE() << opened.error().message;
    return *std::move(opened);
  }
  static bool is_rung(const WakeRing& ring) {
    pollfd source = {ring.descriptor(), POLLIN, 0};
    return poll(&source, 1, 0) > 0;
  }
  static unisono_packet result(const unisono_nic_row& row, std::uint64_t sequence) {
    unisono_packet packet = packet_of(UNISONO_NIC_RESULT, row.id, 0, sequence);
    packet.place = kSum;
    return packet;
  }
  static std::uint64_t counted(unisono_nic_counter counter) {
    return (*device->counters())[counter];
  }
  // The operation's result comes in.
  static void end(const unisono_nic_row& row, std::uint64_t sequence) {
    post(row, sequence, kSum, {1});
    EXPECT_EQ(run(Entry::receive, frame_of(row, result(row, sequence), {5})).verdict, kDrop);
    EXPECT_EQ(slot(row, sequence).done, sequence);
  }
};

TEST_F(Wake, NobodyWhoIsAwake) {
  const unisono_nic_row row = add(waiting_row(inner_row()));
  const auto own = ring(row);
  const std::uint64_t before = counted(UNISONO_NIC_WOKEN);
  for (std::uint64_t sequence = 0; sequence < 4; ++sequence) end(row, sequence);
  EXPECT_FALSE(is_rung(*own));
  EXPECT_EQ(counted(UNISONO_NIC_WOKEN), before);
}

TEST_F(Wake, OnceByTheResult) {
  const unisono_nic_row row = add(waiting_row(inner_row()));
  const auto own = ring(row);
  const std::uint64_t before = counted(UNISONO_NIC_WOKEN);
  for (std::uint64_t sequence = 0; sequence < 1000; ++sequence) {
    own->arm(slot(row, sequence));
    post(row, sequence, kSum, {1});
    run(Entry::receive, frame_of(row, give(row, 0, sequence, kSum), {1}));
    EXPECT_FALSE(is_rung(*own)) << "a contribution is not the result";
    const Frame frame = frame_of(row, result(row, sequence), {5});
    run(Entry::receive, frame);
    EXPECT_TRUE(is_rung(*own));
    EXPECT_EQ(slot(row, sequence).waiting, 0U);
    run(Entry::receive, frame);
    EXPECT_EQ(counted(UNISONO_NIC_WOKEN), before + sequence + 1) << "the double does not wake";
    own->disarm(slot(row, sequence));
    EXPECT_FALSE(is_rung(*own));
    slot(row, sequence).summed = sequence;
    slot(row, sequence).arrived = 0;
    for (int number = 0; number < 3; ++number) block(row, sequence, number).sequence = sequence;
  }
  EXPECT_EQ(counted(UNISONO_NIC_NOT_WOKEN), 0U);
}

TEST_F(Wake, NotAfterItHasChangedItsMind) {
  const unisono_nic_row row = add(waiting_row(inner_row()));
  const auto own = ring(row);
  own->arm(slot(row, 0));
  own->disarm(slot(row, 0));
  end(row, 0);
  EXPECT_FALSE(is_rung(*own));
}

TEST_F(Wake, ThereIsNoNeedToSleepForWhatHasEnded) {
  const unisono_nic_row row = add(waiting_row(inner_row()));
  const auto own = ring(row);
  const auto port = Port::open(device->row(row.index), device->memory(row.index));
  ASSERT_TRUE(port.ok()) << port.error().message;
  EXPECT_TRUE((*port)->arm(*own, 0));
  (*port)->disarm(*own, 0);
  end(row, 0);
  EXPECT_FALSE((*port)->arm(*own, 0));
  (*port)->disarm(*own, 0);
}

TEST_F(Wake, OfSeveralThoseWhoSleep) {
  const unisono_nic_row row = add(waiting_row(inner_row(), 3));
  const std::array<std::unique_ptr<WakeRing>, 3> rings = {ring(row, 0), ring(row, 1), ring(row, 2)};
  rings[0]->arm(slot(row, 0));
  rings[2]->arm(slot(row, 0));
  rings[1]->arm(slot(row, 1));
  end(row, 0);
  EXPECT_TRUE(is_rung(*rings[0]));
  EXPECT_FALSE(is_rung(*rings[1])) << "it waits for another operation";
  EXPECT_TRUE(is_rung(*rings[2]));
}

TEST_F(Wake, TheRootByTheLastContribution) {
  const unisono_nic_row row = add(waiting_row(root_row()));
  const auto own = ring(row);
  post(row, 0, kSum, {1});
  own->arm(slot(row, 0));
  run(Entry::receive, frame_of(row, give(row, 0, 0, kSum), {1}));
  EXPECT_FALSE(is_rung(*own));
  EXPECT_EQ(run(Entry::receive, frame_of(row, give(row, 1, 0, kSum), {1})).verdict, kSend);
  EXPECT_TRUE(is_rung(*own));
}

TEST_F(Wake, ByContributionsThatDoNotMatch) {
  const unisono_nic_row row = add(waiting_row(inner_row()));
  const auto own = ring(row);
  post(row, 0, kSum, {1});
  own->arm(slot(row, 0));
  run(Entry::receive, frame_of(row, give(row, 0, 0, kSum), {1}));
  run(Entry::receive, frame_of(row, give(row, 1, 0, UNISONO_NIC_XOR), {1}));
  EXPECT_EQ(slot(row, 0).broken, 0U);
  EXPECT_TRUE(is_rung(*own));
}

TEST_F(Wake, ByAResultThatDoesNotMatch) {
  const unisono_nic_row row = add(waiting_row(inner_row()));
  const auto own = ring(row);
  post(row, 0, kSum, {1});
  own->arm(slot(row, 0));
  run(Entry::receive, frame_of(row, result(row, 0), {1, 2}));
  EXPECT_EQ(slot(row, 0).broken, 0U);
  EXPECT_TRUE(is_rung(*own));
}

TEST_F(Wake, ByTheLastBlockOfAnAllgather) {
  unisono_nic_row gathers = {};
  gathers.id.job = 79;
  gathers.key = {1, 2};
  gathers.rank = 1;
  gathers.depth = 2;
  gathers.ranks = 3;
  gathers.own = host_address(1);
  const unisono_nic_row row = add(waiting_row(gathers));
  const auto own = ring(row);
  unisono_nic_slot& operation = device->memory(row.index).slots[0];
  operation.arrived = 2;
  own->arm(operation);
  for (const int origin : {0, 2}) {
    EXPECT_FALSE(is_rung(*own));
    unisono_packet packet = packet_of(UNISONO_NIC_BLOCK, row.id, origin, 0);
    packet.origin = static_cast<std::uint32_t>(origin);
    packet.target = UNISONO_PACKET_GROUP;
    run(Entry::receive, make_frame(host_address(origin), row.own, packet, Words{7}, row.key));
  }
  EXPECT_EQ(operation.done, 0U);
  EXPECT_TRUE(is_rung(*own));
}

// The own process completes an operation whose last block is its own. Its doorbell packet wakes the
// other sleepers of its host.
TEST_F(Wake, ByTheDoorbellForTheLastBlockOfAnAllgather) {
  unisono_nic_row gathers = {};
  gathers.id.job = 80;
  gathers.key = {1, 2};
  gathers.rank = 1;
  gathers.depth = 2;
  gathers.ranks = 2;
  gathers.own = host_address(1);
  gathers.at[0] = host_address(0);
  gathers.route[1].targets = 1;
  const unisono_nic_row row = add(waiting_row(gathers, 2));
  const auto poster = ring(row, 0);
  const auto other = ring(row, 1);
  const GroupMemory memory = device->memory(row.index);
  other->arm(memory.slots[0]);
  unisono_packet packet = packet_of(UNISONO_NIC_BLOCK, row.id, 0, 0);
  packet.target = UNISONO_PACKET_GROUP;
  run(Entry::receive, make_frame(host_address(0), row.own, packet, Words{7}, row.key));
  EXPECT_FALSE(is_rung(*other));
  memory.blocks[1].words = 1;
  memory.blocks[1].sequence = 0;
  memory.slots[0].arrived = 0;
  memory.slots[0].done = 0;
  run(Entry::leave, from_process(row, UNISONO_NIC_DOORBELL, 0, 1));
  EXPECT_TRUE(is_rung(*other));
  EXPECT_FALSE(is_rung(*poster)) << "it did not sleep";
}

// The word is the process's to write.
TEST_F(Wake, BitsOfNobodyDoNothing) {
  const unisono_nic_row row = add(waiting_row(inner_row()));
  const unisono_nic_row other = add(waiting_row(inner_row()));
  const auto own = ring(row);
  const auto others = ring(other);
  others->arm(slot(other, 0));
  slot(row, 0).waiting = ~std::uint64_t{1};
  end(row, 0);
  EXPECT_FALSE(is_rung(*own));
  EXPECT_FALSE(is_rung(*others));
}

// A process may map and write the position up to which it has read.
TEST_F(Wake, WhoSpoilsItsRingSpoilsNoOthers) {
  const unisono_nic_row row = add(waiting_row(inner_row()));
  const unisono_nic_row other = add(waiting_row(inner_row()));
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const int hostile = device->maps(row.index).wakes.at(0);
  void* const start = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_SHARED, hostile, 0);
  ASSERT_NE(start, MAP_FAILED);
  EXPECT_EQ(
      mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_SHARED, hostile, static_cast<off_t>(page)),
      MAP_FAILED)
      << "what the program writes is not to be written";
  auto& taken = *static_cast<volatile std::uint64_t*>(start);
  const auto others = ring(other);
  const std::uint64_t before = counted(UNISONO_NIC_WOKEN) + counted(UNISONO_NIC_NOT_WOKEN);
  std::uint64_t sequence = 0;
  for (const std::uint64_t position : {~std::uint64_t{0}, std::uint64_t{1} << 63, std::uint64_t{3},
                                       std::uint64_t{page}, std::uint64_t{0}}) {
    // More than it holds.
    for (std::size_t i = 0; i < page / 8; ++i, ++sequence) {
      taken = position;
      slot(row, 0).waiting = 1;
      slot(row, 0).claimed = slot(row, 0).done = std::uint64_t{0} - row.depth;
      end(row, 0);
    }
    others->arm(slot(other, 0));
    slot(other, 0).claimed = slot(other, 0).done = std::uint64_t{0} - other.depth;
    end(other, 0);
    EXPECT_TRUE(is_rung(*others));
    others->disarm(slot(other, 0));
    ++sequence;
  }
  EXPECT_EQ(counted(UNISONO_NIC_WOKEN) + counted(UNISONO_NIC_NOT_WOKEN), before + sequence);
  EXPECT_GT(counted(UNISONO_NIC_NOT_WOKEN), 0U) << "a ring that is never read is full some day";
  munmap(start, page);
}

}  // namespace
}  // namespace unisono::nic::test::wake_test
