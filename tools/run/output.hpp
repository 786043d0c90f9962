// SPDX-License-Identifier: BSD-3-Clause
// Forwarding of the ranks' output: LineBuffer cuts one rank's stream into whole lines, Sink writes
// them to the launcher's stdout or stderr without ever waiting for a slow reader. Main thread only.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace unisono::tools {

class LineBuffer {
 public:
  // A longer line is written in parts, so that a rank without newlines cannot fill the memory.
  static constexpr std::size_t kMostLineBytes = 1 << 20;

  // `tag` is put before each line. Without `whole_lines` bytes pass as they arrive.
  LineBuffer(std::string tag, bool whole_lines) : tag_(std::move(tag)), whole_lines_(whole_lines) {}

  // Appends complete lines to `out`.
  void take(std::string_view bytes, std::string& out);
  // At the end of the stream: the rest, with the newline it lacks.
  void finish(std::string& out);

 private:
  std::string tag_;
  bool whole_lines_;
  bool within_line_ = false;  // a part of the current line went out
  std::string partial_;
};

class Sink {
 public:
  explicit Sink(int descriptor) : descriptor_(descriptor) {}  // not owned

  int descriptor() const { return descriptor_; }
  std::string& queue() { return queue_; }
  bool wants_to_write() const { return !closed_ && !queue_.empty(); }
  // Whether ranks may be read for it: not while its reader lags behind.
  bool has_room() const { return queue_.size() < kMostQueuedBytes; }
  // Nothing can be written any more, most often because its reader is gone. Queued output is
  // dropped.
  bool closed() const { return closed_; }
  // Why it is closed, as a number of errno; 0: it is open, or its reader has left (EPIPE).
  int error_number() const { return error_number_; }

  // Call it when poll(2) reports that it is writable.
  void write_some();

 private:
  static constexpr std::size_t kMostQueuedBytes = 1 << 20;

  int descriptor_;
  bool closed_ = false;
  int error_number_ = 0;
  std::string queue_;
};

}  // namespace unisono::tools
