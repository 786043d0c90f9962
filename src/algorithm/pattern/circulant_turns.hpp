// SPDX-License-Identifier: BSD-3-Clause
// CirculantTurns: the blocks that ranks receive in a turn of a circulant broadcast, each found
// once. A choice by price builds the schedules of all ranks for many numbers of blocks, and each
// schedule needs the turns of many ranks. They are the same for any number of blocks. One thread.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

namespace unisono::algorithm::pattern {

class CirculantTurns {
 public:
  // By round: the block of the turn before.
  using Turn = std::array<std::int8_t, 32>;

  // A choice builds few schedules of more ranks, and the turns of all would take memory.
  static constexpr int kMostRanks = 4096;

  CirculantTurns() = default;
  CirculantTurns(const CirculantTurns&) = delete;
  CirculantTurns& operator=(const CirculantTurns&) = delete;

  // While it lives, circulant broadcasts of this thread keep their turns in `turns`, which outlives
  // it.
  class Use {
   public:
    explicit Use(CirculantTurns& turns) : before_(std::exchange(used_, &turns)) {}
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    ~Use() { used_ = before_; }

   private:
    CirculantTurns* before_;
  };

  // The turn of one of so many ranks, by find() if it is not known.
  template <class Find>
  static Turn of(int ranks, int rank, const Find& find) {
    if (used_ == nullptr || ranks > kMostRanks) return find();
    Known& known = used_->known(ranks)[static_cast<std::size_t>(rank)];
    if (!known.is_there) known = {find(), true};
    return known.turn;
  }

 private:
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

  inline static thread_local CirculantTurns* used_ = nullptr;

  std::vector<OfRanks> all_;  // a choice has few numbers of ranks
};

}  // namespace unisono::algorithm::pattern
