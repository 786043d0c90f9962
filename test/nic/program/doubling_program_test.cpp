// SPDX-License-Identifier: BSD-3-Clause
// Allgather by messages of doubling size in the NIC program, packet by packet, through the kernel's
// trial run. Checked are the action, the output (compared byte by byte with a frame built
// independently), and the counters. For refused packets, no memory may change. Also whole groups of
// up to 64 ranks, whose packets the test carries.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <map>

#include "base/prng.hpp"
#include "harness/scale.hpp"
#include "nic/harness/gather_rows.hpp"
#include "nic/harness/trial_device.hpp"

namespace unisono::nic::test::doubling_program_test {
namespace {

constexpr std::uint32_t kTcRedirect = 7;

// Rank 1 of eight. It sends its own block to rank 0, those of 1 and 2 to rank 7, and those of 1 to
// 4 to rank 5. It receives that of 2, those of 3 and 4, and those of 5 to 0, each from the first of
// them.
constexpr std::uint64_t kGiven[] = {0x02, 0x06, 0x1E};
constexpr int kGivenTo[] = {0, 7, 5};
constexpr std::uint64_t kTaken[] = {0x04, 0x18, 0xE1};
constexpr int kTakenFrom[] = {2, 3, 5};

class DoublingProgram : public TrialDevice {
 protected:
  using Counts = std::map<std::string, std::uint64_t>;

  // The changes of the counters since the last call, without zeros.
  static Counts counted() {
    const Counters now = *device->counters();
    Counts moved;
    for (std::size_t i = 0; i < now.size(); ++i) {
      const auto counter = static_cast<unisono_nic_counter>(i);
      if (now[i] != last[i]) moved[counter_name(counter)] = now[i] - last[i];
    }
    last = now;
    return moved;
  }

  void SetUp() override {
    TrialDevice::SetUp();
    if (device != nullptr) last = *device->counters();
  }

  static unisono_nic_block& block(const unisono_nic_row& row, std::uint64_t sequence, int origin) {
    return device->memory(row.index)
        .blocks[sequence % row.depth * row.ranks + static_cast<std::uint32_t>(origin)];
  }
  // As AllgatherPort::post() does, without the doorbell packet.
  static void post(const unisono_nic_row& row, std::uint64_t sequence, const Words& words) {
    unisono_nic_block& own = block(row, sequence, static_cast<int>(row.rank));
    own.words = static_cast<std::uint32_t>(words.size());
    own.combine = 0xAB;
    std::copy(words.begin(), words.end(), own.data);
    own.sequence = sequence;
  }
  static TrialRun ring(const unisono_nic_row& row, std::uint64_t sequence,
                       std::uint8_t kind = UNISONO_NIC_DOORBELL) {
    return run(Entry::leave, from_process(row, kind, sequence, 4));
  }

