// SPDX-License-Identifier: BSD-3-Clause
#include "topology/fat_tree/tree.hpp"

#include <fmt/format.h>

#include "base/text.hpp"

namespace unisono::topology::fat_tree {

Tree::Tree(int arity, int levels) : arity_(arity), levels_(levels) {
  powers_[0] = 1;
  for (std::size_t i = 1; i <= static_cast<std::size_t>(levels); ++i) {
    powers_[i] = powers_[i - 1] * arity;
  }
}

base::Result<Tree> Tree::make(int arity, int levels) {
  if (arity < 2 || levels < 1 || levels > kMostLevels) {
    return base::Error{base::Code::argument,
                       fmt::format("{}-ary {}-tree: the arity is 2 or more, the levels are 1 to {}",
                                   arity, levels, kMostLevels)};
  }
  std::int64_t nodes = 1;
  for (int i = 0; i < levels; ++i) {
    nodes *= arity;
    if (nodes > kMostNodes) {
      return base::Error{base::Code::argument, fmt::format("{}-ary {}-tree: more than {} nodes",
                                                           arity, levels, kMostNodes)};
    }
  }
  return Tree(arity, levels);
}

base::Result<Tree> Tree::parse(std::string_view text) {
  const std::size_t cross = text.find('x');
  if (cross != std::string_view::npos) {
    const auto arity = base::parse_integer(text.substr(0, cross));
    const auto levels = base::parse_integer(text.substr(cross + 1));
    const auto fits = [](const auto& value) {
      return value && *value >= 0 && *value <= kMostNodes;
    };
    if (fits(arity) && fits(levels)) {
      return make(static_cast<int>(*arity), static_cast<int>(*levels));
    }
  }
  return base::Error{base::Code::argument,
                     fmt::format("'{}' is no tree: write ARITYxLEVELS, as in 4x3 for a 4-ary "
                                 "3-tree of 64 nodes",
                                 text.substr(0, 80))};
}

}  // namespace unisono::topology::fat_tree
