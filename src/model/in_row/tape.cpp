// SPDX-License-Identifier: BSD-3-Clause
#include "model/in_row/tape.hpp"

#include <algorithm>

namespace unisono::model {

void Replay::go_on(double start_ns) {
  for (Rank& rank : ranks_) {
    spend(rank, start_ns);
    spend(rank, rank.staging_ns);
  }
  std::array<double, 2> left{};
  for (const Tape::Entry& entry : tape_.entries_) {
    Rank& rank = ranks_[static_cast<std::size_t>(entry.rank)];
    switch (entry.kind) {
      case Tape::Kind::spend:
        for (std::uint32_t i = 0; i < entry.number; ++i) spend(rank, entry.ns);
        break;
      case Tape::Kind::wait:
        if (const double arrival = arrivals_[entry.number]; arrival > rank.now) {
          rank.now = arrival;
          if (rank.hand_over_ns != 0) spend(rank, rank.hand_over_ns);
        }
        spend(rank, entry.ns);
        break;
      case Tape::Kind::leave: {
        spend(rank, entry.ns);
        double& port = rank.port[entry.port];
        left[entry.port] = std::max(rank.now, port);
        port = left[entry.port] + entry.gap_ns;
        break;
      }
      case Tape::Kind::arrive:
        arrivals_[entry.number] = left[entry.port] + entry.ns;
        break;
    }
  }
}

}  // namespace unisono::model
