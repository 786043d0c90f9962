// SPDX-License-Identifier: BSD-3-Clause
// Allgather in the NIC program packet by packet, through the kernel's trial run. Checked are the
// action, the output (compared byte by byte with a frame built independently), and the counters.
// For refused packets, no memory may change. Also whole groups of up to 64 ranks, whose packets the
// test carries.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <map>

#include "base/clock.hpp"
#include "base/prng.hpp"
#include "harness/scale.hpp"
#include "nic/harness/gather_rows.hpp"
#include "nic/harness/trial_device.hpp"

namespace unisono::nic::test::allgather_program_test {
namespace {

constexpr std::uint32_t kTcRedirect = 7;

// Rank 1 of eight, concurrent broadcasting. Its own block goes 1, 2 and 4 ranks on. That of rank 0
// came over one rank and goes 2 and 4 ranks on. Those of 7 and 6 came over two and go 4 ranks on.
unisono_nic_row gatherer() {
  unisono_nic_row row = {};
  row.id.job = 78;
  row.key = {0x0123456789ABCDEF, 0xFEDCBA9876543210};
  row.rank = 1;
  row.depth = 2;
  row.ranks = 8;
  row.own = host_address(1);
  for (int rank = 0; rank < 8; ++rank) row.at[rank] = host_address(rank);
  row.route[1] = {0, 0, 3, 0};
  row.route[0] = {0, 3, 2, 0};
  row.route[7] = {7, 5, 1, 0};
  row.route[6] = {7, 6, 1, 0};
  for (int origin = 2; origin < 6; ++origin) row.route[origin] = {5, 7, 0, 0};
  const std::uint8_t targets[] = {2, 3, 5, 3, 5, 5, 5};
  std::copy(std::begin(targets), std::end(targets), row.target);
  return row;
}

class AllgatherProgram : public TrialDevice {
 protected:
  // The changes of the counters since the last call, without zeros.
  static std::map<std::string, std::uint64_t> counted() {
    const Counters now = *device->counters();
    std::map<std::string, std::uint64_t> moved;
    for (std::size_t i = 0; i < now.size(); ++i) {
      const auto counter = static_cast<unisono_nic_counter>(i);
      if (now[i] != last[i]) moved[counter_name(counter)] = now[i] - last[i];
    }
    last = now;
    return moved;
  }
  using Counts = std::map<std::string, std::uint64_t>;

  void SetUp() override {
    TrialDevice::SetUp();
    if (device != nullptr) last = *device->counters();
  }

  static unisono_nic_block& block(const unisono_nic_row& row, std::uint64_t sequence, int origin) {
    return device->memory(row.index)
        .blocks[sequence % row.depth * row.ranks + static_cast<std::uint32_t>(origin)];
  }
  // The own block, without a doorbell packet and without completing anything.
  static void post(const unisono_nic_row& row, std::uint64_t sequence, const Words& words) {
    unisono_nic_block& own = block(row, sequence, static_cast<int>(row.rank));
    own.words = static_cast<std::uint32_t>(words.size());
    std::copy(words.begin(), words.end(), own.data);
    own.sequence = sequence;
    slot(row, sequence).arrived |= std::uint64_t{1} << row.rank;
  }

