// SPDX-License-Identifier: BSD-3-Clause
// The values of a JSON object by their keys, for tests that read a line of a profile or what a tool
// of the system prints. nlohmann's templates would be compiled anew in each program, which takes
// five seconds; the library's own parser is compiled already.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model/json_tree.hpp"

namespace unisono::harness {

class JsonValues {
 public:
  JsonValues() = default;
  explicit JsonValues(model::JsonNode node) : node_(std::move(node)) {}
  // A text that is no JSON fails the test.
  static JsonValues of(const std::string& text) {
    auto parsed = model::parse_json(text, "the test's text");
    if (parsed.ok()) return JsonValues(std::move(*parsed));
    ADD_FAILURE() << parsed.error().message << ": " << text;
    return {};
  }

  bool has(const std::string& key) const { return find(key) != nullptr; }
  // A key that is missing, or has a value of another kind, fails the test.
  std::int64_t integer(const std::string& key) const {
    return static_cast<std::int64_t>(get(key, model::JsonNode::Kind::number).number);
  }
  std::string text(const std::string& key) const {
    return get(key, model::JsonNode::Kind::text).text;
  }
  std::vector<std::string> texts(const std::string& key) const {
    std::vector<std::string> all;
    for (const auto& item : get(key, model::JsonNode::Kind::array).items) all.push_back(item.text);
    return all;
  }

 private:
  const model::JsonNode* find(const std::string& key) const {
    for (const auto& [name, value] : node_.members) {
      if (name == key) return &value;
    }
    return nullptr;
  }
  const model::JsonNode& get(const std::string& key, model::JsonNode::Kind kind) const {
    static const model::JsonNode kNothing;
    const model::JsonNode* const found = find(key);
    if (found != nullptr && found->kind == kind) return *found;
    ADD_FAILURE() << key << (found == nullptr ? " is missing" : " is of another kind");
    return kNothing;
  }

  model::JsonNode node_;
};

}  // namespace unisono::harness
