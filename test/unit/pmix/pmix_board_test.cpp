// SPDX-License-Identifier: BSD-3-Clause
// bootstrap/launchers/pmix_board with a client library that falls silent somewhere (fake_pmix.c).
// With real launchers: net/launcher_test.py.
#include "bootstrap/launchers/pmix_board.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "base/clock.hpp"

namespace unisono::bootstrap {
namespace {

using base::Code;
using base::Result;

class PmixBoard : public testing::Test {
 protected:
  void SetUp() override {
    const std::string path =
        std::filesystem::read_symlink("/proc/self/exe").parent_path() / "fake_pmix/libpmix.so.2";
    void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_NODELETE);
    ASSERT_NE(library, nullptr) << dlerror();
    silent_ = static_cast<std::atomic<const char*>*>(dlsym(library, "fake_pmix_silent"));
    finalized_ = static_cast<int*>(dlsym(library, "fake_pmix_finalized"));
    ASSERT_TRUE(silent_ != nullptr && finalized_ != nullptr);
    fall_silent_at("");
  }
  // Threads of tests before may still be there, and look at it.
  void fall_silent_at(const char* function) { silent_->store(function); }
  int finalized() const { return *finalized_; }

  static Result<std::unique_ptr<Board>> open(std::int64_t timeout_ns) {
    return open_pmix_board(
        {.kind = BoardKind::pmix, .rank = 1, .ranks = 2, .timeout_ns = timeout_ns}, false);
  }
  static void expect_timeout(const base::Error& error, const std::string& part) {
    EXPECT_EQ(error.code, Code::timeout) << error.message;
    EXPECT_NE(error.message.find(part), std::string::npos) << error.message;
  }

 private:
  std::atomic<const char*>* silent_ = nullptr;
  int* finalized_ = nullptr;
};

constexpr std::int64_t kPatient = 60 * base::kSecond;
constexpr std::int64_t kShort = base::kSecond;  // also to start threads for what does return

TEST_F(PmixBoard, HandsOnWhatWasPutAndTakesLeave) {
  const int before = finalized();
  {
    const auto board = open(kPatient);
    ASSERT_TRUE(board.ok()) << board.error().message;
    EXPECT_TRUE((*board)->put("host", "a note").ok());
    EXPECT_TRUE((*board)->fence().ok());
    EXPECT_EQ(*(*board)->get(0, "host"), "a note");
  }
  EXPECT_EQ(finalized(), before + 1);
}

TEST_F(PmixBoard, AnInitThatNeverReturnsIsATimeout) {
  fall_silent_at("PMIx_Init");
  const auto board = open(kShort);
  ASSERT_FALSE(board.ok());
  expect_timeout(board.error(), "rank 1 of 2: PMIx_Init has not returned within 1s");
}

TEST_F(PmixBoard, AFenceThatNeverEndsIsATimeout) {
  const auto board = open(kShort);
  ASSERT_TRUE(board.ok());
  fall_silent_at("PMIx_Fence");
  const auto status = (*board)->fence();
  ASSERT_FALSE(status.ok());
  expect_timeout(status.error(), "PMIx_Fence has not ended within 1s");
}

TEST_F(PmixBoard, AValueThatNeverComesIsATimeout) {
  const auto board = open(kShort);
  ASSERT_TRUE(board.ok());
  fall_silent_at("PMIx_Get");
  const auto value = (*board)->get(0, "host");
  ASSERT_FALSE(value.ok());
  expect_timeout(value.error(), "PMIx_Get has not ended within 1s");
}

TEST_F(PmixBoard, AFinalizeThatNeverReturnsIsNotWaitedForLong) {
  auto board = open(kShort);
  ASSERT_TRUE(board.ok());
  fall_silent_at("PMIx_Finalize");
  board->reset();
}

}  // namespace
}  // namespace unisono::bootstrap
