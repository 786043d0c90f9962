// SPDX-License-Identifier: BSD-3-Clause
// AllgatherPort: a process's side of an allgather group in the NIC path. To post is a copy, an
// atomic and the doorbell packet (doorbell_socket.hpp), which makes the program send the block.
// From then on programs forward all blocks among themselves. Blocks are polled in memory. A
// broadcast is an allgather in which one rank posts its block.
// Operations of a group are numbered from 0, and up to its depth may be in flight. Packets get
// lost, so a waiting process calls repair() now and then. One thread at a time. Data path: no
// allocation, no lock.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "base/result.hpp"
#include "nic/memory/group_mapping.hpp"
#include "nic/memory/wake_ring.hpp"
#include "nic/port/doorbell_socket.hpp"
#include "nic/port/overdue.hpp"

namespace unisono::nic {

class AllgatherPort {
 public:
  // `row`: as it was placed. Its memory outlives the port.
  static base::Result<std::unique_ptr<AllgatherPort>> open(const unisono_nic_row& row,
                                                           const GroupMemory& memory);

  int rank() const { return static_cast<int>(row_.rank); }
  int ranks() const { return static_cast<int>(row_.ranks); }
  // The number that the next post() has.
  std::uint64_t next() const { return next_; }
  // The number of operations that may be in flight.
  std::uint32_t depth() const { return row_.depth / 2; }
  // Whether the operation depth() before it is done. All ranks have contributed to that one. They
  // did so with all blocks of the one 2 depth() before, whose memory this one reuses.
  bool may_post() const { return is_done(next_ - depth()); }
  // This process has read the blocks of an operation. Others' may overwrite them as soon as it
  // posts the one depth() later.
  void note_read(std::uint64_t sequence) { read_[sequence % depth()] = sequence; }
  bool has_read(std::uint64_t sequence) const { return read_[sequence % depth()] == sequence; }

  // The longest block: what a packet holds or, if the group joins blocks in messages, a part of it.
  std::size_t most_bytes() const;
  // Gives this process's block to operation next(), with a mark. It has at most most_bytes() and is
  // as long as the other ranks' (padded with zeros to whole words). Call it only if may_post(). An
  // error means that the doorbell packet was not sent; ranks that lack the block request it all the
  // same.
  base::Status post(std::span<const std::byte> block, std::uint32_t mark = 0);
  // The same in two steps, so that several processes of this host may write the block. When each of
  // them may post, it writes its part to the room for operation next(). Then one of them posts so
  // many bytes, and the others follow.
  std::span<std::byte> room() const;
  base::Status post_written(std::size_t bytes, std::uint32_t mark);
  void follow() { ++next_; }
  // Whether this host's block is posted, or a block of another host is expected in its place.
  bool is_given(std::uint64_t sequence) const;

  // Operation next() is a broadcast: it has one block, that of `origin`. All others count as
  // arrived. They have this mark and no data, so that a rank which expects one of them sees that
  // the calls differ. The first process of this host that comes does that: it gets true. Then the
  // origin's process posts its block, and all others follow. Nobody acknowledges a block. So the
  // caller has to know that all ranks have read the operation 2 depth() before.
  bool expect_only(int origin, std::uint32_t mark) const;

  // Requests the blocks that a posted operation lacks here. Programs answer from memory, or forward
  // the request. Harmless at any time.
  base::Status ask(std::uint64_t sequence);
  // As Port::repair().
  base::Result<int> repair(std::int64_t now_ns, std::int64_t delay_ns);

  bool is_done(std::uint64_t sequence) const;
  // For a process that wants to sleep until then: the ring's descriptor will show it. False: the
  // operation has ended, so do not sleep. Afterwards disarm() in either case.
  bool arm(WakeRing& ring, std::uint64_t sequence) const;
  void disarm(WakeRing& ring, std::uint64_t sequence) const;
  // When a done operation's last block was in this host's memory, by the clock of base/clock.hpp.
  std::int64_t done_ns(std::uint64_t sequence) const;
  // For a posted operation: bit o is set if the block of rank o is here.
  std::uint64_t arrived(std::uint64_t sequence) const;
  // An origin's block in an operation that is done, in whole words. Valid until depth() later ones
  // are posted; then other ranks may overwrite it.
  std::span<const std::byte> block(std::uint64_t sequence, int origin) const;
  std::uint32_t mark(std::uint64_t sequence, int origin) const;

 private:
  AllgatherPort(const unisono_nic_row& row, const GroupMemory& memory,
                std::unique_ptr<DoorbellSocket> socket);
  bool joins() const { return row_.gives != 0; }
  void mark_arrived(std::uint64_t sequence, std::uint64_t bits) const;
  unisono_nic_slot& slot(std::uint64_t sequence) const;
  unisono_nic_block& place(std::uint64_t sequence, int origin) const;
  base::Status send_packet(std::uint8_t kind, std::uint64_t sequence);

  const unisono_nic_row row_;
  const GroupMemory memory_;
  const std::unique_ptr<DoorbellSocket> doorbell_socket_;
  std::uint64_t next_ = 0;
  std::array<std::uint64_t, UNISONO_NIC_DEPTH_MAX / 2> read_ = {};  // the last of those that share
  Overdue overdue_;
};

}  // namespace unisono::nic
