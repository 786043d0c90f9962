// SPDX-License-Identifier: BSD-3-Clause
// AllgatherSegments: blocks of any length, the same at all ranks, in the NIC path. The blocks of a
// host's ranks, one after another, are one block of the host. It is cut into operations of at most
// a packet each, and as many are in flight as the port allows. Hosts with fewer ranks than others
// add zeros. An object has one allgather at a time. Several objects may use a port by turns: the
// next allgather begins when all pieces of the one before are posted. One thread at a time. Data
// path: no allocation, no lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "nic/port/allgather_port.hpp"
#include "nic/port/host_blocks.hpp"
#include "topology/host_map.hpp"

namespace unisono::nic {

class AllgatherSegments {
 public:
  // One rank on each host. The port outlives this.
  explicit AllgatherSegments(AllgatherPort& port);
  // `hosts`: the ranks of the port's hosts; this rank is at `place` of its own. `together` counts
  // the ranks of this host and outlives this object; none: this rank is alone.
  AllgatherSegments(AllgatherPort& port, topology::HostMap hosts, int place, HostBlocks* together);

  // How many operations a block takes: the fewest; one if it is empty.
  static std::uint64_t pieces(std::size_t bytes, std::size_t piece_bytes);

  // Starts with this rank's block. `result` has room for all ranks' blocks, one after another, or
  // is empty if they are not wanted. The block may lie in its own place there. Both must stay until
  // the end. The mark must be the same at all ranks. Call it only when this object's allgather
  // before has ended. `call`: the allgather's number, if several are in flight. At most
  // kInFlightMax are.
  void begin(std::span<const std::byte> block, std::span<std::byte> result, std::uint32_t mark = 0,
             std::uint64_t call = 0);
  // Whether nothing is left to post.
  bool has_posted() const { return posted_ == pieces_; }

  // Makes progress without waiting: copies the blocks that have arrived, and posts the pieces that
  // have room. True: all is done. While it is false, a waiting process calls
  // AllgatherPort::repair() as well. The error names the host whose block has another length or
  // mark, or a rank of this host.
  base::Result<bool> step();
  // That host, and place there; -1: none.
  int mismatching_host() const { return mismatching_host_; }
  int mismatching_place() const { return mismatching_place_; }

  // Bit h: host h's block has arrived in the awaited operation. Call it while not all is done.
  std::uint64_t arrived() const { return port_.arrived(awaited()); }
  // Whether all ranks of this host have written their parts of the awaited operation.
  bool is_host_complete() const {
    return together_ == nullptr || finished_ == pieces_ || together_->is_complete(awaited());
  }
  // Pieces that are done and read here, and those that all ranks of this host have given.
  std::uint64_t finished() const { return finished_; }
  std::uint64_t given() const;
  // When the last block was there, once all is done; by the clock of base/clock.hpp.
  std::int64_t done_ns() const { return port_.done_ns(first_ + pieces_ - 1); }
  // The operation that this waits for.
  std::uint64_t awaited() const { return first_ + finished_; }
  // The last posted operation that is not done, for a process that wants to sleep: those before it
  // are done earlier unless packets are lost.
  std::uint64_t last_awaited() const;

 private:
  std::size_t piece_bytes(std::uint64_t number) const;
  void write(std::uint64_t number) const;
  void fill_rest(std::uint64_t number) const;
  base::Status post(std::uint64_t number);
  base::Status check(std::uint64_t number, int host);
  void copy(std::uint64_t number, int host) const;

  AllgatherPort& port_;
  const topology::HostMap hosts_;
  const int place_;
  const std::size_t most_places_;
  HostBlocks* const together_;
  const std::size_t piece_bytes_;
  std::span<const std::byte> block_;
  std::span<std::byte> result_;
  std::uint32_t mark_ = 0;
  std::uint64_t call_ = 0;
  int mismatching_host_ = -1, mismatching_place_ = -1;
  std::uint64_t first_ = 0;     // operation that has the first piece
  std::uint64_t pieces_ = 0;    // pieces of the current block
  std::uint64_t posted_ = 0;    // ... to which this rank has given so many parts,
  std::uint64_t finished_ = 0;  // ... and so many are done and read
};

}  // namespace unisono::nic
