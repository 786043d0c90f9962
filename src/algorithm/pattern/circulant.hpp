// SPDX-License-Identifier: BSD-3-Clause
// Circulant graphs (Träff 2024): the skips P, ceil(P/2), ceil(P/4), ..., 1. In a round a rank sends
// to the rank one skip above or below it, cyclically. The same skips serve any P: nothing is
// folded. CirculantBroadcast says which of n blocks a rank receives in which round of a broadcast;
// backwards, it is a reduction. Pure values; any thread.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <vector>

#include "algorithm/pattern/dissemination.hpp"

namespace unisono::algorithm::pattern {

class CirculantSkips {
 public:
  // ranks >= 1.
  explicit CirculantSkips(int ranks) : rounds_(dissemination_steps(ranks)) {
    for (int k = rounds_; k >= 0; --k, ranks = ranks - ranks / 2) skips_[index(k)] = ranks;
  }

  int rounds() const { return rounds_; }  // ceil(log2 P)
  // 0 <= k <= rounds(): 1 for 0, P for rounds().
  int at(int k) const { return skips_[index(k)]; }

 private:
  static std::size_t index(int k) { return static_cast<std::size_t>(k); }

  int rounds_;
  std::array<int, 32> skips_{};
};

// Ranks are relative to the root, which is 0. Round i uses skip i mod ceil(log2 P).
class CirculantBroadcast {
 public:
  // ranks >= 2, blocks >= 1.
  CirculantBroadcast(int ranks, int blocks)
      : skips_(ranks), ranks_(ranks), blocks_(blocks), idle_(rounds_skipped()) {}

  int rounds() const { return blocks_ - 1 + skips_.rounds(); }
  int skip(int round) const { return skips_.at(turn(round)); }

  // The block that the rank receives in each round, from the rank a skip below; -1 for none. Every
  // rank but the root receives each block once, and has it before it sends it.
  std::vector<int> received(int rank) const {
    std::vector<int> all(static_cast<std::size_t>(rounds()), -1);
    if (rank == 0) return all;
    const std::vector<int> of_turn = Search(skips_, ranks_, rank).all();
    // The blocks move up by as many as there are skips, each time that all skips had their turn.
    // A number beyond the last block stands for it, and it comes once.
    bool has_last = false;
    for (int round = 0; round < rounds(); ++round) {
      const int moved = (round + idle_) / skips_.rounds() * skips_.rounds() - idle_;
      const int block = of_turn[static_cast<std::size_t>(turn(round))] + moved;
      if (block < 0 || (block >= blocks_ - 1 && has_last)) continue;
      has_last = has_last || block >= blocks_ - 1;
      all[static_cast<std::size_t>(round)] = std::min(block, blocks_ - 1);
    }
    return all;
  }

  // The block that the rank sends in each round, to the rank a skip above; -1 for none.
  std::vector<int> sent(int rank) const {
    std::vector<int> all(static_cast<std::size_t>(rounds()), -1);
    for (int first = 0; first < std::min(rounds(), skips_.rounds()); ++first) {
      const std::vector<int> there = received((rank + skip(first)) % ranks_);
      for (auto i = static_cast<std::size_t>(first); i < all.size();
           i += static_cast<std::size_t>(skips_.rounds())) {
        all[i] = there[i];
      }
    }
    return all;
  }

 private:
  // Finds the blocks of one rank in the rounds of one turn. A rank is a sum of falling skips, and
  // the index of the smallest one is its base block, the first that it receives. In round k it
  // receives the largest base block of the ranks between skip k and skip k + 1 below it. It does
  // not take a base block twice. These are blocks of the turn before.
  class Search {
   public:
    Search(const CirculantSkips& skips, int ranks, int rank)
        : skips_(skips), rank_(rank + ranks), free_((2u << skips.rounds()) - 1) {
      const int base = base_block(rank);
      take(base);
      extend(0, skips.rounds() + 1);
      for (int& block : found_) block = block == skips.rounds() ? base : block - skips.rounds();
    }
    std::vector<int> all() const { return found_; }

   private:
    int base_block(int rest) const {
      int k = skips_.rounds();
      while (rest > 0) {
        if (skips_.at(--k) <= rest) rest -= skips_.at(k);
      }
      return k;
    }
    void take(int block) { free_ &= ~(1u << block); }
    int largest_free_below(int block) const {
      return static_cast<int>(std::bit_width(free_ & ((1u << block) - 1))) - 1;
    }
    int round() const { return static_cast<int>(found_.size()); }

    // The ranks between these places below, counted from P on.
    int low() const { return rank_ - skips_.at(round() + 1); }
    int high() const { return rank_ - skips_.at(round()); }
    bool is_done() const { return round() == skips_.rounds(); }

    // Looks at the ranks that are `sum` and skips below `last`, in falling order.
    void extend(int sum, int last) {
      for (int k = largest_free_below(last); k >= 0; k = largest_free_below(k)) {
        const int rank = sum + skips_.at(k);
        if (rank > high() || rank >= seen_) continue;
        if (rank <= low()) extend(rank, k);
        if (is_done()) return;
        if (rank <= high()) {
          found_.push_back(k);
          take(k);
          seen_ = rank;
        }
        if (is_done() || sum > low()) return;
      }
    }

    const CirculantSkips& skips_;
    int rank_;
    int seen_ = std::numeric_limits<int>::max();  // the last rank that gave its base block
    unsigned free_;
    std::vector<int> found_;
  };

  // So many rounds are left out at the start, so that the last one ends a turn.
  int rounds_skipped() const {
    const int q = skips_.rounds();
    return (q - (blocks_ - 1) % q) % q;
  }
  int turn(int round) const { return (round + idle_) % skips_.rounds(); }

  CirculantSkips skips_;
  int ranks_, blocks_, idle_;
};

}  // namespace unisono::algorithm::pattern
