// SPDX-License-Identifier: BSD-3-Clause
#include "reliable/link/burst.hpp"

#include <algorithm>

namespace unisono::reliable {

Burst::Next Burst::next(std::int64_t now_ns, std::size_t bytes, std::int64_t datagrams) {
  if (now_ns - active_ns_ > longest_ns()) restart();
  active_ns_ = now_ns;
  is_first_ = in_row_ == 0;
  in_row_ += datagrams;
  ++since_look_;
  was_alone_ = waiting_ == 0 && (in_row_ <= kRow || looks_soon(since_look_));
  if (was_alone_) return Next::leave;
  if (waiting_ == 0) first_ns_ = now_ns;
  ++waiting_;
  datagrams_ += datagrams;
  bytes_ += bytes;
  if (now_ns - first_ns_ > waiting_ * alone_ns_) {
    restart();
    return Next::leave;
  }
  // The next one will probably be as long.
  if (datagrams_ + datagrams > kMost || bytes_ >= kMostBytes) return Next::leave;
  return waiting_ == 1 ? Next::begin : Next::gather;
}

// The caller's time for it does not count as a delay of the next datagram.
void Burst::note_begun(std::int64_t now_ns) { first_ns_ = active_ns_ = now_ns; }

void Burst::note_look(std::int64_t now_ns) {
  active_ns_ = now_ns;
  if (since_look_ != 0) last_run_ = since_look_;
  since_look_ = 0;
}

void Burst::note_left(std::int64_t now_ns) {
  const std::int64_t spent_ns = now_ns - active_ns_;
  if (was_alone_) alone_ns_ = is_first_ ? spent_ns : std::min(alone_ns_, spent_ns);
  active_ns_ = now_ns;
}

}  // namespace unisono::reliable
