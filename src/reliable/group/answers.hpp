// SPDX-License-Identifier: BSD-3-Clause
// Answers: the answers of a rank's children in the repair tree to one question of an origin, how
// far they have come. A value; one thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace unisono::reliable {

class Answers {
 public:
  void clear() { all_.clear(); }
  // A child may say several things; the furthest holds.
  void note(int child, std::uint64_t value);
  // Those of the children that have not answered.
  std::vector<int> missing(std::vector<int> children) const;
  // The worst of them and `own`; nullopt while one of `children` has not answered.
  std::optional<std::uint64_t> worst(std::span<const int> children, std::uint64_t own) const;

 private:
  const std::uint64_t* find(int child) const;

  std::vector<std::pair<int, std::uint64_t>> all_;
};

}  // namespace unisono::reliable
