// SPDX-License-Identifier: BSD-3-Clause
// Program: a schedule bound to bytes, for one rank: every range is an offset from one of three base
// addresses, every slot a position in a receive buffer. Programs hold no pointers, so one program
// serves all slot indices and buffers, and any process. Immutable once bound; any thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace unisono::plan {

// advertise: a put of the source's address instead of its bytes; pull: reads bytes at the peer's
// advertised address, in the peer's own memory. get: the same from another host's shared memory,
// piece by piece. stage: a copy that the peer will read.
// put_or_refer: a put, or a reference to the source (references.hpp). reduce_referred and
// copy_referred: with operands in slots that may have got one. release: tells a sender that its
// reference is no longer needed; await_release: waits for that.
// sum: with any number of operands, each of them in a slot that may have got a reference.
enum class StepKind : std::uint8_t {
  put,
  advertise,
  wait,
  pull,
  get,
  reduce,
  copy,
  stage,
  sum,
  put_or_refer,
  reduce_referred,
  copy_referred,
  release,
  await_release
};

// The receive buffers of all ranks for a slot index are one space, with the lines of slots. Their
// data areas are another, because an operation's data may lie further on (Plan::rotation). They
// have longer payloads, scratch and the data for helpers. Staging is job memory of one operation
// (Program::staging_bytes).
enum class Space : std::uint8_t { input, output, receive_buffers, data, staging };
inline constexpr int kSpaceCount = 5;

struct Place {
  constexpr Place() = default;
  constexpr Place(Space in, std::int64_t at) : space(in), offset(at) {}

  Space space = Space::input;
  // The number of the line of a slot that may have got a reference, in Space::receive_buffers; -1:
  // none.
  std::int32_t line = -1;
  std::int64_t offset = 0;  // bytes
};

// Words in the line of a message that may be a reference, before its length header and flag. The
// sender writes both before the flag. Such a message is too long for the line, so no payload lies
// there. If a message may land, its receiver writes both: the flag once it expects the
// message, and how far from its slot it is.
struct ReferenceWords {
  std::uint64_t released = 0;      // the operation's flag, if the receiver has read everything
  std::uint64_t displacement = 0;  // from the slot to the source, modulo 2^64; 0: it was copied
};
// The values of Step::count of a put_or_refer. resolve: copy, perhaps from a slot that may have got
// a reference. copy: and tell that it is a copy. unless_in_place, always: refer; the first one
// copies where input and output are one buffer.
enum class Refer : std::uint8_t { resolve, copy, unless_in_place, always };

// For put and advertise: whether their message goes to several ranks. first: the first step of such
// a message; each is counted once, and so is each step that writes it (Counters).
enum class Multicast : std::uint8_t { no, first, again };

struct Step {
  StepKind kind = StepKind::copy;
  Multicast multicast = Multicast::no;
  // put: to the memory of all other hosts at once; wait: the message lies in the sender's outbox
  bool to_all = false;
  // The rank of the communicator: put, advertise: the target; wait: the sender; pull: the owner of
  // the memory; stage: the reader
  std::int32_t peer = -1;
  // pull, get: left is the advertisement; get: right is where a piece arrives. wait: the message
  // belongs to left, and may land in target.
  Place target, left, right;
  // put, pull, get, copy, stage; wait: of a message that may land, otherwise 0
  std::int64_t bytes = 0;
  // reduce, sum: elements; pull: bytes to skip in the advertised data; get: bytes of a piece;
  // put_or_refer: a Refer. wait: 1 if its message lands only where input and output are two.
  std::int64_t count = 0;
  // put, advertise, wait: the flag word, in Space::receive_buffers; -1: no flag. release,
  // await_release: that of the message
  std::int64_t flag = -1;
  // put, advertise, wait: the position of the length header, which the sender writes before the
  // flag, for ranks with local counts; -1: none.
  std::int64_t length_header = -1;
  // put, advertise: ranks that may sleep for it (Program::woken)
  std::int32_t first_woken = 0, woken_count = 0;
  std::int32_t first_operand = 0, operand_count = 0;  // sum: Program::operands
};

// A wait segment: a wait with the steps behind it, up to the next one. While a message is late,
// later segments may be executed (interpreter.hpp), if they depend only on finished ones. Where
// helping ends, a segment begins that has no wait.
struct WaitSegment {
  std::int32_t begin = 0;
  // Bit s mod kAhead: segment s must be done before this one. Only for the kAhead - 1 before it,
  // because the interpreter looks no further ahead.
  std::uint64_t needs = 0;
};
inline constexpr int kAhead = 64;
inline constexpr std::uint64_t wait_segment_bit(std::int32_t wait_segment) {
  return std::uint64_t{1} << (static_cast<std::uint32_t>(wait_segment) % kAhead);
}

struct Program {
  std::vector<Step> steps;
  std::vector<WaitSegment> wait_segments;  // the steps before the first one are executed first
  bool looks_ahead = false;                // some segment does not need all those before it
  // Waits whose messages may land from the start on; `apart`: if input and output are two buffers.
  struct Expected {
    std::int32_t step = 0;
    bool apart = false;
  };
  std::vector<Expected> expected;
  std::vector<std::int32_t> woken;  // ranks of the communicator
  std::vector<Place> operands;      // of sums

  // Steps before this index may be executed by other ranks once the owner has published them. It is
  // the end of the last put that comes after a wait, and the end of a wait segment. 0: no steps
  // that others could wait for.
  std::int32_t helpable_end = 0;
  // Whether those steps touch the caller's buffers, which then have to be staged in the receive
  // buffer. The pieces describe the buffer of the program's own rank.
  struct Piece {
    std::int64_t staged = 0, place = 0, bytes = 0;  // from there in the receive buffer, here in the
                                                    // caller's
  };
  bool stages_input = false;
  bool stages_output = false;
  bool gathers_input = false;     // it lies in pieces, so it is staged from the start
  std::int64_t staged_input = 0;  // in Space::data
  std::int64_t staged_output = 0;
  std::vector<Piece> input_pieces, output_pieces;
  // Ranks with steps that others may do, to which this program sends.
  std::vector<std::int32_t> feeds;
  // Whether, in the whole set of schedules, no rank reads another's receive buffers. Then a buffer
  // is free as soon as its owner has completed the operation.
  bool only_owners_read = false;
  // Whether some rank of the set may read the caller's memory of another: by pulls or references.
  bool callers_memory_is_read = false;
  std::vector<std::int32_t> receivers_here;  // ranks of this host to which it sends; ascending
  // The ranks of the other hosts to which this program sends, and those ranks that send to its
  // rank's host (remote_partners.hpp); ascending.
  std::vector<std::int32_t> remote_receivers, remote_senders;

  // With local counts: so much of each receive buffer's data may hold blocks of this program.
  std::int64_t data_bytes = 0;
  std::int64_t staging_bytes = 0;  // of Space::staging
  // No step waits for the ranks that read staging: it has to stay until all have completed the
  // operation.
  bool staging_lasts = false;

  // The first wait segment that begins at or after a step.
  std::int32_t wait_segment_at(std::int32_t step) const {
    const auto found = std::ranges::lower_bound(wait_segments, step, {}, &WaitSegment::begin);
    return static_cast<std::int32_t>(found - wait_segments.begin());
  }
  // The first step of a wait segment; behind the last one, the end.
  std::int32_t begin_of(std::int32_t wait_segment) const {
    return std::cmp_less(wait_segment, wait_segments.size())
               ? wait_segments[static_cast<std::size_t>(wait_segment)].begin
               : static_cast<std::int32_t>(steps.size());
  }
};

}  // namespace unisono::plan
