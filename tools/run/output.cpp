// SPDX-License-Identifier: BSD-3-Clause
#include "run/output.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

namespace unisono::tools {

void LineBuffer::take(std::string_view bytes, std::string& out) {
  if (!whole_lines_) {
    out += bytes;
    return;
  }
  partial_ += bytes;
  std::size_t begin = 0;
  for (std::size_t end = partial_.find('\n', partial_.size() - bytes.size());
       end != std::string::npos; end = partial_.find('\n', begin)) {
    if (!within_line_) out += tag_;
    out.append(partial_, begin, end + 1 - begin);
    within_line_ = false;
    begin = end + 1;
  }
  partial_.erase(0, begin);
  if (partial_.size() < kMostLineBytes) return;
  if (!within_line_) out += tag_;
  out += partial_;
  within_line_ = true;
  partial_.clear();
}

void LineBuffer::finish(std::string& out) {
  if (partial_.empty() && !within_line_) return;
  if (!within_line_) out += tag_;
  out += partial_;
  out += '\n';
  partial_.clear();
  within_line_ = false;
}

void Sink::write_some() {
  // A writable pipe takes this much without blocking (pipe(7)). Its O_NONBLOCK is not ours to set:
  // the caller's shell shares it.
  const std::size_t count = std::min<std::size_t>(queue_.size(), PIPE_BUF);
  const ssize_t written = write(descriptor_, queue_.data(), count);
  if (written >= 0) {
    queue_.erase(0, static_cast<std::size_t>(written));
  } else if (errno != EINTR && errno != EAGAIN) {
    closed_ = true;
    if (errno != EPIPE) error_number_ = errno;
    queue_.clear();
  }
}

}  // namespace unisono::tools
