// SPDX-License-Identifier: BSD-3-Clause
#include "sim/topology_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <optional>
#include <utility>

#include "base/file/read_file.hpp"
#include "model/json_tree.hpp"
#include "topology/fat_tree/slurm_file.hpp"

namespace unisono::sim {
namespace {

using model::JsonNode;
using topology::fat_tree::Placement;
using topology::fat_tree::Tree;

constexpr std::string_view kSchema = "unisono-topology";
constexpr std::size_t kMostNameBytes = 256;  // as in host names

class Reader {
 public:
  Reader(const JsonNode& root, std::string_view file) : root_(root), file_(file) {}

  base::Result<Placement> read() {
    UNISONO_TRY(known_keys());
    UNISONO_TRY(header());
    UNISONO_ASSIGN(const int arity, member("arity", 2, Tree::kMostNodes));
    UNISONO_ASSIGN(const int levels, member("levels", 1, Tree::kMostLevels));
    const auto tree = Tree::make(arity, levels);
    if (!tree) return fail(root_, fmt::format("expected a tree: {}", tree.error().message));
    const JsonNode* leaves = find("leaves");
    const JsonNode* holes = find("holes");
    if (leaves != nullptr && holes != nullptr) {
      return fail(*holes, "expected either \"leaves\" or \"holes\"");
    }
    Placement placement{*tree, {}, {}};
    if (leaves != nullptr) {
      UNISONO_ASSIGN(placement.leaves, nodes_of(*leaves, *tree));
      if (placement.leaves.empty()) return fail(*leaves, "expected a leaf");
    } else {
      std::vector<int> missing;
      if (holes != nullptr) {
        UNISONO_ASSIGN(missing, nodes_of(*holes, *tree));
      }
      auto around = place_around(*tree, missing);
      if (!around) return fail(root_, fmt::format("expected a node: {}", around.error().message));
      placement = std::move(around).value();
    }
    UNISONO_TRY(names(placement));
    return placement;
  }

 private:
  base::Error fail(const JsonNode& at, std::string_view what) const {
    return {base::Code::argument, fmt::format("{}:{}: {}", file_, at.line, what)};
  }

  const JsonNode* find(std::string_view key) const {
    for (const auto& [name, node] : root_.members) {
      if (name == key) return &node;
    }
    return nullptr;
  }

  base::Status known_keys() const {
    if (root_.kind != JsonNode::Kind::object) return fail(root_, "expected an object");
    for (const auto& [name, node] : root_.members) {
      bool known = false;
      for (const std::string_view key :
           {"schema", "version", "arity", "levels", "leaves", "holes", "names"}) {
        known |= name == key;
      }
      if (known) continue;
      return fail(node, fmt::format("expected schema, version, arity, levels, leaves, holes or "
                                    "names, found key \"{:.40}\"",
                                    name));
    }
    return base::success();
  }

  base::Status header() const {
    const JsonNode* schema = find("schema");
    if (schema == nullptr || schema->text != kSchema) {
      return fail(schema == nullptr ? root_ : *schema,
                  fmt::format("expected \"schema\": \"{}\"", kSchema));
    }
    UNISONO_ASSIGN(const int version, member("version", 1, kTopologyFileVersion));
    (void)version;
    return base::success();
  }

  base::Result<int> whole(const JsonNode& node, std::string_view what, int low, int high) const {
    if (node.kind != JsonNode::Kind::number || !(node.number >= low && node.number <= high) ||
        node.number != std::floor(node.number)) {
      return fail(node, fmt::format("{}: expected a whole number from {} to {}", what, low, high));
    }
    return static_cast<int>(node.number);
  }

  base::Result<int> member(std::string_view key, int low, int high) const {
    const JsonNode* node = find(key);
    if (node == nullptr) return fail(root_, fmt::format("expected key \"{}\"", key));
    return whole(*node, key, low, high);
  }

  // Nodes of the tree, each at most once.
  base::Result<std::vector<int>> nodes_of(const JsonNode& list, const Tree& tree) const {
    if (list.kind != JsonNode::Kind::array) return fail(list, "expected an array of nodes");
    std::vector<bool> seen(static_cast<std::size_t>(tree.nodes()));
    std::vector<int> result;
    for (const JsonNode& item : list.items) {
      UNISONO_ASSIGN(const int node, whole(item, "node", 0, tree.nodes() - 1));
      if (seen[static_cast<std::size_t>(node)]) {
        return fail(item, fmt::format("expected each node once, found {} again", node));
      }
      seen[static_cast<std::size_t>(node)] = true;
      result.push_back(node);
    }
    return result;
  }

  base::Status names(Placement& placement) const {
    const JsonNode* list = find("names");
    if (list == nullptr) return base::success();
    if (list->kind != JsonNode::Kind::array || list->items.size() != placement.leaves.size()) {
      return fail(*list, fmt::format("expected an array of {} names", placement.leaves.size()));
    }
    for (const JsonNode& item : list->items) {
      if (item.kind != JsonNode::Kind::text || item.text.size() > kMostNameBytes) {
        return fail(item, fmt::format("expected a name of at most {} bytes", kMostNameBytes));
      }
      placement.names.push_back(item.text);
    }
    return base::success();
  }

  const JsonNode& root_;
  std::string_view file_;
};

// Host names need no escapes, but names from a JSON file may need them.
std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20) {
      result += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
      continue;
    }
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}

}  // namespace

base::Result<Placement> parse_topology(std::string_view text, std::string_view file) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || text[first] != '{') {
    return topology::fat_tree::parse_slurm(text, file);
  }
  UNISONO_ASSIGN(const JsonNode root, model::parse_json(text, file));
  return Reader(root, file).read();
}

base::Result<Placement> read_topology_file(const std::string& path) {
  UNISONO_ASSIGN(const std::string text, base::read_file(path, kMostTopologyFileBytes));
  return parse_topology(text, path);
}

std::string topology_text(const Placement& placement) {
  std::string text = fmt::format(
      "{{\"schema\": \"{}\", \"version\": {}, \"arity\": {}, \"levels\": {},\n \"leaves\": [{}]",
      kSchema, kTopologyFileVersion, placement.tree.arity(), placement.tree.levels(),
      fmt::join(placement.leaves, ", "));
  if (!placement.names.empty()) {
    std::vector<std::string> names;
    for (const std::string& name : placement.names) names.push_back(quoted(name));
    text += fmt::format(",\n \"names\": [{}]", fmt::join(names, ", "));
  }
  return text + "}\n";
}

}  // namespace unisono::sim
