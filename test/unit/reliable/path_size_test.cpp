// SPDX-License-Identifier: BSD-3-Clause
#include "reliable/path_size.hpp"

#include <gtest/gtest.h>

namespace unisono::reliable {
namespace {

constexpr std::size_t kFull = 1472;
constexpr std::size_t kAny = std::numeric_limits<std::size_t>::max();

// Repeats a packet, sends a status behind it, and hears that the packet is lacking still, from a
// peer that has heard the status or not.
class Path {
 public:
  bool repeat_in_vain(std::uint64_t number, std::size_t bytes = kFull, bool heard = true,
                      int stream = PathSize::kLink) {
    size.note_repeat(stream, number, bytes, ++now_ns_);
    size.note_status(++control_);
    return size.note_request(stream, number, 1,
                             static_cast<std::uint32_t>(heard ? control_ : control_ - 1));
  }
  // As often as is not yet too often.
  void almost(std::uint64_t number, std::size_t bytes = kFull) {
    for (int i = 1; i < PathSize::kVanished; ++i) EXPECT_FALSE(repeat_in_vain(number, bytes));
  }

  PathSize size;

 private:
  std::uint64_t control_ = (std::uint64_t{1} << 32) - 3;  // the 32 bits begin anew
  std::int64_t now_ns_ = 0;
};

TEST(PathSize, ShrinksWhenLongPacketsVanishAndStatusesPass) {
  Path path;
  EXPECT_EQ(path.size.most_bytes(), kAny);
  path.almost(7);
  EXPECT_EQ(path.size.most_bytes(), kAny);
  EXPECT_TRUE(path.repeat_in_vain(7));
  EXPECT_EQ(path.size.most_bytes(), 1232U);
  path.almost(7);
  EXPECT_TRUE(path.repeat_in_vain(7));
  EXPECT_EQ(path.size.most_bytes(), 508U);
  EXPECT_FALSE(path.size.is_blocked());
}

TEST(PathSize, StaysWhereStatusesVanishToo) {
  Path path;
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(path.repeat_in_vain(7, kFull, false));
  EXPECT_EQ(path.size.most_bytes(), kAny);
}

// Each loses some of its repetitions, none of them all.
TEST(PathSize, StaysWhereOtherPacketsVanishEachTime) {
  Path path;
  for (std::uint64_t number = 1; number < 100; ++number) {
    path.almost(number);
    EXPECT_FALSE(path.size.note_request(PathSize::kLink, number, 2, ~0U)) << "it has come";
  }
  EXPECT_EQ(path.size.most_bytes(), kAny);
}

TEST(PathSize, ARequestMayHaveMetTheRepetition) {
  PathSize size;
  for (int i = 0; i < 100; ++i) {
    size.note_repeat(PathSize::kLink, 7, kFull, i);
    EXPECT_FALSE(size.note_request(PathSize::kLink, 7, 1, ~0U)) << "no status has left yet";
  }
}

TEST(PathSize, PacketsOfDifferentOriginsAreTold) {
  Path path;
  for (int i = 1; i < PathSize::kVanished; ++i) {
    for (const int stream : {PathSize::kLink, 0, 5}) {
      EXPECT_FALSE(path.repeat_in_vain(7, kFull, true, stream));
    }
  }
  EXPECT_TRUE(path.repeat_in_vain(7, kFull, true, 5));
}

// More packets vanish than are watched: those that are lead to the same end.
TEST(PathSize, ManyPacketsDoNotHideEachOther) {
  PathSize size;
  bool changed = false;
  for (std::uint64_t control = 1; control <= PathSize::kVanished; ++control) {
    for (std::uint64_t number = 1; number <= 64; ++number) {
      size.note_repeat(PathSize::kLink, number, kFull, static_cast<std::int64_t>(control));
    }
    size.note_status(control);
    EXPECT_FALSE(changed);
    changed = size.note_request(PathSize::kLink, 1, ~std::uint64_t{0},
                                static_cast<std::uint32_t>(control));
  }
  EXPECT_TRUE(changed);
}

TEST(PathSize, IsBlockedWhenTheShortestVanish) {
  Path path;
  for (int i = 1; i < PathSize::kBlocked; ++i) {
    EXPECT_FALSE(path.repeat_in_vain(7, 80));
    EXPECT_FALSE(path.size.is_blocked());
  }
  EXPECT_TRUE(path.repeat_in_vain(7, 80));
  EXPECT_TRUE(path.size.is_blocked());
  EXPECT_EQ(path.size.most_bytes(), kAny);
}

}  // namespace
}  // namespace unisono::reliable
