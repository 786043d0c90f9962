// SPDX-License-Identifier: BSD-3-Clause
// Digest: the arguments on which the ranks of an operation must agree, as a number that is sent
// with every flag of it (kDigestMask). So a call that differs is detected. Control path;
// any thread.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "plan/call.hpp"
#include "plan/geometry.hpp"

namespace unisono::plan {

// A number for these, in this order.
std::uint64_t hash_of(std::initializer_list<std::uint64_t> values);

class Digest {
 public:
  // The digest of a call. A user's types and operators contribute the part that processes can
  // compare. With local counts, counts are left out.
  explicit Digest(const Call& call);

  void add(std::uint64_t value);
  void add(std::string_view text);

  std::uint64_t hash() const { return hash_; }
  // In the width of a flag, and never 0.
  std::uint32_t folded() const;

 private:
  void add_blocks(const schedule::Blocks& blocks);

  std::uint64_t hash_ = 1;
};

}  // namespace unisono::plan
