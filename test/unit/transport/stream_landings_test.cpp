// SPDX-License-Identifier: BSD-3-Clause
// Long messages that go to a buffer of their receiver, and what becomes of those that nobody
// expects any more: on their own, and by streams between ranks on loopback.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "tcp_world.hpp"
#include "transport/tcp/frame.hpp"
#include "transport/tcp/stream_landings.hpp"

namespace unisono::transport::stream_landings_test {
namespace {

using Bytes = std::vector<std::byte>;
constexpr int kSource = 3;

Bytes bytes_of(std::size_t count, int seed) {
  Bytes bytes(count);
  for (std::size_t i = 0; i < count; ++i) {
    bytes[i] = static_cast<std::byte>(i * 7 + i / 251 + static_cast<std::size_t>(seed));
  }
  return bytes;
}

class LandingsTest : public testing::Test {
 protected:
  LandingsTest() { expect(); }
  void expect() { landings.expect({kSource, place(0), target.data(), target.size()}); }
  std::byte* place(std::size_t at) { return window.data() + at; }
  // A piece comes, wherever it goes.
  void come(std::size_t at, std::size_t bytes, int source = kSource) {
    const bool lands = landings.begin(source, place(at), bytes);
    std::byte* const to = lands ? landings.destination(source, place(at)) : place(at);
    std::copy_n(message.data() + at, bytes, to);
    if (lands) landings.finish(source, place(at));
  }

  static constexpr std::size_t kBytes = 300;
  const Bytes message = bytes_of(kBytes, 1);
  const Bytes untouched = Bytes(kBytes, std::byte{0});
  Bytes window = untouched;
  Bytes target = untouched;
  StreamLandings landings;
};

TEST_F(LandingsTest, AMessageInPiecesLands) {
  come(0, 100);
  come(100, 200);
  EXPECT_TRUE(landings.has_landed(place(0)));
  EXPECT_EQ(target, message);
  EXPECT_EQ(window, untouched);
  EXPECT_FALSE(landings.has_landed(place(0))) << "of the one before";
}

TEST_F(LandingsTest, OneThatHasBegunToGoToItsPlaceGoesOnThere) {
  landings.withdraw(place(0), kBytes);
  come(0, 100);
  expect();
  come(100, 200);
  EXPECT_FALSE(landings.has_landed(place(0)));
  EXPECT_EQ(window, message);
  EXPECT_EQ(target, untouched);
}

TEST_F(LandingsTest, OneThatComesInPartElsewhereIsInItsPlace) {
  come(0, 100);
  std::copy(message.begin() + 100, message.end(), window.begin() + 100);  // as by packets
  EXPECT_FALSE(landings.has_landed(place(0)));
  EXPECT_EQ(window, message);
}

// As in a ring, whose rank has not looked yet.
TEST_F(LandingsTest, OneBehindAnotherThatHasLandedLandsToo) {
  Bytes second(100);
  landings.withdraw(place(0), kBytes);
  landings.expect({kSource, place(0), target.data(), 100});
  landings.expect({kSource, place(100), second.data(), second.size()});
  come(0, 100);
  come(100, 100);
  EXPECT_TRUE(landings.has_landed(place(0)));
  EXPECT_TRUE(landings.has_landed(place(100)));
  EXPECT_TRUE(std::equal(second.begin(), second.end(), message.begin() + 100));
}

TEST_F(LandingsTest, OthersAreLeftAlone) {
  come(0, 300, kSource + 1);
  EXPECT_EQ(window, message);
  EXPECT_FALSE(landings.begin(kSource, place(1), 10));
  EXPECT_FALSE(landings.begin(kSource, place(0), 301)) << "longer than expected";
  EXPECT_EQ(target, untouched);
  EXPECT_FALSE(landings.has_landed(place(8)));
}

TEST_F(LandingsTest, AmidAPieceAWithdrawnTargetIsLeftAlone) {
  come(0, 100);
  ASSERT_TRUE(landings.begin(kSource, place(100), 200));
  std::copy_n(message.data() + 100, 50, landings.destination(kSource, place(100)));
  landings.withdraw(place(0), kBytes);
  std::ranges::fill(target, std::byte{0});
  ASSERT_EQ(landings.destination(kSource, place(100)), place(100));
  std::copy_n(message.data() + 150, 150, landings.destination(kSource, place(100)) + 50);
  landings.finish(kSource, place(100));
  EXPECT_EQ(window, message);
  EXPECT_EQ(target, untouched);
}

TEST_F(LandingsTest, OnlyThoseOfTheWindowAreWithdrawn) {
  landings.withdraw(place(1), kBytes);
  come(0, kBytes);
  EXPECT_TRUE(landings.has_landed(place(0)));
}

class LandingStreams : public testing::Test {
 protected:
  void SetUp() override {
    auto made = TcpWorld::make(2);
    ASSERT_TRUE(made.ok()) << made.error().message;
    world = std::move(*made);
    world->connect(0, 1);
    expect();
  }
  Landings& landings() { return *world->at(1).landings(); }
  void expect() { landings().expect({0, world->region(1), target.data(), target.size()}); }
  bool is_in_place() { return std::equal(message.begin(), message.end(), world->region(1)); }
  void wait(std::uint64_t value) {
    while (world->value(1, 0) != value) world->step();
  }

