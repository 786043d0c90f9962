// SPDX-License-Identifier: BSD-3-Clause
#include "reliable/link/deliveries.hpp"

#include <gtest/gtest.h>

#include "unit/reliable/parts.hpp"

namespace unisono::reliable::deliveries_test {
namespace {

class Sender : public Parts {
 public:
  explicit Sender(std::size_t pool_packets)
      : Parts(3, pool_packets), deliveries(context, links, outbox, control) {}

  void submit(int target) {
    Link& link = links.of(target);
    deliveries.submit(link, target,
                      context.filter.header(wire::Kind::put, static_cast<std::uint32_t>(target),
                                            link.sending.take_number()),
                      {});
  }
  std::vector<std::uint64_t> puts_at(int rank) {
    std::vector<std::uint64_t> numbers;
    for (const wire::Header& header : arrivals_at(rank)) {
      if (static_cast<wire::Kind>(header.kind) == wire::Kind::put) {
        numbers.push_back(header.sequence);
      }
    }
    return numbers;
  }
  wire::Header request(std::uint64_t from, std::uint64_t mask) const {
    wire::Header header{};
    header.place = from;
    header.value = mask;
    return header;
  }

  Deliveries deliveries;
};

using Numbers = std::vector<std::uint64_t>;

TEST(Deliveries, WaitForRoomInThePoolAndAskForIt) {
  Sender sender(2);
  for (int i = 0; i < 3; ++i) sender.submit(1);
  EXPECT_TRUE(sender.deliveries.lack_room());
  EXPECT_EQ(sender.context.counts.waited, 1U);
  EXPECT_EQ(sender.context.counts.asked, 1U) << "how far the peer has come";
  EXPECT_EQ(sender.puts_at(1), (Numbers{1, 2}));
  sender.deliveries.acknowledge(sender.links.of(1), 2);
  sender.deliveries.drain_backlogs();
  EXPECT_FALSE(sender.deliveries.lack_room());
  EXPECT_EQ(sender.puts_at(1), Numbers{3});
  EXPECT_FALSE(sender.deliveries.is_settled());
  sender.deliveries.acknowledge(sender.links.of(1), 4);
  EXPECT_TRUE(sender.deliveries.is_settled());
}

TEST(Deliveries, RepeatWhatIsAskedForUnlessItJustLeft) {
  Sender sender(4);
  for (int i = 0; i < 3; ++i) sender.submit(1);
  EXPECT_EQ(sender.puts_at(1), (Numbers{1, 2, 3}));
  Link& link = sender.links.of(1);
  EXPECT_FALSE(sender.deliveries.take_request(link, sender.request(2, 0b111)));
  EXPECT_EQ(sender.context.counts.lingering, 2U) << "4 was never sent";
  sender.pass_ns(sender.context.options.linger_ns);
  EXPECT_FALSE(sender.deliveries.take_request(link, sender.request(2, 0b111))) << "no payload";
  EXPECT_EQ(sender.context.counts.repeated, 2U);
  EXPECT_EQ(sender.puts_at(1), (Numbers{2, 3}));
  EXPECT_EQ(link.sending.lacking(), 2U) << "a request acknowledges what is before it";
}

TEST(Deliveries, PacketsThatOnlyAForgottenPeerLacksGiveWay) {
  Sender sender(2);
  sender.submit(1);
  sender.submit(1);
  sender.deliveries.forget(1);
  EXPECT_TRUE(sender.deliveries.has_forgotten(1));
  EXPECT_FALSE(sender.deliveries.has_forgotten(2));
  EXPECT_TRUE(sender.deliveries.is_settled());
  sender.outbox.flush();
  sender.submit(1);
  sender.submit(1);
  sender.submit(2);
  sender.submit(2);
  EXPECT_FALSE(sender.deliveries.lack_room());
  EXPECT_EQ(sender.puts_at(2), (Numbers{1, 2}));
}

// The peer acknowledges nothing, so packets that waited for it would wait for ever.
TEST(Deliveries, NothingWaitsForAForgottenPeer) {
  Sender sender(2 * kWindow);
  sender.deliveries.forget(1);
  Link& link = sender.links.of(1);
  for (std::uint64_t i = 0; i < 5 * kWindow; ++i) {
    sender.submit(1);
    sender.outbox.flush();
    ASSERT_TRUE(link.sending.backlog.empty()) << "after packet " << i;
  }
  EXPECT_FALSE(sender.deliveries.lack_room());
  EXPECT_EQ(sender.context.counts.waited, 0U);
  EXPECT_EQ(sender.context.counts.abandoned, 0U) << "each left once: the peer may live";
  EXPECT_EQ(sender.context.counts.packets, 5 * kWindow);
  EXPECT_EQ(sender.context.counts.asked, 0U) << "it would not answer";
  EXPECT_TRUE(sender.deliveries.is_settled());
}

TEST(Deliveries, APacketToAForgottenPeerLeavesOnceWhereOthersFillThePool) {
  Sender sender(2);
  sender.submit(1);
  EXPECT_EQ(sender.puts_at(1), Numbers{1});
  sender.deliveries.forget(1);
  sender.submit(2);
  sender.submit(2);
  for (int i = 0; i < 3; ++i) sender.submit(1);  // 2, 3 and 4
  Link& link = sender.links.of(1);
  EXPECT_TRUE(link.sending.backlog.empty());
  EXPECT_FALSE(sender.deliveries.lack_room());
  EXPECT_EQ(sender.context.counts.abandoned, 3U);
  EXPECT_EQ(sender.puts_at(1), (Numbers{2, 3, 4})) << "the peer may live";
  EXPECT_EQ(sender.puts_at(2), (Numbers{1, 2}));
  sender.deliveries.acknowledge(sender.links.of(2), 3);
  sender.submit(1);
  EXPECT_EQ(sender.puts_at(1), Numbers{5}) << "there is room again";
  sender.pass_ns(sender.context.options.linger_ns);
  sender.deliveries.take_request(link, sender.request(1, 0b11111));
  EXPECT_EQ(sender.puts_at(1), Numbers{5}) << "the others are not kept";
}

TEST(Deliveries, AskAgainUntilAllHasArrived) {
  Sender sender(4);
  sender.submit(1);
  sender.deliveries.confirm(1);
  Link& link = sender.links.of(1);
  EXPECT_TRUE(sender.deliveries.look_at_timer(link, 1)) << "it is not time";
  EXPECT_EQ(sender.context.counts.asked, 0U);
  for (std::uint64_t i = 1; i <= 3; ++i) {
    sender.pass_ns(2 * sender.context.options.ask.most_ns);
    EXPECT_TRUE(sender.deliveries.look_at_timer(link, 1));
    EXPECT_EQ(sender.context.counts.asked, i);
  }
  EXPECT_GT(sender.control.silence_ns(1), 0);
  sender.deliveries.acknowledge(link, 2);
  EXPECT_FALSE(sender.deliveries.look_at_timer(link, 1));
  Control::note_heard(link);
  EXPECT_EQ(sender.control.silence_ns(1), 0);
}

}  // namespace
}  // namespace unisono::reliable::deliveries_test
