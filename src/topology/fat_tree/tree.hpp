// SPDX-License-Identifier: BSD-3-Clause
// Tree: a k-ary n-tree, the fat tree of Quadrics, CM-5 and many InfiniBand clusters. k^n nodes, n
// levels of k^(n-1) switches. A switch is <w, l>: w has n-1 digits to base k, level 0 is next to
// the nodes. <w, l> and <w', l+1> are connected where w and w' differ at most in the digit of
// weight k^l. So a way up may choose that digit at each switch; the way down is then fixed. A
// value; any thread. Source: Petrini and Vanneschi 1995; Kumar and Kalé, ICPADS 2004, section 4.1.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/result.hpp"

namespace unisono::topology::fat_tree {

struct Switch {
  int word = 0;  // w as a number
  int level = 0;

  bool operator==(const Switch&) const = default;
};

class Tree {
 public:
  static constexpr int kMostLevels = 20;
  static constexpr int kMostNodes = 1 << 20;  // link numbers stay within an int

  static base::Result<Tree> make(int arity, int levels);
  // "4x3": 4-ary, 3 levels.
  static base::Result<Tree> parse(std::string_view text);

  int arity() const { return arity_; }
  int levels() const { return levels_; }
  int nodes() const { return power(levels_); }
  int switches_of_level() const { return power(levels_ - 1); }
  int power(int exponent) const { return powers_[static_cast<std::size_t>(exponent)]; }
  // The digit of weight arity^place.
  int digit(int value, int place) const { return value / power(place) % arity_; }

  // A subtree of height h holds arity^h nodes; height 0 is a node, 1 the nodes of a leaf switch.
  int subtree(int node, int height) const { return node / power(height); }
  // The height of the smallest subtree with both nodes.
  int height(int a, int b) const {
    int height = 0;
    while (subtree(a, height) != subtree(b, height)) ++height;
    return height;
  }

  Switch leaf_switch(int node) const { return {node / arity_, 0}; }
  Switch above(Switch at, int port) const {
    return {with_digit(at.word, at.level, port), at.level + 1};
  }
  Switch below(Switch at, int port) const {
    return {with_digit(at.word, at.level - 1, port), at.level - 1};
  }
  bool connected(Switch lower, Switch upper) const {
    return upper.level == lower.level + 1 && above(lower, digit(upper.word, lower.level)) == upper;
  }

  // Links by direction. Level 0 has the nodes' links, level l those between switches of level l-1
  // and l, numbered by the lower switch and its port. Numbers are below directed_links().
  int directed_links() const { return 2 * levels_ * nodes(); }
  int up_link(int level, int place) const { return level * nodes() + place; }
  int down_link(int level, int place) const { return (levels_ + level) * nodes() + place; }
  bool is_up(int link) const { return link < levels_ * nodes(); }
  int level_of(int link) const { return link / nodes() % levels_; }
  int place_of(int link) const { return link % nodes(); }

  // Visits the links from source to target: up to a common switch of the lowest level, then down.
  // choose(at) gives the port on which a switch forwards the message up. No links if they are one.
  template <typename Choose, typename Visit>
  void route(int source, int target, const Choose& choose, const Visit& visit) const {
    const int top = height(source, target) - 1;
    if (top < 0) return;
    visit(up_link(0, source));
    Switch at = leaf_switch(source);
    while (at.level < top) {
      const int port = choose(at);
      visit(up_link(at.level + 1, at.word * arity_ + port));
      at = above(at, port);
    }
    while (at.level > 0) {
      const int port = digit(at.word, at.level - 1);
      const Switch lower = below(at, digit(target, at.level));
      visit(down_link(at.level, lower.word * arity_ + port));
      at = lower;
    }
    visit(down_link(0, target));
  }

  bool operator==(const Tree&) const = default;

 private:
  Tree(int arity, int levels);
  int with_digit(int value, int place, int digit_value) const {
    return value + (digit_value - digit(value, place)) * power(place);
  }

  int arity_, levels_;
  std::array<int, kMostLevels + 1> powers_{};
};

}  // namespace unisono::topology::fat_tree
