// SPDX-License-Identifier: BSD-3-Clause
// parse() of text.hpp: a lexer over one line at a time, and a function for each kind of line.
// Errors are values that carry the position; the first wrong line ends the parsing.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "schedule/text.hpp"

namespace unisono::schedule {
namespace {

using base::Code;
using base::Error;
using base::Result;
using base::Status;

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

// Walks one line, without its comment. A token is a word (letters, digits, _) or one other byte.
class Line {
 public:
  Line(std::string_view text, int number)
      : text_(text.substr(0, text.find('#'))), number_(number) {}

  bool at_end() { return peek().empty(); }
  // The next token, empty at the end of the line. next() steps over it.
  std::string_view peek();
  std::string_view next();
  // Steps over the next token if it is this one.
  bool take(std::string_view token);

  Status expect(std::string_view token);
  Status expect_end();
  Result<std::int64_t> number(std::string_view meaning, std::int64_t limit);
  // An error at the token peek() shows.
  Error wrong(std::string_view what);
  Error expected(std::string_view what);

 private:
  std::string_view text_;
  std::size_t at_ = 0;
  int number_;
};

class Parser {
 public:
  Status parse_line(Line& line);
  std::vector<Schedule> take() && { return std::move(set_); }

 private:
  // The parts of a schedule's text, in the order in which their lines have to come.
  enum class Part : std::uint8_t { nothing, head, scratch, slots, ops };

  Status parse_head(Line& line);
  Status parse_scratch(Line& line);
  Status parse_slot(Line& line);
  Status parse_op(Line& line);
  Status parse_body(Line& line, Op& op);
  Status parse_targets(Line& line, Op& op);
  Status parse_operands(Line& line, Op& op);
  Status parse_after(Line& line, Op& op);
  Status enter(Line& line, Part part);
  Status expect_id(Line& line, std::string_view noun, std::size_t id, std::int64_t limit);

  Schedule& current() { return set_.back(); }

