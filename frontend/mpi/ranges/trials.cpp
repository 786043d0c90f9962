// SPDX-License-Identifier: BSD-3-Clause
#include "ranges/trials.hpp"

#include <algorithm>
#include <bit>
#include <new>

#include "communicator.hpp"
#include "library.hpp"
#include "log.hpp"

namespace unisono::mpi {
namespace {

// After the first round: the host is given up if it takes so many times as long as Unisono.
constexpr double kFarBehind = 2;
// In the end it has to be this much faster: noise should move no call.
constexpr double kClearlyFaster = 0.95;
// The time of a failed call: longer than any other, and finite.
constexpr double kFailedNs = 1e18;

// By the Thue-Morse sequence, so that neither side has all calls of one place in a program's loop.
bool is_turn_of_host(int call) { return std::popcount(static_cast<unsigned>(call)) % 2 == 1; }

}  // namespace

Trials::Trials(int ranks, std::uint32_t collectives)
    : exchanged_(static_cast<std::size_t>(ranks)), collectives_(collectives) {}

// The first calls of a side may make connections, so of few calls the fastest counts.
Trials::Typical Trials::typical(const Cell& cell) {
  if (cell.ns == nullptr) return {};
  const int turns = turns_of(cell.state);
  const auto of_side = [&](bool is_host) {
    std::array<double, kTurns> ns{};
    std::size_t count = 0;
    for (int call = 0; call < 2 * turns; ++call) {
      const double each = (*cell.ns)[static_cast<std::size_t>(call)];
      if (is_turn_of_host(call) == is_host && each != kNotDone) ns[count++] = each;
    }
    std::sort(ns.begin(), ns.begin() + count);
    return count <= kFirstTurns ? ns.front() : ns[count / 2];
  };
  return {.unisono = of_side(false), .host = of_side(true)};
}

// The ranks exchange their times by Unisono, which notices ranks that are lost. If that fails, it
// fails at all ranks, and so does the call of Unisono that follows.
void Trials::end_round(Cell& cell, Collective collective, std::int64_t bytes, Communicator& own) {
  const Typical ours = typical(cell);
  int error = 0;
  {
    const PendingCalls::Turn turn(own.pending);
    error =
        library().allgather(&ours, exchanged_.data(), sizeof ours, UNISONO_BYTE, own.unisono.get());
  }
  const bool is_first = cell.state == State::first;
  cell.calls = 0;
  if (error != UNISONO_OK) {
    cell.state = State::unisono;
    cell.ns.reset();
    return;
  }
  Typical mean{};
  for (const Typical& each : exchanged_) {
    mean.unisono += each.unisono / own.size;
    mean.host += each.host / own.size;
  }
  if (is_first && mean.host <= kFarBehind * mean.unisono) {
    cell.state = State::second;
    return;
  }
  const bool is_for_host = !is_first && mean.host < kClearlyFaster * mean.unisono;
  cell.state = is_for_host ? State::host : State::unisono;
  cell.ns.reset();
  log_info(
      "rank %d of %d: tried: %s does %s of about %lld bytes (Unisono %.2f us, host MPI %.2f us)",
      own.rank, own.size, is_for_host ? "the host MPI" : "Unisono", small_name(collective).c_str(),
      static_cast<long long>(bytes), mean.unisono * 1e-3, mean.host * 1e-3);
}

Trials::Turn Trials::begin(Collective collective, std::int64_t bytes, Communicator& own) {
  if (bytes < 0) return {};  // ranks do not know them, so Unisono does the call
  const auto digits = std::bit_width(static_cast<std::uint64_t>(bytes));
  Cell& cell = cells_[static_cast<std::size_t>(collective)][static_cast<std::size_t>(digits)];
  if (cell.state == State::before) {
    if (cell.calls < kBefore) {
      ++cell.calls;
      return {.is_open = true};
    }
    cell.state = State::first;
    cell.calls = 0;
    cell.ns.reset(new (std::nothrow) Times);
  }
  const bool is_in_round = cell.state == State::first || cell.state == State::second;
  const bool ends_round = is_in_round && cell.calls == 2 * turns_of(cell.state);
  if (ends_round) end_round(cell, collective, bytes, own);
  if (cell.state == State::unisono || cell.state == State::host) {
    return {.is_for_host = cell.state == State::host};
  }
  const int call = cell.calls++;
  double* const ns = cell.ns == nullptr ? nullptr : &(*cell.ns)[static_cast<std::size_t>(call)];
  if (ns != nullptr) *ns = kFailedNs;
  return {
      .is_for_host = is_turn_of_host(call), .is_open = true, .has_exchanged = ends_round, .ns = ns};
}

}  // namespace unisono::mpi