  // A rank's block in an operation: one word.
  static std::uint64_t value_of(int rank, std::uint64_t sequence) {
    return 1000 * sequence + static_cast<std::uint64_t>(rank) + 7;
  }
  // Each block with its length and mark.
  static Words joined(std::uint64_t blocks, std::uint64_t sequence) {
    Words words;
    for (int rank = 0; rank < UNISONO_NIC_RANKS_MAX; ++rank) {
      if ((blocks >> rank & 1) == 0) continue;
      words.push_back(std::uint64_t{0xAB} << 32 | 1);
      words.push_back(value_of(rank, sequence));
    }
    return words;
  }
  static unisono_packet about(const unisono_nic_row& row, std::uint8_t kind, int from, int to,
                              int slot, std::uint64_t blocks, std::uint64_t sequence) {
    unisono_packet packet = packet_of(kind, row.id, from, sequence);
    packet.target = static_cast<std::uint32_t>(to);
    packet.position = static_cast<std::uint32_t>(slot);
    packet.place = UNISONO_PACKET_NONE;
    packet.value = blocks;
    return packet;
  }
  // In a datagram with room for four blocks of a word.
  static Frame frame(const unisono_nic_row& row, const unisono_packet& packet, const Words& words) {
    return make_frame(host_address(static_cast<int>(packet.sender)),
                      host_address(static_cast<int>(packet.target)), packet, words, row.key,
                      8 - words.size());
  }
  // The messages that come to rank 1, and those that it sends.
  static Frame arriving(const unisono_nic_row& row, int slot, std::uint64_t sequence) {
    const std::uint64_t blocks = kTaken[slot];
    return frame(row, about(row, UNISONO_NIC_BLOCKS, kTakenFrom[slot], 1, slot, blocks, sequence),
                 joined(blocks, sequence));
  }
  static Frame leaving(const unisono_nic_row& row, int slot, std::uint64_t sequence) {
    const std::uint64_t blocks = kGiven[slot];
    return frame(row, about(row, UNISONO_NIC_BLOCKS, 1, kGivenTo[slot], slot, blocks, sequence),
                 joined(blocks, sequence));
  }
  static Frame question_to(const unisono_nic_row& row, int slot, std::uint64_t sequence) {
    return frame(
        row, about(row, UNISONO_NIC_ASK_BLOCKS, kGivenTo[slot], 1, slot, kGiven[slot], sequence),
        {});
  }
  static Frame question_from(const unisono_nic_row& row, int slot, std::uint64_t sequence,
                             int hop) {
    unisono_packet packet =
        about(row, UNISONO_NIC_ASK_BLOCKS, 1, kTakenFrom[slot], slot, kTaken[slot], sequence);
    packet.hop = static_cast<std::uint16_t>(hop);
    return frame(row, packet, {});
  }
  // Bytes behind the packet's length may be anything.
  static void expect_frame(const Frame& seen, const Frame& expected, const char* what = "") {
    EXPECT_EQ(seen.size(), expected.size()) << what;
    const std::size_t bytes = kPayload + packet_in(expected).length;
    ASSERT_GE(seen.size(), bytes) << what;
    EXPECT_EQ(Frame(seen.begin(), seen.begin() + static_cast<std::ptrdiff_t>(bytes)),
              Frame(expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(bytes)))
        << what;
  }

