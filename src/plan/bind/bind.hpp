// SPDX-License-Identifier: BSD-3-Clause
// Binding: from the schedules of all ranks to programs. Control path. Lays out every rank's receive
// buffer, which all ranks compute alike: slots in lines; longer payloads, scratch and staging in
// the data area. Turns logical ranges into pieces of the caller's buffers. Pure; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/geometry.hpp"
#include "plan/program.hpp"
#include "schedule/schedule.hpp"
#include "topology/host_map.hpp"

namespace unisono::plan {

// How a logical vector lies in a caller's buffer: in pieces, in logical order. None: contiguous.
struct BufferLayout {
  struct Piece {
    std::int64_t offset = 0, count = 0;  // elements of the logical vector
    std::int64_t place = 0;              // elements from the buffer's start
  };
  std::vector<Piece> pieces;  // none of them empty

  bool contiguous() const { return pieces.empty(); }
  // The piece that contains a logical element.
  const Piece& piece_of(std::int64_t element) const;
};

struct BindOptions {
  std::int64_t element_bytes = 1;
  BufferLayout input;  // of the binding rank
  BufferLayout output;
  ReceiveGeometry geometry;
  bool staged_multicast = false;  // Capabilities::multicast, among the ranks of a host
  // Stage data that others may touch, and bind the steps of all ranks that this one may do for
  // them.
  bool helping = false;
  // Messages of so many bytes or more are pulled from their sender's memory where that is safe
  // (pulls.hpp); 0: none. Not with helping.
  std::int64_t pull_from = 0;
  // Messages of so many bytes or more may be references (references.hpp); 0: none. Not with
  // helping, pulls or hosts.
  std::int64_t refer_from = 0;
  // In place, so many bytes or more. Both ranks write what they have just read, so for shorter ones
  // the cache lines that change hands cost more than a copy.
  std::int64_t refer_in_place_from = 0;
  // Messages from other hosts of so many bytes or more may land (landings.hpp); 0: none. Not with
  // helping or pulls.
  std::int64_t land_from = 0;
  // Empty: all ranks are on one host. Not with helping or pulls.
  topology::HostMap hosts{};
  // By rank, whether it sends multicasts to other hosts, and receives them; empty: no rank does.
  // One of each host.
  std::vector<bool> group{};
};

// The most that the set needs of each receive buffer.
struct ReceiveNeed {
  std::int64_t lines = 0;
  std::int64_t data_bytes = 0;
  // Multicasts reach so far into data_bytes; -1: there are none.
  std::int64_t multicast_bytes = -1;

  bool fits(const ReceiveGeometry& geometry) const {
    return lines <= geometry.lines && data_bytes <= geometry.data_bytes;
  }
};
ReceiveNeed receive_need(std::span<const schedule::Schedule> set, const BindOptions& options);

// The programs by rank, for use at `rank`. Those of other ranks are empty, unless some of their
// steps may be helped. Then they have these steps, and the same wait segments as at their own
// ranks. The set has to fit the geometry (receive_need).
std::vector<Program> bind_schedules(std::span<const schedule::Schedule> set, int rank,
                                    const BindOptions& options);
// The same by a layout of that set. Its geometry counts, not that of the options. It was made with
// equal options otherwise, except that references do not matter to it.
class ReceiveLayout;
std::vector<Program> bind_schedules(std::span<const schedule::Schedule> set, int rank,
                                    const BindOptions& options, const ReceiveLayout& layout);

}  // namespace unisono::plan
