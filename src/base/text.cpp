// SPDX-License-Identifier: BSD-3-Clause
#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "base/clock.hpp"

namespace unisono::base {
namespace {

struct NamedUnit {
  std::string_view name;
  std::int64_t factor;
};

constexpr std::array<NamedUnit, 5> kSizeUnits{{{"T", std::int64_t{1} << 40},
                                               {"G", std::int64_t{1} << 30},
                                               {"M", std::int64_t{1} << 20},
                                               {"K", std::int64_t{1} << 10},
                                               {"", 1}}};
constexpr std::array<NamedUnit, 6> kTimeUnits{{{"h", 3600 * kSecond},
                                               {"min", 60 * kSecond},
                                               {"s", kSecond},
                                               {"ms", kMillisecond},
                                               {"us", kMicrosecond},
                                               {"ns", 1}}};

// Splits "1.5ms" into 1.5 and "ms". No sign, no blanks, no "inf".
std::optional<std::pair<double, std::string_view>> split_number(std::string_view text) {
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text.front())) == 0) return {};
  double number = 0;
  const auto [rest, error] =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc{}) return {};
  return std::pair{number, text.substr(static_cast<std::size_t>(rest - text.data()))};
}

std::optional<std::int64_t> scaled(double number, std::int64_t factor) {
  const double product = std::round(number * static_cast<double>(factor));
  // 2^63 as a double; every double below it fits.
  if (!(product < 0x1.0p63)) return {};
  return static_cast<std::int64_t>(product);
}

std::string format_exact(std::int64_t value, std::span<const NamedUnit> units) {
  for (const NamedUnit& unit : units) {
    if (value != 0 && value % unit.factor == 0) {
      return fmt::format("{}{}", value / unit.factor, unit.name);
    }
  }
  return fmt::format("{}", value);
}

// Counts insertions, deletions, replacements and swaps of neighbours.
std::size_t edit_distance(std::string_view left, std::string_view right) {
  // Rows for all but the last two letters of `left` so far, all but the last one, and all.
  std::vector<std::size_t> earlier, before(right.size() + 1), row(right.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= left.size(); ++i) {
    earlier = std::exchange(before, row);
    row[0] = i;
    for (std::size_t j = 1; j <= right.size(); ++j) {
      const std::size_t replaced = before[j - 1] + (left[i - 1] != right[j - 1]);
      row[j] = std::min({before[j] + 1, row[j - 1] + 1, replaced});
      const bool swapped =
          i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1];
      if (swapped) row[j] = std::min(row[j], earlier[j - 2] + 1);
    }
  }
  return row.back();
}

}  // namespace

std::optional<std::int64_t> parse_integer(std::string_view text) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || rest != end) return {};
  return value;
}

std::optional<std::int64_t> parse_size(std::string_view text) {
  // Whole bytes take the exact way; a double would round large ones.
  if (const auto whole = parse_integer(text)) {
    return *whole >= 0 ? whole : std::nullopt;
  }
  const auto split = split_number(text);
  if (!split) return {};
  std::string_view suffix = split->second;
  if (suffix.empty()) return {};  // a fraction of a byte
  const std::string letter(1,
                           static_cast<char>(std::toupper(static_cast<unsigned char>(suffix[0]))));
  const std::string_view rest = suffix.substr(1);
  if (!rest.empty() && rest != "B" && rest != "iB") return {};
  for (const NamedUnit& unit : kSizeUnits) {
    if (unit.name == letter) return scaled(split->first, unit.factor);
  }
  return {};
}

std::optional<std::int64_t> parse_time_ns(std::string_view text) {
  if (text == "0") return 0;
  const auto split = split_number(text);
  if (!split) return {};
  for (const NamedUnit& unit : kTimeUnits) {
    if (unit.name == split->second) return scaled(split->first, unit.factor);
  }
  return {};
}

std::string format_size(std::int64_t bytes) { return format_exact(bytes, kSizeUnits); }

std::string format_time_ns(std::int64_t time_ns) { return format_exact(time_ns, kTimeUnits); }

std::string_view nearest_name(std::string_view text, std::span<const std::string_view> names) {
  std::string_view nearest;
  // Names with at most a third of the letters wrong count as misspellings.
  std::size_t least = std::max<std::size_t>(1, text.size() / 3) + 1;
  for (const std::string_view name : names) {
    const std::size_t distance = edit_distance(text, name);
    if (distance < least) {
      least = distance;
      nearest = name;
    }
  }
  return nearest;
}

}  // namespace unisono::base
