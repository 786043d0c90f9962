// SPDX-License-Identifier: BSD-3-Clause
#include "reliable/link/arrivals.hpp"

namespace unisono::reliable {

using wire::distance;
using wire::is_before;

Arrivals::Taken Arrivals::take(std::uint64_t number) {
  const std::int64_t ahead = distance(missing_, number);
  if (ahead < 0) return Taken::seen;
  if (ahead >= static_cast<std::int64_t>(kWindow)) return Taken::beyond;
  std::uint64_t& word = bits_[word_of(number)];
  if ((word & bit_of(number)) != 0) return Taken::seen;
  word |= bit_of(number);
  if (!is_before(number, end_)) end_ = number + 1;
  // The vector then has room for numbers one window ahead.
  while ((bits_[word_of(missing_)] & bit_of(missing_)) != 0) {
    bits_[word_of(missing_)] &= ~bit_of(missing_);
    ++missing_;
  }
  return Taken::fresh;
}

void Arrivals::expect_until(std::uint64_t end) {
  if (is_before(end_, end) && distance(missing_, end) <= static_cast<std::int64_t>(kWindow)) {
    end_ = end;
  }
}

bool Arrivals::has(std::uint64_t number) const {
  const std::int64_t ahead = distance(missing_, number);
  if (ahead < 0) return true;
  return ahead < static_cast<std::int64_t>(kWindow) &&
         (bits_[word_of(number)] & bit_of(number)) != 0;
}

bool Arrivals::has_all(std::uint64_t first, std::uint64_t last) const {
  if (is_before(last, missing_)) return true;
  if (!is_before(missing_, first)) return false;  // missing_ itself is among them
  for (std::uint64_t number = first; number != last + 1; ++number) {
    if (!has(number)) return false;
  }
  return true;
}

std::uint64_t Arrivals::mask(std::uint64_t from) const {
  std::uint64_t result = 0;
  for (std::uint64_t i = 0; i < kMaskNumbers; ++i) {
    if (!has(from + i)) result |= std::uint64_t{1} << i;
  }
  return result;
}

}  // namespace unisono::reliable
