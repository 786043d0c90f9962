// SPDX-License-Identifier: BSD-3-Clause
// The NIC program without a network: loaded once per test program, given frames by the kernel's
// trial run. Skips, and says why, where the kernel does not let us.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <string>

#include "nic/harness/frames.hpp"
#include "nic/loader/device.hpp"

namespace unisono::nic::test {

// xdp_action, and the return value of the tc program.
inline constexpr std::uint32_t kDrop = 1;
inline constexpr std::uint32_t kPass = 2;
inline constexpr std::uint32_t kSend = 3;
inline constexpr std::uint32_t kTcNext = 0xFFFFFFFF;
inline constexpr std::uint32_t kTcDrop = 2;

class TrialDevice : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto loaded = load_device({});
    if (loaded.ok())
      device = *std::move(loaded);
    else
      problem = loaded.error();
  }
  static void TearDownTestSuite() { device.reset(); }

  void SetUp() override {
    if (device == nullptr && problem.code == base::Code::unsupported)
      GTEST_SKIP() << problem.message;
    ASSERT_NE(device, nullptr) << problem.message;
    forget_counts();
  }

  // Exactly one count of `counter` since the last call.
  void expect_counted(unisono_nic_counter counter) {
    const Counters now = *device->counters();
    for (int i = 0; i < UNISONO_NIC_COUNTERS; ++i) {
      const auto at = static_cast<std::size_t>(i);
      EXPECT_EQ(now[at] - before_[at], i == counter ? 1U : 0U)
          << counter_name(static_cast<unisono_nic_counter>(i));
    }
    before_ = now;
  }
  void forget_counts() { before_ = *device->counters(); }

  // The state of a group's operations in memory.
  static std::string memory_of(const unisono_nic_row& row) {
    std::string bytes;
    for (std::uint32_t i = 0; i < row.depth; ++i) {
      bytes.append(reinterpret_cast<const char*>(&slot(row, i)), sizeof(unisono_nic_slot));
      bytes.append(reinterpret_cast<const char*>(&block(row, i, 0)),
                   sizeof(unisono_nic_block) * unisono_nic_blocks(&row));
    }
    return bytes;
  }

  // A group of this rank's that is removed with the test. The row's places are those it got.
  unisono_nic_row add(unisono_nic_row row) {
    row.id.communicator = ++communicator;
    auto index = device->add_group(row);
    if (!index.ok()) {
      ADD_FAILURE() << index.error().message;
      return row;
    }
    indices.push_back(*index);
    return device->row(*index);
  }
  void TearDown() override {
    for (const std::uint32_t index : indices) EXPECT_TRUE(device->remove_group(index).ok());
  }

  static TrialRun run(Entry entry, const Frame& frame) {
    auto result = device->try_frame(entry, frame);
    if (!result.ok()) {
      ADD_FAILURE() << result.error().message;
      return {};
    }
    return *std::move(result);
  }

  static unisono_nic_slot& slot(const unisono_nic_row& row, std::uint64_t sequence) {
    return device->memory(row.index).slots[sequence % row.depth];
  }
  static unisono_nic_block& block(const unisono_nic_row& row, std::uint64_t sequence, int number) {
    return device->memory(row.index).blocks[sequence % row.depth * unisono_nic_blocks(&row) +
                                            static_cast<std::uint32_t>(number)];
  }
  // The process's own contribution, without a doorbell packet.
  static void post(const unisono_nic_row& row, std::uint64_t sequence, std::uint32_t combine,
                   const Words& words) {
    unisono_nic_block& own = block(row, sequence, 0);
    own.sequence = sequence;
    own.combine = combine;
    own.words = static_cast<std::uint32_t>(words.size());
    std::copy(words.begin(), words.end(), own.data);
    slot(row, sequence).arrived |= 1;
  }

  static inline std::unique_ptr<Device> device;
  static inline base::Error problem;
  static inline std::uint32_t communicator = 0;
  std::vector<std::uint32_t> indices;

 private:
  Counters before_ = {};
};

