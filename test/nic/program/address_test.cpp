// SPDX-License-Identifier: BSD-3-Clause
// The packets that the NIC program takes as its host's. A host may carry frames of its guests,
// route datagrams of others, and have other services. A packet without a group on this host passes
// unchanged, and causes no packet. A process's packets to its program carry the group's secret.
#include <arpa/inet.h>

#include <functional>

#include "nic/harness/trial_device.hpp"
#include "nic/lowering/row.hpp"

namespace unisono::nic::test::address_test {
namespace {

constexpr std::uint32_t kSum = UNISONO_NIC_SUM_INT64;

class Address : public TrialDevice {
 protected:
  // Rank 1, which sends results on to two others.
  static unisono_nic_row forwarding_row() {
    unisono_nic_row row = inner_row();
    row.down = {};
    row.forwards = 2;
    row.forward[0] = host_address(3);
    row.forward[1] = host_address(4);
    return row;
  }
  static unisono_packet result_of(const unisono_nic_row& row, int sender) {
    unisono_packet packet = packet_of(UNISONO_NIC_RESULT, row.id, sender, 0);
    packet.position = row.own_slot;
    packet.place = kSum;
    return packet;
  }
  static void expect_passes(const Frame& frame, const char* what) {
    const TrialRun seen = run(Entry::receive, frame);
    EXPECT_EQ(seen.verdict, kPass) << what;
    EXPECT_EQ(seen.frame, frame) << what;
  }
};

struct Change {
  const char* what;
  std::function<void(Frame&)> make;
};

std::vector<Change> changes_of_address() {
  const auto flip = [](std::size_t byte) {
    return [byte](Frame& frame) { frame[byte] ^= std::byte{1}; };
  };
  return {
      {"another Ethernet address, as a guest has", flip(5)},
      {"another IPv4 address, as a host that routes sees", flip(kIp + 19)},
      {"another port, as another service has", flip(kUdp + 3)},
      {"TCP", [](Frame& frame) { frame[kIp + 9] = std::byte{6}; }},
      {"a fragment", [](Frame& frame) { frame[kIp + 6] = std::byte{0x20}; }},
  };
}

TEST_F(Address, WhatIsForOthersPassesAsItCame) {
  const unisono_nic_row row = add(inner_row());
  const Frame own = frame_of(row, give(row, 0, 0, kSum), {1});
  Frame result = frame_of(row, result_of(row, 0), {1});
  const std::string memory = memory_of(row);
  for (const Change& change : changes_of_address()) {
    for (const Frame& genuine : {own, result}) {
      Frame frame = genuine;
      change.make(frame);
      expect_passes(frame, change.what);
      // The same of a group that this host does not have.
      frame[kPacket + offsetof(unisono_packet, job)] ^= std::byte{1};
      expect_passes(frame, change.what);
    }
  }
  EXPECT_EQ(memory_of(row), memory);
  EXPECT_EQ(run(Entry::receive, own).verdict, kDrop);
  EXPECT_EQ(slot(row, 0).arrived, 2U) << "as it was, it is taken";
}

TEST_F(Address, OfUnknownGroupsOnlyWhatIsAddressedToTheHostIsDropped) {
  const unisono_nic_row row = add(inner_row());
  const unisono_nic_id unknown = {row.id.job, row.id.communicator + 1};
  const unisono_packet packet = packet_of(UNISONO_NIC_RESULT, unknown, 0, 0);
  forget_counts();
  EXPECT_EQ(run(Entry::receive, make_frame(host_address(0), row.own, packet, {}, row.key)).verdict,
            kDrop);
  expect_counted(UNISONO_NIC_NO_GROUP);
  const auto group = multicast_address(inet_addr("239.7.7.7"), row.own.port);
  expect_passes(make_frame(host_address(0), group, packet, {}, row.key), "another multicast group");
  expect_counted(UNISONO_NIC_OTHERS_FRAME);
}

TEST_F(Address, AFrameOfAnUnkeyedStrangerToThisHostIsDropped) {
  const unisono_nic_row row = add(inner_row());
  const unisono_packet packet = give(row, 0, 0, kSum);
  forget_counts();
  EXPECT_EQ(run(Entry::receive, make_frame(host_address(9), row.own, packet, {}, {1, 2})).verdict,
            kDrop);
  expect_counted(UNISONO_NIC_BAD_TAG);
}

// Results and questions that this host has sent itself, and that an eavesdropper sends back. They
// have an address that passes the program at the entry, or this host's own.
TEST_F(Address, AReplayedResultMakesNobodySend) {
  const unisono_nic_row row = add(forwarding_row());
  unisono_packet question = packet_of(UNISONO_NIC_ASK_GIVE, row.id, 1, 0);
  question.target = row.rank;
  for (const unisono_packet& packet : {result_of(row, 1), question}) {
    unisono_nic_address broadcast = row.own;
    std::fill(std::begin(broadcast.mac), std::end(broadcast.mac), std::uint8_t{0xFF});
    const unisono_nic_address targets[] = {broadcast, host_address(7), row.forward[0]};
    for (const unisono_nic_address& target : targets) {
      const Frame frame = make_frame(host_address(9), target, packet, Words{1}, row.key);
      expect_passes(frame, "replayed");
      const TrialRun spread = run(Entry::spread, frame);
      EXPECT_EQ(spread.verdict, kTcNext);
      EXPECT_EQ(spread.frame, frame);
    }
    // The program at the entry lets nothing pass that goes to the host itself.
    const Frame to_it = make_frame(host_address(9), row.own, packet, Words{1}, row.key);
    EXPECT_EQ(run(Entry::receive, to_it).verdict, kDrop);
    EXPECT_EQ(run(Entry::spread, to_it).verdict, kTcNext);
  }
}

TEST_F(Address, AResultForSeveralGoesBetweenTheProgramsUnderTheHostsOwnAddress) {
  const unisono_nic_row row = add(forwarding_row());
  post(row, 0, kSum, {5});
  slot(row, 0).summed = 0;
  const Frame result = make_frame(host_address(0), row.own, result_of(row, 0), Words{7}, row.key);
  const TrialRun passed = run(Entry::receive, result);
  EXPECT_EQ(passed.verdict, kPass);
  EXPECT_EQ(passed.frame, make_frame(row.own, row.own, result_of(row, 1), Words{7}, row.key));
  const TrialRun spread = run(Entry::spread, passed.frame);
  EXPECT_EQ(spread.verdict, kTcDrop) << "clones are sent";
  EXPECT_EQ(spread.frame, make_frame(row.own, row.forward[0], result_of(row, 1), Words{7}, row.key))
      << "the last one";
}

TEST_F(Address, DoorbellPacketsWithoutTheSecretMakeNobodySend) {
  const unisono_nic_row row = add(root_row());
  run(Entry::receive, frame_of(row, give(row, 0, 0, kSum), {1}));
  post(row, 0, kSum, {1});
  const std::string memory = memory_of(row);
  for (const std::uint8_t kind : {UNISONO_NIC_DOORBELL, UNISONO_NIC_ASK, UNISONO_NIC_QUERY}) {
    const Frame genuine = from_process(row, kind, 0, 1);
    for (std::size_t byte = 0; byte < sizeof(std::uint64_t); ++byte) {
      Frame frame = genuine;
      frame[kPacket + offsetof(unisono_packet, tag) + byte] ^= std::byte{0x10};
      forget_counts();
      const TrialRun seen = run(Entry::leave, frame);
      EXPECT_EQ(seen.verdict, kTcDrop);
      EXPECT_EQ(seen.frame, frame);
      expect_counted(UNISONO_NIC_BAD_TAG);
    }
    unisono_nic_row other = row;
    other.key.high ^= 1;
    EXPECT_EQ(run(Entry::leave, from_process(other, kind, 0, 1)).verdict, kTcDrop);
  }
  EXPECT_EQ(memory_of(row), memory);
  EXPECT_EQ(run(Entry::leave, from_process(row, UNISONO_NIC_QUERY, 0, 1)).verdict, kTcNext);
  EXPECT_EQ(run(Entry::leave, from_process(row, UNISONO_NIC_ASK, 0, 1)).verdict, kTcDrop)
      << "a question for the child that lacks, by a clone";
}

// Packets of a guest that has a program of its own, or has lost it.
TEST_F(Address, DoorbellPacketsOfOtherHostsPass) {
  const unisono_nic_row row = add(inner_row());
  Frame frame = from_process(row, UNISONO_NIC_DOORBELL, 0);
  frame[11] ^= std::byte{1};  // made at another Ethernet address
  EXPECT_EQ(run(Entry::leave, frame).verdict, kTcNext);
  frame[kPacket + offsetof(unisono_packet, job)] ^= std::byte{1};
  EXPECT_EQ(run(Entry::leave, frame).verdict, kTcNext);
}

}  // namespace
}  // namespace unisono::nic::test::address_test
