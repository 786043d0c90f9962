// SPDX-License-Identifier: BSD-3-Clause
// Program: a schedule bound to bytes, for one rank: every range has become an offset from one of
// three base addresses, every slot a place in somebody's window. Programs hold no pointers, so one
// program serves all channels and buffers, and any process. Immutable once bound; any thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace unisono::engine {

// offer: a put of the source's address instead of its bytes; pull: take bytes from where the peer's
// offer says, which lies in the peer's own memory. get: the same from another host's shared memory,
// piece by piece.
enum class StepKind : std::uint8_t { put, offer, wait, pull, get, reduce, copy };

// The channel's windows of all ranks are one space, in which slots, scratch and what helpers need
// lie. Staging is job memory of one operation (Program::staging_bytes).
enum class Space : std::uint8_t { input, output, windows, staging };
inline constexpr int kSpaceCount = 4;

struct Place {
  Space space = Space::input;
  std::int64_t offset = 0;  // bytes
};

// Of put and offer: whether their message goes to several ranks. first: the first step of such a
// message; each is counted once, and each step that writes it is (Counters).
enum class Multicast : std::uint8_t { no, first, again };

struct Step {
  StepKind kind = StepKind::copy;
  Multicast multicast = Multicast::no;
  bool remote = false;  // put, offer: their target is on another host; wait: its sender is
  // put: to the memory of all other hosts at once; wait: the message comes so
  bool to_all = false;
  // put, offer: whose window; wait: whose message; pull: whose memory. A rank of the communicator
  std::int32_t peer = -1;
  // pull, get: left is the offer; get: right is where a piece comes in
  Place target, left, right;
  std::int64_t bytes = 0;  // put, pull, get, copy
  // reduce: elements; pull: bytes to skip in what is offered; get: bytes of a piece
  std::int64_t count = 0;
  std::int64_t flag = -1;  // put, offer, wait: the flag word, in Space::windows; -1: no flag
  // put, offer, wait: how long the message is in bytes, which its sender notes before the flag, for
  // ranks that cannot know each other's counts; -1: they do.
  std::int64_t note = -1;
  // put, offer: who may be asleep for it (Program::woken)
  std::int32_t first_woken = 0, woken_count = 0;
};

// A wait with the steps behind it, up to the next strand. While a message is late, strands further
// on may be run (interpreter.hpp): those that come after nothing that has not been done. Where
// helping ends, a strand begins that has no wait.
struct Strand {
  std::int32_t begin = 0;
  // Bit s mod kAhead: strand s is to be done before this one. Only for the kAhead - 1 before it:
  // nobody looks further ahead.
  std::uint64_t needs = 0;
};
inline constexpr int kAhead = 64;
inline constexpr std::uint64_t strand_bit(std::int32_t strand) {
  return std::uint64_t{1} << (static_cast<std::uint32_t>(strand) % kAhead);
}

struct Program {
  std::vector<Step> steps;
  std::vector<Strand> strands;      // steps before the first come first
  bool looks_ahead = false;         // some strand does not need all those before it
  std::vector<std::int32_t> woken;  // ranks of the communicator

  // Steps before this index may be run by other ranks once the owner has published them; it is the
  // end of the last put that comes after a wait, and the end of a strand. 0: nothing that others
  // could wait for.
  std::int32_t helpable_end = 0;
  // Whether those steps touch the caller's buffers, which then have to be staged in the window. The
  // pieces say how the buffer of the program's own rank lies.
  struct Piece {
    std::int64_t staged = 0, place = 0, bytes = 0;  // from there in the window, here in the buffer
  };
  bool stages_input = false;
  bool stages_output = false;
  bool gathers_input = false;     // it lies in pieces, so it is staged from the start
  std::int64_t staged_input = 0;  // in Space::windows
  std::int64_t staged_output = 0;
  std::vector<Piece> input_pieces, output_pieces;
  // Ranks with steps that others may do, to which this program sends.
  std::vector<std::int32_t> feeds;

  std::int64_t staging_bytes = 0;  // of Space::staging

  // The first strand that begins at or after a step.
  std::int32_t strand_at(std::int32_t step) const {
    const auto found = std::ranges::lower_bound(strands, step, {}, &Strand::begin);
    return static_cast<std::int32_t>(found - strands.begin());
  }
  // Where a strand begins; behind the last one, the end.
  std::int32_t begin_of(std::int32_t strand) const {
    return std::cmp_less(strand, strands.size()) ? strands[static_cast<std::size_t>(strand)].begin
                                                 : static_cast<std::int32_t>(steps.size());
  }
};

}  // namespace unisono::engine
