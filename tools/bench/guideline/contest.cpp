// SPDX-License-Identifier: BSD-3-Clause
#include "bench/guideline/contest.hpp"

#include <algorithm>
#include <vector>

#include "base/clock.hpp"
#include "bench/measure/cell.hpp"

namespace unisono::tools::bench {
namespace {

constexpr int kRounds = 5;  // in each, a block of calls of the left and one of the right side
constexpr std::int64_t kFewestCalls = 3;  // in a block
constexpr std::int64_t kMostContestCalls = 20'000;
constexpr double kContestWarmupShare = 0.05;  // share of a side's time

std::int64_t block_of(const Options& options, double fitting) {
  if (options.iterations > 0) return (options.iterations + kRounds - 1) / kRounds;
  return std::clamp(static_cast<std::int64_t>(fitting), kFewestCalls, kMostContestCalls);
}

}  // namespace

// One side at this rank.
class Arena::Player {
 public:
  static base::Result<Player> make(const Place& place, const Options& options, const Team& team,
                                   const Side& side) {
    Player player(place, team.comm);
    if (team.comm == nullptr) return player;
    const auto element = static_cast<std::int64_t>(arith::type_size(options.type));
    for (const Act& act : side.acts) {
      const CellShape shape{act.collective, act.bytes / element, options.root, place.rank,
                            side.ranks};
      UNISONO_ASSIGN(Cell cell, Cell::make(shape, options, team.pattern, team.comm));
      player.cells_.push_back(std::move(cell));
    }
    return player;
  }

  // Finds the number of calls in a block such that kRounds of them take `share_ns`.
  base::Status warm_up(const Options& options, double share_ns) {
    for (std::int64_t calls = std::max<std::int64_t>(options.warmup, 1);; calls *= 2) {
      const std::int64_t start = base::now_ns();
      UNISONO_TRY(play(calls));
      const double elapsed_ns = std::max(1.0, static_cast<double>(base::now_ns() - start));
      const double fitting = share_ns / kRounds / elapsed_ns * static_cast<double>(calls);
      const bool known = options.warmup >= 0 || calls >= kMostContestCalls ||
                         elapsed_ns >= share_ns * kContestWarmupShare;
      // Rank 0 says how many, or 0: not known well enough yet.
      UNISONO_ASSIGN(block_, agree(place_, known ? block_of(options, fitting) : 0));
      if (block_ > 0) break;
    }
    times_.clear();
    return base::success();
  }

  base::Status play_block() { return play(block_); }

  base::Result<Summary> finish() {
    UNISONO_TRY(combine(place_, times_, UNISONO_MAX));
    return summarize(std::move(times_));
  }
  std::int64_t wrong() const { return wrong_; }

 private:
  Player(const Place& place, unisono_comm_t comm) : place_(place), comm_(comm) {}

  base::Status play(std::int64_t calls) {
    if (comm_ == nullptr) {
      times_.resize(times_.size() + static_cast<std::size_t>(calls));
    } else {
      for (std::int64_t i = 0; i < calls; ++i) UNISONO_TRY(play_once());
    }
    // Ranks outside the team sleep here until the others are done.
    return to_status(unisono_barrier(place_.control));
  }

  base::Status play_once() {
    for (Cell& cell : cells_) cell.prepare(0, phase_);
    UNISONO_TRY(to_status(unisono_barrier(comm_)));
    int code = UNISONO_OK;
    const std::int64_t enter_ns = base::now_ns();
    for (const Cell& cell : cells_) {
      if (code == UNISONO_OK) code = cell.call(0);
    }
    const std::int64_t leave_ns = base::now_ns();
    UNISONO_TRY(to_status(code));
    for (const Cell& cell : cells_) wrong_ += cell.wrong(0, phase_);
    ++phase_;
    times_.push_back(static_cast<double>(leave_ns - enter_ns) * 1e-3);
    return base::success();
  }

  const Place& place_;
  unisono_comm_t comm_;
  std::vector<Cell> cells_;
  std::vector<double> times_;
  std::int64_t block_ = 1;
  std::int64_t phase_ = 0;
  std::int64_t wrong_ = 0;
};

base::Result<Arena::Team*> Arena::team(int ranks) {
  auto found = teams_.find(ranks);
  if (found == teams_.end()) {
    Team made{place_.measured, Pattern(options_.type, options_.op, ranks, place_.rank)};
    if (ranks < place_.ranks) {
      const int color = place_.rank < ranks ? 0 : -1;
      UNISONO_TRY(to_status(unisono_comm_split(place_.measured, color, place_.rank, &made.comm)));
    }
    found = teams_.emplace(ranks, std::move(made)).first;
  }
  return &found->second;
}

base::Status Arena::close() {
  for (const auto& [ranks, team] : teams_) {
    if (ranks == place_.ranks || team.comm == nullptr) continue;
    UNISONO_TRY(to_status(unisono_comm_free(team.comm)));
  }
  return base::success();
}

base::Result<Contest> Arena::hold(const Comparison& comparison) {
  std::vector<Player> players;
  for (const Side* side : {&comparison.left, &comparison.right}) {
    UNISONO_ASSIGN(const Team* const those, team(side->ranks));
    UNISONO_ASSIGN(Player player, Player::make(place_, options_, *those, *side));
    players.push_back(std::move(player));
  }
  const double share_ns = options_.seconds * 1e9 / 2;
  for (Player& player : players) UNISONO_TRY(player.warm_up(options_, share_ns));
  for (int round = 0; round < kRounds; ++round) {
    for (Player& player : players) UNISONO_TRY(player.play_block());
  }
  Contest contest;
  UNISONO_ASSIGN(contest.left, players[0].finish());
  UNISONO_ASSIGN(contest.right, players[1].finish());
  std::vector<std::int64_t> wrong{players[0].wrong() + players[1].wrong()};
  UNISONO_TRY(combine(place_, wrong, UNISONO_SUM));
  contest.wrong = wrong[0];
  return contest;
}

}  // namespace unisono::tools::bench
