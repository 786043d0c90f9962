// SPDX-License-Identifier: BSD-3-Clause
// The NIC program packet by packet, through the kernel's trial run. Checked are the action, the
// output (compared byte by byte with a frame built independently), and the counter. For refused
// packets, no memory may change.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>

#include "arith/kernel.hpp"
#include "base/clock.hpp"
#include "base/prng.hpp"
#include "harness/scale.hpp"
#include "nic/harness/trial_device.hpp"
#include "nic/lowering/lower.hpp"
#include "unit/arith/element_data.hpp"

namespace unisono::nic::test::program_test {
namespace {

constexpr std::uint32_t kSum = UNISONO_NIC_SUM_INT64;

class Program : public TrialDevice {};

TEST_F(Program, InnerNodeSendsUpWhenTheLastChildArrives) {
  const unisono_nic_row row = add(inner_row());
  for (std::uint64_t sequence = 0; sequence < 6; ++sequence) {
    post(row, sequence, kSum, {100 + sequence, 7});
    // Either child may be the last.
    const std::uint32_t first = sequence % 2;
    auto seen = run(Entry::receive, frame_of(row, give(row, first, sequence, kSum), {1, 10}));
    EXPECT_EQ(seen.verdict, kDrop);
    expect_counted(UNISONO_NIC_TAKEN_IN);
    seen = run(Entry::receive, frame_of(row, give(row, 1 - first, sequence, kSum), {2, 20}));
    EXPECT_EQ(seen.verdict, kSend);
    EXPECT_EQ(seen.frame, expected_up(row, sequence, kSum, {103 + sequence, 37}));
    expect_counted(UNISONO_NIC_SENT_UP);
    EXPECT_EQ(slot(row, sequence).arrived, 0U);
    EXPECT_NE(slot(row, sequence).done, sequence) << "an inner node does not know the result";
  }
}

TEST_F(Program, DoorbellSendsUpWhenTheOwnProcessIsTheLast) {
  const unisono_nic_row row = add(inner_row());
  run(Entry::receive, frame_of(row, give(row, 0, 0, kSum), {1, 10}));
  run(Entry::receive, frame_of(row, give(row, 1, 0, kSum), {2, 20}));
  const Frame doorbell = from_process(row, UNISONO_NIC_DOORBELL, 0, 2);
  forget_counts();
  EXPECT_EQ(run(Entry::leave, doorbell).verdict, kTcDrop);
  expect_counted(UNISONO_NIC_STRAY_DOORBELL);
  post(row, 0, kSum, {100, 7});
  const TrialRun seen = run(Entry::leave, doorbell);
  EXPECT_EQ(seen.verdict, kTcNext);
  EXPECT_EQ(seen.frame, expected_up(row, 0, kSum, {103, 37}));
  expect_counted(UNISONO_NIC_SENT_UP);
  EXPECT_EQ(run(Entry::leave, doorbell).verdict, kTcDrop);
  expect_counted(UNISONO_NIC_STRAY_DOORBELL);
}

TEST_F(Program, DoorbellMayHaveAnyLength) {
  const unisono_nic_row row = add(inner_row());
  for (std::uint64_t sequence = 0; sequence < 4; ++sequence) {
    run(Entry::receive, frame_of(row, give(row, 0, sequence, kSum), {1, 10}));
    run(Entry::receive, frame_of(row, give(row, 1, sequence, kSum), {2, 20}));
    post(row, sequence, kSum, {100, 7});
    const TrialRun seen =
        run(Entry::leave, from_process(row, UNISONO_NIC_DOORBELL, sequence, sequence * 50));
    EXPECT_EQ(seen.verdict, kTcNext);
    EXPECT_EQ(seen.frame, expected_up(row, sequence, kSum, {103, 37}));
  }
}

TEST_F(Program, RootMulticastsTheResultAndHasIt) {
  const unisono_nic_row row = add(root_row());
  post(row, 0, kSum, {100, 7});
  run(Entry::receive, frame_of(row, give(row, 1, 0, kSum), {2, 20}));
  forget_counts();
  const std::int64_t before_ns = base::now_ns();
  const TrialRun seen = run(Entry::receive, frame_of(row, give(row, 0, 0, kSum), {1, 10}));
  EXPECT_GE(slot(row, 0).done_ns, static_cast<std::uint64_t>(before_ns));
  EXPECT_LE(slot(row, 0).done_ns, static_cast<std::uint64_t>(base::now_ns()));
  EXPECT_EQ(seen.verdict, kSend);
  EXPECT_EQ(seen.frame, expected_down(row, 0, kSum, {103, 37}));
  expect_counted(UNISONO_NIC_SENT_DOWN);
  EXPECT_EQ(slot(row, 0).done, 0U);
  EXPECT_EQ(block(row, 0, 0).data[1], 37U);
}

// A reduce tells the others only that there is a result.
TEST_F(Program, RootOfAReduceReleasesWithoutValues) {
  const unisono_nic_row row = add(root_row(0));
  post(row, 0, kSum, {100, 7});
  run(Entry::receive, frame_of(row, give(row, 0, 0, kSum), {1, 10}));
  const TrialRun seen = run(Entry::receive, frame_of(row, give(row, 1, 0, kSum), {2, 20}));
  EXPECT_EQ(seen.verdict, kSend);
  EXPECT_EQ(seen.frame, expected_down(row, 0, kSum, {}));
  EXPECT_EQ(block(row, 0, 0).data[0], 103U);
}

TEST_F(Program, BarrierHasNoWords) {
  const unisono_nic_row row = add(inner_row(0));
  post(row, 0, UNISONO_NIC_NOTHING, {});
  run(Entry::receive, frame_of(row, give(row, 0, 0, UNISONO_NIC_NOTHING), {}));
  const TrialRun seen =
      run(Entry::receive, frame_of(row, give(row, 1, 0, UNISONO_NIC_NOTHING), {}));
  EXPECT_EQ(seen.verdict, kSend);
  EXPECT_EQ(seen.frame, expected_up(row, 0, UNISONO_NIC_NOTHING, {}));
}

unisono_packet result(const unisono_nic_row& row, std::uint64_t sequence, std::uint32_t combine) {
  unisono_packet packet = packet_of(UNISONO_NIC_RESULT, row.id, 0, sequence);
  packet.place = combine;
  return packet;
}

TEST_F(Program, ResultIsWrittenToMemoryOnce) {
  const unisono_nic_row row = add(inner_row());
  post(row, 0, kSum, {100, 7});
  const Frame frame = frame_of(row, result(row, 0, kSum), {55, 66});
  EXPECT_EQ(run(Entry::receive, frame).verdict, kDrop);
  expect_counted(UNISONO_NIC_CAME_DOWN);
  EXPECT_EQ(slot(row, 0).done, 0U);
  EXPECT_EQ(block(row, 0, 0).data[0], 55U);
  EXPECT_EQ(block(row, 0, 0).data[1], 66U);
  const std::string memory = memory_of(row);
  EXPECT_EQ(run(Entry::receive, frame).verdict, kDrop);
  expect_counted(UNISONO_NIC_STALE);
  EXPECT_EQ(memory_of(row), memory);
}

TEST_F(Program, TwoOperationsInFlightDoNotMix) {
  const unisono_nic_row row = add(inner_row());
  post(row, 0, kSum, {1});
  post(row, 1, kSum, {1000});
  run(Entry::receive, frame_of(row, give(row, 0, 1, kSum), {2000}));
  run(Entry::receive, frame_of(row, give(row, 0, 0, kSum), {2}));
  const TrialRun second = run(Entry::receive, frame_of(row, give(row, 1, 1, kSum), {3000}));
  EXPECT_EQ(second.frame, expected_up(row, 1, kSum, {6000}));
  const TrialRun first = run(Entry::receive, frame_of(row, give(row, 1, 0, kSum), {3}));
  EXPECT_EQ(first.frame, expected_up(row, 0, kSum, {6}));
}

// Two groups; one would accept the other's packets if only ranks were checked.
TEST_F(Program, TwoGroupsDoNotMix) {
  const unisono_nic_row one = add(inner_row());
  const unisono_nic_row two = add(inner_row());
  post(one, 0, kSum, {1});
  const std::string memory = memory_of(one);
  EXPECT_EQ(run(Entry::receive, frame_of(two, give(two, 0, 0, kSum), {2})).verdict, kDrop);
  expect_counted(UNISONO_NIC_TAKEN_IN);
  EXPECT_EQ(memory_of(one), memory);
  EXPECT_EQ(slot(two, 0).arrived, 2U);
}

// Numbers of children on both sides of an arrival word's capacity. They arrive in any order,
// several times over the same slots.
TEST_F(Program, ManyChildren) {
  base::Prng random(7);
  for (const int number :
       {58, 59, 60, 61, 62, 63, 64, 122, 123, 124, 187, 188, 250, UNISONO_NIC_CHILDREN_MAX}) {
    const auto children = static_cast<std::uint32_t>(number);
    const unisono_nic_row row = add(wide_row(children));
    std::vector<std::uint32_t> order(children);
    std::iota(order.begin(), order.end(), 0U);
    for (std::uint64_t sequence = 0; sequence < 2 * row.depth; ++sequence) {
      std::ranges::shuffle(order, random);
      post(row, sequence, kSum, {1});
      for (const std::uint32_t child : order) {
        const TrialRun seen =
            run(Entry::receive, frame_of(row, give(row, child, sequence, kSum), {child}));
        const bool is_last = child == order.back();
        ASSERT_EQ(seen.verdict, is_last ? kSend : kDrop) << children << " children, " << child;
        if (is_last) {
          EXPECT_EQ(payload_in(seen.frame), (Words{1 + children * (children - 1) / 2}));
        }
      }
      EXPECT_EQ(slot(row, sequence).arrived, 0U);
    }
  }
}

TEST_F(Program, ContributionsThatDifferBreakTheOperation) {
  const unisono_nic_row row = add(inner_row());
  post(row, 0, kSum, {1, 2});
  run(Entry::receive, frame_of(row, give(row, 0, 0, kSum), {1, 2}));
  forget_counts();
  EXPECT_EQ(run(Entry::receive, frame_of(row, give(row, 1, 0, kSum), {1})).verdict, kDrop);
  expect_counted(UNISONO_NIC_MISMATCH);
  EXPECT_EQ(slot(row, 0).broken, 0U);
  EXPECT_NE(slot(row, 0).done, 0U);

  post(row, 1, kSum, {1});
  run(Entry::receive, frame_of(row, give(row, 0, 1, UNISONO_NIC_MAX_INT64), {1}));
  forget_counts();
  EXPECT_EQ(run(Entry::receive, frame_of(row, give(row, 1, 1, kSum), {1})).verdict, kDrop);
  expect_counted(UNISONO_NIC_MISMATCH);
  EXPECT_EQ(slot(row, 1).broken, 1U);
}

// A packet that is not taken, and why. `spoil` gets a good frame of child 0 for operation 0.
struct Refusal {
  const char* what;
  std::uint32_t verdict;
  unisono_nic_counter counter;
  std::function<void(const unisono_nic_row&, Frame&)> spoil;
};

// The frame made anew, with a right tag, after a change to its packet.
std::function<void(const unisono_nic_row&, Frame&)> resent(
    const std::function<void(unisono_packet&)>& change) {
  return [change](const unisono_nic_row& row, Frame& frame) {
    unisono_packet packet = packet_in(frame);
    change(packet);
    frame = make_frame(host_address(3), row.own, packet, payload_in(frame), row.key);
  };
}

std::function<void(const unisono_nic_row&, Frame&)> flipped(std::size_t byte) {
  return [byte](const unisono_nic_row&, Frame& frame) { frame[byte] ^= std::byte{1}; };
}

void set_length(Frame& frame, std::uint16_t length) {
  std::memcpy(frame.data() + kPacket + offsetof(unisono_packet, length), &length, sizeof length);
}

std::vector<Refusal> refusals() {
  using P = unisono_packet;
  const auto field = [](std::size_t offset) { return kPacket + offset; };
  return {
      {"a frame of 14 bytes", kPass, UNISONO_NIC_FOREIGN, [](auto&, Frame& f) { f.resize(14); }},
      {"cut in the header", kPass, UNISONO_NIC_FOREIGN,
       [](auto&, Frame& f) { f.resize(kPayload - 1); }},
      {"ARP", kPass, UNISONO_NIC_FOREIGN, [](auto&, Frame& f) { f[13] = std::byte{6}; }},
      {"IP version 6", kPass, UNISONO_NIC_FOREIGN,
       [](auto&, Frame& f) { f[kIp] = std::byte{0x65}; }},
      {"IP options", kPass, UNISONO_NIC_FOREIGN, [](auto&, Frame& f) { f[kIp] = std::byte{0x46}; }},
      {"a first fragment", kPass, UNISONO_NIC_FOREIGN,
       [](auto&, Frame& f) { f[kIp + 6] = std::byte{0x20}; }},
      {"a later fragment", kPass, UNISONO_NIC_FOREIGN,
       [](auto&, Frame& f) { f[kIp + 7] = std::byte{1}; }},
      {"TCP", kPass, UNISONO_NIC_FOREIGN, [](auto&, Frame& f) { f[kIp + 9] = std::byte{6}; }},
      {"no magic", kPass, UNISONO_NIC_FOREIGN, flipped(field(offsetof(P, magic)))},
      {"another version", kPass, UNISONO_NIC_FOREIGN, flipped(field(offsetof(P, version)))},
      {"a host's kind", kPass, UNISONO_NIC_FOREIGN,
       resent([](P& p) { p.kind = UNISONO_PACKET_PUT; })},
      {"a question of a process from outside", kPass, UNISONO_NIC_FOREIGN,
       resent([](P& p) { p.kind = UNISONO_NIC_ASK; })},
      {"a doorbell packet from outside", kPass, UNISONO_NIC_FOREIGN,
       resent([](P& p) { p.kind = UNISONO_NIC_DOORBELL; })},
      {"another job", kDrop, UNISONO_NIC_NO_GROUP, resent([](P& p) { p.job ^= 1; })},
      {"an unknown communicator", kDrop, UNISONO_NIC_NO_GROUP,
       resent([](P& p) { p.communicator ^= 0x8000; })},
      {"another host's frame", kPass, UNISONO_NIC_OTHERS_FRAME, flipped(5)},
      {"shorter than it says", kDrop, UNISONO_NIC_SHORT,
       [](auto&, Frame& f) { f.resize(f.size() - 1); }},
      {"half a word", kDrop, UNISONO_NIC_SHORT, [](auto&, Frame& f) { set_length(f, 12); }},
      {"longer than a packet", kDrop, UNISONO_NIC_SHORT,
       [](auto&, Frame& f) {
         f.resize(f.size() + 1400);
         set_length(f, 1408);
       }},
      {"a length that is made up", kDrop, UNISONO_NIC_BAD_TAG,
       [](auto&, Frame& f) { set_length(f, 8); }},
      {"a flipped bit in the tag", kDrop, UNISONO_NIC_BAD_TAG,
       flipped(field(offsetof(P, tag) + 7))},
      {"a flipped bit in the sequence", kDrop, UNISONO_NIC_BAD_TAG,
       flipped(field(offsetof(P, sequence)))},
      {"a flipped bit in the sender", kDrop, UNISONO_NIC_BAD_TAG,
       flipped(field(offsetof(P, sender)))},
      {"a flipped bit in the place", kDrop, UNISONO_NIC_BAD_TAG,
       flipped(field(offsetof(P, place)))},
      {"a flipped bit in the value", kDrop, UNISONO_NIC_BAD_TAG,
       flipped(field(offsetof(P, value)))},
      {"a flipped bit in the vector", kDrop, UNISONO_NIC_BAD_TAG, flipped(kPayload + 15)},
      {"another job's key", kDrop, UNISONO_NIC_BAD_TAG,
       [](const unisono_nic_row& row, Frame& f) {
         f = make_frame(host_address(3), row.own, packet_in(f), payload_in(f), {1, 2});
       }},
      {"not a child's contribution", kDrop, UNISONO_NIC_BAD_SENDER,
       resent([](P& p) { p.position = 3; })},
      {"a contribution below the first", kDrop, UNISONO_NIC_BAD_SENDER,
       resent([](P& p) { p.position = 0; })},
      {"another child's contribution", kDrop, UNISONO_NIC_BAD_SENDER,
       resent([](P& p) { p.position = 2; })},
      {"from a stranger", kDrop, UNISONO_NIC_BAD_SENDER, resent([](P& p) { p.sender = 9; })},
      {"to another rank", kDrop, UNISONO_NIC_BAD_SENDER, resent([](P& p) { p.target = 2; })},
      {"a child that asks for a contribution", kDrop, UNISONO_NIC_BAD_SENDER,
       resent([](P& p) { p.kind = UNISONO_NIC_ASK_GIVE; })},
      {"a parent's question to another rank", kDrop, UNISONO_NIC_BAD_SENDER, resent([](P& p) {
         p.kind = UNISONO_NIC_ASK_GIVE;
         p.sender = 0;
         p.target = 2;
       })},
      {"a parent's question about the future", kDrop, UNISONO_NIC_STALE, resent([](P& p) {
         p.kind = UNISONO_NIC_ASK_GIVE;
         p.sender = 0;
         p.sequence = 2;
       })},
      {"a stranger's question for the result", kDrop, UNISONO_NIC_BAD_SENDER, resent([](P& p) {
         p.kind = UNISONO_NIC_ASK_RESULT;
         p.sender = 9;
       })},
      {"a child's question about the future", kDrop, UNISONO_NIC_STALE, resent([](P& p) {
         p.kind = UNISONO_NIC_ASK_RESULT;
         p.sequence = 2;
       })},
      {"a query of a child", kDrop, UNISONO_NIC_BAD_SENDER,
       resent([](P& p) { p.kind = UNISONO_NIC_QUERY; })},
      {"a query about the future", kDrop, UNISONO_NIC_STALE, resent([](P& p) {
         p.kind = UNISONO_NIC_QUERY;
         p.sender = 0;
         p.sequence = 2;
       })},
      {"a result for another rank", kDrop, UNISONO_NIC_BAD_SENDER, resent([](P& p) {
         p.kind = UNISONO_NIC_RESULT;
         p.sender = 0;
         p.target = 2;
       })},
      {"a result from a child", kDrop, UNISONO_NIC_BAD_SENDER,
       resent([](P& p) { p.kind = UNISONO_NIC_RESULT; })},
      {"an operation too far ahead", kDrop, UNISONO_NIC_STALE,
       resent([](P& p) { p.sequence = 2; })},
      {"a very old operation", kDrop, UNISONO_NIC_STALE,
       resent([](P& p) { p.sequence = ~std::uint64_t{1}; })},
      {"a result of the future", kDrop, UNISONO_NIC_STALE, resent([](P& p) {
         p.kind = UNISONO_NIC_RESULT;
         p.sender = 0;
         p.sequence = 2;
       })},
      {"a result of another length", kDrop, UNISONO_NIC_MISMATCH, resent([](P& p) {
         p.kind = UNISONO_NIC_RESULT;
         p.sender = 0;
         p.place = UNISONO_NIC_MIN_INT64;
       })},
  };
}

TEST_F(Program, RefusesWithAReason) {
  for (const Refusal& refusal : refusals()) {
    SCOPED_TRACE(refusal.what);
    const unisono_nic_row row = add(inner_row());
    post(row, 0, kSum, {5, 6});
    const std::string memory = memory_of(row);
    Frame frame = frame_of(row, give(row, 0, 0, kSum), {1, 10});
    refusal.spoil(row, frame);
    forget_counts();
    const TrialRun seen = run(Entry::receive, frame);
    EXPECT_EQ(seen.verdict, refusal.verdict);
    EXPECT_EQ(seen.frame, frame) << "a frame that is not sent is not changed";
    expect_counted(refusal.counter);
    if (refusal.counter != UNISONO_NIC_MISMATCH) {
      EXPECT_EQ(memory_of(row), memory);
    } else {
      EXPECT_EQ(slot(row, 0).broken, 0U);
    }
  }
}

// Any bytes instead of some of the packet's, and any length: nothing is sent, and no memory
// changes.
TEST_F(Program, SpoiltPacketsByTheThousand) {
  constexpr std::uint64_t kSeed = 17;
  base::Prng random(kSeed);
  const unisono_nic_row row = add(inner_row());
  post(row, 0, kSum, {5, 6});
  const Frame good = frame_of(row, give(row, 0, 0, kSum), {1, 10});
  const std::string memory = memory_of(row);
  for (std::int64_t i = 0; i < harness::scaled(200'000); ++i) {
    Frame frame = good;
    for (std::uint64_t changes = 1 + random.below(3); changes > 0; --changes) {
      frame[kPacket + random.below(frame.size() - kPacket)] = static_cast<std::byte>(random.next());
    }
    if (random.below(4) == 0) frame.resize(14 + random.below(1500));
    if (std::equal(
            good.begin(), good.end(), frame.begin(),
            frame.begin() + static_cast<std::ptrdiff_t>(std::min(frame.size(), good.size())))) {
      continue;
    }
    const std::uint32_t verdict = run(Entry::receive, frame).verdict;
    ASSERT_TRUE(verdict == kPass || verdict == kDrop) << "seed " << kSeed << ", packet " << i;
  }
  EXPECT_EQ(memory_of(row), memory);
}

TEST_F(Program, DoublesChangeNothing) {
  const unisono_nic_row row = add(inner_row());
  post(row, 0, kSum, {5});
  const Frame frame = frame_of(row, give(row, 0, 0, kSum), {1});
  run(Entry::receive, frame);
  const std::string memory = memory_of(row);
  forget_counts();
  EXPECT_EQ(run(Entry::receive, frame).verdict, kDrop);
  expect_counted(UNISONO_NIC_STALE);
  EXPECT_EQ(memory_of(row), memory);
}

TEST_F(Program, DoorbellsOfStrangersPassOrAreDropped) {
  const unisono_nic_row row = add(inner_row());
  const Frame good = from_process(row, UNISONO_NIC_DOORBELL, 0);
  Frame other = good;
  other[kPacket + offsetof(unisono_packet, job)] ^= std::byte{1};
  EXPECT_EQ(run(Entry::leave, other).verdict, kTcDrop);
  expect_counted(UNISONO_NIC_NO_GROUP);
  other = frame_of(row, give(row, 0, 0, kSum), {1});
  const TrialRun passed = run(Entry::leave, other);
  EXPECT_EQ(passed.verdict, kTcNext);
  EXPECT_EQ(passed.frame, other);
  other = good;
  other.resize(60);
  EXPECT_EQ(run(Entry::leave, other).verdict, kTcNext);
}

TEST_F(Program, ARemovedGroupTakesNothing) {
  const unisono_nic_row row = add(inner_row());
  ASSERT_TRUE(device->remove_group(indices.back()).ok());
  indices.pop_back();
  EXPECT_EQ(run(Entry::receive, frame_of(row, give(row, 0, 0, kSum), {1})).verdict, kDrop);
  expect_counted(UNISONO_NIC_NO_GROUP);
}

TEST_F(Program, AGroupIsKnownOnce) {
  const unisono_nic_row row = add(inner_row());
  const auto again = device->add_group(row);
  ASSERT_FALSE(again.ok());
  EXPECT_NE(again.error().message.find("enter communicator"), std::string::npos)
      << again.error().message;
}

TEST_F(Program, TablesHaveAnEnd) {
  DeviceOptions options;
  options.groups = 2;
  const auto small = load_device(options);
  ASSERT_TRUE(small.ok()) << small.error().message;
  unisono_nic_row row = inner_row();
  for (row.id.communicator = 1; row.id.communicator <= 2; ++row.id.communicator) {
    EXPECT_TRUE((*small)->add_group(row).ok());
  }
  const auto refused = (*small)->add_group(row);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, base::Code::resources);
  EXPECT_EQ(refused.error().message,
            "NIC program: it has 2 groups, which is all it can have; free other communicators");
  EXPECT_TRUE((*small)->remove_group(0).ok());
  EXPECT_TRUE((*small)->add_group(row).ok());
}

// own op child 0 op child 1, in this order, by the library's kernels.
Words expected_words(const arith::test::Case& c, const std::vector<Words>& parts) {
  Words sum = parts[0];
  const auto count = static_cast<std::int64_t>(sum.size() * 8 / arith::type_size(c.type));
  for (std::size_t i = 1; i < parts.size(); ++i) {
    arith::find_kernel(c.op, c.type)(sum.data(), sum.data(), parts[i].data(), count, nullptr);
  }
  return sum;
}

TEST_F(Program, EveryOperatorOnEveryTypeItKnows) {
  int known = 0;
  for (const arith::test::Case& c : arith::test::all_cases()) {
    const auto combine = lower_operator(c.op, c.type);
    if (!combine.ok()) continue;
    ++known;
    SCOPED_TRACE(arith::test::case_name(c));
    const unisono_nic_row row = add(inner_row());
    for (std::uint64_t sequence = 0; sequence < 40; ++sequence) {
      std::vector<Words> parts;
      for (std::uint64_t part = 0; part < 3; ++part) {
        const auto elements = arith::test::random_elements(
            c.type, UNISONO_NIC_WORDS_MAX * 8 / arith::type_size(c.type), 3 * sequence + part);
        Words words(UNISONO_NIC_WORDS_MAX);
        std::memcpy(words.data(), elements.data(), words.size() * 8);
        parts.push_back(words);
      }
      post(row, sequence, *combine, parts[0]);
      run(Entry::receive, frame_of(row, give(row, 1, sequence, *combine), parts[2]));
      const TrialRun last =
          run(Entry::receive, frame_of(row, give(row, 0, sequence, *combine), parts[1]));
      ASSERT_EQ(last.verdict, kSend);
      const Words expected = expected_words(c, parts);
      const Words actual = payload_in(last.frame);
      ASSERT_EQ(actual.size(), expected.size());
      ASSERT_EQ(arith::test::difference(c, reinterpret_cast<const unsigned char*>(actual.data()),
                                        reinterpret_cast<const unsigned char*>(expected.data()),
                                        expected.size() * 8 / arith::type_size(c.type)),
                "")
          << "operation " << sequence;
    }
  }
  // Sums of 8 integer types, 4 real and 2 complex ones. Minima, maxima and products of the first
  // 12. Logical operators of integers. Bits of these and of bytes.
  EXPECT_EQ(known, 14 + 3 * 12 + 3 * 8 + 3 * 9);
}

}  // namespace
}  // namespace unisono::nic::test::program_test