  const Bytes message = bytes_of(5 * kMostFrameBytes / 2, 2);  // three frames
  Bytes target = Bytes(message.size());
  std::unique_ptr<TcpWorld> world;
};

TEST_F(LandingStreams, AMessageGoesStraightToItsTarget) {
  world->write(0, 1, 0, message, 0, 1);
  wait(1);
  EXPECT_TRUE(landings().has_landed(world->region(1)));
  EXPECT_EQ(target, message);
  EXPECT_FALSE(is_in_place());
}

// The header of a message comes along with the one before, and so do its first bytes where nobody
// stops to look.
TEST_F(LandingStreams, AMessageThatIsExpectedAfterItsHeaderHasComeLandsToo) {
  const Bytes other = bytes_of(message.size(), 5);
  world->write(0, 1, 0, message, 0, 1);
  world->write(0, 1, 0, other, 0, 2);
  wait(1);
  EXPECT_TRUE(landings().has_landed(world->region(1)));
  EXPECT_EQ(target, message);
  expect();
  wait(2);
  EXPECT_TRUE(landings().has_landed(world->region(1)));
  EXPECT_EQ(target, other);
}

// The frames after it have their tags checked where they lie, and the stream goes on.
TEST_F(LandingStreams, AMessageThatNobodyExpectsAnyMoreArrivesInItsPlace) {
  world->at(0).write({.rank = 1, .offset = 0, .from = message.data(), .bytes = kMostFrameBytes});
  while (target[kMostFrameBytes - 1] != message[kMostFrameBytes - 1]) world->step();
  landings().withdraw(world->region(1), message.size());
  std::ranges::fill(target, std::byte{0});
  world->write(0, 1, kMostFrameBytes, std::span(message).subspan(kMostFrameBytes), 0, 1);
  wait(1);
  EXPECT_TRUE(is_in_place());
  EXPECT_EQ(std::ranges::count(target, std::byte{0}), static_cast<std::ptrdiff_t>(target.size()));
  EXPECT_EQ(world->at(1).error_of(0), "");
}

// The step that copies the message there is the one to fail, not the peer.
TEST_F(LandingStreams, ATargetThatCannotBeWrittenIsLeftAlone) {
  landings().withdraw(world->region(1), message.size());
  void* const memory = mmap(nullptr, message.size(), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  landings().expect({0, world->region(1), static_cast<std::byte*>(memory), message.size()});
  world->write(0, 1, 0, message, 0, 1);
  wait(1);
  EXPECT_FALSE(landings().has_landed(world->region(1)));
  EXPECT_TRUE(is_in_place());
  EXPECT_EQ(world->at(1).error_of(0), "");
  munmap(memory, message.size());
}

TEST_F(LandingStreams, AShortMessageIsNotWhatIsExpected) {
  world->write(0, 1, message.size(), std::array{std::byte{9}}, 0, 1);
  wait(1);
  EXPECT_EQ(world->region(1)[message.size()], std::byte{9});
  EXPECT_FALSE(landings().has_landed(world->region(1)));
}

}  // namespace
}  // namespace unisono::transport::stream_landings_test