// Rank 1 of six: children 3 and 4, whose contributions have the numbers 1 and 2 here. Its own has
// number 5 at its parent 0, which also sends the results.
inline unisono_nic_row inner_row(std::uint32_t flags = UNISONO_NIC_RETURNS_VALUES) {
  unisono_nic_row row = {};
  row.id.job = 77;
  row.key = {0x0123456789ABCDEF, 0xFEDCBA9876543210};
  row.rank = 1;
  row.flags = flags;
  row.depth = 2;
  row.children = 2;
  row.first_slot = 1;
  row.own_slot = 5;
  row.own = host_address(1);
  row.up = host_address(0);
  row.down = group_address();
  row.child_rank[0] = 3;
  row.child_rank[1] = 4;
  row.child[0] = host_address(3);
  row.child[1] = host_address(4);
  return row;
}

// The same with so many children.
inline unisono_nic_row wide_row(std::uint32_t children) {
  unisono_nic_row row = inner_row();
  row.children = children;
  for (std::uint32_t child = 0; child < children; ++child) {
    row.child_rank[child] = child + 2;
    row.child[child] = host_address(static_cast<int>(child) + 2);
  }
  return row;
}

inline unisono_nic_row root_row(std::uint32_t flags = UNISONO_NIC_RETURNS_VALUES) {
  unisono_nic_row row = inner_row(flags | UNISONO_NIC_ROOT);
  row.rank = 0;
  row.own = host_address(0);
  row.own_slot = 0;
  return row;
}

// The contribution of a child (its number) to an operation.
inline unisono_packet give(const unisono_nic_row& row, std::uint32_t child, std::uint64_t sequence,
                           std::uint32_t combine) {
  unisono_packet packet =
      packet_of(UNISONO_NIC_GIVE, row.id, static_cast<int>(row.child_rank[child]), sequence);
  packet.target = row.rank;
  packet.position = row.first_slot + child;
  packet.place = combine;
  return packet;
}

// A packet of the group's process to its program: DOORBELL, ASK or QUERY, with room for this many
// words.
inline Frame from_process(const unisono_nic_row& row, std::uint8_t kind, std::uint64_t sequence,
                          std::size_t words = 0) {
  Frame frame =
      make_frame(row.own, row.up, packet_of(kind, row.id, static_cast<int>(row.rank), sequence),
                 Words(words), row.key);
  const std::uint64_t secret = unisono_nic_secret(&row.key);
  std::memcpy(frame.data() + kPacket + offsetof(unisono_packet, tag), &secret, sizeof secret);
  // The sockets of processes send to the port of their own host's program.
  std::memcpy(frame.data() + kUdp + 2, &row.own.port, sizeof row.own.port);
  return frame;
}

// The sum that an inner node sends up.
inline Frame expected_up(const unisono_nic_row& row, std::uint64_t sequence, std::uint32_t combine,
                         const Words& words) {
  unisono_packet packet = packet_of(UNISONO_NIC_GIVE, row.id, static_cast<int>(row.rank), sequence);
  packet.target = row.parent;
  packet.position = row.own_slot;
  packet.place = combine;
  return make_frame(row.own, row.up, packet, words, row.key);
}

inline Frame expected_down(const unisono_nic_row& row, std::uint64_t sequence,
                           std::uint32_t combine, const Words& words) {
  unisono_packet packet =
      packet_of(UNISONO_NIC_RESULT, row.id, static_cast<int>(row.rank), sequence);
  packet.position = row.own_slot;
  packet.place = combine;
  return make_frame(row.own, row.down, packet, words, row.key);
}

inline Frame frame_of(const unisono_nic_row& row, const unisono_packet& packet,
                      const Words& words) {
  const bool is_result = packet.kind == UNISONO_NIC_RESULT;
  return make_frame(host_address(static_cast<int>(packet.sender)), is_result ? row.down : row.own,
                    packet, words, row.key);
}

}  // namespace unisono::nic::test
