// SPDX-License-Identifier: BSD-3-Clause
#include "comm/operations/staging.hpp"

#include <utility>

namespace unisono::comm {
namespace {

// A communicator's buffers may take many times as much (UNISONO_BUFFERS).
constexpr std::int64_t kMostSpareBytes = 8 * 1024 * 1024;

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

base::Result<Staging::Block> Staging::take(std::int64_t bytes) {
  if (spare_.bytes >= bytes) return std::exchange(spare_, {});
  release_spare();
  bytes = whole_words(bytes);
  const std::int64_t whole = bytes + StrandedBlocks::kLinkBytes;
  UNISONO_ASSIGN(const std::int64_t offset, memory_.allocate(whole));
  const base::Status ready = memory_.commit(offset, whole, "blocks that others will fetch");
  if (!ready) {
    memory_.release(offset, whole);
    return ready.error();
  }
  return Block{offset, bytes};
}

void Staging::give_back(const Block& block) {
  if (block.bytes <= spare_.bytes || block.bytes > kMostSpareBytes) return release(block);
  release_spare();
  spare_ = block;
}

void Staging::release_spare() {
  const Block block = std::exchange(spare_, {});
  if (block.offset != 0) release(block);
}

void Staging::release(const Block& block) {
  memory_.release(block.offset, block.bytes + StrandedBlocks::kLinkBytes);
}

}  // namespace unisono::comm
