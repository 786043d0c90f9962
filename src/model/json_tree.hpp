// SPDX-License-Identifier: BSD-3-Clause
// A JSON text as a tree whose nodes know their line, so that errors can name it. Texts that nest
// deeper than machine files do, or give a key twice, are refused. Control path; any thread.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace unisono::model {

struct JsonNode {
  enum class Kind : unsigned char { object, array, text, number, boolean, null };
  static constexpr int kMostDepth = 16;

  Kind kind = Kind::null;
  int line = 0;  // of its end; of an object or array, of its beginning
  double number = 0;
  std::string text = {};
  std::vector<std::pair<std::string, JsonNode>> members = {};
  std::vector<JsonNode> items = {};
};

std::string_view kind_name(JsonNode::Kind kind);

base::Result<JsonNode> parse_json(std::string_view text, std::string_view file);

}  // namespace unisono::model
