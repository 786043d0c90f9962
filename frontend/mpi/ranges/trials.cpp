// SPDX-License-Identifier: BSD-3-Clause
#include "ranges/trials.hpp"

#include <algorithm>
#include <bit>

#include "communicator.hpp"
#include "host/host.hpp"
#include "log.hpp"

namespace unisono::mpi {
namespace {

// After the first round: the host is given up if it takes so many times as long as Unisono.
constexpr double kFarBehind = 2;
// In the end it has to be this much faster: noise should move no call.
constexpr double kClearlyFaster = 0.9;

// The first calls of a side may make connections, so of few calls the fastest counts.
double typical(std::vector<double>& values) {
  std::ranges::sort(values);
  return values.size() <= Trials::kFirstTurns ? values.front() : values[values.size() / 2];
}

}  // namespace

Trials::Cell* Trials::cell(Collective collective, std::int64_t bytes) {
  if (bytes < 0 || has_ended_) return nullptr;
  const auto of_bytes =
      static_cast<std::uint64_t>(std::bit_width(static_cast<std::uint64_t>(bytes)));
  return &cells_[static_cast<std::uint64_t>(collective) * 64 + of_bytes];
}

bool Trials::is_for_host(const Cell& cell) {
  switch (cell.state) {
    case State::before:
    case State::unisono:
      return false;
    case State::host:
      return true;
    case State::first:
    case State::second:
      break;
  }
  return cell.calls % 4 == 1 || cell.calls % 4 == 2;  // each side follows the other as often
}

Trials::Means Trials::agree(Cell& cell, const Communicator& comm) {
  const std::array<double, 2> own = {typical(cell.ns[0]), typical(cell.ns[1])};
  std::vector<std::array<double, 2>> all(static_cast<std::size_t>(comm.size));
  const Handle byte = host().constants.byte;
  host().Allgather(own.data(), sizeof own, byte, all.data(), sizeof own, byte, comm.handle);
  Means means{};
  for (const auto& [by_unisono, by_host] : all) {
    means.unisono += by_unisono / comm.size;
    means.host += by_host / comm.size;
  }
  cell.ns = {};
  return means;
}

void Trials::note(Cell& cell, Collective collective, std::int64_t bytes, double ns,
                  const Communicator& comm) {
  const bool by_host = is_for_host(cell);
  ++cell.calls;
  if (cell.state == State::before) {
    if (cell.calls == kBefore) cell = {.state = State::first, .ns = {}};
    return;
  }
  cell.ns[by_host ? 1 : 0].push_back(ns);
  const int turns = cell.state == State::first ? kFirstTurns : kTurns;
  if (cell.calls < 2 * turns) return;
  const bool is_first = cell.state == State::first;
  const Means means = agree(cell, comm);
  cell.calls = 0;
  if (is_first) {
    cell.state = means.host > kFarBehind * means.unisono ? State::unisono : State::second;
  } else {
    cell.state = means.host < kClearlyFaster * means.unisono ? State::host : State::unisono;
  }
  if (!cell.is_decided()) return;
  log_info(
      "rank %d of %d: tried: %s does %s of about %lld bytes (Unisono %.2f us, host MPI %.2f us)",
      comm.rank, comm.size, cell.state == State::host ? "the host MPI" : "Unisono",
      small_name(collective).c_str(), static_cast<long long>(bytes), means.unisono * 1e-3,
      means.host * 1e-3);
}

}  // namespace unisono::mpi
