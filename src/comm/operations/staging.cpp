// SPDX-License-Identifier: BSD-3-Clause
#include "comm/operations/staging.hpp"

#include <utility>

namespace unisono::comm {
namespace {

// A communicator's buffers may take many times as much (UNISONO_BUFFERS).
constexpr std::int64_t kMostSpareBytes = 8 * 1024 * 1024;

}  // namespace

base::Result<Staging::Block> Staging::take(std::int64_t bytes) {
  if (spare_.bytes >= bytes) return std::exchange(spare_, {});
  release_spare();
  UNISONO_ASSIGN(const std::int64_t offset, memory_.allocate(bytes));
  const base::Status ready = memory_.commit(offset, bytes, "blocks that others will fetch");
  if (!ready) {
    memory_.release(offset, bytes);
    return ready.error();
  }
  return Block{offset, bytes};
}

void Staging::give_back(const Block& block) {
  if (block.bytes <= spare_.bytes || block.bytes > kMostSpareBytes) {
    return memory_.release(block.offset, block.bytes);
  }
  release_spare();
  spare_ = block;
}

void Staging::release_all() {
  release_spare();
  for (const Block& block : stranded_) memory_.release(block.offset, block.bytes);
  stranded_.clear();
}

void Staging::release_spare() {
  const Block block = std::exchange(spare_, {});
  if (block.offset != 0) memory_.release(block.offset, block.bytes);
}

}  // namespace unisono::comm
