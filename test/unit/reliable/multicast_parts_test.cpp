// SPDX-License-Identifier: BSD-3-Clause
// Both halves of a group on one rank: group_context, multicast_sender and multicast_receiver. The
// repair tree has two children at each rank.
#include <gtest/gtest.h>

#include "reliable/group/multicast_receiver.hpp"
#include "reliable/group/multicast_sender.hpp"
#include "unit/reliable/parts.hpp"

namespace unisono::reliable::multicast_parts_test {
namespace {

using wire::Kind;

std::vector<wire::Header> of_kind(const std::vector<wire::Header>& headers, Kind kind) {
  std::vector<wire::Header> found;
  for (const wire::Header& header : headers) {
    if (static_cast<Kind>(header.kind) == kind) found.push_back(header);
  }
  return found;
}

wire::Header header_of(std::uint32_t origin, std::uint32_t sender) {
  wire::Header header{};
  header.kind = static_cast<std::uint8_t>(Kind::put);
  header.origin = origin;
  header.sender = sender;
  header.target = wire::kToGroup;
  header.place = header.flag = wire::kNoPlace;
  return header;
}

// Rank 0 of five: its children are 1 and 2.
class Origin : public Parts {
 public:
  Origin() : Parts(5), sender(group) {}

  void put() {
    wire::Header header = context.filter.header(Kind::put, wire::kToGroup, 0);
    header.flag = wire::kNoPlace;
    sender.put(header, {}, context.now_ns);
  }
  void answer(std::uint32_t child, std::uint64_t question, std::uint64_t value,
              std::uint32_t position = 0) {
    wire::Header header = header_of(0, child);
    header.place = question;
    header.value = value;
    header.position = position;
    sender.take_answer(header, context.now_ns);
  }

  MulticastSender sender;
};

TEST(MulticastSender, LearnsFromItsChildrenThatAllHaveAll) {
  Origin origin;
  EXPECT_TRUE(origin.sender.is_settled());
  origin.put();
  origin.sender.ask(origin.context.now_ns);
  for (int rank = 1; rank < 5; ++rank) {
    const auto headers = origin.arrivals_at(rank);
    EXPECT_EQ(of_kind(headers, Kind::put).size(), 1U) << rank;
    EXPECT_EQ(of_kind(headers, Kind::query).size(), 1U) << rank;
  }
  origin.answer(1, 1, 2);
  EXPECT_FALSE(origin.sender.is_settled());
  origin.answer(2, 1, 1);
  EXPECT_FALSE(origin.sender.is_settled()) << "some rank lacks it";
  origin.answer(2, 0, 2);
  EXPECT_FALSE(origin.sender.is_settled()) << "of another question";
  origin.answer(2, 1, 2);
  EXPECT_TRUE(origin.sender.is_settled());
  EXPECT_FALSE(origin.sender.timer().runs());
}

TEST(MulticastSender, AsksOnlyChildrenThatHaveNotAnswered) {
  Origin origin;
  origin.put();
  origin.sender.ask(origin.context.now_ns);
  for (const int rank : {1, 2}) origin.arrivals_at(rank);
  origin.answer(2, 1, 2);
  origin.pass_ns(2 * origin.context.options.ask.first_ns);
  origin.sender.look_at_timer(origin.context.now_ns);
  EXPECT_EQ(of_kind(origin.arrivals_at(1), Kind::query).size(), 1U);
  EXPECT_EQ(origin.arrivals_at(2).size(), 0U);
  EXPECT_EQ(origin.group.counts.asked_again, 1U);
}

TEST(MulticastSender, AChildThatMulticastDoesNotReachGetsAllByUnicast) {
  Origin origin;
  origin.put();
  origin.sender.ask(origin.context.now_ns);
  origin.answer(1, 1, 2, kUnreached);
  for (const int rank : {1, 2}) origin.arrivals_at(rank);
  origin.put();
  const auto puts = of_kind(origin.arrivals_at(1), Kind::put);
  ASSERT_EQ(puts.size(), 2U);
  EXPECT_EQ(puts[0].hop + puts[1].hop, kByUnicast);
  EXPECT_EQ(of_kind(origin.arrivals_at(2), Kind::put).size(), 1U);
}

// Rank 0 in the tree of origin 4: its parent is 4, its children are 2 and 3.
class Member : public Parts {
 public:
  static constexpr std::uint32_t kOrigin = 4;

