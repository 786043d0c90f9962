// SPDX-License-Identifier: BSD-3-Clause
// TemporaryFolder: a new folder that goes with its owner, and all that is in it. Not thread-safe.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace unisono::test {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    path_ = (std::filesystem::temp_directory_path() / "unisono_test_XXXXXX").string();
    EXPECT_NE(::mkdtemp(path_.data()), nullptr) << path_;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace unisono::test
