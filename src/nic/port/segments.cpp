// SPDX-License-Identifier: BSD-3-Clause
// Pieces are posted and read in order. A result must be read before its memory is reused, two
// depths later. Results may arrive while pieces are posted, so the port's limit does not suffice:
// at most a depth of pieces is posted ahead of those read.
#include "nic/port/segments.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.hpp"

namespace unisono::nic {

Segments::Segments(Port& port, std::uint32_t piece_words) : port_(port), piece_words_(piece_words) {
  UNISONO_CHECK(piece_words > 0 && piece_words <= UNISONO_NIC_WORDS_MAX,
                "Segments of pieces that do not fit a packet");
}

std::uint64_t Segments::pieces(std::size_t words, std::uint32_t piece_words) {
  return std::max<std::uint64_t>(1, (words + piece_words - 1) / piece_words);
}

void Segments::begin(std::uint32_t combine, std::span<const std::uint64_t> vector,
                     std::span<std::uint64_t> result) {
  UNISONO_CHECK(finished_ == pieces_, "Segments::begin while another vector is under way");
  UNISONO_CHECK(result.empty() || result.size() == vector.size(),
                "Segments::begin with a result of another length");
  combine_ = combine;
  vector_ = vector;
  result_ = result;
  first_ = port_.next();
  pieces_ = pieces(vector.size(), piece_words_);
  posted_ = finished_ = 0;
}

std::span<const std::uint64_t> Segments::piece(std::uint64_t number) const {
  const std::size_t start = number * piece_words_;
  return vector_.subspan(start, std::min<std::size_t>(piece_words_, vector_.size() - start));
}

base::Result<bool> Segments::step() {
  for (; finished_ < posted_ && port_.is_done(first_ + finished_); ++finished_) {
    if (result_.empty()) continue;
    const auto from = port_.result(first_ + finished_);
    std::copy_n(from.begin(), piece(finished_).size(),
                result_.begin() + static_cast<std::ptrdiff_t>(finished_ * piece_words_));
  }
  if (finished_ < posted_ && port_.is_broken(first_ + finished_)) {
    return base::Error{
        base::Code::mismatch,
        fmt::format("NIC: piece {} of {} does not fit the other ranks' contributions (length, "
                    "type or operator); call the same collective on all ranks",
                    finished_, pieces_)};
  }
  while (posted_ < pieces_ && posted_ - finished_ < port_.depth() && port_.may_post()) {
    const base::Status posted = port_.post(combine_, piece(posted_));
    ++posted_;  // also if its doorbell packet was not sent; repair() makes up for that
    UNISONO_TRY(posted);
  }
  return finished_ == pieces_;
}

}  // namespace unisono::nic
