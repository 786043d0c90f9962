// SPDX-License-Identifier: BSD-3-Clause
#include "schedule/blocks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <span>

#include "base/check.hpp"
#include "base/index.hpp"

namespace unisono::schedule {

using base::Code;
using base::Error;
using base::index;
using base::Result;

// The blocks of one vector: block i lies between the sums of the counts before and up to it.
class Bounds {
 public:
  Bounds() = default;  // not known: empty blocks

  static Result<Bounds> of(std::span<const std::int64_t> counts) {
    Bounds bounds;
    bounds.sums_.reserve(counts.size() + 1);
    bounds.sums_.push_back(0);
    for (const std::int64_t count : counts) {
      const std::size_t block = bounds.sums_.size() - 1;
      if (count < 0) {
        return Error{Code::argument,
                     fmt::format("block {} has {} elements: a block has 0 or more", block, count)};
      }
      if (count > std::numeric_limits<std::int64_t>::max() - bounds.sums_.back()) {
        return Error{Code::argument, fmt::format("the blocks up to block {} have more elements "
                                                 "than 64 bits can count",
                                                 block)};
      }
      bounds.sums_.push_back(bounds.sums_.back() + count);
    }
    return bounds;
  }

  bool is_known() const { return !sums_.empty(); }
  Block block(int number) const {
    if (!is_known()) return {};
    const std::size_t before = index(number);
    return {sums_[before], sums_[before + 1] - sums_[before]};
  }
  std::int64_t total() const { return is_known() ? sums_.back() : 0; }

  bool operator==(const Bounds&) const = default;

 private:
  std::vector<std::int64_t> sums_;
};

struct Blocks::Numbers {
  int ranks = 0;
  Bounds all;                          // one block for each rank
  std::vector<bool> receivers;         // empty: all ranks receive
  std::vector<Bounds> sent, received;  // one block for each pair, by the rank whose vector it is
  int known_to = -1;                   // the only rank whose counts are known; -1: all are known

  bool operator==(const Numbers&) const = default;
  bool knows_the_same_as(const Numbers& other) const {
    const auto alike = [](const Bounds& a, const Bounds& b) {
      return a.is_known() == b.is_known();
    };
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
  UNISONO_ASSIGN(numbers.all, Bounds::of(counts));
  if (!std::ranges::all_of(receivers, [](bool receives) { return receives; })) {
    numbers.receivers = std::move(receivers);
  }
  return make(std::move(numbers));
}

Result<Blocks> Blocks::of_pairs(int ranks, const std::vector<std::int64_t>& counts) {
  UNISONO_CHECK(counts.size() == index(ranks) * index(ranks), "one count for each pair of ranks");
  Numbers numbers;
  numbers.ranks = ranks;
  std::vector<std::int64_t> column(index(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    const std::span row = std::span(counts).subspan(index(rank) * index(ranks), index(ranks));
    for (int from = 0; from < ranks; ++from)
      column[index(from)] = counts[index(from) * index(ranks) + index(rank)];
    UNISONO_ASSIGN(Bounds sent, Bounds::of(row));
    UNISONO_ASSIGN(Bounds received, Bounds::of(column));
    numbers.sent.push_back(std::move(sent));
    numbers.received.push_back(std::move(received));
  }
  return make(std::move(numbers));
}

Result<Blocks> Blocks::of_pairs_of(int rank, const std::vector<std::int64_t>& sent,
                                   const std::vector<std::int64_t>& received) {
  UNISONO_CHECK(sent.size() == received.size() && index(rank) < sent.size() &&
                    sent[index(rank)] == received[index(rank)],
                "counts of the same ranks, which agree on the rank's own block");
  Numbers numbers;
  numbers.ranks = static_cast<int>(sent.size());
  numbers.sent.resize(sent.size());
  numbers.received.resize(sent.size());
  UNISONO_ASSIGN(numbers.sent[index(rank)], Bounds::of(sent));
  UNISONO_ASSIGN(numbers.received[index(rank)], Bounds::of(received));
  numbers.known_to = rank;
  return make(std::move(numbers));
}

int Blocks::ranks() const { return numbers_->ranks; }
bool Blocks::are_pairs() const { return !numbers_->all.is_known(); }
Block Blocks::of(int rank) const { return numbers_->all.block(rank); }
std::int64_t Blocks::total() const { return numbers_->all.total(); }
bool Blocks::all_receive() const { return numbers_->receivers.empty(); }
bool Blocks::receives(int rank) const { return all_receive() || numbers_->receivers[index(rank)]; }

// If the counts of rank `known_to` alone are known, another rank's vector has a single block, the
// one exchanged with `known_to`. All other blocks are empty.
Block Blocks::sent(int from, int to) const {
  const Bounds& line = numbers_->sent[index(from)];
  return line.is_known() ? line.block(to) : single_block(sent_total(from), to);
}

Block Blocks::received(int from, int to) const {
  const Bounds& line = numbers_->received[index(to)];
  return line.is_known() ? line.block(from) : single_block(received_total(to), from);
}

std::int64_t Blocks::sent_total(int from) const {
  const Bounds& line = numbers_->sent[index(from)];
  if (line.is_known()) return line.total();
  return numbers_->received[index(numbers_->known_to)].block(from).count;
}

std::int64_t Blocks::received_total(int to) const {
  const Bounds& line = numbers_->received[index(to)];
  if (line.is_known()) return line.total();
  return numbers_->sent[index(numbers_->known_to)].block(to).count;
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
