// SPDX-License-Identifier: BSD-3-Clause
// Lesson: the choice among the candidates of one kind of call by measured times. A few calls try
// another candidate. Once a candidate was tried often enough, the ranks exchange their medians, and
// the candidate replaces the present one if it is clearly faster. All ranks that make the same
// calls take the same turns, and from the same medians they decide alike. A value; one thread at a
// time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace unisono::select {

// One of so many successive operations tries a candidate, and none of the first ones does. So at
// most one call in 64 of any number of calls is a trial.
inline constexpr std::uint64_t kOperationsOfTrial = 64;
// Whether an operation of a communicator is one of these. Its place among the 64 is random, so that
// a program whose calls repeat has trials of them all.
bool is_trial(std::uint64_t seed, std::uint64_t operation);

// No candidate is tried whose price is so many times that of the usual choice.
inline constexpr double kTimesDearer = 3;
// More would take longer to try than most programs run.
inline constexpr std::size_t kMostLearned = 6;

class Lesson {
 public:
  // So many measured times of a candidate are a median. Up to four of them may be wrong in one
  // direction, and it is still a time that was measured rightly.
  static constexpr int kTimes = 9;
  // One decision may fall into a time of other load.
  static constexpr int kLostDecisions = 2;

  // Candidate 0 is the usual choice.
  explicit Lesson(std::size_t candidates) : candidates_(candidates) {}

  struct Turn {
    std::size_t candidate = 0;
    bool is_measured = false;  // its time is wanted
  };
  Turn next(bool is_trial);
  void add(std::size_t candidate, std::int64_t ns);
  // This rank cannot use it, and neither can the others: it is never tried again.
  void drop(std::size_t candidate) { candidates_[candidate].is_dropped = true; }

  std::size_t current() const { return current_; }
  // Whether every other candidate was dropped, or lost so many decisions to the present one.
  bool has_settled() const;
  bool is_dropped(std::size_t candidate) const { return candidates_[candidate].is_dropped; }
  // Whether the present candidate and another one have enough new times.
  bool is_ready() const;
  // The median of a candidate's last times; kNoTime with too few.
  static constexpr std::int64_t kNoTime = -1;
  std::int64_t median_ns(std::size_t candidate) const;

  struct Decision {
    std::size_t before = 0, after = 0;
    double before_ns = 0, after_ns = 0;  // means over the ranks of their medians
    int dropped = 0;                     // candidates that are far slower, never to be tried again
  };
  // The medians of all ranks, `stride` numbers for each, of which the first are the candidates'.
  Decision decide(std::span<const std::int64_t> medians, std::size_t stride);

 private:
  static constexpr std::size_t kKept = 63;
  struct Candidate {
    std::array<std::int64_t, kKept> ns{};
    std::size_t count = 0;  // of all times; the last kKept are kept
    int fresh = 0;          // since the last decision
    int lost = 0;           // decisions, to the present candidate
    bool is_dropped = false;
  };

  bool can_be_tried(std::size_t candidate) const {
    return candidate != current_ && !candidates_[candidate].is_dropped;
  }
  bool is_ready(std::size_t candidate) const;
  // The mean over the ranks; nullopt if a rank has no median.
  std::optional<double> mean(std::span<const std::int64_t> medians, std::size_t stride,
                             std::size_t candidate) const;

  std::vector<Candidate> candidates_;
  std::size_t current_ = 0;
  std::size_t last_tried_ = 0;
  int calls_until_measured_ = 0;  // 0: no call is awaited
};

}  // namespace unisono::select
