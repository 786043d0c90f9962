// SPDX-License-Identifier: BSD-3-Clause
// Two or more ranks over virtual datagrams, packet by packet, with time as a number: what is sent
// without loss, who asks for what after one, and what is never applied twice.
#include "reliable/reliable.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "reliable/trouble.hpp"
#include "unit/reliable/ranks.hpp"

namespace unisono::reliable::reliable_test {
namespace {

using transport::VirtualDatagramOptions;

bool holds(Ranks& ranks, int rank, std::size_t place, const std::vector<std::byte>& bytes) {
  return std::equal(bytes.begin(), bytes.end(), ranks.region(rank) + place);
}

TEST(Reliable, APutArrivesAndRaisesItsFlag) {
  Ranks ranks(2);
  const auto bytes = pattern(100);
  ranks.put(0, 1, bytes, 256, kFlag, 77);
  EXPECT_EQ(ranks.word(1, kFlag), 0U);
  ranks.run_for(kDelayNs + 1);
  EXPECT_EQ(ranks.word(1, kFlag), 77U);
  EXPECT_TRUE(holds(ranks, 1, 256, bytes));
  EXPECT_EQ(ranks.word(0, kFlag), 0U) << "the sender's own memory is untouched";
}

// One call to the transport sends both.
TEST(Reliable, BytesWithoutAFlagLeaveWithThoseOfTheFlag) {
  Ranks ranks(2);
  const auto header = pattern(8), bytes = pattern(100, 1);
  ranks.put_bytes(0, 1, header, 128);
  EXPECT_EQ(ranks.network().sent(), 0);
  ranks.put(0, 1, bytes, 256, kFlag, 77);
  EXPECT_EQ(ranks.network().sent(), 2);
  ranks.run_for(kDelayNs + 1);
  EXPECT_EQ(ranks.word(1, kFlag), 77U);
  EXPECT_TRUE(holds(ranks, 1, 128, header));
  EXPECT_TRUE(holds(ranks, 1, 256, bytes));
}

TEST(Reliable, APutToTheSameRankIsACopy) {
  Ranks ranks(2);
  const auto bytes = pattern(100);
  ranks.put(0, 0, bytes, 256, kFlag, 77);
  EXPECT_EQ(ranks.word(0, kFlag), 77U);
  EXPECT_TRUE(holds(ranks, 0, 256, bytes));
  EXPECT_EQ(ranks.network().sent(), 0);
}

// Every length around the borders of a packet, and several at once.
TEST(Reliable, LongMessagesGoInSeveralPackets) {
  Ranks ranks(2);
  constexpr std::size_t kPayload = 1400;  // 1472 - 72
  std::uint64_t value = 0;
  std::uint64_t packets = 0;
  for (const std::size_t length : {std::size_t{0}, std::size_t{1}, kPayload - 1, kPayload,
                                   kPayload + 1, 2 * kPayload, 2 * kPayload + 8, 40 * kPayload}) {
    const auto bytes = pattern(length, static_cast<unsigned>(value));
    ranks.put(0, 1, bytes, 512, kFlag, ++value);
    packets += std::max<std::size_t>(1, (length + kPayload - 1) / kPayload);
    ranks.run_for(kDelayNs + 1);
    EXPECT_EQ(ranks.word(1, kFlag), value) << length;
    EXPECT_TRUE(holds(ranks, 1, 512, bytes)) << length;
    EXPECT_EQ(ranks.at(0).counts().packets, packets) << length;
  }
}

// In the loss-free path nobody acknowledges anything: what is sent is what was put.
TEST(Reliable, NothingIsSentButWhatIsPut) {
  Ranks ranks(4);
  std::int64_t puts = 0;
  for (std::uint64_t round = 1; round <= 300; ++round) {
    for (int from = 0; from < 4; ++from) {
      const int to = (from + 1 + static_cast<int>(round % 3)) % 4;
      ranks.put(from, to, pattern(8), 64, kFlag - 64 * static_cast<std::size_t>(from), round);
      ++puts;
    }
    ranks.run_until(
        ranks.network().now_ns() + kDelayNs + 1, [] { return false; },
        [&ranks] {
          for (int rank = 0; rank < 4; ++rank) ranks.at(rank).awaits((rank + 1) % 4);
        });
  }
  EXPECT_EQ(ranks.network().sent(), puts);
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(ranks.at(rank).counts().nacks, 0U);
    EXPECT_EQ(ranks.at(rank).counts().asked, 0U);
    EXPECT_EQ(ranks.at(rank).counts().repeated, 0U);
  }
}

// A packet may come after as many others as 16 bits can count. It then says that its sender had
// nothing. It must not say that it has the latest puts, which would never be repeated. The test
// plays rank 1 by its packets alone.
TEST(Reliable, AnOldPacketAcknowledgesNothingNew) {
  constexpr std::uint64_t kPuts = 0x10000 - 8;
  Ranks ranks(2);
  ranks.network().cut(0, 1);
  const auto wire = ranks.network().attach(1);
  const wire::PacketFilter filter(wire::key_of("test"), 1, 2);
  const auto send = [&](wire::Header header) {
    const wire::Envelope envelope = filter.seal(header, {});
    const transport::Outgoing datagram{.target = 0, .head = envelope};
    ranks.network().mend(0, 1);
    ASSERT_EQ(wire->send({&datagram, 1}), 1U);
    ranks.network().cut(0, 1);
    ranks.run_for(2 * kDelayNs);
  };
  std::uint64_t control = 0;
  for (std::uint64_t i = 1; i <= kPuts; ++i) {
    ranks.raise(0, 1, kFlag, i);
    if (i % 256 != 0 && i != kPuts) continue;
    wire::Header status = filter.header(wire::Kind::status, 0, ++control);
    status.place = 0;
    status.value = i + 1;
    send(status);
  }
  ASSERT_TRUE(ranks.at(0).is_settled());
  for (std::uint64_t i = 0; i < 16; ++i) ranks.raise(0, 1, kFlag, 7);
  wire::Header old = filter.header(wire::Kind::put, 0, 1);
  old.flag = kFlag;
  old.value = 1;
  set_acknowledged(old, 1);
  send(old);
  EXPECT_EQ(ranks.word(0), 1U) << "it came";
  ranks.run_for(kMillisecond);  // what was just sent is not repeated
  wire::Header nack = filter.header(wire::Kind::nack, 0, ++control);
  nack.place = kPuts + 1;
  nack.value = 1;
  nack.flag = 0;
  send(nack);
  EXPECT_EQ(ranks.at(0).counts().repeated, 1U);
}

// One way only, the window is the limit: two small packets for half a window.
TEST(Reliable, AStreamOneWayAsksTwiceAWindow) {
  Ranks ranks(2);
  constexpr std::uint64_t kPuts = 10 * kWindow;
  for (std::uint64_t i = 1; i <= kPuts; ++i) {
    ranks.raise(0, 1, kFlag, i);
    ranks.run_for(1000);
  }
  ranks.run_for(kMillisecond);
  EXPECT_EQ(ranks.word(1, kFlag), kPuts);
  EXPECT_EQ(ranks.at(0).counts().waited, 0U);
  EXPECT_LE(ranks.at(0).counts().asked, 2 * kPuts / kWindow);
  EXPECT_EQ(ranks.at(0).counts().asked, ranks.at(1).counts().answered);
  EXPECT_EQ(static_cast<std::uint64_t>(ranks.network().sent()),
            kPuts + 2 * ranks.at(0).counts().asked);
}

TEST(Reliable, AFlagWaitsForAllBytesOfItsMessage) {
  Ranks ranks(2);
  const auto bytes = pattern(3 * 1400);
  ranks.network().lose_next(0, 1, 1);
  ranks.put(0, 1, bytes, 512, kFlag, 5);
  ranks.run_for(2 * kDelayNs);
  EXPECT_EQ(ranks.word(1, kFlag), 0U);
  EXPECT_TRUE(ranks.run_until(10 * kMillisecond, [&] { return ranks.word(1, kFlag) == 5; }));
  EXPECT_TRUE(holds(ranks, 1, 512, bytes));
  EXPECT_EQ(ranks.at(0).counts().repeated, 1U) << "only what was lost";
}

TEST(Reliable, AFlagWaitsForThePutsWithoutAFlagBeforeIt) {
  Ranks ranks(2);
  const auto head = pattern(8, 3);
  const auto body = pattern(16, 9);
  ranks.network().lose_next(0, 1, 1);
  ranks.put_bytes(0, 1, head, 512);
  ranks.put(0, 1, body, 1024, kFlag, 5);
  ranks.run_for(2 * kDelayNs);
  EXPECT_EQ(ranks.word(1, kFlag), 0U);
  EXPECT_TRUE(ranks.run_until(10 * kMillisecond, [&] { return ranks.word(1, kFlag) == 5; }));
  EXPECT_TRUE(holds(ranks, 1, 512, head));
  EXPECT_TRUE(holds(ranks, 1, 1024, body));
}

// A lost message does not hold up another.
TEST(Reliable, MessagesMayOvertakeEachOther) {
  Ranks ranks(2);
  ranks.network().lose_next(0, 1, 1);
  ranks.raise(0, 1, kFlag, 1);
  ranks.raise(0, 1, kFlag + 8, 2);
  ranks.run_for(kDelayNs + 1);
  EXPECT_EQ(ranks.word(1, kFlag), 0U);
  EXPECT_EQ(ranks.word(1, kFlag + 8), 2U);
}

TEST(Reliable, AGapIsAskedForAfterItsDelay) {
  ReliableOptions options;
  Ranks ranks(2, steady(), options);
  ranks.network().lose_next(0, 1, 1);
  ranks.raise(0, 1, kFlag, 1);
  ranks.raise(0, 1, kFlag + 8, 2);
  ranks.run_for(kDelayNs + options.gap.first_ns - 1);
  EXPECT_EQ(ranks.at(1).counts().nacks, 0U);
  ranks.run_for(options.gap.first_ns + 2);
  EXPECT_EQ(ranks.at(1).counts().nacks, 1U);
  ranks.run_for(2 * kDelayNs + 2);
  EXPECT_EQ(ranks.word(1, kFlag), 1U);
  EXPECT_EQ(ranks.at(0).counts().repeated, 1U);
  ranks.run_for(100 * kMillisecond);
  EXPECT_EQ(ranks.at(1).counts().nacks, 1U) << "nothing is missing any more";
}

// Nothing follows the last packet, so only who waits for it can know.
TEST(Reliable, TheLastPacketIsAskedForByWhoAwaitsIt) {
  ReliableOptions options;
  Ranks ranks(2, steady(), options);
  ranks.network().lose_next(0, 1, 1);
  ranks.raise(0, 1, kFlag, 1);
  ranks.run_for(50 * kMillisecond);
  EXPECT_EQ(ranks.at(1).counts().nacks, 0U) << "nobody waits";
  const auto arrived = [&] { return ranks.word(1, kFlag) == 1; };
  const std::int64_t begun = ranks.network().now_ns();
  EXPECT_TRUE(ranks.run_until(begun + 50 * kMillisecond, arrived, [&] { ranks.at(1).awaits(0); }));
  EXPECT_GE(ranks.network().now_ns(), begun + options.await.first_ns);
  EXPECT_LE(ranks.network().now_ns(), begun + 2 * options.await.first_ns + 3 * kDelayNs);
  EXPECT_EQ(ranks.at(1).counts().nacks, 1U);
}

TEST(Reliable, OnlyPeersWithSomethingOutstandingAreLookedAt) {
  constexpr int kRanks = 1024;
  constexpr int kReceiver = 5;
  VirtualDatagramOptions network = steady();
  network.max_payload = wire::kHeaderBytes + 8;  // to save memory
  ReliableOptions options;
  options.pool_packets = 8;
  Ranks ranks(kRanks, network, options);
  Reliable& receiver = ranks.at(kReceiver);
  for (int origin = 0; origin < kRanks; ++origin) {
    if (origin == kReceiver) continue;
    receiver.awaits(origin);
    ranks.raise(origin, kReceiver, kFlag, static_cast<std::uint64_t>(origin) + 1);
    ranks.network().advance();
    receiver.progress();
    ASSERT_EQ(ranks.word(kReceiver), static_cast<std::uint64_t>(origin) + 1);
  }
  const auto looked_at = [&](int times) {
    const std::uint64_t before = receiver.counts().looked_at;
    for (int i = 0; i < times; ++i) receiver.progress();
    return receiver.counts().looked_at - before;
  };
  // Each timer runs out, and once more: nothing is awaited any more.
  for (int i = 0; i < 2; ++i) {
    ranks.network().advance_to(ranks.network().now_ns() + options.await.most_ns * 2);
    receiver.progress();
  }
  EXPECT_EQ(looked_at(100), 0U);
  receiver.awaits(7);
  EXPECT_EQ(looked_at(100), 100U);
}

TEST(Reliable, WhoeverStillWaitsAsksLessAndLessOften) {
  Ranks ranks(2);
  ranks.run_until(
      400 * kMillisecond, [] { return false; }, [&] { ranks.at(1).awaits(0); });
  // 2, 4, 8, 16, 32, 64, 100 ms and up to twice that.
  EXPECT_GE(ranks.at(1).counts().nacks, 5U);
  EXPECT_LE(ranks.at(1).counts().nacks, 9U);
  EXPECT_EQ(ranks.at(0).counts().repeated, 0U);
  ranks.run_for(500 * kMillisecond);
  const auto before = ranks.at(1).counts().nacks;
  ranks.run_for(500 * kMillisecond);
  EXPECT_EQ(ranks.at(1).counts().nacks, before) << "nobody waits any more";
}

TEST(Reliable, LostRequestsAndLostRepetitionsAreMadeAgain) {
  Ranks ranks(2);
  ranks.network().lose_next(0, 1, 1);
  ranks.raise(0, 1, kFlag, 1);
  ranks.raise(0, 1, kFlag + 8, 2);
  ranks.run_for(kDelayNs + 1);
  ranks.network().lose_next(1, 0, 2);  // two requests
  ranks.network().lose_next(0, 1, 4);  // and two repetitions, each with a status behind it
  EXPECT_TRUE(ranks.run_until(100 * kMillisecond, [&] { return ranks.word(1, kFlag) == 1; }));
  EXPECT_GE(ranks.at(1).counts().nacks, 5U);
  EXPECT_EQ(ranks.at(0).counts().repeated, 3U);
}

TEST(Reliable, ManyRequestsAreOneRepetition) {
  ReliableOptions options;
  options.gap = {.first_ns = 1000, .most_ns = 1000};  // far more often than answers can come
  Ranks ranks(2, steady(), options);
  ranks.network().lose_next(0, 1, 1);
  ranks.raise(0, 1, kFlag, 1);
  ranks.raise(0, 1, kFlag + 8, 2);
  EXPECT_TRUE(ranks.run_until(10 * kMillisecond, [&] { return ranks.word(1, kFlag) == 1; }));
  ranks.run_for(kMillisecond);
  EXPECT_EQ(ranks.at(0).counts().repeated, 1U);
  EXPECT_GT(ranks.at(0).counts().lingering, 0U);
}

TEST(Reliable, WhatComesTwiceIsAppliedOnce) {
  VirtualDatagramOptions network = steady();
  network.duplicates = 1;
  network.delay_max_ns = 50 * kDelayNs;
  Ranks ranks(2, network);
  ranks.put(0, 1, pattern(8, 1), 512, kFlag, 1);
  // As soon as it has come its reader takes it away; the copy must not bring it back.
  EXPECT_TRUE(ranks.run_until(kMillisecond, [&] { return ranks.word(1, kFlag) == 1; }));
  std::memset(ranks.region(1), 0, kRegion);
  ranks.run_for(10 * kMillisecond);
  EXPECT_EQ(ranks.word(1, kFlag), 0U);
  EXPECT_EQ(ranks.word(1, 512), 0U);
  EXPECT_EQ(ranks.at(1).counts().duplicates, 1U);
}

// More than the pool holds, and more than the window: nothing is lost, and it is counted.
TEST(Reliable, AFullPoolMakesPacketsWaitNotVanish) {
  ReliableOptions options;
  options.pool_packets = 16;
  Ranks ranks(3, steady(), options);
  constexpr std::size_t kPuts = 100;
  for (std::size_t i = 0; i < kPuts; ++i) {
    ranks.raise(0, 1 + static_cast<int>(i % 2), kFlag - 8 * i, i + 1);
  }
  EXPECT_EQ(ranks.at(0).counts().waited, kPuts - 16);
  EXPECT_GT(ranks.at(0).counts().asked, 0U);
  const auto all_there = [&] {
    for (std::size_t i = 0; i < kPuts; ++i) {
      if (ranks.word(1 + static_cast<int>(i % 2), kFlag - 8 * i) != i + 1) return false;
    }
    return true;
  };
  EXPECT_TRUE(ranks.run_until(100 * kMillisecond, all_there));
}

// Rank 1 no longer answers. Packets kept for it, also of later puts, take no room from those for
// the others.
TEST(Reliable, WhoIsForgottenLeavesItsRoomToTheOthers) {
  ReliableOptions options;
  options.pool_packets = 16;
  Ranks ranks(3, steady(), options);
  ranks.network().kill(1);
  for (std::size_t i = 0; i < 20; ++i) ranks.raise(0, 1, kFlag - 8 * i, i + 1);
  ranks.at(0).forget(1);
  for (std::size_t i = 0; i < 20; ++i) ranks.raise(0, 1, kFlag - 8 * i, i + 1);
  for (std::size_t i = 0; i < 8; ++i) ranks.raise(0, 2, kFlag - 8 * i, i + 1);
  EXPECT_TRUE(ranks.run_until(100 * kMillisecond, [&] {
    for (std::size_t i = 0; i < 8; ++i) {
      if (ranks.word(2, kFlag - 8 * i) != i + 1) return false;
    }
    return true;
  }));
}

TEST(Reliable, AFullWindowWaitsForThePeer) {
  Ranks ranks(2);
  const auto bytes = pattern(kRegion / 2);
  // Far more than a window of packets of 8 bytes.
  for (std::uint64_t i = 0; i < 3 * kWindow; ++i) ranks.raise(0, 1, kFlag, i + 1);
  ranks.put(0, 1, bytes, 0, kFlag + 8, 1);
  EXPECT_GT(ranks.at(0).counts().waited, 0U);
  EXPECT_TRUE(ranks.run_until(1000 * kMillisecond, [&] { return ranks.word(1, kFlag + 8) == 1; }));
  EXPECT_TRUE(holds(ranks, 1, 0, bytes));
  EXPECT_EQ(ranks.at(1).counts().beyond, 0U);
}

TEST(Reliable, ATransportWithoutRoomIsTriedAgain) {
  VirtualDatagramOptions network = steady();
  network.room = 3;
  Ranks ranks(2, network);
  const auto bytes = pattern(20 * 1400);
  ranks.put(0, 1, bytes, 0, kFlag, 1);
  EXPECT_TRUE(ranks.run_until(
      kMillisecond, [&] { return ranks.word(1, kFlag) == 1; },
      [&] { ranks.network().advance_to(ranks.network().now_ns() + 100); }));
  EXPECT_TRUE(holds(ranks, 1, 0, bytes));
  EXPECT_EQ(ranks.at(0).counts().repeated, 0U);
}

TEST(Reliable, PacketsSayHowManyFollow) {
  VirtualDatagramOptions network = steady();
  network.room = 3;
  Ranks ranks(2, network);
  ranks.put(0, 1, pattern(7 * 1400 + 1), 0, kFlag, 9);  // three of the eight packets leave at once
  ranks.network().advance_to(kDelayNs + 1);
  ranks.at(1).progress();
  EXPECT_EQ(ranks.at(1).arrived().packets, 3);
  EXPECT_EQ(ranks.at(1).arrived().following, 5U);
  EXPECT_TRUE(ranks.run_until(kMillisecond, [&] { return ranks.word(1, kFlag) == 9; }));
  EXPECT_EQ(ranks.at(1).arrived().following, 0U);
}

TEST(Reliable, APartitionThatIsMendedLosesNothing) {
  Ranks ranks(2);
  ranks.network().cut(0, 1);
  for (std::uint64_t i = 0; i < 200; ++i) ranks.raise(0, 1, kFlag - 8 * i, i + 1);
  ranks.run_until(
      300 * kMillisecond, [] { return false; }, [&] { ranks.at(1).awaits(0); });
  EXPECT_EQ(ranks.word(1, kFlag), 0U);
  ranks.network().mend(0, 1);
  const auto all_there = [&] {
    for (std::uint64_t i = 0; i < 200; ++i) {
      if (ranks.word(1, kFlag - 8 * i) != i + 1) return false;
    }
    return true;
  };
  EXPECT_TRUE(ranks.run_until(2000 * kMillisecond, all_there, [&] { ranks.at(1).awaits(0); }));
}

TEST(Reliable, SettlesWhenAllHasArrived) {
  Ranks ranks(2);
  EXPECT_TRUE(ranks.at(0).is_settled());
  ranks.network().lose_next(0, 1, 1);
  ranks.raise(0, 1, kFlag, 1);
  EXPECT_FALSE(ranks.at(0).is_settled());
  EXPECT_TRUE(ranks.run_until(100 * kMillisecond, [&] { return ranks.at(0).settle(); }));
  EXPECT_EQ(ranks.word(1, kFlag), 1U) << "a sender at its end finds the loss of its last packet";
}

TEST(Reliable, AFarewellSpareTheOthersToAsk) {
  Ranks ranks(2);
  ranks.raise(0, 1, kFlag, 1);
  ranks.run_for(kDelayNs + 1);
  ranks.at(1).send_last_statuses();
  ranks.network().kill(1);
  ranks.run_for(kDelayNs + 1);
  EXPECT_TRUE(ranks.at(0).is_settled());
  EXPECT_EQ(ranks.at(0).counts().asked, 0U);
}

TEST(Reliable, ADeadPeerCostsLessAndLess) {
  Ranks ranks(2);
  ranks.raise(0, 1, kFlag, 1);
  ranks.network().kill(1);
  const std::int64_t end = 1000 * kMillisecond;
  EXPECT_FALSE(ranks.run_until(end, [&] { return ranks.at(0).settle(); }));
  EXPECT_LT(ranks.at(0).counts().asked, 70U);
}

// A program must not do that, but its messages arrive all the same. A packet whose tag is not that
// of its bytes would be repeated and dropped for ever.
TEST(Reliable, AMessageWhoseBufferChangesMeanwhileArrives) {
  constexpr std::size_t kBytes = 1400;
  constexpr std::uint64_t kMessages = 5000;
  void* const shared =
      mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  const pid_t writer = fork();
  ASSERT_GE(writer, 0);
  if (writer == 0) {  // a process, as a thread would be a race within this one
    auto* const words = static_cast<volatile std::uint64_t*>(shared);
    for (std::uint64_t value = 0;; ++value) words[100] = value;
  }
  Ranks ranks(2);
  for (std::uint64_t i = 1; i <= kMessages; ++i) {
    ranks.at(0).put({.target = 1,
                     .source = static_cast<const std::byte*>(shared),
                     .place = ranks.region(0),
                     .bytes = kBytes,
                     .flag = reinterpret_cast<std::uint64_t*>(ranks.region(0) + kFlag),
                     .flag_value = i});
    ranks.run_for(kDelayNs);
  }
  kill(writer, SIGKILL);
  waitpid(writer, nullptr, 0);
  munmap(shared, kBytes);
  ranks.run_for(100 * kMillisecond);
  EXPECT_EQ(ranks.word(1), kMessages);
  EXPECT_EQ(ranks.at(1).drops().of(wire::Drop::tag), 0U);
}

// As a group's origin (group_test.cpp).
TEST(Reliable, WhatADeadPeerDidNotGetThroughIsNotAskedForForEver) {
  Ranks ranks(2);
  ranks.network().lose_next(0, 1, 1);
  ranks.raise(0, 1, kFlag, 1);
  ranks.raise(0, 1, kFlag + 8, 1);
  ranks.run_for(2 * kDelayNs);
  EXPECT_EQ(ranks.word(1, kFlag + 8), 1U);
  ranks.network().kill(0);
  ranks.run_for(50 * kMillisecond);
  EXPECT_GT(ranks.at(1).counts().nacks, 0U);
  ranks.at(1).forget(0);
  ranks.run_for(100 * kMillisecond);  // one timer is due once more
  const std::uint64_t before = ranks.at(1).counts().nacks;
  ranks.run_for(10'000 * kMillisecond);
  EXPECT_EQ(ranks.at(1).counts().nacks, before);
}

// A packet that is played again is no sign of life. Rank 2 is nothing but that packet.
TEST(Reliable, APeerIsSilentFromTheFirstQuestionUntilItIsHeard) {
  Ranks ranks(3);
  const auto wire = ranks.network().attach(2);
  const wire::PacketFilter filter(wire::key_of("test"), 2, 3);
  wire::Header header = filter.header(wire::Kind::put, 0, 1);
  header.flag = kFlag;
  header.value = 1;
  const wire::Envelope envelope = filter.seal(header, {});
  const transport::Outgoing datagram{.target = 0, .head = envelope};
  const auto pass = [&ranks](int milliseconds) {
    for (int i = 0; i < milliseconds; ++i) {
      ranks.at(0).awaits(2);
      ranks.at(0).progress();
      ranks.network().advance_to(ranks.network().now_ns() + kMillisecond);
    }
  };
  pass(300);
  EXPECT_GT(ranks.at(0).silence_ns(2), 150 * kMillisecond);
  ASSERT_EQ(wire->send({&datagram, 1}), 1U);
  pass(2);
  EXPECT_EQ(ranks.word(0), 1U);
  EXPECT_EQ(ranks.at(0).silence_ns(2), 0);
  pass(300);
  ASSERT_EQ(wire->send({&datagram, 1}), 1U);
  pass(10);
  EXPECT_EQ(ranks.at(0).counts().duplicates, 1U);
  EXPECT_GT(ranks.at(0).silence_ns(2), 150 * kMillisecond);
}

// Nobody waited meanwhile: the first question may have been lost.
TEST(Reliable, APeerIsNotSilentWhileNobodyAsks) {
  Ranks ranks(2);
  ranks.network().kill(1);
  const auto pass = [&ranks](int milliseconds, bool waits) {
    for (int i = 0; i < milliseconds; ++i) {
      if (waits) ranks.at(0).awaits(1);
      ranks.at(0).progress();
      ranks.network().advance_to(ranks.network().now_ns() + kMillisecond);
    }
  };
  pass(50, true);
  const std::int64_t before = ranks.at(0).silence_ns(1);
  EXPECT_GT(before, 0);
  pass(3000, false);
  EXPECT_LT(ranks.at(0).silence_ns(1), before + 200 * kMillisecond);
  pass(50, true);
  EXPECT_LT(ranks.at(0).silence_ns(1), 100 * kMillisecond);
}

// Packets of foreign senders have no effect, nor do a rank's packets to a wrong position.
TEST(Reliable, ForgedAndMisplacedPacketsHaveNoEffect) {
  Ranks ranks(3);
  const auto wire = ranks.network().attach(2);
  const auto send = [&wire](const wire::PacketFilter& filter, wire::Header header,
                            const std::vector<std::byte>& payload) {
    const wire::Envelope envelope = filter.seal(header, payload);
    const transport::Outgoing datagram{0, envelope, payload};
    ASSERT_EQ(wire->send({&datagram, 1}), 1U);
  };
  const auto bytes = pattern(64);
  const wire::PacketFilter stranger(wire::key_of("another"), 2, 3);
  wire::Header header = stranger.header(wire::Kind::put, 0, 1);
  header.place = 0;
  send(stranger, header, bytes);
  const wire::PacketFilter own(wire::key_of("test"), 2, 3);
  for (const std::uint64_t place : {std::uint64_t{kRegion}, std::uint64_t{kRegion - 63},
                                    std::numeric_limits<std::uint64_t>::max() - 10}) {
    header = own.header(wire::Kind::put, 0, 1);
    header.place = place;
    send(own, header, bytes);
  }
  header = own.header(wire::Kind::put, 0, 1);
  header.flag = kRegion - 4;
  header.value = 1;
  send(own, header, {});
  // An acknowledgement of what was never sent, and a request for it.
  header = own.header(wire::Kind::nack, 0, 1);
  header.place = 1'000'000;
  header.value = ~std::uint64_t{0};
  header.flag = 0;
  send(own, header, {});
  ranks.run_for(kMillisecond);
  EXPECT_EQ(ranks.at(0).drops().total(), 1U);
  EXPECT_EQ(ranks.at(0).counts().misplaced, 4U);
  EXPECT_EQ(ranks.at(0).counts().repeated, 0U);
  EXPECT_EQ(trouble_text(ranks.at(0)),
            "4 for no place in memory; dropped: " + ranks.at(0).drops().text());
  EXPECT_EQ(trouble_text(ranks.at(2)), "");
  for (std::size_t i = 0; i < kRegion; i += 8) ASSERT_EQ(ranks.word(0, i), 0U);
  // And the link goes on.
  ranks.raise(0, 2, kFlag, 1);
  ranks.run_for(kMillisecond);
  EXPECT_EQ(ranks.word(2, kFlag), 1U);
}

}  // namespace
}  // namespace unisono::reliable::reliable_test
