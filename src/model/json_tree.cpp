// SPDX-License-Identifier: BSD-3-Clause
#include "model/json_tree.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <iterator>
#include <nlohmann/json.hpp>

namespace unisono::model {
namespace {

struct Position {
  int line = 1;
  char last = 0;  // character that was read
};

// Counts lines while the parser reads: its events do not say where they are.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, Position* position) : at_(at), position_(position) {}

  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    position_->last = *at_;
    if (*at_ == '\n') ++position_->line;
    ++at_;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }
  bool operator!=(const CountingIterator& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  Position* position_;
};

// nlohmann's SAX interface has these names.
class TreeBuilder {
 public:
  using Kind = JsonNode::Kind;

  TreeBuilder(const Position& position, std::string_view file) : position_(position), file_(file) {}

  bool null() { return add({.kind = Kind::null, .line = position_.line}); }
  bool boolean(bool) { return add({.kind = Kind::boolean, .line = position_.line}); }
  bool number_integer(std::int64_t value) { return add_number(static_cast<double>(value)); }
  bool number_unsigned(std::uint64_t value) { return add_number(static_cast<double>(value)); }
  bool number_float(double value, const std::string&) { return add_number(value); }
  bool string(std::string& value) {
    return add({.kind = Kind::text, .line = position_.line, .text = std::move(value)});
  }
  bool binary(nlohmann::json::binary_t&) { return fail("expected text, found binary data"); }
  bool start_object(std::size_t) { return open(Kind::object); }
  bool start_array(std::size_t) { return open(Kind::array); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(std::string& name) {
    for (const auto& member : open_.back().members) {
      if (member.first == name) return fail(fmt::format("key \"{:.40}\" is given twice", name));
    }
    open_.back().members.emplace_back(std::move(name), JsonNode{});
    return true;
  }
  bool parse_error(std::size_t, const std::string& token, const nlohmann::json::exception& error) {
    // Its own text repeats the position and its name of the error before the last two colons.
    std::string_view what = error.what();
    if (const auto syntax = what.find("syntax error"); syntax != what.npos) {
      what.remove_prefix(syntax);
    }
    (void)token;
    return fail(fmt::format("expected JSON: {:.160}", what));
  }

  base::Result<JsonNode> take() && {
    if (!error_.empty()) return base::Error{base::Code::argument, error_};
    return std::move(root_);
  }

 private:
  bool add_number(double value) {
    // The parser has read one character beyond a number.
    const int line = position_.line - (position_.last == '\n' ? 1 : 0);
    return add({.kind = Kind::number, .line = line, .number = value});
  }
  bool open(Kind kind) {
    if (open_.size() >= static_cast<std::size_t>(JsonNode::kMostDepth)) {
      return fail(fmt::format("expected at most {} levels of nesting", JsonNode::kMostDepth));
    }
    open_.push_back({.kind = kind, .line = position_.line});
    return true;
  }
  bool close() {
    JsonNode done = std::move(open_.back());
    open_.pop_back();
    return add(std::move(done));
  }
  bool add(JsonNode node) {
    if (open_.empty()) {
      root_ = std::move(node);
    } else if (open_.back().kind == Kind::array) {
      open_.back().items.push_back(std::move(node));
    } else {
      open_.back().members.back().second = std::move(node);
    }
    return true;
  }
  bool fail(const std::string& what) {
    error_ = fmt::format("{}:{}: {}", file_, position_.line, what);
    return false;
  }

  const Position& position_;
  std::string_view file_;
  std::string error_;
  std::vector<JsonNode> open_;
  JsonNode root_;
};

}  // namespace

std::string_view kind_name(JsonNode::Kind kind) {
  switch (kind) {
    case JsonNode::Kind::object:
      return "an object";
    case JsonNode::Kind::array:
      return "an array";
    case JsonNode::Kind::text:
      return "a string";
    case JsonNode::Kind::number:
      return "a number";
    case JsonNode::Kind::boolean:
      return "true or false";
    case JsonNode::Kind::null:
      return "null";
  }
  return "";
}

base::Result<JsonNode> parse_json(std::string_view text, std::string_view file) {
  Position position;
  TreeBuilder builder(position, file);
  nlohmann::json::sax_parse(CountingIterator(text.data(), &position),
                            CountingIterator(text.data() + text.size(), &position), &builder);
  return std::move(builder).take();
}

}  // namespace unisono::model
