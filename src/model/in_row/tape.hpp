// SPDX-License-Identifier: BSD-3-Clause
// Tape: what all ranks of a set do in a segment, in the order in which a walk has executed it, and
// how long each part takes. Replay: the ranks' times when the segment follows again and again, with
// the same operations on the same numbers as the walk. So calls in a row cost less than walks. Only
// price.cpp and the clock use them; one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace unisono::model {

class Tape {
 public:
  // It will have at most so many entries, or grow.
  void begin(std::size_t most) {
    entries_.clear();
    entries_.reserve(most);
  }
  // A rank is busy so many times in turn.
  void spend(int rank, double ns, std::int64_t times = 1) {
    add(Kind::spend, 0, rank, ns, 0, static_cast<std::size_t>(times));
  }
  // A rank needs the arrival of that number, and receives it.
  void wait(int rank, std::size_t arrival, double reception_ns) {
    add(Kind::wait, 0, rank, reception_ns, 0, arrival);
  }
  // A message leaves by a rank's port: within the host (0) or between hosts (1).
  void leave(int rank, std::size_t port, double occupies_ns, double gap_ns) {
    add(Kind::leave, port, rank, occupies_ns, gap_ns);
  }
  // It arrives so long after it left. Port: that by which it left, the last one.
  void arrive(std::size_t port, std::size_t arrival, double flight_ns) {
    add(Kind::arrive, port, 0, flight_ns, 0, arrival);
  }

 private:
  friend class Replay;
  enum class Kind : std::uint8_t { spend, wait, leave, arrive };
  struct Entry {
    Kind kind;
    std::uint8_t port;
    std::int32_t rank;
    std::uint32_t number;  // of an arrival, or of times
    double ns, gap_ns;
  };

  void add(Kind kind, std::size_t port, int rank, double ns, double gap_ns = 0,
           std::size_t number = 0) {
    entries_.push_back({.kind = kind,
                        .port = static_cast<std::uint8_t>(port),
                        .rank = rank,
                        .number = static_cast<std::uint32_t>(number),
                        .ns = ns,
                        .gap_ns = gap_ns});
  }

  std::vector<Entry> entries_;
};

class Replay {
 public:
  struct Rank {
    double now = 0;
    std::array<double, 2> port{};  // when the next message may leave
    double staging_ns = 0;         // before each segment
    double hand_over_ns = 0;       // for the core, after a wait
    std::size_t set = 0;           // its cores
  };

  // After a segment. `busy`: the work on each set of cores so far; none if it is not asked for.
  // `tape` outlives it.
  Replay(const Tape& tape, std::vector<Rank> ranks, std::size_t arrivals, std::vector<double> busy)
      : tape_(tape), ranks_(std::move(ranks)), arrivals_(arrivals), busy_(std::move(busy)) {}

  // The next segment, which each rank begins with so much work.
  void go_on(double start_ns);

  const std::vector<Rank>& ranks() const { return ranks_; }
  const std::vector<double>& busy() const { return busy_; }

 private:
  void spend(Rank& rank, double ns) {
    rank.now += ns;
    if (!busy_.empty()) busy_[rank.set] += ns;
  }

  const Tape& tape_;
  std::vector<Rank> ranks_;
  std::vector<double> arrivals_;
  std::vector<double> busy_;
};

}  // namespace unisono::model
