// SPDX-License-Identifier: BSD-3-Clause
// The process's part of the protocol of tables.h. Its order of memory: the vector and its shape,
// then the arrival bit (release); the program sees the bit and then the vector. Results the other
// way.
#include "nic/port/port.hpp"

#include <algorithm>
#include <atomic>
#include <tuple>

#include "base/check.hpp"

namespace unisono::nic {

base::Result<std::unique_ptr<Port>> Port::open(const unisono_nic_row& row,
                                               const GroupMemory& memory) {
  UNISONO_ASSIGN(auto socket, DoorbellSocket::open(row));
  return std::unique_ptr<Port>(new Port(row, memory, std::move(socket)));
}

base::Status Port::post(std::uint32_t combine, std::span<const std::uint64_t> vector,
                        Giving giving) {
  UNISONO_CHECK(may_post(), "Port::post with no place free");
  UNISONO_CHECK(vector.size() <= UNISONO_NIC_WORDS_MAX, "Port::post of more than one packet");
  const std::uint64_t sequence = next_++;
  unisono_nic_block& block = own(sequence);
  std::copy(vector.begin(), vector.end(), block.data);
  block.combine = combine;
  std::atomic_ref(block.words)
      .store(static_cast<std::uint32_t>(vector.size()), std::memory_order_relaxed);
  std::atomic_ref(block.sequence).store(sequence, std::memory_order_release);
  const std::uint64_t all = unisono_nic_all_arrived(&row_);
  const std::uint64_t before =
      std::atomic_ref(slot(sequence).arrived).fetch_or(1, std::memory_order_seq_cst);
  return give(sequence, giving, (before | 1) == all);
}

// If ranks wait for the query, a query that came before this contribution finds no other sender.
// The program marks the query and then checks for the arrival; this code does the reverse.
base::Status Port::give(std::uint64_t sequence, Giving giving, bool is_last) {
  const bool on_query = giving == Giving::on_query && may_query();
  if (on_query && queries() && !is_last) return query(sequence);
  if (!is_last) return base::success();
  const bool waits =
      on_query && row_.children == 0 &&
      std::atomic_ref(slot(sequence).queried).load(std::memory_order_seq_cst) != sequence;
  return waits ? base::success() : send_doorbell(sequence);
}

base::Status Port::send_doorbell(std::uint64_t sequence) {
  ++doorbells_;
  return send_packet(UNISONO_NIC_DOORBELL, sequence);
}

base::Status Port::ask(std::uint64_t sequence) {
  // Either a doorbell packet was not sent, or the operation needs only time.
  const std::uint64_t all = unisono_nic_all_arrived(&row_);
  const std::uint64_t arrived =
      std::atomic_ref(slot(sequence).arrived).load(std::memory_order_acquire);
  if (arrived == all) return send_doorbell(sequence);
  return send_packet(UNISONO_NIC_ASK, sequence);
}

base::Result<int> Port::repair(std::uint64_t end, std::int64_t now_ns, std::int64_t delay_ns) {
  return overdue_.repair(
      end, now_ns, delay_ns,
      [this](std::uint64_t sequence) { return is_done(sequence) || is_broken(sequence); },
      [this](std::uint64_t sequence) { return ask(sequence); });
}

base::Status Port::send_packet(std::uint8_t kind, std::uint64_t sequence) {
  // Another process of this host may be posting it.
  const std::size_t words = std::atomic_ref(own(sequence).words).load(std::memory_order_relaxed);
  return doorbell_socket_->send(kind, sequence,
                                std::min<std::size_t>(words, UNISONO_NIC_WORDS_MAX));
}

// The slot may have moved on.
bool Port::is_done(std::uint64_t sequence) const {
  const std::uint64_t done = std::atomic_ref(slot(sequence).done).load(std::memory_order_seq_cst);
  return static_cast<std::int64_t>(done - sequence) >= 0;
}

bool Port::arm(WakeRing& ring, std::uint64_t sequence) const {
  ring.arm(slot(sequence));
  return !is_done(sequence) && !is_broken(sequence);
}

void Port::disarm(WakeRing& ring, std::uint64_t sequence) const { ring.disarm(slot(sequence)); }

std::int64_t Port::done_ns(std::uint64_t sequence) const {
  return static_cast<std::int64_t>(slot(sequence).done_ns);
}

bool Port::is_broken(std::uint64_t sequence) const {
  return std::atomic_ref(slot(sequence).broken).load(std::memory_order_seq_cst) == sequence;
}

int Port::mismatching_rank(std::uint64_t sequence) const {
  const unisono_nic_block& mine = own(sequence);
  for (std::uint32_t child = 0; child < row_.children; ++child) {
    const unisono_nic_block& other = block(sequence, 1 + child);
    if (other.combine != mine.combine || other.words != mine.words) {
      return static_cast<int>(row_.child_rank[child]);
    }
  }
  return -1;
}

bool Port::is_given(std::uint64_t sequence) const {
  const std::uint64_t summed =
      std::atomic_ref(slot(sequence).summed).load(std::memory_order_acquire);
  return summed == sequence || is_done(sequence);
}

std::span<const std::uint64_t> Port::result(std::uint64_t sequence) const {
  unisono_nic_block& block = own(sequence);
  // Another process of this host may have posted it; that the program came between is not to be
  // seen from here.
  std::ignore = std::atomic_ref(block.sequence).load(std::memory_order_acquire);
  return {block.data, std::min<std::size_t>(block.words, UNISONO_NIC_WORDS_MAX)};
}

unisono_nic_slot& Port::slot(std::uint64_t sequence) const {
  return memory_.slots[sequence & (row_.depth - 1)];
}

unisono_nic_block& Port::own(std::uint64_t sequence) const { return block(sequence, 0); }

// The same as find_block() of state.bpf.h.
unisono_nic_block& Port::block(std::uint64_t sequence, std::uint32_t number) const {
  return memory_.blocks[(sequence & (row_.depth - 1)) * unisono_nic_blocks(&row_) + number];
}

}  // namespace unisono::nic
