// SPDX-License-Identifier: BSD-3-Clause
#include "progress.hpp"

#include <unistd.h>

#include "base/clock.hpp"

namespace unisono::tools {

Progress::Progress(Where where) {
  if (where == Where::stderr_if_terminal && isatty(STDERR_FILENO) == 1) screen_ = stderr;
  if (where == Where::terminal) screen_ = std::fopen("/dev/tty", "we");
}

Progress::~Progress() {
  clear();
  if (screen_ != nullptr && screen_ != stderr) std::fclose(screen_);
}

void Progress::show(std::string_view text) {
  if (screen_ == nullptr) return;
  const std::int64_t now = base::now_ns();
  if (now < next_ns_) return;
  next_ns_ = now + base::kSecond / 10;
  std::fprintf(screen_, "\r\033[K%.*s", static_cast<int>(text.size()), text.data());
  std::fflush(screen_);
  drawn_ = true;
}

void Progress::clear() {
  if (!drawn_) return;
  std::fputs("\r\033[K", screen_);
  std::fflush(screen_);
  drawn_ = false;
}

}  // namespace unisono::tools
