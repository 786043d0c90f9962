// SPDX-License-Identifier: BSD-3-Clause
// Digest: what the ranks of an operation have to agree on, as a number that travels with every flag
// of it (engine::kDigestMask), so that a call that differs is noticed. Control path; any thread.
#pragma once

#include <cstdint>
#include <string_view>

#include "group/call.hpp"

namespace unisono::group {

class Digest {
 public:
  // Of a call. A user's types and operators count by what can be compared between processes; where
  // ranks know no counts but their own, counts are left out.
  explicit Digest(const Call& call);

  void add(std::uint64_t value);
  void add(std::string_view text);

  std::uint64_t hash() const { return hash_; }
  // Of the width that flags have room for, and never 0.
  std::uint32_t folded() const;

 private:
  void add_blocks(const schedule::Blocks& blocks);

  std::uint64_t hash_ = 1;
};

}  // namespace unisono::group
