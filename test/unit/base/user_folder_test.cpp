// SPDX-License-Identifier: BSD-3-Clause
#include "base/settings/user_folder.hpp"

#include <gtest/gtest.h>

namespace unisono::base::user_folder_test {
namespace {

TEST(UserFolder, FollowsTheSpecification) {
  EXPECT_EQ(user_cache_folder({{"HOME", "/h"}}), "/h/.cache/unisono");
  EXPECT_EQ(user_cache_folder({{"HOME", "/h"}, {"XDG_CACHE_HOME", "/c"}}), "/c/unisono");
  EXPECT_EQ(user_cache_folder({{"HOME", "/h"}, {"XDG_CACHE_HOME", "relative"}}),
            "/h/.cache/unisono");
  EXPECT_EQ(user_cache_folder({{"XDG_CACHE_HOME", ""}}), "");
  EXPECT_EQ(user_cache_folder({}), "");
}

}  // namespace
}  // namespace unisono::base::user_folder_test
