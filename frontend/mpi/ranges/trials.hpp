// SPDX-License-Identifier: BSD-3-Clause
// Trials: for a machine file that says nothing of the host MPI. Some of a communicator's own
// blocking calls go to the host MPI, and their times decide which side does the later ones. With
// UNISONO_MPI=auto those collectives are tried whose results have the same bits from either side,
// with UNISONO_MPI=trial all. A cell holds the calls of one collective whose bytes have the same
// number of binary digits. After kBefore calls of a cell Unisono and the host take turns: first two
// calls each, then kTurns each if the host is not far behind. Before the next call the ranks
// exchange their times. So two things alone decide, the same at all ranks: how many calls of the
// cell have begun, and the exchanged times. A call that fails, at whichever ranks, is a call as any
// other. One thread at a time, as collectives of a communicator.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "calls/last_call.hpp"
#include "selection.hpp"

namespace unisono::mpi {

struct Communicator;

class Trials {
 public:
  static constexpr int kBefore = 50;  // calls: a program with few calls is left alone
  static constexpr int kFirstTurns = 2, kTurns = 10;
  static constexpr double kNotDone = -1;  // instead of a time: the other side did the call

  // `collectives`: bits of those that are tried.
  Trials(int ranks, std::uint32_t collectives);

  bool tries(Collective collective) const { return (collectives_ & bit_of(collective)) != 0; }

  // Says which side does a call.
  struct Turn {
    bool is_for_host = false;
    bool is_open = false;        // the cell is not decided
    bool has_exchanged = false;  // a round has ended before this call
    // Where the call's time belongs, if it ends well. It holds the time of a failed call. Null: the
    // call is not timed.
    double* ns = nullptr;
  };
  // A call begins. Collective after the last call of a round.
  Turn begin(Collective collective, std::int64_t bytes, Communicator& own);

  // The last call of an open cell that Unisono did. A call like it is timed as a later one would
  // be.
  LastCall& last_call(Collective collective) {
    return last_calls_[static_cast<std::size_t>(collective)];
  }

 private:
  enum class State : std::uint8_t { before, first, second, unisono, host };
  using Times = std::array<double, std::size_t{2} * kTurns>;  // by the call's number
  struct Cell {
    State state = State::before;
    std::uint8_t calls = 0;     // begun in this state
    std::unique_ptr<Times> ns;  // null also without memory for it
  };
  // The times that a rank tells the others; 0: no such time.
  struct Typical {
    double unisono, host;
  };

  static int turns_of(State state) { return state == State::first ? kFirstTurns : kTurns; }
  static Typical typical(const Cell& cell);
  void end_round(Cell& cell, Collective collective, std::int64_t bytes, Communicator& own);

  // Nothing is allocated here later, except for times: a rank without memory still counts.
  static constexpr std::size_t kDigits = 64;
  std::array<std::array<Cell, kDigits>, kCollectives> cells_;
  std::vector<Typical> exchanged_;
  std::uint32_t collectives_;
  std::array<LastCall, kCollectives> last_calls_;
};

}  // namespace unisono::mpi
