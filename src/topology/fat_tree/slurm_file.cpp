// SPDX-License-Identifier: BSD-3-Clause
#include "topology/fat_tree/slurm_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "base/text.hpp"

namespace unisono::topology::fat_tree {
namespace {

struct SwitchLine {
  int line = 0;
  std::string name;
  std::vector<std::string> switches, nodes;  // one of the two is empty
};

// Says where a text is wrong; `line` counts from 1.
class Position {
 public:
  explicit Position(std::string_view file) : file_(file) {}
  base::Error error(int line, std::string_view what) const {
    return {base::Code::argument, fmt::format("{}:{}: {}", file_, line, what)};
  }

 private:
  std::string_view file_;
};

bool equal_but_for_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) ==
           std::tolower(static_cast<unsigned char>(y));
  });
}

// The names of a Slurm list such as n[0-3,08],login: commas outside brackets separate its items.
class HostList {
 public:
  HostList(const Position& position, int line) : position_(position), line_(line) {}

  base::Result<std::vector<std::string>> expand(std::string_view list) {
    while (!list.empty()) {
      std::size_t end = 0;
      for (bool inside = false; end < list.size() && (inside || list[end] != ','); ++end) {
        if (list[end] == '[') inside = true;
        if (list[end] == ']') inside = false;
      }
      UNISONO_TRY(item(list.substr(0, end)));
      if (end + 1 == list.size()) return fail("expected a name after the last comma");
      list.remove_prefix(std::min(end + 1, list.size()));
    }
    if (names_.empty()) return fail("expected a list of names, as in n[0-3]");
    return std::move(names_);
  }

 private:
  base::Error fail(std::string_view what) const { return position_.error(line_, what); }

  base::Status item(std::string_view text) {
    const std::size_t open = text.find('[');
    if (open == std::string_view::npos) {
      if (text.empty() || text.find(']') != std::string_view::npos) {
        return fail(fmt::format("expected a name, found '{:.40}'", text));
      }
      return add(std::string(text));
    }
    const std::size_t close = text.find(']', open);
    if (close == std::string_view::npos || close + 1 == open) return fail("expected ] after [");
    const std::string_view suffix = text.substr(close + 1);
    if (suffix.find_first_of("[]") != std::string_view::npos) {
      return fail(fmt::format("expected one pair of brackets in '{:.40}'", text));
    }
    std::string_view ranges = text.substr(open + 1, close - open - 1);
    do {
      const std::size_t end = std::min(ranges.find(','), ranges.size());
      UNISONO_TRY(range(text.substr(0, open), ranges.substr(0, end), suffix));
      ranges.remove_prefix(std::min(end + 1, ranges.size()));
    } while (!ranges.empty());
    return base::success();
  }

  // "08-11" keeps its width.
  base::Status range(std::string_view prefix, std::string_view text, std::string_view suffix) {
    const std::size_t dash = std::min(text.find('-'), text.size());
    const std::string_view low_text = text.substr(0, dash);
    const std::string_view high_text = dash == text.size() ? low_text : text.substr(dash + 1);
    const auto low = number(low_text);
    const auto high = number(high_text);
    if (!low || !high || *low > *high) {
      return fail(fmt::format("expected a range as in 0-3, found '{:.40}'", text));
    }
    for (std::int64_t i = *low; i <= *high; ++i) {
      UNISONO_TRY(add(fmt::format("{}{:0{}}{}", prefix, i, low_text.size(), suffix)));
    }
    return base::success();
  }

  static std::optional<std::int64_t> number(std::string_view text) {
    constexpr std::size_t kMostDigits = 9;
    const bool digits = !text.empty() && text.size() <= kMostDigits &&
                        std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
    return digits ? base::parse_integer(text) : std::nullopt;
  }

  base::Status add(std::string name) {
    constexpr std::size_t kMostNameBytes = 256;  // the limit of host names
    if (name.size() > kMostNameBytes) {
      return fail(fmt::format("expected names of at most {} bytes", kMostNameBytes));
    }
    if (!std::ranges::all_of(name, [](char c) { return c > ' ' && c < 127; })) {
      return fail("expected names of printable ASCII characters");
    }
    if (names_.size() == static_cast<std::size_t>(Tree::kMostNodes)) {
      return fail(fmt::format("expected at most {} names", Tree::kMostNodes));
    }
    names_.push_back(std::move(name));
    return base::success();
  }

  const Position& position_;
  int line_;
  std::vector<std::string> names_;
};

base::Result<SwitchLine> parse_line(const Position& position, int line, std::string_view text) {
  SwitchLine result{line, {}, {}, {}};
  constexpr std::string_view kBlanks = " \t\r";
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(kBlanks), text.size());
    const std::string_view pair = text.substr(0, end);
    text.remove_prefix(std::min(text.find_first_not_of(kBlanks, end), text.size()));
    const std::size_t equals = std::min(pair.find('='), pair.size());
    const std::string_view key = pair.substr(0, equals);
    const std::string_view value = pair.substr(std::min(equals + 1, pair.size()));
    if (equal_but_for_case(key, "SwitchName")) {
      UNISONO_ASSIGN(const auto names, HostList(position, line).expand(value));
      if (names.size() != 1 || !result.name.empty()) {
        return position.error(line, "expected one SwitchName");
      }
      result.name = names.front();
    } else if (equal_but_for_case(key, "Switches") && result.switches.empty()) {
      UNISONO_ASSIGN(result.switches, HostList(position, line).expand(value));
    } else if (equal_but_for_case(key, "Nodes") && result.nodes.empty()) {
      UNISONO_ASSIGN(result.nodes, HostList(position, line).expand(value));
    } else if (!equal_but_for_case(key, "LinkSpeed")) {  // Slurm does not use it, either
      return position.error(
          line,
          fmt::format("expected SwitchName=, Switches=, Nodes= or LinkSpeed= once each, found "
                      "'{:.40}'",
                      pair));
    }
  }
  if (result.name.empty()) return position.error(line, "expected SwitchName=");
  if (result.switches.empty() == result.nodes.empty()) {
    return position.error(line, "expected either Switches= or Nodes=");
  }
  return result;
}

