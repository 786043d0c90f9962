// SPDX-License-Identifier: BSD-3-Clause
#include "plan/digest.hpp"

namespace unisono::plan {

namespace {

std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15U;
  return hash ^ hash >> 29;
}

}  // namespace

std::uint64_t hash_of(std::initializer_list<std::uint64_t> values) {
  std::uint64_t hash = 1;
  for (const std::uint64_t value : values) hash = mixed(hash, value);
  return hash;
}

Digest::Digest(const Call& call) {
  const auto number = [](std::int32_t n) {
    return static_cast<std::uint64_t>(n < kFirstUserNumber ? n : kFirstUserNumber);
  };
  add(static_cast<std::uint64_t>(call.collective));
  add(static_cast<std::uint64_t>(call.purpose));
  if (!call.local_counts) add(static_cast<std::uint64_t>(call.count));
  add(number(call.type));
  add(number(call.op));
  add(static_cast<std::uint64_t>(call.root));
  add(static_cast<std::uint64_t>(call.element_bytes));
  if (call.blocks.given() && !call.local_counts) add_blocks(call.blocks);
  add(call.ordered ? 1 : 0);
}

void Digest::add_blocks(const schedule::Blocks& blocks) {
  for (int r = 0; r < blocks.ranks(); ++r) {
    if (!blocks.are_pairs()) {
      add(static_cast<std::uint64_t>(blocks.of(r).count) * 2 + blocks.receives(r));
      continue;
    }
    for (int to = 0; to < blocks.ranks(); ++to) {
      add(static_cast<std::uint64_t>(blocks.sent(r, to).count));
    }
  }
}

void Digest::add(std::uint64_t value) { hash_ = mixed(hash_, value); }

void Digest::add(std::string_view text) {
  for (const char c : text) add(static_cast<std::uint64_t>(c));
}

std::uint32_t Digest::folded() const {
  const auto digest = static_cast<std::uint32_t>((hash_ ^ (hash_ >> 32)) & kDigestMask);
  return digest == 0 ? 1 : digest;
}

}  // namespace unisono::plan
