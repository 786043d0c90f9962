// SPDX-License-Identifier: BSD-3-Clause
// The process's part of the protocol of tables.h. It writes the block and its length, then its
// number, then the arrival bit; the program reads in the opposite order. Others' blocks may arrive
// before or meanwhile.
#include "nic/port/allgather_port.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/check.hpp"
#include "base/clock.hpp"

namespace unisono::nic {
namespace {

constexpr std::size_t kWord = sizeof(std::uint64_t);

}  // namespace

base::Result<std::unique_ptr<AllgatherPort>> AllgatherPort::open(const unisono_nic_row& row,
                                                                 const GroupMemory& memory) {
  UNISONO_CHECK(row.ranks != 0, "an allgather's row");
  UNISONO_ASSIGN(auto socket, DoorbellSocket::open(row));
  return std::unique_ptr<AllgatherPort>(new AllgatherPort(row, memory, std::move(socket)));
}

// The operations before the first one are read.
AllgatherPort::AllgatherPort(const unisono_nic_row& row, const GroupMemory& memory,
                             std::unique_ptr<DoorbellSocket> socket)
    : row_(row), memory_(memory), doorbell_socket_(std::move(socket)) {
  for (std::uint64_t i = 0; i < depth(); ++i) read_[i] = i - depth();
}

base::Status AllgatherPort::post(std::span<const std::byte> block, std::uint32_t mark) {
  UNISONO_CHECK(block.size() <= most_bytes(), "AllgatherPort::post of more than one packet");
  if (!block.empty()) std::memcpy(room().data(), block.data(), block.size());
  return post_written(block.size(), mark);
}

std::span<std::byte> AllgatherPort::room() const {
  UNISONO_CHECK(may_post(), "AllgatherPort::room with no place free");
  return std::as_writable_bytes(std::span(place(next_, rank()).data)).first(most_bytes());
}

base::Status AllgatherPort::post_written(std::size_t bytes, std::uint32_t mark) {
  const std::span<std::byte> room = this->room();
  const std::uint64_t sequence = next_++;
  unisono_nic_block& own = place(sequence, rank());
  own.combine = mark;
  own.words = static_cast<std::uint32_t>((bytes + kWord - 1) / kWord);
  std::ranges::fill(room.subspan(bytes, own.words * kWord - bytes), std::byte{0});
  std::atomic_ref(own.sequence).store(sequence, std::memory_order_release);
  if (!joins()) mark_arrived(sequence, std::uint64_t{1} << row_.rank);
  return send_packet(UNISONO_NIC_DOORBELL, sequence);
}

// As the program does for received blocks. Where blocks are joined, the program does it for the own
// one too, because the setter of the bit sends the messages that it completes.
void AllgatherPort::mark_arrived(std::uint64_t sequence, std::uint64_t bits) const {
  unisono_nic_slot& operation = slot(sequence);
  const std::uint64_t before =
      std::atomic_ref(operation.arrived).fetch_or(bits, std::memory_order_seq_cst);
  if ((before | bits) != unisono_nic_all_arrived(&row_)) return;
  std::atomic_ref(operation.arrived).store(0, std::memory_order_seq_cst);
  operation.done_ns = static_cast<std::uint64_t>(base::now_ns());
  std::atomic_ref(operation.done).store(sequence, std::memory_order_seq_cst);
}

// The program does not use `claimed` in allgathers. A block that comes before has its bit already.
// The own block, where another host's is expected, gives a question room for the longest answer.
bool AllgatherPort::expect_only(int origin, std::uint32_t mark) const {
  UNISONO_CHECK(!joins() && may_post(), "AllgatherPort::expect_only with a place free");
  const std::uint64_t sequence = next_;
  if (std::atomic_ref(slot(sequence).claimed).exchange(sequence) == sequence) return false;
  const std::uint64_t expected = std::uint64_t{1} << origin;
  for (int other = 0; other < ranks(); ++other) {
    if (other == origin) continue;
    unisono_nic_block& empty = place(sequence, other);
    empty.combine = mark;
    empty.words = other == rank() ? UNISONO_NIC_WORDS_MAX : 0;
    std::atomic_ref(empty.sequence).store(sequence, std::memory_order_release);
  }
  mark_arrived(sequence, unisono_nic_all_arrived(&row_) & ~expected);
  return true;
}

std::size_t AllgatherPort::most_bytes() const {
  const std::size_t words =
      joins() ? UNISONO_NIC_WORDS_MAX / row_.largest - 1 : UNISONO_NIC_WORDS_MAX;
  return words * kWord;
}

bool AllgatherPort::is_given(std::uint64_t sequence) const {
  return std::atomic_ref(place(sequence, rank()).sequence).load(std::memory_order_acquire) ==
             sequence ||
         is_done(sequence);
}

// While another process of this host has not written its part, nothing is lost.
base::Status AllgatherPort::ask(std::uint64_t sequence) {
  if (!is_given(sequence)) return base::success();
  return send_packet(UNISONO_NIC_ASK, sequence);
}

base::Result<int> AllgatherPort::repair(std::int64_t now_ns, std::int64_t delay_ns) {
  return overdue_.repair(
      next_, now_ns, delay_ns, [this](std::uint64_t sequence) { return is_done(sequence); },
      [this](std::uint64_t sequence) { return ask(sequence); });
}

base::Status AllgatherPort::send_packet(std::uint8_t kind, std::uint64_t sequence) {
  const std::uint32_t words = place(sequence, rank()).words;
  const std::size_t room = joins() ? unisono_nic_room(&row_, words) : words;
  return doorbell_socket_->send(kind, sequence, std::min<std::size_t>(room, UNISONO_NIC_WORDS_MAX));
}

// The slot may have moved on.
bool AllgatherPort::is_done(std::uint64_t sequence) const {
  const std::uint64_t done = std::atomic_ref(slot(sequence).done).load(std::memory_order_seq_cst);
  return static_cast<std::int64_t>(done - sequence) >= 0;
}

bool AllgatherPort::arm(WakeRing& ring, std::uint64_t sequence) const {
  ring.arm(slot(sequence));
  return !is_done(sequence);
}

void AllgatherPort::disarm(WakeRing& ring, std::uint64_t sequence) const {
  ring.disarm(slot(sequence));
}

std::int64_t AllgatherPort::done_ns(std::uint64_t sequence) const {
  return static_cast<std::int64_t>(slot(sequence).done_ns);
}

std::uint64_t AllgatherPort::arrived(std::uint64_t sequence) const {
  const std::uint64_t bits =
      std::atomic_ref(slot(sequence).arrived).load(std::memory_order_acquire);
  return is_done(sequence) ? unisono_nic_all_arrived(&row_) : bits;
}

std::span<const std::byte> AllgatherPort::block(std::uint64_t sequence, int origin) const {
  const unisono_nic_block& found = place(sequence, origin);
  const std::size_t words = std::min<std::size_t>(found.words, UNISONO_NIC_WORDS_MAX);
  return std::as_bytes(std::span(found.data, words));
}

std::uint32_t AllgatherPort::mark(std::uint64_t sequence, int origin) const {
  return place(sequence, origin).combine;
}

unisono_nic_slot& AllgatherPort::slot(std::uint64_t sequence) const {
  return memory_.slots[sequence & (row_.depth - 1)];
}

unisono_nic_block& AllgatherPort::place(std::uint64_t sequence, int origin) const {
  UNISONO_CHECK(origin >= 0 && origin < ranks(), "a rank of the group");
  return memory_.blocks[(sequence & (row_.depth - 1)) * std::uint64_t{row_.ranks} +
                        static_cast<std::uint32_t>(origin)];
}

}  // namespace unisono::nic
