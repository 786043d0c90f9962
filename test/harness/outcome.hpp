// SPDX-License-Identifier: BSD-3-Clause
// What a call of the C API returned, as an assertion that prints the library's own message:
//   EXPECT_TRUE(succeeded(unisono_barrier(comm)));
//   EXPECT_TRUE(failed(unisono_barrier(nullptr), UNISONO_ERROR_STATE, {"unisono_barrier"}));
// To be evaluated on the thread that made the call, before its next call. For tests only.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "unisono/unisono.h"

namespace unisono::harness {

inline testing::AssertionResult succeeded(int error) {
  if (error == UNISONO_OK) return testing::AssertionSuccess();
  return testing::AssertionFailure()
         << "UNISONO_ERROR " << unisono_error_name(error) << ": " << unisono_last_error();
}

// `error` is one of `allowed`, and its message holds every one of `parts`.
inline testing::AssertionResult failed_with_any(int error, const std::vector<int>& allowed,
                                                const std::vector<std::string>& parts = {}) {
  const std::string text = unisono_last_error();
  auto failure = testing::AssertionFailure();
  failure << "got " << unisono_error_name(error) << " with \"" << text << "\"";
  if (error == UNISONO_OK) return failure << "; an error was expected";
  if (std::find(allowed.begin(), allowed.end(), error) == allowed.end()) {
    failure << "; expected";
    for (const int code : allowed) failure << ' ' << unisono_error_name(code);
    return failure;
  }
  if (text.empty()) return failure << "; the message is empty";
  for (const std::string& part : parts) {
    if (text.find(part) == std::string::npos) {
      return failure << "; the message lacks \"" << part << "\"";
    }
  }
  return testing::AssertionSuccess();
}

inline testing::AssertionResult failed(int error, int expected,
                                       const std::vector<std::string>& parts = {}) {
  return failed_with_any(error, {expected}, parts);
}

}  // namespace unisono::harness
