// SPDX-License-Identifier: BSD-3-Clause
#include "plan/digest.hpp"

#include <gtest/gtest.h>

#include <functional>

namespace unisono::plan::digest_test {
namespace {

using schedule::Blocks;
using schedule::Collective;

const Call kCall{.collective = Collective::allreduce, .count = 8, .type = 3, .op = 1};

TEST(Digest, DiffersWhereRanksHaveToAgree) {
  const std::vector<std::function<void(Call&)>> changes{
      [](Call& c) { c.collective = Collective::reduce; },
      [](Call& c) { c.purpose = Purpose::split; },
      [](Call& c) { c.count = 9; },
      [](Call& c) { c.type = 4; },
      [](Call& c) { c.op = 2; },
      [](Call& c) { c.root = 1; },
      [](Call& c) { c.element_bytes = 8; },
      [](Call& c) { c.ordered = true; },
      [](Call& c) {
        c.blocks = *Blocks::of_ranks({3, 5});
      },
  };
  for (std::size_t i = 0; i < changes.size(); ++i) {
    Call other = kCall;
    changes[i](other);
    EXPECT_NE(Digest(kCall).hash(), Digest(other).hash()) << "change " << i;
  }
  EXPECT_EQ(Digest(kCall).hash(), Digest(Call(kCall)).hash());
}

TEST(Digest, SeesBlocksAndWhoReceives) {
  const auto of = [](Blocks blocks) {
    Call call = kCall;
    call.blocks = std::move(blocks);
    return Digest(call).hash();
  };
  EXPECT_NE(of(*Blocks::of_ranks({3, 5})), of(*Blocks::of_ranks({5, 3})));
  EXPECT_NE(of(*Blocks::of_ranks({3, 5})), of(*Blocks::of_ranks({3, 5}, {true, false})));
  EXPECT_NE(of(*Blocks::of_pairs(2, {0, 1, 2, 3})), of(*Blocks::of_pairs(2, {0, 2, 1, 3})));
}

TEST(Digest, LeavesOutWhatRanksCannotKnow) {
  Call one = kCall;
  one.local_counts = true;
  Call other = one;
  other.count = 100;
  other.blocks = *Blocks::of_ranks({3, 5});
  EXPECT_EQ(Digest(one).hash(), Digest(other).hash());
  one.op = kFirstUserNumber;
  other.op = kFirstUserNumber + 7;
  EXPECT_EQ(Digest(one).hash(), Digest(other).hash());
}

TEST(Digest, FitsAFlagAndIsNeverZero) {
  for (std::uint64_t n = 0; n < 10'000; ++n) {
    Digest digest(kCall);
    digest.add(n);
    ASSERT_NE(digest.folded(), 0U);
    ASSERT_EQ(digest.folded() & ~kDigestMask, 0U);
  }
}

}  // namespace
}  // namespace unisono::plan::digest_test
