// SPDX-License-Identifier: BSD-3-Clause
#include "topology/fat_tree/link_loads.hpp"

#include <algorithm>
#include <array>

namespace unisono::topology::fat_tree {
namespace {

constexpr std::array<std::string_view, 3> kAscentNames = {"source", "target", "adaptive"};

}  // namespace

std::string_view ascent_name(Ascent ascent) {
  return kAscentNames[static_cast<std::size_t>(ascent)];
}

std::optional<Ascent> ascent_from_name(std::string_view name) {
  for (std::size_t i = 0; i < kAscentNames.size(); ++i) {
    if (kAscentNames[i] == name) return static_cast<Ascent>(i);
  }
  return std::nullopt;
}

LinkLoads::LinkLoads(const Tree& tree)
    : tree_(tree), loads_(static_cast<std::size_t>(tree.directed_links())) {}

void LinkLoads::add(Flow flow, double weight, Ascent ascent, base::Prng& random) {
  const auto least_loaded = [&](Switch at) {
    int best = 0, equals = 0;
    double least = 0;
    for (int port = 0; port < tree_.arity(); ++port) {
      const double load = of(tree_.up_link(at.level + 1, at.word * tree_.arity() + port));
      if (equals > 0 && load > least) continue;
      equals = equals > 0 && load == least ? equals + 1 : 1;
      // The k-th of k equals replaces its forerunner with probability 1/k, so all are equally
      // likely.
      if (equals == 1 || random.below(static_cast<std::uint64_t>(equals)) == 0) best = port;
      least = load;
    }
    return best;
  };
  const auto choose = [&](Switch at) {
    switch (ascent) {
      case Ascent::by_source:
        return tree_.digit(flow.source, at.level);
      case Ascent::by_target:
        return tree_.digit(flow.target, at.level);
      case Ascent::least_loaded:
        return least_loaded(at);
    }
    return 0;
  };
  tree_.route(flow.source, flow.target, choose,
              [&](int link) { loads_[static_cast<std::size_t>(link)] += weight; });
}

void LinkLoads::clear() { std::ranges::fill(loads_, 0.0); }

double LinkLoads::greatest(bool up, int level) const {
  const int first = up ? tree_.up_link(level, 0) : tree_.down_link(level, 0);
  const auto links =
      all().subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(tree_.nodes()));
  return *std::ranges::max_element(links);
}

double LinkLoads::greatest() const { return *std::ranges::max_element(loads_); }

std::optional<Congestion> find_congestion(const Tree& tree, std::span<const Flow> flows) {
  std::vector<const Flow*> first_into;
  for (int height = 0; height < tree.levels(); ++height) {
    first_into.assign(static_cast<std::size_t>(tree.nodes() / tree.power(height)), nullptr);
    for (const Flow& flow : flows) {
      const int from = tree.subtree(flow.source, height);
      const int into = tree.subtree(flow.target, height);
      if (from == into) continue;
      const Flow*& first = first_into[static_cast<std::size_t>(into)];
      if (first == nullptr) {
        first = &flow;
      } else if (tree.subtree(first->source, height) != from) {
        return Congestion{height, into, *first, flow};
      }
    }
  }
  return std::nullopt;
}

}  // namespace unisono::topology::fat_tree