  Member() : Parts(5), receiver(group) {}

  bool take_put(std::uint64_t number, std::uint16_t hop = 0) {
    wire::Parsed packet;
    packet.header = filter_of(kOrigin).header(Kind::put, wire::kToGroup, number);
    packet.header.place = 0;
    packet.header.hop = hop;
    return receiver.take_put(packet, context.now_ns).fresh;
  }
  void request(std::uint32_t child, std::uint64_t number) {
    wire::Header header = header_of(kOrigin, child);
    header.place = number;
    header.value = 1;
    receiver.take_request(header, context.now_ns);
  }

  MulticastReceiver receiver;
};

TEST(MulticastReceiver, RepeatsToAChildWhatItHas) {
  Member member;
  EXPECT_TRUE(member.take_put(1));
  EXPECT_FALSE(member.take_put(1));
  EXPECT_EQ(member.group.counts.duplicates, 1U);
  member.request(2, 1);
  EXPECT_EQ(member.arrivals_at(2).size(), 0U) << "it was multicast just now";
  member.pass_ns(member.context.options.linger_ns);
  member.request(2, 1);
  const auto puts = of_kind(member.arrivals_at(2), Kind::put);
  ASSERT_EQ(puts.size(), 1U);
  EXPECT_EQ(puts[0].origin, Member::kOrigin);
  EXPECT_EQ(member.arrivals_at(3).size(), 0U);
}

TEST(MulticastReceiver, PassesARequestUpAndThePacketDown) {
  Member member;
  member.request(2, 1);
  member.request(3, 1);
  const auto requests = of_kind(member.arrivals_at(4), Kind::nack);
  ASSERT_EQ(requests.size(), 1U) << "requests that meet here are one";
  EXPECT_EQ(requests[0].place, 1U);
  EXPECT_EQ(requests[0].flag, 1U);
  EXPECT_TRUE(member.take_put(1, kByUnicast));
  for (const int child : {2, 3}) {
    EXPECT_EQ(of_kind(member.arrivals_at(child), Kind::put).size(), 1U) << child;
  }
}

TEST(MulticastReceiver, AnswersForItselfAndAllBelowIt) {
  Member member;
  EXPECT_TRUE(member.take_put(1));
  EXPECT_TRUE(member.take_put(2));
  wire::Header query = header_of(Member::kOrigin, Member::kOrigin);
  query.sequence = 1;
  query.value = 3;
  member.receiver.take_query(query, member.context.now_ns);
  EXPECT_EQ(member.arrivals_at(4).size(), 0U);
  for (const std::uint32_t child : {2U, 3U}) {
    wire::Header answer = header_of(Member::kOrigin, child);
    answer.place = 1;
    answer.value = child;
    member.receiver.take_answer(answer);
  }
  const auto answers = of_kind(member.arrivals_at(4), Kind::answer);
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].value, 2U) << "the worst";
}

TEST(MulticastReceiver, FindsThatMulticastIsLost) {
  Member member;
  for (std::uint64_t i = 1; i <= MulticastWatch::kMostMissed; ++i) {
    EXPECT_EQ(member.receiver.unreached_by(), -1);
    member.pass_ns(member.context.options.await.first_ns);
    EXPECT_TRUE(member.take_put(i, kByUnicast));
  }
  EXPECT_EQ(member.receiver.unreached_by(), static_cast<int>(Member::kOrigin));
}

}  // namespace
}  // namespace unisono::reliable::multicast_parts_test
