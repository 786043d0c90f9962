// SPDX-License-Identifier: BSD-3-Clause
// The parser of override.hpp's grammar. It reads user input, so each kind of error has its position
// and message; nothing is skipped.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/text.hpp"
#include "select/override.hpp"

namespace unisono::select {
namespace {

using algorithm::Algorithm;
using algorithm::ParameterSpec;
using base::Error;
using base::Result;
using base::Status;
using schedule::Collective;

// A program that writes rules for every size would slow down every new call's choice.
constexpr std::size_t kMostRules = 256;

// A word and its position in the text.
struct Word {
  std::string_view text;
  std::size_t at = 0;
};

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<Overrides> parse() {
    do {
      UNISONO_TRY(entry());
    } while (take('|'));
    if (!at_end()) return unexpected("'@', ';', '|' or the end");
    UNISONO_TRY(something_left());
    return std::move(overrides_);
  }

 private:
  bool at_end() {
    skip_blanks();
    return position_ == text_.size();
  }
  void skip_blanks() {
    position_ = std::min(text_.find_first_not_of(" \t\n", position_), text_.size());
  }
  bool take(char sign) {
    if (at_end() || text_[position_] != sign) return false;
    ++position_;
    return true;
  }
  // Letters, digits and the characters of `more`.
  Word word(std::string_view more) {
    skip_blanks();
    const std::size_t begin = position_;
    while (position_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[position_])) != 0 ||
            more.find(text_[position_]) != std::string_view::npos)) {
      ++position_;
    }
    return {text_.substr(begin, position_ - begin), begin};
  }

  static Error error(std::size_t at, std::string_view what) {
    return {base::Code::argument, fmt::format("at character {}: {}", at + 1, what)};
  }
  Error unexpected(std::string_view expected) {
    if (at_end()) return error(position_, fmt::format("expected {}, found the end", expected));
    const auto found = static_cast<unsigned char>(text_[position_]);
    return error(position_, std::isprint(found) != 0
                                ? fmt::format("expected {}, found '{:c}'", expected, found)
                                : fmt::format("expected {}, found byte {:#x}", expected, found));
  }

  // collective ':' rule { ';' rule }
  Status entry() {
    UNISONO_ASSIGN(const Collective collective, read_collective());
    if (!take(':')) return unexpected("':' after the collective");
    do {
      UNISONO_TRY(rule(collective));
    } while (take(';'));
    return base::success();
  }

  Result<Collective> read_collective() {
    const Word name = word("_-");
    if (name.text.empty()) return unexpected("a collective");
    if (const auto collective = schedule::collective_from_name(name.text)) return *collective;
    return error(name.at, explain_unknown_collective(name.text));
  }

  // ['^'] algorithm ['(' parameters ')'] ['@' low '-' high]
  Status rule(Collective collective) {
    OverrideRule rule;
    skip_blanks();
    const std::size_t begin = position_;
    rule.never = take('^');
    const Word name = word("_-");
    if (name.text.empty()) return unexpected("an algorithm");
    rule.algorithm = algorithm::find(collective, name.text);
    if (rule.algorithm == nullptr) {
      return error(name.at, algorithm::explain_unknown(collective, name.text));
    }
    skip_blanks();
    const std::size_t parenthesis = position_;
    if (take('(')) {
      if (rule.never) return error(parenthesis, "^ excludes an algorithm with any parameters");
      UNISONO_TRY(parameters(rule));
    }
    if (take('@')) UNISONO_TRY(range(rule));
    if (overrides_.rules.size() == kMostRules) {
      return error(begin, fmt::format("there can be {} rules", kMostRules));
    }
    overrides_.rules.push_back(rule);
    return base::success();
  }

  Status parameters(OverrideRule& rule) {
    const auto specs = rule.algorithm->parameters;
    do {
      const Word number = word("-+._");
      if (number.text.empty()) return unexpected("a parameter");
      if (static_cast<std::size_t>(rule.given) == specs.size()) {
        return error(number.at, too_many(*rule.algorithm));
      }
      const auto at = static_cast<std::size_t>(rule.given);
      UNISONO_ASSIGN(rule.parameters.values[at], parameter(specs[at], number));
      ++rule.given;
    } while (take(','));
    if (!take(')')) return unexpected("',' or ')'");
    return base::success();
  }

  static std::string too_many(const Algorithm& row) {
    if (row.parameters.empty()) return fmt::format("{} has no parameters", row.name);
    return fmt::format("{} has only {} parameter{}", row.name, row.parameters.size(),
                       row.parameters.size() == 1 ? "" : "s");
  }

  static Result<int> parameter(const ParameterSpec& spec, const Word& number) {
    const auto value = algorithm::read_value(spec, number.text);
    const int high = spec.high != 0 ? spec.high : std::numeric_limits<int>::max();
    if (value && *value >= spec.low && *value <= high) return *value;
    return error(number.at, fmt::format("{} is '{}'; choose {}", spec.name, number.text,
                                        algorithm::print_choices(spec)));
  }

  Status range(OverrideRule& rule) {
    skip_blanks();
    const std::size_t begin = position_;
    UNISONO_ASSIGN(rule.low, size());
    if (!take('-')) return unexpected("'-' and the end of the range, which may be inf");
    const std::size_t end = position_;
    if (const Word last = word("."); last.text == "inf") {
      rule.high = OverrideRule::kNoEnd;
    } else {
      position_ = end;
      UNISONO_ASSIGN(rule.high, size());
    }
    if (rule.algorithm->collective == Collective::barrier) {
      return error(begin, "a barrier carries no bytes: leave the range out");
    }
    if (rule.low >= rule.high) {
      return error(begin,
                   fmt::format("no size is in the range {}-{}: its end does not belong to it",
                               base::format_size(rule.low), base::format_size(rule.high)));
    }
    return base::success();
  }

  Result<std::int64_t> size() {
    const Word bytes = word(".");
    if (bytes.text.empty()) return unexpected("a size in bytes, e.g. 4K");
    if (const auto value = base::parse_size(bytes.text)) return *value;
    return error(bytes.at, fmt::format("'{}' is no size: write bytes, or K, M, G, T (1024 each)",
                                       bytes.text));
  }

  // Some algorithm has to be allowed.
  Status something_left() const {
    for (const OverrideRule& rule : overrides_.rules) {
      const Collective collective = rule.algorithm->collective;
      const auto is_kept = [&](const Algorithm& row) {
        return row.collective == collective &&
               std::ranges::none_of(overrides_.rules, [&](const OverrideRule& each) {
                 return each.algorithm == &row && each.never && each.everywhere();
               });
      };
      if (std::ranges::any_of(algorithm::table(), is_kept)) continue;
      return Error{base::Code::argument, fmt::format("it leaves no algorithm for {}",
                                                     schedule::collective_name(collective))};
    }
    return base::success();
  }

  std::string_view text_;
  std::size_t position_ = 0;
  Overrides overrides_;
};

}  // namespace

Result<Overrides> parse_overrides(std::string_view text) { return Parser(text).parse(); }

}  // namespace unisono::select
