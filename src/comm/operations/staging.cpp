// SPDX-License-Identifier: BSD-3-Clause
#include "comm/operations/staging.hpp"

#include <bit>
#include <utility>

#include "plan/geometry.hpp"

namespace unisono::comm {
namespace {

// As much as a rank's receive buffers for long messages.
constexpr std::int64_t kArenaBytes = 1024 * 1024;
// As many of the longest as there are slot indexes for long messages.
constexpr std::int64_t kMostCutBytes = 64 * 1024;
// A communicator's buffers may take many times as much (UNISONO_BUFFERS).
constexpr std::int64_t kMostSpareBytes = 8 * 1024 * 1024;
// More than those that last: a call with such a block waits for all ranks, so there are at most as
// many as slot indexes.
constexpr std::size_t kMostSpare = 2 * engine::kMostSlotIndexes;

std::int64_t whole_words(std::int64_t bytes) {
  constexpr std::int64_t kWord = 8;
  return (bytes + kWord - 1) / kWord * kWord;
}

}  // namespace

void StrandedBlocks::add(std::int64_t offset, std::int64_t bytes) {
  const std::int64_t place = offset + bytes;
  auto& link = *reinterpret_cast<Link*>(memory_.at(place));
  link.bytes = bytes;
  link.next = first_.load(std::memory_order_relaxed);
  while (!first_.compare_exchange_weak(link.next, place, std::memory_order_release,
                                       std::memory_order_relaxed)) {
  }
}

void StrandedBlocks::release_all() {
  std::int64_t place = first_.exchange(0, std::memory_order_acquire);
  while (place != 0) {
    const Link link = *reinterpret_cast<const Link*>(memory_.at(place));
    memory_.release(place - link.bytes, link.bytes + kLinkBytes);
    place = link.next;
  }
}

Staging::Staging(memory::JobMemory& memory, engine::SizeQueue& size_queue,
                 std::atomic<std::int64_t>& first_stranded)
    : memory_(memory), size_queue_(size_queue), stranded_(memory, first_stranded) {
  spare_.reserve(kMostSpare);
}

// The shortest, so that calls of different lengths find theirs again.
Staging::Spare* Staging::find_free(std::int64_t bytes) {
  Spare* best = nullptr;
  for (Spare& spare : spare_) {
    const bool is_shorter = best == nullptr || spare.block.bytes < best->block.bytes;
    if (spare.block.bytes >= bytes && is_shorter && is_free(spare)) best = &spare;
  }
  return best;
}

base::Result<Staging::Block> Staging::take(std::int64_t bytes, std::int64_t round) {
  if (round != 0) {
    if (const Block block = take_from_ring(bytes, round); block.offset != 0) return block;
  }
  Spare* found = find_free(bytes);
  if (found == nullptr && !spare_.empty()) {
    size_queue_.refresh_slowest();
    found = find_free(bytes);
  }
  if (found == nullptr) {
    if (const Block block = cut_from_arena(bytes); block.offset != 0) return block;
    return allocate(whole_words(bytes));
  }
  const Block block = found->block;
  if (!in_arena(block)) spare_bytes_ -= block.bytes;
  *found = spare_.back();
  spare_.pop_back();
  return block;
}

// Its offset is 0 where readers may still need the next bytes of the ring.
Staging::Block Staging::take_from_ring(std::int64_t bytes, std::int64_t round) {
  if (!ring_.has_memory()) {
    if (ring_was_refused_) return {};
    const auto memory = allocate(round);
    ring_was_refused_ = !memory.ok();
    if (!memory) return {};
    ring_.begin(memory->offset, memory->bytes);
  }
  const std::int64_t length = plan::odd_lines(bytes);
  const auto completed = [this](std::uint64_t sequence) {
    return size_queue_.was_completed_by_all_here(sequence);
  };
  std::int64_t place = ring_.take(length, completed);
  if (place == 0) {
    size_queue_.refresh_slowest();
    place = ring_.take(length, completed);
  }
  return place == 0 ? Block{} : Block{place, length};
}

// None if it is too long, or if there is no more room.
Staging::Block Staging::cut_from_arena(std::int64_t bytes) {
  if (bytes > kMostCutBytes) return {};
  if (arena_.offset == 0) {
    const auto arena = allocate(kArenaBytes);
    if (!arena) return {};
    arena_ = *arena;
  }
  const auto usual = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(bytes)));
  const std::int64_t length = plan::odd_lines(usual);
  if (cut_bytes_ + length > arena_.bytes) return {};
  const Block block{arena_.offset + cut_bytes_, length};
  cut_bytes_ += length;
  return block;
}

base::Result<Staging::Block> Staging::allocate(std::int64_t bytes) {
  make_room(bytes);
  const std::int64_t whole = bytes + StrandedBlocks::kLinkBytes;
  UNISONO_ASSIGN(const std::int64_t offset, memory_.allocate(whole));
  const base::Status ready = memory_.commit(offset, whole, "blocks that others will fetch");
  if (!ready) {
    memory_.release(offset, whole);
    return ready.error();
  }
  return Block{offset, bytes};
}

void Staging::give_back(const Block& block) { give_back_after(block, 0); }

void Staging::give_back_after(const Block& block, std::uint64_t sequence) {
  if (ring_.holds(block.offset)) return ring_.give_back_after(block.offset, sequence);
  if (!in_arena(block)) {
    make_room(block.bytes);
    spare_bytes_ += block.bytes;
  }
  spare_.push_back({block, sequence});
}

// For one more spare block. Those that may still be read stay.
void Staging::make_room(std::int64_t bytes) {
  for (std::size_t i = 0; i < spare_.size();) {
    if (spare_bytes_ + bytes <= kMostSpareBytes && spare_.size() < kMostSpare) return;
    if (in_arena(spare_[i].block) || !is_free(spare_[i])) {
      ++i;
      continue;
    }
    release(spare_[i].block);
    spare_bytes_ -= spare_[i].block.bytes;
    spare_[i] = spare_.back();
    spare_.pop_back();
  }
}

void Staging::abandon(const Block& block) {
  if (ring_.holds(block.offset)) {
    ring_is_stranded_ = true;
  } else if (in_arena(block)) {
    arena_is_stranded_ = true;
  } else {
    stranded_.add(block.offset, block.bytes);
  }
}

void Staging::release_spare() {
  size_queue_.refresh_slowest();
  for (const Spare& spare : spare_) {
    if (!is_free(spare)) {
      abandon(spare.block);
    } else if (!in_arena(spare.block)) {
      release(spare.block);
    }
  }
  spare_.clear();
  spare_bytes_ = 0;
  release_ring();
  const Block arena = std::exchange(arena_, {});
  if (arena.offset == 0) return;
  if (arena_is_stranded_) {
    abandon(arena);
  } else {
    release(arena);
  }
}

void Staging::release_ring() {
  const StagingRing ring = std::exchange(ring_, {});
  if (!ring.has_memory()) return;
  const Block memory{ring.place(), ring.bytes()};
  const bool is_free = ring.is_all_free(
      [this](std::uint64_t sequence) { return size_queue_.was_completed_by_all_here(sequence); });
  if (ring_is_stranded_ || !is_free) {
    abandon(memory);
  } else {
    release(memory);
  }
}

void Staging::release(const Block& block) {
  memory_.release(block.offset, block.bytes + StrandedBlocks::kLinkBytes);
}

}  // namespace unisono::comm
