// SPDX-License-Identifier: BSD-3-Clause
// UNISONO_CHECK: a broken invariant stops the process with file, line, rank and message. It stays
// on in release builds; keep it off the data path except for indices that come from outside.
#pragma once

#include <string_view>

namespace unisono::base {

// The rank that check failures name; -1 until known. Per thread, because ranks may be threads.
void set_check_rank(int rank);

[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               std::string_view message);

}  // namespace unisono::base

#define UNISONO_CHECK(condition, message)                                       \
  do {                                                                          \
    if (!(condition)) [[unlikely]] {                                            \
      ::unisono::base::check_failed(__FILE__, __LINE__, #condition, (message)); \
    }                                                                           \
  } while (false)