  static inline Counters last = {};
};

TEST_F(DoublingProgram, TheOwnBlockGoesAtOnceAndOnce) {
  const unisono_nic_row row = add(doubling_row(8, 1));
  EXPECT_EQ(ring(row, 0).verdict, kTcDrop);
  EXPECT_EQ(counted(), (Counts{{"stray_doorbell", 1}})) << "nothing was given";
  post(row, 0, {value_of(1, 0)});
  const TrialRun seen = ring(row, 0);
  EXPECT_EQ(seen.verdict, kTcNext);
  expect_frame(seen.frame, leaving(row, 0, 0));
  EXPECT_EQ(counted(), (Counts{{"block_sent", 1}}));
  EXPECT_EQ(slot(row, 0).arrived, 0x02U);
  EXPECT_EQ(ring(row, 0).verdict, kTcDrop);
  EXPECT_EQ(counted(), (Counts{{"stray_doorbell", 1}}));
  EXPECT_EQ(slot(row, 0).arrived, 0x02U);
}

TEST_F(DoublingProgram, AMessageGoesWhenItsLastBlockComes) {
  const unisono_nic_row row = add(doubling_row(8, 1));
  for (std::uint64_t sequence = 0; sequence < 5; ++sequence) {
    post(row, sequence, {value_of(1, sequence)});
    ring(row, sequence);
    counted();
    for (int slot_number = 0; slot_number < 2; ++slot_number) {
      const TrialRun seen = run(Entry::receive, arriving(row, slot_number, sequence));
      EXPECT_EQ(seen.verdict, kSend);
      expect_frame(seen.frame, leaving(row, slot_number + 1, sequence));
      EXPECT_EQ(counted(), (Counts{{"block_taken", slot_number + 1U}, {"block_sent", 1}}));
    }
    EXPECT_NE(slot(row, sequence).done, sequence);
    EXPECT_EQ(run(Entry::receive, arriving(row, 2, sequence)).verdict, kDrop);
    EXPECT_EQ(counted(), (Counts{{"block_taken", 4}}));
    EXPECT_EQ(slot(row, sequence).done, sequence);
    EXPECT_EQ(slot(row, sequence).arrived, 0U);
    for (int origin = 0; origin < 8; ++origin) {
      EXPECT_EQ(block(row, sequence, origin).words, 1U);
      EXPECT_EQ(block(row, sequence, origin).combine, 0xABU);
      EXPECT_EQ(block(row, sequence, origin).data[0], value_of(origin, sequence));
    }
  }
}

TEST_F(DoublingProgram, WhatCameBeforeTheProcessGoesWithIt) {
  const unisono_nic_row row = add(doubling_row(8, 1));
  for (const int slot_number : {0, 2, 1}) {
    EXPECT_EQ(run(Entry::receive, arriving(row, slot_number, 0)).verdict, kDrop);
  }
  EXPECT_EQ(counted(), (Counts{{"block_taken", 7}}));
  EXPECT_NE(slot(row, 0).done, 0U);
  post(row, 0, {value_of(1, 0)});
  const TrialRun seen = ring(row, 0);
  EXPECT_EQ(seen.verdict, kTcNext);
  expect_frame(seen.frame, leaving(row, 2, 0), "the last; the others are clones");
  EXPECT_EQ(counted(), (Counts{{"block_sent", 3}}));
  EXPECT_EQ(slot(row, 0).done, 0U);
}

TEST_F(DoublingProgram, SeveralMessagesAtOnceAreSpread) {
  const unisono_nic_row row = add(doubling_row(8, 1));
  post(row, 0, {value_of(1, 0)});
  ring(row, 0);
  EXPECT_EQ(run(Entry::receive, arriving(row, 1, 0)).verdict, kDrop);
  counted();
  const TrialRun passed = run(Entry::receive, arriving(row, 0, 0));
  EXPECT_EQ(passed.verdict, kPass);
  EXPECT_EQ(counted(), (Counts{{"block_taken", 1}}));
  const TrialRun spread = run(Entry::spread, passed.frame);
  EXPECT_EQ(spread.verdict, kTcRedirect);
  expect_frame(spread.frame, leaving(row, 2, 0));
  EXPECT_EQ(counted(), (Counts{{"block_sent", 2}}));
  Frame forged = passed.frame;
  forged[kPacket + offsetof(unisono_packet, value)] ^= std::byte{1};
  EXPECT_EQ(run(Entry::spread, forged).verdict, kTcDrop);
  EXPECT_EQ(counted(), (Counts{{"bad_tag", 1}}));
  EXPECT_EQ(run(Entry::spread, arriving(row, 0, 0)).verdict, kTcNext) << "somebody else's";
}

TEST_F(DoublingProgram, DoublesAndLateOnesChangeNothing) {
  const unisono_nic_row row = add(doubling_row(8, 1));
  run(Entry::receive, arriving(row, 0, 0));
  run(Entry::receive, arriving(row, 2, 1));
  const std::string memory = memory_of(row);
  counted();
  for (const auto& [slot_number, sequence] : std::vector<std::pair<int, std::uint64_t>>{
           {0, 0}, {2, 1}, {1, 2}, {1, 3}, {1, ~std::uint64_t{0}}, {1, ~std::uint64_t{1}}}) {
    EXPECT_EQ(run(Entry::receive, arriving(row, slot_number, sequence)).verdict, kDrop);
    EXPECT_EQ(counted(), (Counts{{"stale", 1}})) << slot_number << ", " << sequence;
  }
  EXPECT_EQ(memory_of(row), memory);
}

TEST_F(DoublingProgram, KeptBlocksAnswer) {
  const unisono_nic_row row = add(doubling_row(8, 1));
  post(row, 0, {value_of(1, 0)});
  ring(row, 0);
  run(Entry::receive, arriving(row, 0, 0));
  const auto expect_answers = [&](int known) {
    for (int number = 0; number < known; ++number) {
      counted();
      const TrialRun seen = run(Entry::receive, question_to(row, number, 0));
      EXPECT_EQ(seen.verdict, kSend);
      expect_frame(seen.frame, leaving(row, number, 0));
      EXPECT_EQ(counted(), (Counts{{"answered", 1}}));
    }
  };
  expect_answers(2);
  run(Entry::receive, arriving(row, 1, 0));
  expect_answers(3);
  run(Entry::receive, arriving(row, 2, 0));
  ASSERT_EQ(slot(row, 0).done, 0U);
  expect_answers(3);
  post(row, 1, {value_of(1, 1)});  // goes on with the next meanwhile
  expect_answers(3);
  post(row, 2, {value_of(1, 2)});  // all are done with operation 1 and so with 0
  counted();
  EXPECT_EQ(run(Entry::receive, question_to(row, 0, 0)).verdict, kDrop);
  EXPECT_EQ(counted(), (Counts{{"stale", 1}}));
}

TEST_F(DoublingProgram, AQuestionGoesOnToWhereTheBlocksComeFrom) {
  const unisono_nic_row row = add(doubling_row(8, 1));
  post(row, 0, {value_of(1, 0)});
  ring(row, 0);
  const std::string memory = memory_of(row);
  counted();
  const TrialRun one = run(Entry::receive, question_to(row, 1, 0));
  EXPECT_EQ(one.verdict, kSend);
  expect_frame(one.frame, question_from(row, 0, 0, 1));
  EXPECT_EQ(counted(), (Counts{{"passed_on", 1}}));
  const TrialRun several = run(Entry::receive, question_to(row, 2, 0));
  EXPECT_EQ(several.verdict, kPass);
  const TrialRun spread = run(Entry::spread, several.frame);
  EXPECT_EQ(spread.verdict, kTcRedirect);
  expect_frame(spread.frame, question_from(row, 1, 0, 1), "the last; the other is a clone");
  EXPECT_EQ(counted(), (Counts{{"passed_on", 1}}));
  EXPECT_EQ(memory_of(row), memory);
}

TEST_F(DoublingProgram, AQuestionDoesNotGoInCircles) {
  const unisono_nic_row row = add(doubling_row(8, 1));
  post(row, 0, {value_of(1, 0)});
  ring(row, 0);
  counted();
  unisono_packet packet = about(row, UNISONO_NIC_ASK_BLOCKS, 7, 1, 1, kGiven[1], 0);
  packet.hop = static_cast<std::uint16_t>(row.ranks);
  EXPECT_EQ(run(Entry::receive, frame(row, packet, {})).verdict, kDrop);
  EXPECT_EQ(counted(), (Counts{{"stale", 1}}));
}

TEST_F(DoublingProgram, WhoIsLateIsNotAskedFurther) {
  const unisono_nic_row row = add(doubling_row(8, 1));
  for (int number = 0; number < 3; ++number) {
    EXPECT_EQ(run(Entry::receive, question_to(row, number, 0)).verdict, kDrop);
    EXPECT_EQ(counted(), (Counts{{"not_yet", 1}}));
  }
}

// A forged address gains nothing, and frames need not grow: lengths and marks have room always.
TEST_F(DoublingProgram, NoAnswerIsLongerThanItsQuestion) {
  const unisono_nic_row row = add(doubling_row(8, 1));
  post(row, 0, {value_of(1, 0)});
  ring(row, 0);
  counted();
  const unisono_packet packet = about(row, UNISONO_NIC_ASK_BLOCKS, 0, 1, 0, kGiven[0], 0);
  const Frame empty = make_frame(host_address(0), row.own, packet, Words(), row.key);
  EXPECT_EQ(run(Entry::receive, empty).verdict, kDrop);
  EXPECT_EQ(counted(), (Counts{{"no_room", 1}}));
  const Frame one = make_frame(host_address(0), row.own, packet, Words(), row.key, 1);
  const TrialRun seen = run(Entry::receive, one);
  EXPECT_EQ(seen.verdict, kSend);
  EXPECT_EQ(seen.frame.size(), one.size());
  EXPECT_EQ(payload_in(seen.frame), (Words{std::uint64_t{0xAB} << 32 | 1}));
}

TEST_F(DoublingProgram, TheOwnQuestionAsksForAllThatLacks) {
  const unisono_nic_row row = add(doubling_row(8, 1));
  EXPECT_EQ(ring(row, 0, UNISONO_NIC_ASK).verdict, kTcDrop);
  EXPECT_EQ(counted(), (Counts{{"stray_doorbell", 1}})) << "it has not given itself";
  post(row, 0, {value_of(1, 0)});
  const TrialRun late = ring(row, 0, UNISONO_NIC_ASK);
  EXPECT_EQ(late.verdict, kTcNext);
  expect_frame(late.frame, leaving(row, 0, 0), "the doorbell packet that did not come");
  EXPECT_EQ(counted(), (Counts{{"block_sent", 1}}));
  run(Entry::receive, arriving(row, 0, 0));
  counted();
  const TrialRun seen = ring(row, 0, UNISONO_NIC_ASK);
  EXPECT_EQ(seen.verdict, kTcNext);
  expect_frame(seen.frame, question_from(row, 2, 0, 0), "the last; the other is a clone");
  EXPECT_EQ(counted(), (Counts{{"asked", 1}}));
  run(Entry::receive, arriving(row, 1, 0));
  run(Entry::receive, arriving(row, 2, 0));
  counted();
  EXPECT_EQ(ring(row, 0, UNISONO_NIC_ASK).verdict, kTcDrop);
  EXPECT_EQ(counted(), (Counts{{"not_yet", 1}}));
  EXPECT_EQ(ring(row, 0, UNISONO_NIC_QUERY).verdict, kTcDrop);
  EXPECT_EQ(counted(), (Counts{{"stray_doorbell", 1}}));
}

// A block longer than the own one is cut to its length; but all ranks see the difference.
TEST_F(DoublingProgram, BlocksOfOtherLengthsAreNamed) {
  const unisono_nic_row row = add(doubling_row(8, 1));
  post(row, 0, {value_of(1, 0)});
  ring(row, 0);
  const std::uint64_t longer = std::uint64_t{0xCD} << 32 | 3;
  const TrialRun seen =
      run(Entry::receive, make_frame(host_address(2), row.own,
                                     about(row, UNISONO_NIC_BLOCKS, 2, 1, 0, kTaken[0], 0),
                                     Words{longer, 5, 6, 7}, row.key, 12));
  EXPECT_EQ(block(row, 0, 2).words, 3U);
  EXPECT_EQ(block(row, 0, 2).combine, 0xCDU);
  EXPECT_EQ(block(row, 0, 2).data[2], 7U);
  EXPECT_EQ(seen.verdict, kSend);
  const Words expected = {std::uint64_t{0xAB} << 32 | 1, value_of(1, 0), longer, 5};
  expect_frame(seen.frame,
               frame(row, about(row, UNISONO_NIC_BLOCKS, 1, 7, 1, kGiven[1], 0), expected));
  // Shorter, and so its datagram: all marks and lengths find room, and no more.
  const TrialRun shorter =
      run(Entry::receive, make_frame(host_address(3), row.own,
                                     about(row, UNISONO_NIC_BLOCKS, 3, 1, 1, kTaken[1], 0),
                                     Words{0, 0}, row.key, 2));
  EXPECT_EQ(shorter.verdict, kSend);
  EXPECT_EQ(packet_in(shorter.frame).length, 32);
  EXPECT_EQ(payload_in(shorter.frame), (Words{std::uint64_t{0xAB} << 32 | 1, longer, 0, 0}));
}

// A packet that is not taken, and why. `spoil` gets the first message for operation 0.
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
      {"another rank's message", kDrop, "bad_sender", [](P& p) { p.sender = 3; }},
      {"the own message", kDrop, "bad_sender", [](P& p) { p.sender = 1; }},
      {"a stranger's", kDrop, "bad_sender", [](P& p) { p.sender = 8; }},
      {"for another rank", kDrop, "bad_sender", [](P& p) { p.target = 2; }},
      {"for all", kDrop, "bad_sender", [](P& p) { p.target = UNISONO_PACKET_GROUP; }},
      {"another number", kDrop, "bad_sender", [](P& p) { p.position = 1; }},
      {"a number of nothing", kDrop, "bad_sender", [](P& p) { p.position = 3; }},
      {"a number far away", kDrop, "bad_sender", [](P& p) { p.position = 8; }},
      {"other blocks", kDrop, "bad_sender", [](P& p) { p.value = 0x0C; }},
      {"a single block", kDrop, "bad_sender", [](P& p) { p.kind = UNISONO_NIC_BLOCK; }},
      {"a question for a single block", kDrop, "bad_sender",
       [](P& p) { p.kind = UNISONO_NIC_ASK_BLOCK; }},
      {"a contribution to a tree", kDrop, "bad_sender", [](P& p) { p.kind = UNISONO_NIC_GIVE; }},
      {"a result of a tree", kDrop, "bad_sender", [](P& p) { p.kind = UNISONO_NIC_RESULT; }},
      {"a query", kDrop, "bad_sender", [](P& p) { p.kind = UNISONO_NIC_QUERY; }},
      {"a doorbell packet from outside", kPass, "foreign",
       [](P& p) { p.kind = UNISONO_NIC_DOORBELL; }},
      {"a question of who is given nothing", kDrop, "bad_sender",
       [](P& p) { p.kind = UNISONO_NIC_ASK_BLOCKS; }},
      {"a question for another message", kDrop, "bad_sender",
       [](P& p) {
         p.kind = UNISONO_NIC_ASK_BLOCKS;
         p.sender = 7;
       }},
      {"a question for another rank", kDrop, "bad_sender",
       [](P& p) {
         p.kind = UNISONO_NIC_ASK_BLOCKS;
         p.sender = 0;
         p.target = 2;
       }},
      {"a question about the future", kDrop, "stale",
       [](P& p) {
         p.kind = UNISONO_NIC_ASK_BLOCKS;
         p.sender = 0;
         p.sequence = 2;
       }},
      {"a message of the future", kDrop, "stale", [](P& p) { p.sequence = 2; }},
      {"shorter than it says", kDrop, "short", nothing, [](Frame& f) { f.resize(kPayload + 8); }},
      {"a flipped bit in a length", kDrop, "bad_tag", nothing, flipped(kPayload)},
      {"a flipped bit in a block", kDrop, "bad_tag", nothing, flipped(kPayload + 11)},
      {"a flipped bit in the blocks", kDrop, "bad_tag", nothing,
       flipped(kPacket + offsetof(P, value))},
      {"a flipped bit in the number", kDrop, "bad_tag", nothing,
       flipped(kPacket + offsetof(P, position))},
      {"a flipped bit in the tag", kDrop, "bad_tag", nothing, flipped(kPacket + offsetof(P, tag))},
  };
}

