// SPDX-License-Identifier: BSD-3-Clause
#include "topology/heat_map.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "picture/svg_text.hpp"

namespace unisono::tools {
namespace {

using topology::fat_tree::Placement;
using topology::fat_tree::Tree;

constexpr double kWidth = 960, kLeft = 130, kStrip = 22, kTop = 56;

// From pale yellow (one message) to dark red; grey for links without messages.
std::string colour(int load, int greatest) {
  if (load == 0) return "#eeeeee";
  const double share = greatest <= 1 ? 0.0 : static_cast<double>(load - 1) / (greatest - 1);
  const auto mix = [&](double from, double to) {
    return static_cast<int>(from + (to - from) * share + 0.5);
  };
  return fmt::format("#{:02x}{:02x}{:02x}", mix(254, 128), mix(217, 0), mix(118, 38));
}

class Picture {
 public:
  Picture(const Placement& placement, std::span<const int> loads)
      : placement_(placement),
        tree_(placement.tree),
        loads_(loads),
        greatest_(*std::ranges::max_element(loads)),
        cell_((kWidth - kLeft - 20) / tree_.nodes()) {}

  std::string draw(std::string_view title) {
    const double height = kTop + kStrip * (2 * tree_.levels() + 3);
    add(R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {} {}")", kWidth, height);
    add(R"(  font-family="sans-serif" font-size="12">)");
    add(R"(<rect width="100%" height="100%" fill="white"/>)");
    add(R"(<text x="10" y="22" font-size="15">{}</text>)", svg_text(title));
    for (int level = tree_.levels() - 1; level >= 0; --level) {
      strip(true, level);
      strip(false, level);
    }
    nodes();
    legend();
    add("</svg>");
    return std::move(text_);
  }

 private:
  template <typename... Values>
  void add(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Values>(values)...);
    text_ += '\n';
  }
  double row() const { return kTop + kStrip * row_; }

  void cell(int place, std::string_view fill, std::string_view title) {
    add(R"(<rect x="{:.2f}" y="{}" width="{:.2f}" height="{}" fill="{}"><title>{}</title></rect>)",
        kLeft + place * cell_, row(), cell_, kStrip - 4, fill, title);
  }

  void strip(bool up, int level) {
    const std::string name = level == 0 ? "nodes" : fmt::format("level {}", level);
    add(R"(<text x="10" y="{}">{}, {}</text>)", row() + 14, name, up ? "up" : "down");
    for (int place = 0; place < tree_.nodes(); ++place) {
      const int link = up ? tree_.up_link(level, place) : tree_.down_link(level, place);
      const int load = loads_[static_cast<std::size_t>(link)];
      cell(place, colour(load, greatest_),
           fmt::format("{} {} link {}: {}", name, up ? "up" : "down", place, load));
    }
    ++row_;
  }

  void nodes() {
    std::vector<int> rank_of(static_cast<std::size_t>(tree_.nodes()), -1);
    for (int rank = 0; rank < placement_.ranks(); ++rank) {
      rank_of[static_cast<std::size_t>(placement_.leaves[static_cast<std::size_t>(rank)])] = rank;
    }
    add(R"(<text x="10" y="{}">ranks, holes black</text>)", row() + 14);
    for (int node = 0; node < tree_.nodes(); ++node) {
      const int rank = rank_of[static_cast<std::size_t>(node)];
      const std::string what = rank < 0 ? "hole" : fmt::format("rank {}", rank);
      cell(node, rank < 0 ? "#000000" : "#9ecae1", fmt::format("node {}: {}", node, what));
    }
    ++row_;
  }

  void legend() {
    constexpr int kMostEntries = 8;
    add(R"(<text x="10" y="{}">messages</text>)", row() + 18);
    const int step = std::max(1, (greatest_ + kMostEntries - 1) / kMostEntries);
    double x = kLeft;
    for (int load = 0; load <= greatest_; load += load == 0 ? 1 : step) {
      add(R"(<rect x="{}" y="{}" width="18" height="14" fill="{}"/><text x="{}" y="{}">{}</text>)",
          x, row() + 6, colour(load, greatest_), x + 22, row() + 18, load);
      x += 60;
    }
  }

  const Placement& placement_;
  const Tree& tree_;
  std::span<const int> loads_;
  int greatest_;
  double cell_;
  int row_ = 0;
  std::string text_;
};

}  // namespace

std::string heat_map(const Placement& placement, std::span<const int> loads,
                     std::string_view title) {
  return Picture(placement, loads).draw(title);
}

}  // namespace unisono::tools
