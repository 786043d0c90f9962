// SPDX-License-Identifier: BSD-3-Clause
// tools/run/output: whole lines, tags, long lines, and a reader that leaves.
#include "run/output.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>

namespace unisono::tools::run_output_test {
namespace {

TEST(RunLineBuffer, GivesWholeLinesWithTheTag) {
  LineBuffer lines("[3] ", true);
  std::string out;
  lines.take("one\ntw", out);
  EXPECT_EQ(out, "[3] one\n");
  lines.take("o\n\nthr", out);
  EXPECT_EQ(out, "[3] one\n[3] two\n[3] \n");
  lines.finish(out);
  EXPECT_EQ(out, "[3] one\n[3] two\n[3] \n[3] thr\n");
  const std::string whole = out;
  lines.finish(out);
  EXPECT_EQ(out, whole);
}

TEST(RunLineBuffer, AnySplitGivesTheSame) {
  const std::string text = "a\nbc\n\ndef\ng";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    LineBuffer lines("> ", true);
    std::string out;
    lines.take(text.substr(0, cut), out);
    lines.take(text.substr(cut), out);
    lines.finish(out);
    EXPECT_EQ(out, "> a\n> bc\n> \n> def\n> g\n") << cut;
  }
}

TEST(RunLineBuffer, ALongLineGoesOutInPartsWithOneTag) {
  LineBuffer lines("[0] ", true);
  std::string out;
  const std::string part(LineBuffer::kMostLineBytes, 'x');
  lines.take(part, out);
  EXPECT_EQ(out, "[0] " + part);
  lines.take("y\nz\n", out);
  EXPECT_EQ(out, "[0] " + part + "y\n[0] z\n");
}

TEST(RunLineBuffer, WithoutWholeLinesBytesPassAtOnce) {
  LineBuffer lines("", false);
  std::string out;
  lines.take("prompt: ", out);
  EXPECT_EQ(out, "prompt: ");
  lines.finish(out);
  EXPECT_EQ(out, "prompt: ");
}

TEST(RunSink, WritesUntilItsReaderLeaves) {
  signal(SIGPIPE, SIG_IGN);
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  Sink sink(ends[1]);
  EXPECT_FALSE(sink.wants_to_write());
  sink.queue() += "hello";
  EXPECT_TRUE(sink.wants_to_write());
  sink.write_some();
  EXPECT_FALSE(sink.wants_to_write());
  std::array<char, 8> read_back{};
  EXPECT_EQ(read(ends[0], read_back.data(), read_back.size()), 5);
  close(ends[0]);
  sink.queue() += "nobody listens";
  sink.write_some();
  EXPECT_TRUE(sink.closed());
  EXPECT_FALSE(sink.wants_to_write());
  close(ends[1]);
}

TEST(RunSink, SaysWhyItCannotWriteUnlessItsReaderHasLeft) {
  signal(SIGPIPE, SIG_IGN);
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(full, 0);
  Sink sink(full);
  sink.queue() += "hello";
  sink.write_some();
  EXPECT_TRUE(sink.closed());
  EXPECT_EQ(sink.error_number(), ENOSPC);
  close(full);
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  close(ends[0]);
  Sink left(ends[1]);
  left.queue() += "hello";
  left.write_some();
  EXPECT_TRUE(left.closed());
  EXPECT_EQ(left.error_number(), 0);
  close(ends[1]);
}

TEST(RunSink, HasRoomUntilItsReaderLags) {
  Sink sink(-1);
  EXPECT_TRUE(sink.has_room());
  sink.queue().resize(2 << 20);
  EXPECT_FALSE(sink.has_room());
}

}  // namespace
}  // namespace unisono::tools::run_output_test
