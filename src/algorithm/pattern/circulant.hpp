// SPDX-License-Identifier: BSD-3-Clause
// Circulant graphs (Träff 2024): the skips P, ceil(P/2), ceil(P/4), ..., 1. In a round a rank sends
// to the rank one skip above or below it, cyclically. The same skips serve any P: nothing is
// folded. CirculantBroadcast says which of n blocks a rank receives in which round of a broadcast;
// backwards, it is a reduction. Pure values; any thread.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "algorithm/pattern/circulant_turns.hpp"
#include "algorithm/pattern/dissemination.hpp"

namespace unisono::algorithm::pattern {

class CirculantSkips {
 public:
  static constexpr std::size_t kMostSkips = 32;

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
  std::array<int, kMostSkips> skips_{};
};

// Ranks are relative to the root, which is 0. Round i uses skip i mod ceil(log2 P).
class CirculantBroadcast {
 public:
  // ranks >= 2, blocks >= 1.
  CirculantBroadcast(int ranks, int blocks)
      : skips_(ranks), ranks_(ranks), blocks_(blocks), idle_(rounds_skipped()) {}

  int rounds() const { return blocks_ - 1 + skips_.rounds(); }
  // The number of its skip among them, and how far that is.
  int turn(int round) const { return (round + idle_) % skips_.rounds(); }
  int skip(int round) const { return skips_.at(turn(round)); }
  // The same of turns that follow each other, without a division.
  int turn_after(int turn) const { return turn + 1 < skips_.rounds() ? turn + 1 : 0; }
  int turn_before(int turn) const { return turn > 0 ? turn - 1 : skips_.rounds() - 1; }
  int skip_of(int turn) const { return skips_.at(turn); }

  // The block that the rank receives in each round, from the rank a skip below; -1 for none. Every
  // rank but the root receives each block once, and has it before it sends it. `own` may hold it.
  std::span<const int> received(int rank, std::vector<int>& own) const {
    return CirculantTurns::list(CirculantTurns::Way::received, list_of(rank), own,
                                [&](std::span<int> all) { find_received(rank, all); });
  }
  std::vector<int> received(int rank) const {
    std::vector<int> all(static_cast<std::size_t>(rounds()));
    find_received(rank, all);
    return all;
  }

  // The block that the rank sends in each round, to the rank a skip above; -1 for none.
  std::span<const int> sent(int rank, std::vector<int>& own) const {
    return CirculantTurns::list(CirculantTurns::Way::sent, list_of(rank), own,
                                [&](std::span<int> all) { find_sent(rank, all); });
  }
  std::vector<int> sent(int rank) const {
    std::vector<int> all(static_cast<std::size_t>(rounds()));
    find_sent(rank, all);
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
      for (std::int8_t& block : std::span(found_).first(static_cast<std::size_t>(rounds_))) {
        block = static_cast<std::int8_t>(block == skips.rounds() ? base : block - skips.rounds());
      }
    }
    const CirculantTurns::Turn& found() const { return found_; }

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
    // The ranks between these places below, counted from P on.
    int low() const { return rank_ - skips_.at(rounds_ + 1); }
    int high() const { return rank_ - skips_.at(rounds_); }
    bool is_done() const { return rounds_ == skips_.rounds(); }

    // Looks at the ranks that are `sum` and skips below `last`, in falling order.
    void extend(int sum, int last) {
      for (int k = largest_free_below(last); k >= 0; k = largest_free_below(k)) {
        const int rank = sum + skips_.at(k);
        if (rank > high() || rank >= seen_) continue;
        if (rank <= low()) extend(rank, k);
        if (is_done()) return;
        if (rank <= high()) {
          found_[static_cast<std::size_t>(rounds_++)] = static_cast<std::int8_t>(k);
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
    int rounds_ = 0;  // for so many it has found them
    CirculantTurns::Turn found_{};
  };
  using Turn = CirculantTurns::Turn;

  CirculantTurns::ListOf list_of(int rank) const {
    return {.ranks = ranks_, .blocks = blocks_, .rank = rank, .rounds = index(rounds())};
  }
  void find_received(int rank, std::span<int> all) const {
    std::ranges::fill(all, -1);
    for_each_received(rank, 0, 1, [&](int round, int block) { all[index(round)] = block; });
  }
  void find_sent(int rank, std::span<int> all) const {
    std::ranges::fill(all, -1);
    for (int first = 0; first < std::min(rounds(), skips_.rounds()); ++first) {
      for_each_received((rank + skip(first)) % ranks_, first, skips_.rounds(),
                        [&](int round, int block) { all[index(round)] = block; });
    }
  }

  Turn turn_of(int rank) const {
    return CirculantTurns::of(ranks_, rank, [&] { return Search(skips_, ranks_, rank).found(); });
  }

  static std::size_t index(int round) { return static_cast<std::size_t>(round); }

  // visit(round, block) for each block that the rank receives in a round that is `first` or any
  // number of times `step` after it.
  template <class Visit>
  void for_each_received(int rank, int first, int step, const Visit& visit) const {
    if (rank == 0) return;
    const Turn of_turn = turn_of(rank);
    // The blocks move up by as many as there are skips, each time that all skips had their turn.
    // A number beyond the last block stands for it, and it comes once.
    const int skips = skips_.rounds(), last = blocks_ - 1;
    bool has_last = false;
    int at = first + idle_, moved = -idle_;
    for (int round = first; round < rounds(); round += step, at += step) {
      for (; at >= skips; at -= skips) moved += skips;
      const int block = of_turn[index(at)] + moved;
      if (block < 0 || (block >= last && has_last)) continue;
      if (block >= last) {
        has_last = true;
        if (step > 1 && had_last_before(of_turn, round)) continue;
      }
      visit(round, std::min(block, last));
    }
  }

  // A block is at most as many as there are skips above what a turn has moved up.
  bool had_last_before(const Turn& of_turn, int round) const {
    const int skips = skips_.rounds();
    int at = (round + idle_) % skips;
    for (int moved = round - at; round-- > 0 && moved + skips >= blocks_ - 1;) {
      if (at-- == 0) {
        at = skips - 1;
        moved -= skips;
      }
      if (of_turn[index(at)] + moved >= blocks_ - 1) return true;
    }
    return false;
  }

  // So many rounds are left out at the start, so that the last one ends a turn.
  int rounds_skipped() const {
    const int q = skips_.rounds();
    return (q - (blocks_ - 1) % q) % q;
  }
  CirculantSkips skips_;
  int ranks_, blocks_, idle_;
};

}  // namespace unisono::algorithm::pattern
