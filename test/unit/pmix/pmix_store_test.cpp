// SPDX-License-Identifier: BSD-3-Clause
// bootstrap/launchers/pmix_store with a client library that does not return somewhere
// (fake_pmix.c). With real launchers: net/launcher_test.py.
#include "bootstrap/launchers/pmix_store.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "base/clock.hpp"

namespace unisono::bootstrap::pmix_store_test {
namespace {

using base::Code;
using base::Result;

class PmixStore : public testing::Test {
 protected:
  void SetUp() override {
    const std::string path =
        std::filesystem::read_symlink("/proc/self/exe").parent_path() / "fake_pmix/libpmix.so.2";
    void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_NODELETE);
    ASSERT_NE(library, nullptr) << dlerror();
    hanging_ = static_cast<std::atomic<const char*>*>(dlsym(library, "fake_pmix_hanging"));
    finalized_ = static_cast<int*>(dlsym(library, "fake_pmix_finalized"));
    ASSERT_TRUE(hanging_ != nullptr && finalized_ != nullptr);
    hang_in("");
  }
  // Threads of earlier tests may still run, and read it.
  void hang_in(const char* function) { hanging_->store(function); }
  int finalized() const { return *finalized_; }

  static Result<std::unique_ptr<KeyValueStore>> open(std::int64_t timeout_ns) {
    return open_pmix_store(
        {.kind = StoreKind::pmix, .rank = 1, .ranks = 2, .timeout_ns = timeout_ns}, false);
  }
  static void expect_timeout(const base::Error& error, const std::string& part) {
    EXPECT_EQ(error.code, Code::timeout) << error.message;
    EXPECT_NE(error.message.find(part), std::string::npos) << error.message;
  }

 private:
  std::atomic<const char*>* hanging_ = nullptr;
  int* finalized_ = nullptr;
};

constexpr std::int64_t kPatient = 60 * base::kSecond;
constexpr std::int64_t kShort = base::kSecond;  // also to start threads for what does return

TEST_F(PmixStore, ReturnsWhatWasPutAndFinalizes) {
  const int before = finalized();
  {
    const auto store = open(kPatient);
    ASSERT_TRUE(store.ok()) << store.error().message;
    EXPECT_TRUE((*store)->put("host", "a value").ok());
    EXPECT_TRUE((*store)->fence().ok());
    EXPECT_EQ(*(*store)->get(0, "host"), "a value");
  }
  EXPECT_EQ(finalized(), before + 1);
}

TEST_F(PmixStore, AnInitThatNeverReturnsIsATimeout) {
  hang_in("PMIx_Init");
  const auto store = open(kShort);
  ASSERT_FALSE(store.ok());
  expect_timeout(store.error(), "rank 1 of 2: PMIx_Init has not returned within 1s");
}

TEST_F(PmixStore, AFenceThatNeverEndsIsATimeout) {
  const auto store = open(kShort);
  ASSERT_TRUE(store.ok());
  hang_in("PMIx_Fence");
  const auto status = (*store)->fence();
  ASSERT_FALSE(status.ok());
  expect_timeout(status.error(), "PMIx_Fence has not ended within 1s");
}

TEST_F(PmixStore, AValueThatNeverComesIsATimeout) {
  const auto store = open(kShort);
  ASSERT_TRUE(store.ok());
  hang_in("PMIx_Get");
  const auto value = (*store)->get(0, "host");
  ASSERT_FALSE(value.ok());
  expect_timeout(value.error(), "PMIx_Get has not ended within 1s");
}

TEST_F(PmixStore, AFinalizeThatNeverReturnsIsGivenUp) {
  auto store = open(kShort);
  ASSERT_TRUE(store.ok());
  hang_in("PMIx_Finalize");
  store->reset();
}

}  // namespace
}  // namespace unisono::bootstrap::pmix_store_test
