// SPDX-License-Identifier: BSD-3-Clause
// Trials: for a machine file that says nothing of the host MPI. With UNISONO_MPI=trial, some of a
// communicator's own blocking calls go to the host MPI, and their times decide who does the later
// ones. Collective and class of bytes are a cell. After kBefore calls of a cell Unisono and the
// host take turns: first two calls each, then kTurns each if the host is not far behind. After
// each round the ranks exchange their times by the host's allgather, so all decide alike. All that
// decides is the same at all ranks: which call of the cell it is, and those times. One thread at a
// time, as collectives of a communicator.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "selection.hpp"

namespace unisono::mpi {

struct Communicator;

class Trials {
 public:
  static constexpr int kBefore = 50;  // calls: a program with few calls is left alone
  static constexpr int kFirstTurns = 2, kTurns = 10;

  enum class State : std::uint8_t { before, first, second, unisono, host };
  struct Cell {
    State state = State::before;
    int calls = 0;                          // in this state
    std::array<std::vector<double>, 2> ns;  // of Unisono's calls, and of the host's

    bool is_decided() const { return state == State::unisono || state == State::host; }
  };

  // The cell of a call that begins. Null: Unisono does it, because ranks do not know its bytes, or
  // because an error has ended the trials.
  Cell* cell(Collective collective, std::int64_t bytes);
  // Whether the host MPI does the cell's next call.
  static bool is_for_host(const Cell& cell);
  // A call of a cell without decision has ended well. Collective.
  void note(Cell& cell, Collective collective, std::int64_t bytes, double ns,
            const Communicator& comm);
  // A call has failed, here at least: no more rounds, for the other ranks may not take part.
  void end() { has_ended_ = true; }

 private:
  // Means over the ranks.
  struct Means {
    double unisono, host;
  };
  static Means agree(Cell& cell, const Communicator& comm);

  bool has_ended_ = false;
  std::unordered_map<std::uint64_t, Cell> cells_;
};

}  // namespace unisono::mpi