class SlurmTree {
 public:
  SlurmTree(const Position& position, std::vector<SwitchLine> lines)
      : position_(position), lines_(std::move(lines)) {}

  base::Result<Placement> place() && {
    UNISONO_TRY(connect());
    UNISONO_ASSIGN(const std::size_t root, find_root());
    UNISONO_ASSIGN(const int levels, height(root, 0));
    std::size_t arity = 2;
    for (const SwitchLine& each : lines_) {
      arity = std::max({arity, each.switches.size(), each.nodes.size()});
    }
    const auto tree = Tree::make(static_cast<int>(arity), levels);
    if (!tree) {
      return position_.error(lines_[root].line,
                             fmt::format("expected a tree of at most {} places, found one of {} "
                                         "levels and up to {} parts a switch",
                                         Tree::kMostNodes, levels, arity));
    }
    Placement placement{*tree, {}, {}};
    put(root, 0, levels, placement);
    return placement;
  }

 private:
  base::Status connect() {
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      if (!by_name_.emplace(lines_[i].name, i).second) {
        return position_.error(lines_[i].line,
                               fmt::format("expected each switch once, found '{:.40}' "
                                           "again",
                                           lines_[i].name));
      }
    }
    has_parent_.resize(lines_.size());
    std::unordered_set<std::string_view> nodes;
    for (const SwitchLine& each : lines_) {
      for (const std::string& name : each.nodes) {
        if (nodes.insert(name).second) continue;
        return position_.error(each.line,
                               fmt::format("expected each node once, found '{:.40}' again", name));
      }
      for (const std::string& name : each.switches) {
        const auto found = by_name_.find(name);
        if (found == by_name_.end()) {
          return position_.error(each.line,
                                 fmt::format("expected a line for switch '{:.40}'", name));
        }
        if (has_parent_[found->second]) {
          return position_.error(
              each.line, fmt::format("expected one switch above each, found '{:.40}' again", name));
        }
        has_parent_[found->second] = true;
      }
    }
    return base::success();
  }

  base::Result<std::size_t> find_root() const {
    std::optional<std::size_t> root;
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      if (has_parent_[i]) continue;
      if (root) {
        return position_.error(lines_[i].line,
                               fmt::format("expected one switch at the top, found '{:.40}' beside "
                                           "'{:.40}'",
                                           lines_[i].name, lines_[*root].name));
      }
      root = i;
    }
    if (!root) return position_.error(1, "expected a switch at the top");
    return *root;
  }

  // The switches below the root form a tree, because each has one parent at most.
  base::Result<int> height(std::size_t at, int depth) {
    if (depth == Tree::kMostLevels) {
      return position_.error(lines_[at].line,
                             fmt::format("expected at most {} levels", Tree::kMostLevels));
    }
    int highest = 0;
    ++visited_;
    for (const std::string& name : lines_[at].switches) {
      UNISONO_ASSIGN(const int below, height(by_name_.at(name), depth + 1));
      highest = std::max(highest, below);
    }
    if (depth == 0 && visited_ != lines_.size()) {
      return position_.error(lines_[at].line,
                             "expected all switches below it, found a ring of some");
    }
    return highest + 1;
  }

  // A branch of fewer levels stands in the first places of its subtree.
  void put(std::size_t at, int first, int height_of_place, Placement& placement) const {
    const SwitchLine& line = lines_[at];
    for (std::size_t i = 0; i < line.nodes.size(); ++i) {
      placement.leaves.push_back(first + static_cast<int>(i));
      placement.names.push_back(line.nodes[i]);
    }
    const int part = placement.tree.power(height_of_place - 1);
    for (std::size_t i = 0; i < line.switches.size(); ++i) {
      put(by_name_.at(line.switches[i]), first + static_cast<int>(i) * part, height_of_place - 1,
          placement);
    }
  }

  const Position& position_;
  std::vector<SwitchLine> lines_;
  std::unordered_map<std::string, std::size_t> by_name_;
  std::vector<bool> has_parent_;
  std::size_t visited_ = 0;
};

}  // namespace

base::Result<Placement> parse_slurm(std::string_view text, std::string_view file) {
  const Position position(file);
  std::vector<SwitchLine> lines;
  for (int line = 1; !text.empty(); ++line) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view content = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    content = content.substr(0, content.find('#'));
    const std::size_t first = content.find_first_not_of(" \t\r");
    if (first == std::string_view::npos) continue;
    UNISONO_ASSIGN(SwitchLine parsed, parse_line(position, line, content.substr(first)));
    lines.push_back(std::move(parsed));
  }
  if (lines.empty()) return position.error(1, "expected a line SwitchName=... Nodes=...");
  return SlurmTree(position, std::move(lines)).place();
}

}  // namespace unisono::topology::fat_tree
