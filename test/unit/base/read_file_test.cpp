// SPDX-License-Identifier: BSD-3-Clause
// base/file/read_file: whole contents, and errors that begin with the path.
#include "base/file/read_file.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "harness/temporary_folder.hpp"

namespace unisono::base::read_file_test {
namespace {

std::string refusal(const std::string& path, std::size_t most_bytes = kMostFileBytes) {
  const auto read = read_file(path, most_bytes);
  return read.ok() ? "" : read.error().message;
}

TEST(ReadFile, GivesAllBytesUpToTheLimit) {
  const test::TemporaryFolder folder;
  const std::string path = folder.path() + "/file";
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{5}, std::size_t{200'000}}) {
    std::string text(bytes, 'x');
    if (bytes > 2) text[1] = '\0';
    std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
    const auto read = read_file(path, bytes);
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_EQ(*read, text);
    if (bytes > 0) {
      EXPECT_EQ(refusal(path, bytes - 1),
                path + ": expected at most " + std::to_string(bytes - 1) + " bytes");
    }
  }
}

TEST(ReadFile, RefusesADirectoryAndAMissingFile) {
  const test::TemporaryFolder folder;
  EXPECT_EQ(refusal(folder.path()), folder.path() + ": Is a directory");
  EXPECT_EQ(refusal(folder.path() + "/none"), folder.path() + "/none: No such file or directory");
}

TEST(ReadFile, EndsWithADeviceThatHasNoEnd) {
  EXPECT_EQ(refusal("/dev/zero"),
            "/dev/zero: expected at most " + std::to_string(kMostDeviceBytes) + " bytes");
  EXPECT_EQ(refusal("/dev/zero", 5), "/dev/zero: expected at most 5 bytes");
  EXPECT_EQ(refusal("/dev/null"), "");
}

}  // namespace
}  // namespace unisono::base::read_file_test