  static unisono_packet block_of(const unisono_nic_row& row, int origin, std::uint64_t sequence) {
    return packet_of(UNISONO_NIC_BLOCK, row.id, origin, sequence);
  }
  // `packet` on its way between two ranks.
  static Frame frame(const unisono_nic_row& row, int from, int to, const unisono_packet& packet,
                     const Words& words) {
    return make_frame(host_address(from), host_address(to), packet, words, row.key);
  }
  static Frame arriving(const unisono_nic_row& row, int origin, std::uint64_t sequence,
                        const Words& words) {
    return frame(row, row.route[origin].from, static_cast<int>(row.rank),
                 block_of(row, origin, sequence), words);
  }
  static unisono_packet question(const unisono_nic_row& row, int from, int to, int origin,
                                 std::uint64_t sequence) {
    unisono_packet packet = packet_of(UNISONO_NIC_ASK_BLOCK, row.id, from, sequence);
    packet.target = static_cast<std::uint32_t>(to);
    packet.origin = static_cast<std::uint32_t>(origin);
    return packet;
  }
  static inline Counters last = {};
};

TEST_F(AllgatherProgram, ABlockGoesOnAsItCame) {
  const unisono_nic_row row = add(gatherer());
  for (std::uint64_t sequence = 0; sequence < 2; ++sequence) {
    for (const int origin : {7, 6}) {
      const Words words = {100 + sequence, static_cast<std::uint64_t>(origin)};
      const TrialRun seen = run(Entry::receive, arriving(row, origin, sequence, words));
      EXPECT_EQ(seen.verdict, kSend);
      EXPECT_EQ(seen.frame, frame(row, 1, 5, block_of(row, origin, sequence), words))
          << "with the origin's packet, and without the own process";
      EXPECT_EQ(counted(), (Counts{{"block_taken", 1}, {"block_passed", 1}}));
      EXPECT_EQ(block(row, sequence, origin).words, 2U);
      EXPECT_EQ(block(row, sequence, origin).data[1], static_cast<std::uint64_t>(origin));
    }
    EXPECT_EQ(slot(row, sequence).arrived, 0xC0U);
  }
}

TEST_F(AllgatherProgram, ABlockThatGoesNowhereIsKept) {
  const unisono_nic_row row = add(gatherer());
  EXPECT_EQ(run(Entry::receive, arriving(row, 4, 0, {9})).verdict, kDrop);
  EXPECT_EQ(counted(), (Counts{{"block_taken", 1}}));
  EXPECT_EQ(block(row, 0, 4).data[0], 9U);
}

TEST_F(AllgatherProgram, ABlockForSeveralIsSpread) {
  const unisono_nic_row row = add(gatherer());
  const Frame arrived = arriving(row, 0, 0, {1, 2, 3});
  const TrialRun passed = run(Entry::receive, arrived);
  EXPECT_EQ(passed.verdict, kPass);
  EXPECT_EQ(passed.frame, arrived);
  EXPECT_EQ(counted(), (Counts{{"block_taken", 1}}));
  const TrialRun spread = run(Entry::spread, passed.frame);
  EXPECT_EQ(spread.verdict, kTcRedirect);
  EXPECT_EQ(spread.frame, frame(row, 1, 5, block_of(row, 0, 0), {1, 2, 3})) << "the last target";
  EXPECT_EQ(counted(), (Counts{{"block_passed", 2}}));
}

TEST_F(AllgatherProgram, OnlyWhatWasTakenIsSpread) {
  const unisono_nic_row row = add(gatherer());
  Frame flooded = arriving(row, 0, 0, {1});
  flooded[5] ^= std::byte{1};  // another host's, as a bridge floods them
  EXPECT_EQ(run(Entry::receive, flooded).verdict, kPass);
  EXPECT_EQ(counted(), (Counts{{"others_frame", 1}}));
  EXPECT_EQ(run(Entry::spread, flooded).verdict, kTcNext);
  Frame forged = arriving(row, 0, 0, {1});
  forged[kPayload] ^= std::byte{1};
  EXPECT_EQ(run(Entry::spread, forged).verdict, kTcDrop);
  EXPECT_EQ(counted(), (Counts{{"bad_tag", 1}}));
}

TEST_F(AllgatherProgram, TheLastBlockCompletes) {
  const unisono_nic_row row = add(gatherer());
  for (std::uint64_t sequence = 0; sequence < 4; ++sequence) {
    post(row, sequence, {1});
    for (const int origin : {7, 3, 2, 6, 4, 5}) {
      run(Entry::receive, arriving(row, origin, sequence, {sequence}));
    }
    EXPECT_NE(slot(row, sequence).done, sequence);
    const std::int64_t before_ns = base::now_ns();
    run(Entry::receive, arriving(row, 0, sequence, {77}));
    EXPECT_EQ(slot(row, sequence).done, sequence);
    EXPECT_EQ(slot(row, sequence).arrived, 0U);
    EXPECT_GE(slot(row, sequence).done_ns, static_cast<std::uint64_t>(before_ns));
    EXPECT_EQ(block(row, sequence, 0).data[0], 77U);
    EXPECT_EQ(block(row, sequence, 2).data[0], sequence);
  }
}

TEST_F(AllgatherProgram, SixtyFourRanks) {
  unisono_nic_row wide = gatherer();
  wide.ranks = UNISONO_NIC_RANKS_MAX;
  for (auto& route : wide.route) route.targets = 0;
  const unisono_nic_row row = add(wide);
  post(row, 0, {1});
  for (int origin = 0; origin < UNISONO_NIC_RANKS_MAX; ++origin) {
    EXPECT_NE(slot(row, 0).done, 0U);
    if (origin != 1) run(Entry::receive, arriving(row, origin, 0, {5}));
  }
  EXPECT_EQ(slot(row, 0).done, 0U);
}

TEST_F(AllgatherProgram, DoublesAndLateOnesChangeNothing) {
  const unisono_nic_row row = add(gatherer());
  run(Entry::receive, arriving(row, 7, 0, {1}));
  run(Entry::receive, arriving(row, 6, 1, {1}));
  const std::string memory = memory_of(row);
  counted();
  for (const auto& [origin, sequence] : std::map<int, std::uint64_t>{
           {7, 0}, {6, 1}, {5, 2}, {4, 3}, {3, ~std::uint64_t{0}}, {2, ~std::uint64_t{1}}}) {
    EXPECT_EQ(run(Entry::receive, arriving(row, origin, sequence, {2})).verdict, kDrop);
    EXPECT_EQ(counted(), (Counts{{"stale", 1}})) << origin;
  }
  EXPECT_EQ(memory_of(row), memory);
}

TEST_F(AllgatherProgram, ADoorbellSendsTheOwnBlock) {
  const unisono_nic_row row = add(gatherer());
  EXPECT_EQ(run(Entry::leave, from_process(row, UNISONO_NIC_DOORBELL, 0, 2)).verdict, kTcDrop);
  EXPECT_EQ(counted(), (Counts{{"stray_doorbell", 1}}));
  for (std::uint64_t sequence = 0; sequence < 2; ++sequence) {
    post(row, sequence, {7, 8 + sequence});
    for (const std::size_t padding : {2, 0, 100}) {
      const TrialRun seen =
          run(Entry::leave, from_process(row, UNISONO_NIC_DOORBELL, sequence, padding));
      EXPECT_EQ(seen.verdict, kTcNext);
      EXPECT_EQ(seen.frame, frame(row, 1, 5, block_of(row, 1, sequence), {7, 8 + sequence}));
      EXPECT_EQ(counted(), (Counts{{"block_sent", 3}}));
    }
  }
  EXPECT_EQ(run(Entry::leave, from_process(row, UNISONO_NIC_DOORBELL, 2, 2)).verdict, kTcDrop);
  EXPECT_EQ(counted(), (Counts{{"stray_doorbell", 1}}));
}

// As if the last of the others' blocks were just being marked while the process sends its doorbell
// packet.
TEST_F(AllgatherProgram, ADoorbellIsNotLostToTheLastBlock) {
  const unisono_nic_row row = add(gatherer());
  post(row, 0, {7});
  slot(row, 0).arrived = 0;
  const TrialRun seen = run(Entry::leave, from_process(row, UNISONO_NIC_DOORBELL, 0, 1));
  EXPECT_EQ(seen.verdict, kTcNext);
  EXPECT_EQ(counted(), (Counts{{"block_sent", 3}}));
}

TEST_F(AllgatherProgram, OnePacketToAll) {
  unisono_nic_row direct = gatherer();
  direct.down = group_address();
  direct.target[0] = UNISONO_NIC_TO_ALL;
  direct.route[1].targets = 1;
  const unisono_nic_row row = add(direct);
  post(row, 0, {7});
  const TrialRun seen = run(Entry::leave, from_process(row, UNISONO_NIC_DOORBELL, 0, 1));
  EXPECT_EQ(seen.verdict, kTcNext);
  EXPECT_EQ(seen.frame, make_frame(row.own, row.down, block_of(row, 1, 0), Words{7}, row.key));
  EXPECT_EQ(counted(), (Counts{{"block_sent", 1}}));
  // One that comes from another rank by multicast.
  const Frame multicast =
      make_frame(host_address(4), row.down, block_of(row, 4, 0), Words{9}, row.key);
  EXPECT_EQ(run(Entry::receive, multicast).verdict, kDrop);
  EXPECT_EQ(counted(), (Counts{{"block_taken", 1}}));
  EXPECT_EQ(block(row, 0, 4).data[0], 9U);
}

TEST_F(AllgatherProgram, AMarkGoesWithTheBlock) {
  const unisono_nic_row row = add(gatherer());
  unisono_packet packet = block_of(row, 7, 0);
  packet.place = 0xABCD;
  const TrialRun seen = run(Entry::receive, frame(row, 7, 1, packet, {5}));
  EXPECT_EQ(seen.frame, frame(row, 1, 5, packet, {5}));
  EXPECT_EQ(block(row, 0, 7).combine, 0xABCDU);
  const TrialRun answer = run(Entry::receive, frame(row, 4, 1, question(row, 4, 1, 7, 0), {0}));
  EXPECT_EQ(packet_in(answer.frame).place, 0xABCDU);
}

TEST_F(AllgatherProgram, AnEmptyBlock) {
  const unisono_nic_row row = add(gatherer());
  const TrialRun seen = run(Entry::receive, arriving(row, 7, 0, {}));
  EXPECT_EQ(seen.verdict, kSend);
  EXPECT_EQ(seen.frame, frame(row, 1, 5, block_of(row, 7, 0), {}));
  EXPECT_EQ(block(row, 0, 7).words, 0U);
}

TEST_F(AllgatherProgram, KeptBlocksAnswer) {
  const unisono_nic_row row = add(gatherer());
  post(row, 0, {7});
  run(Entry::receive, arriving(row, 7, 0, {70}));
  const auto expect_answers = [&] {
    for (const auto& [origin, word] : std::map<int, std::uint64_t>{{1, 7}, {7, 70}}) {
      counted();
      // Longer than the answer, and from whichever rank.
      const TrialRun seen =
          run(Entry::receive, frame(row, 4, 1, question(row, 4, 1, origin, 0), {0, 0, 0}));
      EXPECT_EQ(seen.verdict, kSend);
      unisono_packet answer = block_of(row, 1, 0);
      answer.origin = static_cast<std::uint32_t>(origin);
      EXPECT_EQ(seen.frame, frame(row, 1, 4, answer, {word}));
      EXPECT_EQ(counted(), (Counts{{"answered", 1}}));
    }
  };
  expect_answers();
  for (const int origin : {0, 2, 3, 4, 5, 6}) run(Entry::receive, arriving(row, origin, 0, {1}));
  ASSERT_EQ(slot(row, 0).done, 0U);
  expect_answers();
  post(row, 1, {8});  // goes on with the next meanwhile
  expect_answers();
  post(row, 2, {9});  // all are done with operation 1 and so with 0
  counted();
  EXPECT_EQ(run(Entry::receive, frame(row, 4, 1, question(row, 4, 1, 1, 0), {0})).verdict, kDrop);
  EXPECT_EQ(counted(), (Counts{{"stale", 1}}));
}

TEST_F(AllgatherProgram, AnAnswerIsTakenAndGoesOn) {
  const unisono_nic_row row = add(gatherer());
  unisono_packet answer = block_of(row, 6, 0);
  answer.sender = 7;
  const TrialRun seen = run(Entry::receive, frame(row, 7, 1, answer, {5}));
  EXPECT_EQ(seen.verdict, kSend);
  EXPECT_EQ(seen.frame, frame(row, 1, 5, answer, {5}));
  EXPECT_EQ(counted(), (Counts{{"block_taken", 1}, {"block_passed", 1}}));
}

TEST_F(AllgatherProgram, AQuestionGoesOnTowardsTheOrigin) {
  const unisono_nic_row row = add(gatherer());
  block(row, 0, 6).sequence = 0;  // claimed, and not written yet
  for (const int origin : {6, 7}) {
    const std::string memory = memory_of(row);
    counted();
    const Frame asks = frame(row, 5, 1, question(row, 5, 1, origin, 0), {0, 0});
    const TrialRun seen = run(Entry::receive, asks);
    EXPECT_EQ(seen.verdict, kSend);
    unisono_packet expected = question(row, 1, 7, origin, 0);
    expected.hop = 1;
    EXPECT_EQ(seen.frame, frame(row, 1, 7, expected, {0, 0}));
    EXPECT_EQ(counted(), (Counts{{"passed_on", 1}}));
    EXPECT_EQ(memory_of(row), memory);
  }
}

TEST_F(AllgatherProgram, AQuestionDoesNotGoInCircles) {
  const unisono_nic_row row = add(gatherer());
  unisono_packet packet = question(row, 5, 1, 7, 0);
  packet.hop = static_cast<std::uint16_t>(row.ranks);
  EXPECT_EQ(run(Entry::receive, frame(row, 5, 1, packet, {0})).verdict, kDrop);
  EXPECT_EQ(counted(), (Counts{{"stale", 1}}));
}

TEST_F(AllgatherProgram, WhoIsLateIsNotAskedFurther) {
  const unisono_nic_row row = add(gatherer());
  EXPECT_EQ(run(Entry::receive, frame(row, 5, 1, question(row, 5, 1, 1, 0), {0})).verdict, kDrop);
  EXPECT_EQ(counted(), (Counts{{"not_yet", 1}}));
}

// A forged address gains nothing, and frames need not grow.
TEST_F(AllgatherProgram, NoAnswerIsLongerThanItsQuestion) {
  const unisono_nic_row row = add(gatherer());
  post(row, 0, {7, 8});
  EXPECT_EQ(run(Entry::receive, frame(row, 5, 1, question(row, 5, 1, 1, 0), {0})).verdict, kDrop);
  EXPECT_EQ(counted(), (Counts{{"no_room", 1}}));
}

TEST_F(AllgatherProgram, TheOwnQuestionGoesWhereBlocksComeFrom) {
  const unisono_nic_row row = add(gatherer());
  EXPECT_EQ(run(Entry::leave, from_process(row, UNISONO_NIC_ASK, 0, 1)).verdict, kTcDrop);
  EXPECT_EQ(counted(), (Counts{{"stray_doorbell", 1}})) << "it has not given itself";
  post(row, 0, {7});
  run(Entry::receive, arriving(row, 7, 0, {1}));
  counted();
  const TrialRun seen = run(Entry::leave, from_process(row, UNISONO_NIC_ASK, 0, 1));
  EXPECT_EQ(seen.verdict, kTcDrop) << "clones are sent";
  EXPECT_EQ(seen.frame, frame(row, 1, 7, question(row, 1, 7, 6, 0), {7})) << "the last clone";
  EXPECT_EQ(counted(), (Counts{{"asked", 1}}));
  for (const int origin : {0, 2, 3, 4, 5, 6}) run(Entry::receive, arriving(row, origin, 0, {1}));
  counted();
  EXPECT_EQ(run(Entry::leave, from_process(row, UNISONO_NIC_ASK, 0, 1)).verdict, kTcDrop);
  EXPECT_EQ(counted(), (Counts{{"not_yet", 1}}));
  EXPECT_EQ(run(Entry::leave, from_process(row, UNISONO_NIC_QUERY, 0, 1)).verdict, kTcDrop);
  EXPECT_EQ(counted(), (Counts{{"stray_doorbell", 1}}));
}

// A packet that is not taken, and why. `spoil` gets the block of rank 7 for operation 0.
struct Refusal {
  const char* what;
  std::uint32_t verdict;
  const char* counter;
  std::function<void(unisono_packet&)> change;  // and a right tag
  std::function<void(Frame&)> spoil = {};       // afterwards
};

std::vector<Refusal> refusals() {
  using P = unisono_packet;
  const auto nothing = [](P&) {};
  const auto flipped = [](std::size_t byte) {
    return [byte](Frame& frame) { frame[byte] ^= std::byte{1}; };
  };
  return {
      {"another job", kDrop, "no_group", [](P& p) { p.job ^= 1; }},
      {"the own block", kDrop, "bad_sender", [](P& p) { p.origin = 1; }},
      {"a block of nobody", kDrop, "bad_sender", [](P& p) { p.origin = 8; }},
      {"a block of nobody at all", kDrop, "bad_sender", [](P& p) { p.origin = ~0U; }},
      {"a block from a stranger", kDrop, "bad_sender", [](P& p) { p.sender = 8; }},
      {"a block for one rank", kDrop, "bad_sender", [](P& p) { p.target = 1; }},
      {"a contribution to a tree", kDrop, "bad_sender", [](P& p) { p.kind = UNISONO_NIC_GIVE; }},
      {"a result of a tree", kDrop, "bad_sender", [](P& p) { p.kind = UNISONO_NIC_RESULT; }},
      {"a question up a tree", kDrop, "bad_sender", [](P& p) { p.kind = UNISONO_NIC_ASK_RESULT; }},
      {"a question down a tree", kDrop, "bad_sender", [](P& p) { p.kind = UNISONO_NIC_ASK_GIVE; }},
      {"a query", kDrop, "bad_sender", [](P& p) { p.kind = UNISONO_NIC_QUERY; }},
      {"a doorbell packet from outside", kPass, "foreign",
       [](P& p) { p.kind = UNISONO_NIC_DOORBELL; }},
      {"a question for all", kDrop, "bad_sender", [](P& p) { p.kind = UNISONO_NIC_ASK_BLOCK; }},
      {"a question for another rank", kDrop, "bad_sender",
       [](P& p) {
         p.kind = UNISONO_NIC_ASK_BLOCK;
         p.target = 2;
       }},
      {"a question of a stranger", kDrop, "bad_sender",
       [](P& p) {
         p.kind = UNISONO_NIC_ASK_BLOCK;
         p.target = 1;
         p.sender = 8;
         p.origin = 3;
       }},
      {"a question for a block of nobody", kDrop, "bad_sender",
       [](P& p) {
         p.kind = UNISONO_NIC_ASK_BLOCK;
         p.target = 1;
         p.origin = 64;
       }},
      {"a question of who has the block", kDrop, "bad_sender",
       [](P& p) {
         p.kind = UNISONO_NIC_ASK_BLOCK;
         p.target = 1;
       }},
      {"a question about the future", kDrop, "stale",
       [](P& p) {
         p.kind = UNISONO_NIC_ASK_BLOCK;
         p.target = 1;
         p.origin = 3;
         p.sequence = 2;
       }},
      {"a block of the future", kDrop, "stale", [](P& p) { p.sequence = 2; }},
      {"shorter than it says", kDrop, "short", nothing, [](Frame& f) { f.resize(f.size() - 1); }},
      {"a flipped bit in the block", kDrop, "bad_tag", nothing, flipped(kPayload + 3)},
      {"a flipped bit in the origin", kDrop, "bad_tag", nothing,
       flipped(kPacket + offsetof(P, origin))},
      {"a flipped bit in the sequence", kDrop, "bad_tag", nothing,
       flipped(kPacket + offsetof(P, sequence))},
      {"a flipped bit in the tag", kDrop, "bad_tag", nothing, flipped(kPacket + offsetof(P, tag))},
  };
}

TEST_F(AllgatherProgram, RefusesWithAReason) {
  for (const Refusal& refusal : refusals()) {
    SCOPED_TRACE(refusal.what);
    const unisono_nic_row row = add(gatherer());
    post(row, 0, {5, 6});
    unisono_packet packet = block_of(row, 7, 0);
    refusal.change(packet);
    Frame spoilt = frame(row, 7, 1, packet, {1, 10});
    if (refusal.spoil) refusal.spoil(spoilt);
    const std::string memory = memory_of(row);
    counted();
    const TrialRun seen = run(Entry::receive, spoilt);
    EXPECT_EQ(seen.verdict, refusal.verdict);
    EXPECT_EQ(seen.frame, spoilt) << "a frame that is not sent is not changed";
    EXPECT_EQ(counted(), (Counts{{refusal.counter, 1}}));
    EXPECT_EQ(memory_of(row), memory);
  }
}

TEST_F(AllgatherProgram, ATreeTakesNoBlocks) {
  const unisono_nic_row row = add(inner_row());
  for (const std::uint8_t kind : {UNISONO_NIC_BLOCK, UNISONO_NIC_ASK_BLOCK}) {
    unisono_packet packet = packet_of(kind, row.id, 3, 0);
    packet.target = kind == UNISONO_NIC_BLOCK ? UNISONO_PACKET_GROUP : row.rank;
    const std::string memory = memory_of(row);
    counted();
    EXPECT_EQ(run(Entry::receive, frame(row, 3, 1, packet, {1})).verdict, kDrop);
    EXPECT_EQ(counted(), (Counts{{"bad_sender", 1}}));
    EXPECT_EQ(memory_of(row), memory);
    EXPECT_EQ(run(Entry::spread, frame(row, 3, 1, packet, {1})).verdict, kTcNext);
  }
}

// Any bytes instead of some of the packet's, and any length: nothing is sent, and no memory
// changes.
TEST_F(AllgatherProgram, SpoiltPacketsByTheThousand) {
  constexpr std::uint64_t kSeed = 23;
  base::Prng random(kSeed);
  const unisono_nic_row row = add(gatherer());
  post(row, 0, {5, 6});
  const Frame goods[] = {arriving(row, 7, 0, {1, 10}),
                         frame(row, 5, 1, question(row, 5, 1, 1, 0), {1, 10})};
  const std::string memory = memory_of(row);
  for (std::int64_t i = 0; i < harness::scaled(100'000); ++i) {
    const Frame& good = goods[random.below(2)];
    Frame spoilt = good;
    for (std::uint64_t changes = 1 + random.below(3); changes > 0; --changes) {
      spoilt[kPacket + random.below(good.size() - kPacket)] = static_cast<std::byte>(random.next());
    }
    if (spoilt == good) continue;
    if (random.below(4) == 0) spoilt.resize(14 + random.below(spoilt.size() - 14));
    const std::uint32_t verdict = run(Entry::receive, spoilt).verdict;
    ASSERT_TRUE(verdict == kPass || verdict == kDrop) << "seed " << kSeed << ", packet " << i;
  }
  EXPECT_EQ(memory_of(row), memory);
}

// All ranks of a group, each with a row of its own in one program. The test carries each packet to
// its rank by giving it the id of that row, in any order. A block may go to several ranks. All its
// packets but the last are clones, which a trial run does not show: those ranks ask for it.
class WholeForwardingGroup : public AllgatherProgram {
 protected:
  void begin(int ranks) {
    for (const std::uint32_t index : indices) EXPECT_TRUE(device->remove_group(index).ok());
    indices.clear();
    group.clear();
    for (int rank = 0; rank < ranks; ++rank) group.push_back(add(forwarding_row(ranks, rank)));
  }

  void run_operation(std::uint64_t sequence, std::size_t words) {
    for (const unisono_nic_row& row : group) {
      post(row, sequence, words_of(static_cast<int>(row.rank), sequence, words));
    }
    for (const unisono_nic_row& row : group) {
      const TrialRun seen =
          run(Entry::leave, from_process(row, UNISONO_NIC_DOORBELL, sequence, words));
      EXPECT_EQ(seen.verdict, kTcNext);
      send(row, static_cast<int>(row.rank), sequence, words, seen.frame);
    }
    while (!sent.empty()) {
      std::swap(sent[random.below(sent.size())], sent.back());
      const Sent next = std::move(sent.back());
      sent.pop_back();
      deliver(next, sequence, words);
    }
  }

  void expect_all(std::uint64_t sequence, std::size_t words) const {
    for (const unisono_nic_row& row : group) {
      EXPECT_EQ(slot(row, sequence).done, sequence) << row.rank << " of " << row.ranks;
      for (int origin = 0; origin < static_cast<int>(row.ranks); ++origin) {
        const unisono_nic_block& found = block(row, sequence, origin);
        EXPECT_EQ(Words(found.data, found.data + found.words), words_of(origin, sequence, words))
            << "block " << origin << " at rank " << row.rank << " of " << row.ranks;
      }
    }
  }

  void run_and_expect(std::uint64_t sequence, std::size_t words) {
    counted();
    run_operation(sequence, words);
    expect_counts();
    expect_all(sequence, words);
  }

  std::vector<unisono_nic_row> group;

 private:
  // Every rank gets every other block once, in packets that origins and other ranks send.
  void expect_counts() {
    std::uint64_t steps = 0;
    while (std::uint64_t{1} << steps < group.size()) ++steps;
    const std::uint64_t own = group.size() * steps;
    const std::uint64_t all = group.size() * (group.size() - 1);
    Counts moved = counted();
    EXPECT_EQ(moved["block_taken"], all) << group.size() << " ranks";
    EXPECT_EQ(moved["block_sent"], own) << group.size() << " ranks";
    EXPECT_EQ(moved["block_passed"], all - own) << group.size() << " ranks";
    EXPECT_EQ(moved["stale"], 0U) << group.size() << " ranks";
  }

  struct Sent {
    int to = 0, origin = 0;
    Frame frame;
  };

  static Words words_of(int rank, std::uint64_t sequence, std::size_t count) {
    Words words;
    for (std::size_t i = 0; i < count; ++i) {
      words.push_back((1000 * sequence + static_cast<std::uint64_t>(rank)) * 1000 + i);
    }
    return words;
  }

  void deliver(const Sent& next, std::uint64_t sequence, std::size_t words) {
    const unisono_nic_row& row = group[static_cast<std::size_t>(next.to)];
    unisono_packet packet = packet_in(next.frame);
    packet.communicator = row.id.communicator;
    const Frame arriving = make_frame(host_address(static_cast<int>(packet.sender)), row.own,
                                      packet, payload_in(next.frame), row.key);
    TrialRun seen = run(Entry::receive, arriving);
    const int targets = row.route[next.origin].targets;
    if (targets == 0) {
      EXPECT_EQ(seen.verdict, kDrop);
    } else if (targets == 1) {
      EXPECT_EQ(seen.verdict, kSend);
    } else {
      EXPECT_EQ(seen.verdict, kPass);
      seen = run(Entry::spread, seen.frame);
      EXPECT_EQ(seen.verdict, kTcRedirect);
    }
    send(row, next.origin, sequence, words, seen.frame);
  }

  // The packets to the targets of the block's route. `frame`: the last of them.
  void send(const unisono_nic_row& row, int origin, std::uint64_t sequence, std::size_t words,
            const Frame& frame) {
    const unisono_nic_route& route = row.route[origin];
    const int own = static_cast<int>(row.rank);
    for (int i = 0; i < route.targets; ++i) {
      const int to = row.target[route.first + i];
      if (i + 1 == route.targets) {
        sent.push_back({to, origin, frame});
        continue;
      }
      const TrialRun seen =
          run(Entry::receive,
              AllgatherProgram::frame(row, to, own, question(row, to, own, origin, sequence),
                                      Words(words)));
      EXPECT_EQ(seen.verdict, kSend);
      sent.push_back({to, origin, seen.frame});
    }
  }

  base::Prng random{37};
  std::vector<Sent> sent;  // and not carried yet
};

TEST_F(WholeForwardingGroup, OfUpToSixtyFourRanks) {
  for (const int ranks : {2, 3, 7, 17, 33, UNISONO_NIC_RANKS_MAX}) {
    begin(ranks);
    std::uint64_t sequence = 0;
    for (const std::size_t words : {0, 1, UNISONO_NIC_WORDS_MAX}) {
      run_and_expect(sequence++, words);
    }
  }
}

// The kernel waits tens of milliseconds for each rank's group, so that all numbers take a minute.
TEST_F(WholeForwardingGroup, DISABLED_OfAllNumbersOfRanks) {
  for (int ranks = 2; ranks <= UNISONO_NIC_RANKS_MAX; ++ranks) {
    begin(ranks);
    run_and_expect(0, 1);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace unisono::nic::test::allgather_program_test
