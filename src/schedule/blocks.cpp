// SPDX-License-Identifier: BSD-3-Clause
#include "schedule/blocks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <span>

#include "base/check.hpp"

namespace unisono::schedule {
namespace {

using base::Code;
using base::Error;
using base::Result;

std::size_t at(int index) { return static_cast<std::size_t>(index); }

// The blocks of one vector: block i lies between the sums of the counts before and up to it.
class Line {
 public:
  Line() = default;  // not known: empty blocks

  static Result<Line> of(std::span<const std::int64_t> counts) {
    Line line;
    line.sums_.reserve(counts.size() + 1);
    line.sums_.push_back(0);
    for (const std::int64_t count : counts) {
      const std::size_t block = line.sums_.size() - 1;
      if (count < 0) {
        return Error{Code::argument,
                     fmt::format("block {} has {} elements: a block has 0 or more", block, count)};
      }
      if (count > std::numeric_limits<std::int64_t>::max() - line.sums_.back()) {
        return Error{Code::argument, fmt::format("the blocks up to block {} have more elements "
                                                 "than 64 bits can count",
                                                 block)};
      }
      line.sums_.push_back(line.sums_.back() + count);
    }
    return line;
  }

  bool is_known() const { return !sums_.empty(); }
  Block block(int index) const {
    if (!is_known()) return {};
    return {sums_[at(index)], sums_[at(index) + 1] - sums_[at(index)]};
  }
  std::int64_t total() const { return is_known() ? sums_.back() : 0; }

  bool operator==(const Line&) const = default;

 private:
  std::vector<std::int64_t> sums_;
};

}  // namespace

struct Blocks::Numbers {
  int ranks = 0;
  Line all;                          // one block for each rank
  std::vector<bool> receivers;       // empty: all ranks receive
  std::vector<Line> sent, received;  // one block for each pair, by the rank whose vector it is
  int known_to = -1;                 // the only rank whose counts are known; -1: all are known

  bool operator==(const Numbers&) const = default;
  bool knows_the_same_as(const Numbers& other) const {
    const auto alike = [](const Line& a, const Line& b) { return a.is_known() == b.is_known(); };
    return std::ranges::equal(sent, other.sent, alike) &&
           std::ranges::equal(received, other.received, alike);
  }
};

Result<Blocks> Blocks::make(Numbers numbers) {
  Blocks blocks;
  blocks.numbers_ = std::make_shared<const Numbers>(std::move(numbers));
  return blocks;
}

Result<Blocks> Blocks::of_ranks(const std::vector<std::int64_t>& counts,
                                std::vector<bool> receivers) {
  UNISONO_CHECK(receivers.empty() || receivers.size() == counts.size(),
                "as many receivers' marks as ranks");
  Numbers numbers;
  numbers.ranks = static_cast<int>(counts.size());
  UNISONO_ASSIGN(numbers.all, Line::of(counts));
  if (!std::ranges::all_of(receivers, [](bool receives) { return receives; })) {
    numbers.receivers = std::move(receivers);
  }
  return make(std::move(numbers));
}

Result<Blocks> Blocks::of_pairs(int ranks, const std::vector<std::int64_t>& counts) {
  UNISONO_CHECK(counts.size() == at(ranks) * at(ranks), "one count for each pair of ranks");
  Numbers numbers;
  numbers.ranks = ranks;
  std::vector<std::int64_t> column(at(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    const std::span row = std::span(counts).subspan(at(rank) * at(ranks), at(ranks));
    for (int from = 0; from < ranks; ++from)
      column[at(from)] = counts[at(from) * at(ranks) + at(rank)];
    UNISONO_ASSIGN(Line sent, Line::of(row));
    UNISONO_ASSIGN(Line received, Line::of(column));
    numbers.sent.push_back(std::move(sent));
    numbers.received.push_back(std::move(received));
  }
  return make(std::move(numbers));
}

Result<Blocks> Blocks::of_pairs_of(int rank, const std::vector<std::int64_t>& sent,
                                   const std::vector<std::int64_t>& received) {
  UNISONO_CHECK(sent.size() == received.size() && at(rank) < sent.size() &&
                    sent[at(rank)] == received[at(rank)],
                "counts of the same ranks, which agree on the rank's own block");
  Numbers numbers;
  numbers.ranks = static_cast<int>(sent.size());
  numbers.sent.resize(sent.size());
  numbers.received.resize(sent.size());
  UNISONO_ASSIGN(numbers.sent[at(rank)], Line::of(sent));
  UNISONO_ASSIGN(numbers.received[at(rank)], Line::of(received));
  numbers.known_to = rank;
  return make(std::move(numbers));
}

int Blocks::ranks() const { return numbers_->ranks; }
bool Blocks::are_pairs() const { return !numbers_->all.is_known(); }
Block Blocks::of(int rank) const { return numbers_->all.block(rank); }
std::int64_t Blocks::total() const { return numbers_->all.total(); }
bool Blocks::all_receive() const { return numbers_->receivers.empty(); }
bool Blocks::receives(int rank) const { return all_receive() || numbers_->receivers[at(rank)]; }

// If the counts of rank `known_to` alone are known, another rank's vector has a single block, the
// one exchanged with `known_to`. All other blocks are empty.
Block Blocks::sent(int from, int to) const {
  const Line& line = numbers_->sent[at(from)];
  return line.is_known() ? line.block(to) : single_block(sent_total(from), to);
}

Block Blocks::received(int from, int to) const {
  const Line& line = numbers_->received[at(to)];
  return line.is_known() ? line.block(from) : single_block(received_total(to), from);
}

std::int64_t Blocks::sent_total(int from) const {
  const Line& line = numbers_->sent[at(from)];
  if (line.is_known()) return line.total();
  return numbers_->received[at(numbers_->known_to)].block(from).count;
}

std::int64_t Blocks::received_total(int to) const {
  const Line& line = numbers_->received[at(to)];
  if (line.is_known()) return line.total();
  return numbers_->sent[at(numbers_->known_to)].block(to).count;
}

Block Blocks::single_block(std::int64_t count, int peer) const {
  const int known = numbers_->known_to;
  return {.offset = peer > known ? count : 0, .count = peer == known ? count : 0};
}

bool Blocks::counts_equal(const Blocks& a, const Blocks& b) {
  for (int from = 0; from < a.ranks(); ++from) {
    for (int to = 0; to < a.ranks(); ++to) {
      if (a.sent(from, to).count != b.sent(from, to).count) return false;
    }
  }
  return true;
}

bool operator==(const Blocks& a, const Blocks& b) {
  if (a.numbers_ == b.numbers_) return true;
  if (!a.given() || !b.given()) return false;
  if (a.ranks() != b.ranks() || a.are_pairs() != b.are_pairs()) return false;
  // Ranks compare their known counts in every call; comparing all pairs would cost too much.
  if (a.numbers_->knows_the_same_as(*b.numbers_)) return *a.numbers_ == *b.numbers_;
  return Blocks::counts_equal(a, b);
}

}  // namespace unisono::schedule
