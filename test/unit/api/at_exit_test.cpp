// SPDX-License-Identifier: BSD-3-Clause
// A program may use the library after main(): in functions of atexit() and in destructors of static
// objects that are older than its first call. What the library needs then: base/life/lasting.hpp.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "harness/threads.hpp"
#include "unisono/unisono.h"

namespace unisono::harness::at_exit_test {
namespace {

// Ends the process at once if a call does not do what it should.
void expect(bool is_true) {
  constexpr int kUnexpected = 3;
  if (!is_true) std::_Exit(kUnexpected);
}

// The error leaves a message for this thread.
void use_the_library() {
  expect(unisono_comm_rank(nullptr, nullptr) != UNISONO_OK);
  expect(std::strlen(unisono_last_error()) > 0);
  run_threads(2, [](const ThreadRank& self) {
    const std::int64_t own = self.rank + 1;
    std::int64_t sum = 0;
    unisono_comm_t half = nullptr;
    expect(unisono_allreduce(&own, &sum, 1, UNISONO_INT64, UNISONO_SUM, self.world) == UNISONO_OK);
    expect(sum == 3);
    expect(unisono_comm_split(self.world, self.rank, 0, &half) == UNISONO_OK);
    expect(unisono_comm_free(half) == UNISONO_OK);
  });
}

TEST(AtExit, TheLibraryStillWorks) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";  // a process that has made no call before
  EXPECT_EXIT(
      {
        std::atexit(use_the_library);
        use_the_library();
        std::exit(0);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace unisono::harness::at_exit_test
