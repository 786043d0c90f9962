// SPDX-License-Identifier: BSD-3-Clause
// CirculantTurns: the blocks that ranks receive in a turn of a circulant broadcast, each found
// once. A choice by price builds the schedules of all ranks for many numbers of blocks, and each
// schedule needs the turns of many ranks. They are the same for any number of blocks. It also keeps
// what few ranks receive and send by round, of the last number of blocks. One thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "algorithm/in_use.hpp"

namespace unisono::algorithm::pattern {

class CirculantTurns {
 public:
  // By round: the block of the turn before.
  using Turn = std::array<std::int8_t, 32>;

  // A choice builds few schedules of more ranks, and the turns of all would take memory.
  static constexpr int kMostRanks = 4096;
  // The lists by round are kept for so many.
  static constexpr int kMostRanksOfLists = 64;

  CirculantTurns() = default;
  CirculantTurns(const CirculantTurns&) = delete;
  CirculantTurns& operator=(const CirculantTurns&) = delete;

  // While it lives, circulant broadcasts of this thread keep their turns.
  using Use = InUse<CirculantTurns>;

  // The turn of one of so many ranks, by find() if it is not known.
  template <class Find>
  static Turn of(int ranks, int rank, const Find& find) {
    CirculantTurns* const kept = Use::current();
    if (kept == nullptr || ranks > kMostRanks) return find();
    Known& known = kept->known(ranks)[static_cast<std::size_t>(rank)];
    if (!known.is_there) known = {find(), true};
    return known.turn;
  }

  enum class Way : std::uint8_t { received, sent };
  // A list is that of a rank, among so many ranks, of so many blocks in so many rounds.
  struct ListOf {
    int ranks = 0, blocks = 0, rank = 0;
    std::size_t rounds = 0;
  };
  // The list, by fill(list) if it is not known. It lies in `own` where none are kept. Else it stays
  // until one of other blocks is asked for.
  template <class Fill>
  static std::span<const int> list(Way way, const ListOf& of, std::vector<int>& own,
                                   const Fill& fill) {
    CirculantTurns* const kept = Use::current();
    if (kept == nullptr || of.ranks > kMostRanksOfLists) {
      own.resize(of.rounds);
      fill(std::span(own));
      return own;
    }
    Lists& lists = kept->lists_[static_cast<std::size_t>(way)];
    if (lists.ranks != of.ranks || lists.blocks != of.blocks) lists.begin(of);
    const auto rank = static_cast<std::size_t>(of.rank);
    const auto all = std::span(lists.numbers).subspan(rank * of.rounds, of.rounds);
    if (!std::exchange(lists.is_there[rank], true)) fill(all);
    return all;
  }

 private:
  struct Lists {
    void begin(const ListOf& of) {
      ranks = of.ranks;
      blocks = of.blocks;
      is_there.fill(false);
      numbers.resize(static_cast<std::size_t>(ranks) * of.rounds);
    }

    int ranks = 0, blocks = 0;
    std::array<bool, kMostRanksOfLists> is_there{};
    std::vector<int> numbers;
  };
  struct Known {
    Turn turn{};
    bool is_there = false;
  };
  using OfRanks = std::pair<int, std::vector<Known>>;

  std::vector<Known>& known(int ranks) {
    for (OfRanks& each : all_) {
      if (each.first == ranks) return each.second;
    }
    return all_.emplace_back(ranks, std::vector<Known>(static_cast<std::size_t>(ranks))).second;
  }

  std::array<Lists, 2> lists_;
  std::vector<OfRanks> all_;  // a choice has few numbers of ranks
};

}  // namespace unisono::algorithm::pattern
