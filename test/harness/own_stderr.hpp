// SPDX-License-Identifier: BSD-3-Clause
// The text that this process, or one that is forked for a test, writes to stderr from now on: the
// log, including a rank's network report at its end.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "base/descriptor.hpp"

namespace unisono::harness {

class OwnStderr {
 public:
  OwnStderr() : file_(memfd_create("stderr", MFD_CLOEXEC)) {
    EXPECT_EQ(dup2(file_.get(), STDERR_FILENO), STDERR_FILENO);
  }
  std::string text() const {
    std::string all(static_cast<std::size_t>(lseek(file_.get(), 0, SEEK_END)), '\0');
    EXPECT_EQ(pread(file_.get(), all.data(), all.size(), 0), static_cast<ssize_t>(all.size()));
    return all;
  }

 private:
  base::Descriptor file_;
};

}  // namespace unisono::harness