TEST_F(DoublingProgram, RefusesWithAReason) {
  for (const Refusal& refusal : refusals()) {
    SCOPED_TRACE(refusal.what);
    const unisono_nic_row row = add(doubling_row(8, 1));
    post(row, 0, {5});
    unisono_packet packet = about(row, UNISONO_NIC_BLOCKS, 2, 1, 0, kTaken[0], 0);
    refusal.change(packet);
    Frame spoilt = make_frame(host_address(2), row.own, packet, joined(kTaken[0], 0), row.key, 6);
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

TEST_F(DoublingProgram, AMessageIsWholeBlocks) {
  const unisono_nic_row row = add(doubling_row(8, 1));
  const unisono_packet packet = about(row, UNISONO_NIC_BLOCKS, 3, 1, 1, kTaken[1], 0);
  for (const std::size_t words : {0, 1, 3, 5}) {
    const std::string memory = memory_of(row);
    counted();
    const Frame odd = make_frame(host_address(3), row.own, packet, Words(words), row.key, 4);
    EXPECT_EQ(run(Entry::receive, odd).verdict, kDrop);
    EXPECT_EQ(counted(), (Counts{{"short", 1}}));
    EXPECT_EQ(memory_of(row), memory);
  }
}

TEST_F(DoublingProgram, OtherGroupsTakeNoMessages) {
  for (const bool tree : {true, false}) {
    unisono_nic_row other = tree ? inner_row() : doubling_row(8, 1);
    other.gives = other.takes = 0;
    const unisono_nic_row row = add(other);
    for (const std::uint8_t kind : {UNISONO_NIC_BLOCKS, UNISONO_NIC_ASK_BLOCKS}) {
      const Frame given = frame(row, about(row, kind, 2, 1, 0, kTaken[0], 0), joined(4, 0));
      counted();
      EXPECT_EQ(run(Entry::receive, given).verdict, kDrop);
      EXPECT_EQ(counted(), (Counts{{"bad_sender", 1}}));
      EXPECT_EQ(run(Entry::spread, given).verdict, kTcNext);
    }
  }
}

// Any bytes instead of some of the packet's, and any length: nothing is sent, and no memory
// changes.
TEST_F(DoublingProgram, SpoiltPacketsByTheThousand) {
  constexpr std::uint64_t kSeed = 29;
  base::Prng random(kSeed);
  const unisono_nic_row row = add(doubling_row(8, 1));
  post(row, 0, {value_of(1, 0)});
  ring(row, 0);
  const Frame goods[] = {arriving(row, 1, 0), question_to(row, 0, 0)};
  const std::string memory = memory_of(row);
  for (std::int64_t i = 0; i < harness::scaled(100'000); ++i) {
    const Frame& good = goods[random.below(2)];
    const std::size_t vouched = kPayload - kPacket + packet_in(good).length;
    Frame spoilt = good;
    for (std::uint64_t changes = 1 + random.below(3); changes > 0; --changes) {
      spoilt[kPacket + random.below(vouched)] = static_cast<std::byte>(random.next());
    }
    if (spoilt == good) continue;
    if (random.below(4) == 0) spoilt.resize(14 + random.below(spoilt.size() - 14));
    const std::uint32_t verdict = run(Entry::receive, spoilt).verdict;
    ASSERT_TRUE(verdict == kPass || verdict == kDrop) << "seed " << kSeed << ", packet " << i;
  }
  EXPECT_EQ(memory_of(row), memory);
}

// All ranks of a group, each with a row of its own in one program. The test carries a packet to the
// next rank by giving it the id of that row, in any order. If a rank sends several messages at
// once, all but the last are clones, which a trial run does not show: the ranks request those.
class WholeGroup : public DoublingProgram {
 protected:
  void begin(int ranks) {
    group.clear();
    for (int rank = 0; rank < ranks; ++rank) group.push_back(add(doubling_row(ranks, rank)));
  }
  void run_operation(std::uint64_t sequence, std::size_t words) {
    held.assign(group.size(), 0);
    for (const unisono_nic_row& row : group) {
      post(row, sequence, words_of(static_cast<int>(row.rank), sequence, words));
      const TrialRun seen = ring(row, sequence);
      EXPECT_EQ(seen.verdict, kTcNext);
      send(row, sequence, std::uint64_t{1} << row.rank, seen.frame);
    }
    while (!sent.empty()) {
      const auto next = sent.begin() + static_cast<std::ptrdiff_t>(random.below(sent.size()));
      const unisono_packet packet = packet_in(*next);
      const TrialRun seen = run(Entry::receive, carried(*next));
      sent.erase(next);
      if (seen.verdict == kPass) {
        EXPECT_EQ(run(Entry::spread, seen.frame).verdict, kTcRedirect);
      }
      send(group[packet.target], sequence, packet.value, seen.frame);
    }
  }
  void expect_all(std::uint64_t sequence, std::size_t words) const {
    for (const unisono_nic_row& row : group) {
      EXPECT_EQ(slot(row, sequence).done, sequence);
      for (int origin = 0; origin < static_cast<int>(row.ranks); ++origin) {
        const unisono_nic_block& found = block(row, sequence, origin);
        EXPECT_EQ(Words(found.data, found.data + found.words), words_of(origin, sequence, words))
            << "block " << origin << " at rank " << row.rank << " of " << row.ranks;
      }
    }
  }
  static Words words_of(int rank, std::uint64_t sequence, std::size_t count) {
    Words words;
    for (std::size_t i = 0; i < count; ++i) words.push_back(value_of(rank, sequence) * 100 + i);
    return words;
  }

  std::vector<unisono_nic_row> group;
  base::Prng random{31};

 private:
  // The messages that the rank sends on receiving these blocks. `frame`: the message, if it is one.
  void send(const unisono_nic_row& row, std::uint64_t sequence, std::uint64_t blocks,
            const Frame& frame) {
    const std::uint64_t before = held[row.rank];
    held[row.rank] |= blocks;
    std::vector<const unisono_nic_message*> due;
    for (const unisono_nic_message& give : std::span(row.give, row.gives)) {
      const bool now = (give.blocks & ~held[row.rank]) == 0;
      if (now && (give.blocks & ~before) != 0) due.push_back(&give);
    }
    if (due.size() == 1) sent.push_back(frame);
    if (due.size() < 2) return;
    for (const unisono_nic_message* give : due) {
      unisono_packet question = packet_of(UNISONO_NIC_ASK_BLOCKS, row.id, give->peer, sequence);
      question.target = row.rank;
      question.position = give->slot;
      const std::size_t room = (frame.size() - kPayload) / 8;
      const TrialRun seen = run(Entry::receive, make_frame(host_address(give->peer), row.own,
                                                           question, Words(), row.key, room));
      EXPECT_EQ(seen.verdict, kSend);
      sent.push_back(seen.frame);
    }
  }
  Frame carried(const Frame& frame) const {
    unisono_packet packet = packet_in(frame);
    Words words = payload_in(frame);
    const std::size_t room = words.size();
    words.resize(packet.length / 8U);
    const unisono_nic_row& row = group[packet.target];
    packet.communicator = row.id.communicator;
    return make_frame(host_address(static_cast<int>(packet.sender)), row.own, packet, words,
                      row.key, room - words.size());
  }

  std::vector<std::uint64_t> held;  // arrival bits, by rank
  std::vector<Frame> sent;          // and not carried yet
};

TEST_F(WholeGroup, OfUpToSixtyFourRanks) {
  for (const int ranks : {2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 17, 31, 33, UNISONO_NIC_RANKS_MAX}) {
    begin(ranks);
    const auto largest = static_cast<std::size_t>(group[0].largest);
    int steps = 0;
    while (1 << steps < ranks) ++steps;
    std::uint64_t sequence = 0;
    for (const std::size_t words : {std::size_t{0}, std::size_t{1}, 175 / largest - 1}) {
      counted();
      run_operation(sequence, words);
      EXPECT_EQ(counted()["block_sent"], static_cast<std::uint64_t>(ranks * steps));
      expect_all(sequence++, words);
    }
  }
}

}  // namespace
}  // namespace unisono::nic::test::doubling_program_test
