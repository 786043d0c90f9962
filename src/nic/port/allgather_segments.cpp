// SPDX-License-Identifier: BSD-3-Clause
// Pieces are posted and read in order. Others' blocks may overwrite a piece as soon as the piece
// one depth later is posted. So each rank gives its part of that one only when it has read this
// one.
#include "nic/port/allgather_segments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.hpp"

namespace unisono::nic {
namespace {

constexpr std::size_t kWordBytes = sizeof(std::uint64_t);

std::size_t most_places(const topology::HostMap& hosts) {
  std::size_t most = 0;
  for (int host = 0; host < hosts.hosts(); ++host) {
    most = std::max(most, hosts.members(host).size());
  }
  return most;
}

// The bytes that two ranges of a block share.
struct Overlap {
  std::size_t start = 0, bytes = 0;
};
Overlap overlap(std::size_t a, std::size_t a_bytes, std::size_t b, std::size_t b_bytes) {
  const std::size_t start = std::max(a, b);
  const std::size_t end = std::min(a + a_bytes, b + b_bytes);
  return {start, end > start ? end - start : 0};
}

}  // namespace

AllgatherSegments::AllgatherSegments(AllgatherPort& port)
    : AllgatherSegments(port, topology::HostMap::apart(port.ranks()), 0, nullptr) {}

AllgatherSegments::AllgatherSegments(AllgatherPort& port, topology::HostMap hosts, int place,
                                     HostBlocks* together)
    : port_(port),
      hosts_(std::move(hosts)),
      place_(place),
      most_places_(most_places(hosts_)),
      together_(together),
      piece_bytes_(port.most_bytes()) {
  UNISONO_CHECK(hosts_.hosts() == port.ranks(), "AllgatherSegments for the hosts of the group");
}

std::uint64_t AllgatherSegments::pieces(std::size_t bytes, std::size_t piece_bytes) {
  return std::max<std::uint64_t>(1, (bytes + piece_bytes - 1) / piece_bytes);
}

void AllgatherSegments::begin(std::span<const std::byte> block, std::span<std::byte> result,
                              std::uint32_t mark, std::uint64_t call) {
  UNISONO_CHECK(finished_ == pieces_, "AllgatherSegments::begin while another is under way");
  UNISONO_CHECK(
      result.empty() || result.size() == block.size() * static_cast<std::size_t>(hosts_.ranks()),
      "AllgatherSegments::begin with a result of another length");
  block_ = block;
  result_ = result;
  mark_ = mark;
  call_ = call;
  first_ = port_.next();
  pieces_ = pieces(most_places_ * block.size(), piece_bytes_);
  posted_ = finished_ = 0;
  if (together_ != nullptr) together_->begin(call, mark, block.size());
}

// The same at all hosts. So a question, which is as long as the own piece, has room for its answer.
std::size_t AllgatherSegments::piece_bytes(std::uint64_t number) const {
  const std::size_t start = number * piece_bytes_;
  return std::min(piece_bytes_, most_places_ * block_.size() - start);
}

// This rank's part of a piece of the host's block.
void AllgatherSegments::write(std::uint64_t number) const {
  const std::size_t start = number * piece_bytes_;
  const std::size_t own = static_cast<std::size_t>(place_) * block_.size();
  const Overlap part = overlap(start, piece_bytes_, own, block_.size());
  if (part.bytes == 0) return;
  std::memcpy(port_.room().data() + (part.start - start), block_.data() + (part.start - own),
              part.bytes);
}

base::Status AllgatherSegments::post(std::uint64_t number) {
  write(number);
  if (together_ != nullptr && !together_->arrive(port_.next())) {
    port_.follow();
    return base::success();
  }
  const auto other = together_ != nullptr ? together_->mismatching_place(call_) : std::nullopt;
  if (other) {
    mismatching_host_ = port_.rank();
    mismatching_place_ = *other;
    return base::Error{base::Code::mismatch,
                       fmt::format("NIC: the blocks of host {}'s ranks differ in length, or are of "
                                   "different calls; call the same collective on all ranks",
                                   port_.rank())};
  }
  fill_rest(number);
  return port_.post_written(piece_bytes(number), mark_);
}

// Behind the blocks of a host with fewer ranks than others.
void AllgatherSegments::fill_rest(std::uint64_t number) const {
  const std::size_t start = number * piece_bytes_;
  const std::size_t end = hosts_.members(port_.rank()).size() * block_.size();
  const std::size_t bytes = piece_bytes(number);
  const std::size_t written = std::min(end > start ? end - start : 0, bytes);
  std::ranges::fill(port_.room().subspan(written, bytes - written), std::byte{0});
}

base::Status AllgatherSegments::check(std::uint64_t number, int host) {
  const std::size_t bytes = piece_bytes(number);
  const auto from = port_.block(first_ + number, host);
  const bool is_as_long = from.size() == (bytes + kWordBytes - 1) / kWordBytes * kWordBytes;
  if (is_as_long && port_.mark(first_ + number, host) == mark_) return base::success();
  mismatching_host_ = host;
  mismatching_place_ = 0;
  if (is_as_long) {
    return base::Error{
        base::Code::mismatch,
        fmt::format("NIC: host {}'s block is of another call than that of host {}; call the same "
                    "collective on all ranks",
                    host, port_.rank())};
  }
  return base::Error{
      base::Code::mismatch,
      fmt::format("NIC: piece {} of {} of host {}'s block has {} bytes, and host {} expects {}; "
                  "call the same collective on all ranks",
                  number, pieces_, host, from.size(), port_.rank(), bytes)};
}

// Each rank's part of a host's piece goes to that rank's block of the result.
void AllgatherSegments::copy(std::uint64_t number, int host) const {
  const std::size_t start = number * piece_bytes_;
  const std::size_t bytes = piece_bytes(number);
  if (result_.empty() || bytes == 0) return;
  const auto from = port_.block(first_ + number, host);
  const auto ranks = hosts_.members(host);
  for (std::size_t place = start / block_.size(); place < ranks.size(); ++place) {
    const std::size_t theirs = place * block_.size();
    const Overlap part = overlap(start, bytes, theirs, block_.size());
    if (part.bytes == 0) break;
    const std::size_t to = static_cast<std::size_t>(ranks[place]) * block_.size();
    std::memcpy(result_.data() + to + (part.start - theirs), from.data() + (part.start - start),
                part.bytes);
  }
}

base::Result<bool> AllgatherSegments::step() {
  for (; finished_ < posted_ && port_.is_done(first_ + finished_); ++finished_) {
    for (int host = 0; host < hosts_.hosts(); ++host) {
      UNISONO_TRY(check(finished_, host));
      copy(finished_, host);
    }
    port_.note_read(first_ + finished_);
  }
  while (posted_ < pieces_ && port_.has_read(port_.next() - port_.depth()) && port_.may_post()) {
    const base::Status posted = post(posted_);
    ++posted_;  // also if its doorbell packet was not sent; repair() makes up for that
    UNISONO_TRY(posted);
  }
  return finished_ == pieces_;
}

std::uint64_t AllgatherSegments::given() const {
  std::uint64_t given = finished_;
  while (given < posted_ && port_.is_given(first_ + given)) ++given;
  return given;
}

std::uint64_t AllgatherSegments::last_awaited() const {
  std::uint64_t last = std::max(posted_, finished_ + 1) - 1;
  while (last > finished_ && port_.is_done(first_ + last)) --last;
  return first_ + last;
}

}  // namespace unisono::nic