  std::vector<Schedule> set_;
  Part part_ = Part::nothing;
};

Result<std::int32_t> parse_small(Line& line, std::string_view meaning, std::int64_t limit);
Result<Range> parse_range(Line& line);
Result<Blocks> parse_blocks(Line& line, const Shape& shape);
Result<std::vector<bool>> parse_receivers(Line& line, int ranks);
Result<topology::HostMap> parse_hosts(Line& line, int ranks);

}  // namespace

Result<std::vector<Schedule>> parse(std::string_view text) {
  if (text.size() > kMaxTextBytes) {
    return Error{Code::argument, fmt::format("a text of {} bytes: schedules are read up to {}",
                                             text.size(), kMaxTextBytes)};
  }
  Parser parser;
  int number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    Line line(text.substr(0, end), ++number);
    if (!line.at_end()) UNISONO_TRY(parser.parse_line(line));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return std::move(parser).take();
}

namespace {

std::string_view Line::peek() {
  while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
  std::size_t end = at_;
  while (end < text_.size() && is_word(text_[end])) ++end;
  if (end == at_ && end < text_.size()) ++end;
  return text_.substr(at_, end - at_);
}

std::string_view Line::next() {
  const std::string_view token = peek();
  at_ += token.size();
  return token;
}

bool Line::take(std::string_view token) {
  if (peek() != token) return false;
  next();
  return true;
}

Status Line::expect(std::string_view token) {
  if (!take(token)) return expected(fmt::format("'{}'", token));
  return base::success();
}

Status Line::expect_end() {
  if (!at_end()) return expected("the end of the line");
  return base::success();
}

Result<std::int64_t> Line::number(std::string_view meaning, std::int64_t limit) {
  const std::string_view token = peek();
  if (token.empty() || !std::ranges::all_of(token, is_digit)) {
    return expected(fmt::format("a number ({})", meaning));
  }
  if (token.size() > 1 && token.front() == '0') return wrong("a number begins with 0");
  std::int64_t value = 0;
  const auto parsed = std::from_chars(token.data(), token.data() + token.size(), value);
  if (parsed.ec != std::errc() || value > limit) {
    return wrong(fmt::format("{} is at most {}", meaning, limit));
  }
  next();
  return value;
}

Error Line::wrong(std::string_view what) {
  peek();
  return {Code::argument, fmt::format("line {}, column {}: {}", number_, at_ + 1, what)};
}

Error Line::expected(std::string_view what) {
  constexpr std::size_t kShown = 24;
  const std::string_view token = peek();
  const auto byte = token.empty() ? '\0' : token.front();
  if (token.empty()) return wrong(fmt::format("expected {}, found the end of the line", what));
  if (byte < ' ' || byte > '~') {
    return wrong(fmt::format("expected {}, found byte 0x{:02x}", what,
                             static_cast<unsigned>(static_cast<unsigned char>(byte))));
  }
  return wrong(fmt::format("expected {}, found '{}{}'", what, token.substr(0, kShown),
                           token.size() > kShown ? "..." : ""));
}

Status Parser::parse_line(Line& line) {
  if (line.take("schedule")) {
    UNISONO_TRY(parse_head(line));
  } else if (part_ == Part::nothing) {
    return line.expected("'schedule'");
  } else if (line.peek() == "scratch") {
    UNISONO_TRY(parse_scratch(line));
  } else if (line.peek() == "slot") {
    UNISONO_TRY(parse_slot(line));
  } else if (line.peek() == "op") {
    UNISONO_TRY(parse_op(line));
  } else {
    return line.expected("'schedule', 'scratch', 'slot' or 'op'");
  }
  return line.expect_end();
}

Status Parser::parse_head(Line& line) {
  Schedule schedule;
  Shape& shape = schedule.shape;
  const auto collective = collective_from_name(line.peek());
  if (!collective) return line.expected("the name of a collective");
  line.next();
  shape.collective = *collective;
  UNISONO_TRY(line.expect("ranks"));
  UNISONO_ASSIGN(shape.ranks, parse_small(line, "the number of ranks", kMaxTextRanks));
  UNISONO_TRY(line.expect("rank"));
  UNISONO_ASSIGN(schedule.rank, parse_small(line, "a rank", kMaxTextRanks));
  if (has_blocks(shape.collective) && line.take("blocks")) {
    UNISONO_ASSIGN(shape.blocks, parse_blocks(line, shape));
  } else {
    UNISONO_TRY(line.expect("count"));
    UNISONO_ASSIGN(shape.count, line.number("a count", kMaxTextCount));
  }
  if (is_rooted(shape.collective)) {
    UNISONO_TRY(line.expect("root"));
    UNISONO_ASSIGN(shape.root, parse_small(line, "a root", kMaxTextRanks));
  }
  shape.ordered = line.take("ordered");
  shape.exact = line.take("exact");
  shape.by_one = line.take("by_one");
  if (line.take("hosts")) {
    UNISONO_ASSIGN(shape.hosts, parse_hosts(line, shape.ranks));
  }
  set_.push_back(std::move(schedule));
  part_ = Part::head;
  return base::success();
}

Status Parser::parse_scratch(Line& line) {
  if (part_ >= Part::scratch) return line.wrong("'scratch' stands once, right below 'schedule'");
  UNISONO_TRY(enter(line, Part::scratch));
  UNISONO_ASSIGN(current().scratch_count, line.number("the scratch", kMaxTextElement));
  return base::success();
}

Status Parser::parse_slot(Line& line) {
  UNISONO_TRY(enter(line, Part::slots));
  UNISONO_TRY(expect_id(line, "slot", current().slots.size(), kMaxTextSlots));
  Slot slot;
  UNISONO_TRY(line.expect("from"));
  UNISONO_ASSIGN(slot.source, parse_small(line, "a rank", kMaxTextRanks));
  UNISONO_TRY(line.expect("count"));
  UNISONO_ASSIGN(slot.count, line.number("the size of a slot", kMaxTextElement));
  current().slots.push_back(slot);
  return base::success();
}

Status Parser::parse_op(Line& line) {
  UNISONO_TRY(enter(line, Part::ops));
  UNISONO_TRY(expect_id(line, "op", current().ops.size(), kMaxTextOps));
  Op op;
  op.first_target = static_cast<std::int32_t>(current().targets.size());
  op.first_after = static_cast<std::int32_t>(current().after.size());
  op.first_operand = static_cast<std::int32_t>(current().operands.size());
  UNISONO_TRY(parse_body(line, op));
  UNISONO_TRY(parse_after(line, op));
  current().ops.push_back(op);
  return base::success();
}

Status Parser::parse_body(Line& line, Op& op) {
  if (line.take("send")) {
    op.kind = OpKind::send;
    UNISONO_ASSIGN(op.left, parse_range(line));
    if (line.peek() != "to") return line.expected("'to'");
    return parse_targets(line, op);
  }
  if (line.take("multicast")) {
    op.kind = OpKind::multicast;
    UNISONO_ASSIGN(op.left, parse_range(line));
    return parse_targets(line, op);
  }
  if (line.take("wait")) {
    op.kind = OpKind::wait;
    UNISONO_TRY(line.expect("slot"));
    UNISONO_ASSIGN(op.slot, parse_small(line, "a slot", kMaxTextSlots));
    return base::success();
  }
  if (line.take("sum")) {
    op.kind = OpKind::sum;
    UNISONO_ASSIGN(op.target, parse_range(line));
    return parse_operands(line, op);
  }
  const bool reduces = line.peek() == "reduce";
  if (!reduces && line.peek() != "copy") {
    return line.expected("'send', 'multicast', 'wait', 'reduce', 'copy' or 'sum'");
  }
  line.next();
  op.kind = reduces ? OpKind::reduce : OpKind::copy;
  UNISONO_ASSIGN(op.target, parse_range(line));
  UNISONO_TRY(line.expect("="));
  UNISONO_ASSIGN(op.left, parse_range(line));
  if (!reduces) return base::success();
  UNISONO_TRY(line.expect("."));
  UNISONO_ASSIGN(op.right, parse_range(line));
  return base::success();
}

// "to 1 slot 0, 2 slot 0": one for a send, any number for a multicast.
Status Parser::parse_targets(Line& line, Op& op) {
  if (!line.take("to")) return base::success();
  do {
    Target target;
    UNISONO_ASSIGN(target.peer, parse_small(line, "a rank", kMaxTextRanks));
    UNISONO_TRY(line.expect("slot"));
    UNISONO_ASSIGN(target.slot, parse_small(line, "a slot", kMaxTextSlots));
    current().targets.push_back(target);
    ++op.target_count;
  } while (op.kind == OpKind::multicast && line.take(","));
  return base::success();
}

// "= input[0:8] . slot 0[0:8]"
Status Parser::parse_operands(Line& line, Op& op) {
  UNISONO_TRY(line.expect("="));
  do {
    UNISONO_ASSIGN(const Range operand, parse_range(line));
    current().operands.push_back(operand);
    ++op.operand_count;
  } while (line.take("."));
  return base::success();
}

Status Parser::parse_after(Line& line, Op& op) {
  if (!line.take("after")) return base::success();
  do {
    UNISONO_ASSIGN(const OpId before, parse_small(line, "an op", kMaxTextOps));
    current().after.push_back(before);
    ++op.after_count;
  } while (!line.at_end());
  return base::success();
}

// The first word of a line opens its part; a finished part cannot be reopened.
Status Parser::enter(Line& line, Part part) {
  if (part < part_) {
    return line.wrong(fmt::format("'{}' stands above the ops", line.peek()));
  }
  line.next();
  part_ = part;
  return base::success();
}

// The lines are numbered so that readers need not count; a wrong number is an error.
Status Parser::expect_id(Line& line, std::string_view noun, std::size_t id, std::int64_t limit) {
  if (std::cmp_greater_equal(id, limit)) {
    return line.wrong(fmt::format("a schedule has at most {} {}s", limit, noun));
  }
  return line.expect(fmt::format("{}", id));
}

Result<std::int32_t> parse_small(Line& line, std::string_view meaning, std::int64_t limit) {
  UNISONO_ASSIGN(const std::int64_t value, line.number(meaning, limit));
  return static_cast<std::int32_t>(value);
}

// "blocks 3 0 2", "blocks 3 0 2 receivers 0 2", "blocks 1 2, 3 4". The counts are one number for
// each rank, or a list of them for each sender. The memory used is proportional to the length of
// the text.
Result<Blocks> parse_blocks(Line& line, const Shape& shape) {
  const bool pairs = has_pairs(shape.collective);
  std::vector<std::int64_t> counts;
  for (int from = 0; from < (pairs ? shape.ranks : 1); ++from) {
    if (from > 0) UNISONO_TRY(line.expect(","));
    for (int to = 0; to < shape.ranks; ++to) {
      UNISONO_ASSIGN(const std::int64_t count, line.number("the size of a block", kMaxTextCount));
      counts.push_back(count);
    }
  }
  if (pairs) return Blocks::of_pairs(shape.ranks, counts);
  std::vector<bool> receivers;
  if (shape.collective == Collective::many_to_many && line.take("receivers")) {
    UNISONO_ASSIGN(receivers, parse_receivers(line, shape.ranks));
  }
  return Blocks::of_ranks(counts, std::move(receivers));
}

// Ranks in ascending order; the list may be empty.
Result<std::vector<bool>> parse_receivers(Line& line, int ranks) {
  std::vector<bool> receivers(static_cast<std::size_t>(ranks));
  int least = 0;
  while (!line.peek().empty() && is_digit(line.peek().front())) {
    Line before = line;
    UNISONO_ASSIGN(const std::int32_t rank, parse_small(line, "a receiver", kMaxTextRanks));
    if (rank < least || rank >= ranks) {
      return before.wrong("receivers are ranks in ascending order");
    }
    receivers[static_cast<std::size_t>(rank)] = true;
    least = rank + 1;
  }
  return receivers;
}

// "hosts 0 0 1": the host of each rank, two or more hosts numbered by their first ranks.
Result<topology::HostMap> parse_hosts(Line& line, int ranks) {
  std::vector<int> hosts;
  int next = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    Line before = line;
    UNISONO_ASSIGN(const std::int32_t host, parse_small(line, "a host", kMaxTextRanks));
    if (host > next) return before.wrong(fmt::format("the next new host is {}", next));
    if (host == next) ++next;
    hosts.push_back(host);
  }
  if (next < 2) return line.wrong("ranks of one host: leave 'hosts' out");
  return topology::HostMap::of_labels(hosts);
}

// "input[0:8]", "slot 2[0:8]": the elements from the first number up to, but not including, the
// second.
Result<Range> parse_range(Line& line) {
  Range range;
  if (line.take("input")) {
    range.memory = Memory::input;
  } else if (line.take("output")) {
    range.memory = Memory::output;
  } else if (line.take("scratch")) {
    range.memory = Memory::scratch;
  } else if (line.take("slot")) {
    range.memory = Memory::slot;
    UNISONO_ASSIGN(range.slot, parse_small(line, "a slot", kMaxTextSlots));
  } else {
    return line.expected("'input', 'output', 'scratch' or 'slot'");
  }
  UNISONO_TRY(line.expect("["));
  UNISONO_ASSIGN(range.offset, line.number("an element", kMaxTextElement));
  UNISONO_TRY(line.expect(":"));
  UNISONO_ASSIGN(const std::int64_t end, line.number("an element", kMaxTextElement));
  if (end < range.offset) {
    return line.wrong(fmt::format("the range ends at {}, before it begins", end));
  }
  range.count = end - range.offset;
  UNISONO_TRY(line.expect("]"));
  return range;
}

}  // namespace
}  // namespace unisono::schedule
