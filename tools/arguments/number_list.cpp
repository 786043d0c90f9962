// SPDX-License-Identifier: BSD-3-Clause
#include "arguments/number_list.hpp"

#include <fmt/format.h>

#include <optional>

#include "base/text.hpp"

namespace unisono::tools {
namespace {

// More would be a misprint, and would fill memory before anyone noticed.
constexpr std::size_t kMostNumbers = 100'000;

base::Error wrong_piece(std::string_view piece, const std::string& why) {
  return {base::Code::argument, fmt::format("'{}' {}", piece, why)};
}

base::Status add_range(std::string_view piece, Step step, std::int64_t first, std::int64_t last,
                       std::vector<std::int64_t>& numbers) {
  if (first > last) return wrong_piece(piece, "runs backwards: write FROM:TO with FROM <= TO");
  if (step == Step::doubling && first == 0 && last > 0) {
    return wrong_piece(piece, "cannot double from 0: write 0 as a number of its own, as in 0,8:4M");
  }
  for (std::int64_t value = first;;) {
    if (numbers.size() == kMostNumbers) {
      return wrong_piece(piece, fmt::format("makes more than {} numbers", kMostNumbers));
    }
    numbers.push_back(value);
    if (value == last) return base::success();
    const std::int64_t distance = step == Step::doubling ? value : 1;
    value = distance >= last - value ? last : value + distance;
  }
}

base::Status add_piece(std::string_view piece, Step step, std::int64_t low, std::int64_t high,
                       std::vector<std::int64_t>& numbers) {
  const std::size_t colon = piece.find(':');
  const std::string_view from = piece.substr(0, colon);
  const std::string_view to = colon == std::string_view::npos ? from : piece.substr(colon + 1);
  const auto first = base::parse_size(from);
  const auto last = base::parse_size(to);
  if (!first || !last) {
    return wrong_piece(piece,
                       "is not a number or a range: write 8, 4K or 8:4M (K, M, G are 1024 each)");
  }
  if (*first < low || *first > high || *last < low || *last > high) {
    return wrong_piece(piece, fmt::format("is outside {} ... {}", low, high));
  }
  return add_range(piece, step, *first, *last, numbers);
}

}  // namespace

base::Result<std::vector<std::int64_t>> parse_number_list(std::string_view text, Step step,
                                                          std::int64_t low, std::int64_t high) {
  std::vector<std::int64_t> numbers;
  for (std::string_view rest = text;;) {
    const std::size_t comma = rest.find(',');
    UNISONO_TRY(add_piece(rest.substr(0, comma), step, low, high, numbers));
    if (comma == std::string_view::npos) return numbers;
    rest.remove_prefix(comma + 1);
  }
}

}  // namespace unisono::tools
