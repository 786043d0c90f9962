// SPDX-License-Identifier: BSD-3-Clause
// Burst: which messages of a row of calls wait for the next ones. A system call costs a sender far
// more than a datagram that joins another one in it. So a rank that does nothing but send, call
// after call, lets them gather. Every other rank's datagrams leave at once, because a datagram that
// waits is late.
//
// A burst leaves no later than its datagrams would have left one by one: it ends as soon as the
// next one comes slower than that. It also ends when the rank looks for arrivals, and at a limit.
// If no call follows, another thread ends it when longest_ns() is over (Outbox::gather). A value;
// no clock of its own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace unisono::reliable {

class Burst {
 public:
  // As many as the kernel takes in one message.
  static constexpr std::int64_t kMost = 64;
  static constexpr std::size_t kMostBytes = std::size_t{64} << 10;
  // A longer message fills a system call by itself.
  static constexpr std::size_t kMostMessage = kMostBytes / 4;
  // A call that waits for an answer sends one datagram, or two, and then looks for arrivals. These
  // are not delayed.
  static constexpr std::int64_t kAlone = 2;
  // Bursts begin where so many datagrams leave between two looks. A call of many ranks may send
  // some before it looks, and a burst has its price: a timer, as dear as two datagrams.
  static constexpr std::int64_t kRun = 16;
  // So many datagrams have to leave in a row before others wait. The last burst of a row is late by
  // the time of kMost datagrams, which is then a quarter of the row at most. Those of one message
  // leave together.
  static constexpr std::int64_t kRow = 4 * kMost;

  enum class Next : std::uint8_t { leave, begin, gather };
  // A message of so many datagrams is ready at `now_ns`. It leaves now, with all that wait. Or it
  // waits, as the first one or with others.
  Next next(std::int64_t now_ns, std::size_t bytes, std::int64_t datagrams = 1);
  // Whether the next message may wait, as far as the row is concerned.
  bool may_gather() const { return in_row_ >= kRow && !looks_soon(since_look_ + 1); }
  // next() said begin, and what the caller did about it took until `now_ns`.
  void note_begun(std::int64_t now_ns);
  // next() said leave, and that took until `now_ns`.
  void note_left(std::int64_t now_ns);
  bool is_open() const { return waiting_ != 0; }
  // Nothing waits any more, whatever the reason.
  void end() {
    waiting_ = 0;
    datagrams_ = 0;
    bytes_ = 0;
  }
  // The rank has looked for arrivals.
  void note_look(std::int64_t now_ns);
  // The row counts from its beginning again: nothing waits before it is long.
  void restart() { in_row_ = 0; }

  // The longest time that a burst takes to gather, if one comes after the other.
  std::int64_t longest_ns() const { return kMost * alone_ns_; }

 private:
  bool looks_soon(std::int64_t since_look) const {
    return since_look <= kAlone || std::max(since_look, last_run_) < kRun;
  }

  std::int64_t alone_ns_ = 0;    // what a message takes that leaves alone: the least of this row
  std::int64_t active_ns_ = 0;   // when the rank last sent or looked
  std::int64_t first_ns_ = 0;    // since when the first one waits
  std::int64_t in_row_ = 0;      // datagrams since the last pause
  std::int64_t since_look_ = 0;  // messages since the last look
  std::int64_t last_run_ = 0;    // messages between the last two looks, if there were any
  std::int64_t waiting_ = 0;     // messages
  std::int64_t datagrams_ = 0;   // of those
  std::size_t bytes_ = 0;
  bool is_first_ = false;   // the last one began a row
  bool was_alone_ = false;  // the last one left without others
};

}  // namespace unisono::reliable
