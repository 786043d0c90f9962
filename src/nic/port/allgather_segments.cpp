// SPDX-License-Identifier: BSD-3-Clause
// Pieces are posted and read in order. Others' blocks may overwrite a piece as soon as the piece
// one depth later is posted. So at most a depth of pieces is posted ahead of those read.
#include "nic/port/allgather_segments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/check.hpp"

namespace unisono::nic {
namespace {

constexpr std::size_t kWord = sizeof(std::uint64_t);

}  // namespace

std::uint64_t AllgatherSegments::pieces(std::size_t bytes, std::size_t piece_bytes) {
  return std::max<std::uint64_t>(1, (bytes + piece_bytes - 1) / piece_bytes);
}

void AllgatherSegments::begin(std::span<const std::byte> block, std::span<std::byte> result,
                              std::uint32_t mark) {
  UNISONO_CHECK(finished_ == pieces_, "AllgatherSegments::begin while another is under way");
  const auto ranks = static_cast<std::size_t>(port_.ranks());
  UNISONO_CHECK(result.empty() || result.size() == block.size() * ranks,
                "AllgatherSegments::begin with a result of another length");
  block_ = block;
  result_ = result;
  mark_ = mark;
  first_ = port_.next();
  pieces_ = pieces(block.size(), piece_bytes_);
  posted_ = finished_ = 0;
}

std::span<const std::byte> AllgatherSegments::piece(std::uint64_t number) const {
  const std::size_t start = number * piece_bytes_;
  return block_.subspan(start, std::min(piece_bytes_, block_.size() - start));
}

base::Status AllgatherSegments::take(std::uint64_t number) {
  const std::size_t bytes = piece(number).size();
  for (int origin = 0; origin < port_.ranks(); ++origin) {
    const auto from = port_.block(first_ + number, origin);
    if (from.size() != (bytes + kWord - 1) / kWord * kWord) {
      mismatching_rank_ = origin;
      return base::Error{
          base::Code::mismatch,
          fmt::format("NIC: piece {} of {} of rank {}'s block has {} bytes, and that of rank {} "
                      "{}; call the same collective on all ranks",
                      number, pieces_, origin, from.size(), port_.rank(), bytes)};
    }
    if (port_.mark(first_ + number, origin) != mark_) {
      mismatching_rank_ = origin;
      return base::Error{
          base::Code::mismatch,
          fmt::format("NIC: rank {}'s block is of another call than that of rank {}; call the same "
                      "collective on all ranks",
                      origin, port_.rank())};
    }
    if (result_.empty()) continue;
    const std::size_t start =
        static_cast<std::size_t>(origin) * block_.size() + number * piece_bytes_;
    std::copy_n(from.begin(), bytes, result_.begin() + static_cast<std::ptrdiff_t>(start));
  }
  return base::success();
}

base::Result<bool> AllgatherSegments::step() {
  for (; finished_ < posted_ && port_.is_done(first_ + finished_); ++finished_) {
    UNISONO_TRY(take(finished_));
  }
  while (posted_ < pieces_ && posted_ - finished_ < port_.depth() && port_.may_post()) {
    const base::Status posted = port_.post(piece(posted_), mark_);
    ++posted_;  // also if its doorbell packet was not sent; repair() makes up for that
    UNISONO_TRY(posted);
  }
  return finished_ == pieces_;
}

}  // namespace unisono::nic
