// SPDX-License-Identifier: BSD-3-Clause
// Progress: one line on the screen that says how far long work is. It is wiped by clear() before
// other output and at the end. One thread at a time.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string_view>

namespace unisono::tools {

class Progress {
 public:
  enum class Where {
    stderr_if_terminal,
    terminal,  // the controlling one: a rank's stderr is a pipe to the launcher
    nowhere,
  };
  explicit Progress(Where where = Where::stderr_if_terminal);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();

  // Redraws at most ten times a second.
  void show(std::string_view text);
  void clear();

 private:
  std::FILE* screen_ = nullptr;  // null: say nothing
  bool drawn_ = false;
  std::int64_t next_ns_ = 0;
};

}  // namespace unisono::tools
