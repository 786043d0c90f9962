// SPDX-License-Identifier: BSD-3-Clause
// Port: a process's side of one group in the NIC path. To post is a store and an atomic. Only the
// process with the last contribution on its host makes a system call, the doorbell packet
// (doorbell_socket.hpp). Results are polled in memory. Operations of a group are numbered from 0,
// and up to its depth may be in flight. Packets get lost, so a waiting process calls repair() now
// and then. One thread at a time. Data path: no allocation, no lock.
#pragma once

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

// When a host sends its contribution: as soon as it has it, or when the root asks whether all have
// come. The latter holds for hosts without children. Their processes make no system call if they
// come before the question. A rank that comes later finds the question, and sends at once.
enum class Giving { at_once, on_query };

class Port {
 public:
  // `row`: as it was placed. Its memory outlives the port.
  static base::Result<std::unique_ptr<Port>> open(const unisono_nic_row& row,
                                                  const GroupMemory& memory);

  // The number that the next post() has.
  std::uint64_t next() const { return next_; }
  // The number of operations that may be in flight.
  std::uint32_t depth() const { return row_.depth / 2; }
  // Whether the operation depth() before it is done. All ranks have contributed to that one. For
  // this they needed the result of the one 2 depth() before, whose memory this one reuses.
  bool may_post() const { return is_done(next_ - depth()); }

  // Gives this process's vector to operation next(): words of 64 bits, combined by
  // lower_operator(). Call it only if may_post(). An error means that the doorbell packet was not
  // sent; send_doorbell() tries again.
  // on_query must be the same at all ranks. At the root it asks, unless all have come. It is
  // ignored where the network carries no multicast.
  base::Status post(std::uint32_t combine, std::span<const std::uint64_t> vector,
                    Giving giving = Giving::at_once);
  // Another process of this host posts operation next(), by a port of its own to the same memory;
  // this process waits for it as well. Each operation is posted by one of them, when all have taken
  // the result of the one depth() before.
  void follow() { ++next_; }
  // Resumes an operation with all contributions; harmless at any time.
  base::Status send_doorbell(std::uint64_t sequence);

  // The root asks again whether all have come. Ranks that have kept the question ignore it.
  base::Status query(std::uint64_t sequence) { return send_packet(UNISONO_NIC_QUERY, sequence); }
  // Whether this rank asks in operations on query.
  bool queries() const { return may_query() && (row_.flags & UNISONO_NIC_ROOT) != 0; }

  // Requests what a posted operation lacks here: contributions of the children, or the result from
  // the parent. Programs answer from memory, or forward the request; no process is needed. Harmless
  // at any time.
  base::Status ask(std::uint64_t sequence);
  // For a waiting process. Requests all operations that are not done, if none has become done and
  // none was requested in the last `delay_ns`. Returns their number. `now_ns` may be of any one
  // clock. The delay should be random, well above the time of an operation, and grow with each
  // request.
  base::Result<int> repair(std::int64_t now_ns, std::int64_t delay_ns) {
    return repair(next_, now_ns, delay_ns);
  }
  // The same for the operations before `end`, which never gets smaller.
  base::Result<int> repair(std::uint64_t end, std::int64_t now_ns, std::int64_t delay_ns);

  bool is_done(std::uint64_t sequence) const;
  // For a process that wants to sleep until then: the ring's descriptor will show it. False: the
  // operation has ended, so do not sleep. Afterwards disarm() in either case.
  bool arm(WakeRing& ring, std::uint64_t sequence) const;
  void disarm(WakeRing& ring, std::uint64_t sequence) const;
  // When a done operation's result was in this host's memory, by the clock of base/clock.hpp: the
  // process may have looked later.
  std::int64_t done_ns(std::uint64_t sequence) const;
  // The contributions differ in length or operator; it will never be done.
  bool is_broken(std::uint64_t sequence) const;
  // For an operation that is broken here: the first rank whose contribution differs from the own
  // one; -1 if the result differs.
  int mismatching_rank(std::uint64_t sequence) const;
  // Whether all contributions have arrived here and gone on towards the root, or the operation is
  // done.
  bool is_given(std::uint64_t sequence) const;
  // For an operation that is done, until that 2 depth() after it is posted. At the root, or if the
  // group returns values, the result; otherwise unspecified.
  std::span<const std::uint64_t> result(std::uint64_t sequence) const;

  // How often it made the system call.
  std::uint64_t doorbells() const { return doorbells_; }

 private:
  Port(const unisono_nic_row& row, const GroupMemory& memory,
       std::unique_ptr<DoorbellSocket> socket)
      : row_(row), memory_(memory), doorbell_socket_(std::move(socket)) {}
  unisono_nic_slot& slot(std::uint64_t sequence) const;
  unisono_nic_block& own(std::uint64_t sequence) const;
  unisono_nic_block& block(std::uint64_t sequence, std::uint32_t number) const;
  base::Status give(std::uint64_t sequence, Giving giving, bool is_last);
  bool may_query() const { return row_.down.ipv4 != 0; }
  base::Status send_packet(std::uint8_t kind, std::uint64_t sequence);

  const unisono_nic_row row_;
  const GroupMemory memory_;
  const std::unique_ptr<DoorbellSocket> doorbell_socket_;
  std::uint64_t next_ = 0;
  std::uint64_t doorbells_ = 0;
  Overdue overdue_;
};

}  // namespace unisono::nic
