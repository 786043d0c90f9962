// SPDX-License-Identifier: BSD-3-Clause
#include "select/lesson.hpp"

#include <algorithm>

namespace unisono::select {
namespace {

// A candidate has to be this much faster. Smaller differences change with what else the machine
// does, and a choice that changes often costs more than it wins.
constexpr double kClearlyFaster = 0.9;
// A candidate that is so much slower than the present one is not tried again.
constexpr double kFarSlower = 1.5;
// The present candidate is measured some calls after each trial, so that both see the same load.
// The first call after a trial may still wait for its end.
constexpr int kCallsAfterTrial = 2;

std::uint64_t scrambled(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31);
}

}  // namespace

bool is_trial(std::uint64_t seed, std::uint64_t operation) {
  const std::uint64_t block = operation / kOperationsOfTrial;
  if (block == 0) return false;
  const std::uint64_t place = scrambled(scrambled(seed) + block) % kOperationsOfTrial;
  return operation % kOperationsOfTrial == place;
}

Lesson::Turn Lesson::next(bool is_trial) {
  if (is_trial) {
    for (std::size_t i = 1; i <= candidates_.size(); ++i) {
      const std::size_t candidate = (last_tried_ + i) % candidates_.size();
      if (!can_be_tried(candidate)) continue;
      last_tried_ = candidate;
      calls_until_measured_ = kCallsAfterTrial;
      return {.candidate = candidate, .is_measured = true};
    }
  }
  const bool is_measured = calls_until_measured_ > 0 && --calls_until_measured_ == 0;
  return {.candidate = current_, .is_measured = is_measured};
}

void Lesson::add(std::size_t candidate, std::int64_t ns) {
  Candidate& measured = candidates_[candidate];
  measured.ns[measured.count % kKept] = std::max<std::int64_t>(ns, 0);
  ++measured.count;
  ++measured.fresh;
}

bool Lesson::is_ready(std::size_t candidate) const {
  return can_be_tried(candidate) && candidates_[candidate].fresh >= kTimes;
}

bool Lesson::is_ready() const {
  if (candidates_[current_].count < static_cast<std::size_t>(kTimes)) return false;
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    if (is_ready(i)) return true;
  }
  return false;
}

bool Lesson::has_settled() const {
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    if (can_be_tried(i) && candidates_[i].lost < kLostDecisions) return false;
  }
  return true;
}

std::int64_t Lesson::median_ns(std::size_t candidate) const {
  const Candidate& measured = candidates_[candidate];
  if (measured.count < static_cast<std::size_t>(kTimes)) return kNoTime;
  std::array<std::int64_t, kKept> ns = measured.ns;
  const auto count = static_cast<std::ptrdiff_t>(std::min(measured.count, kKept));
  const auto middle = ns.begin() + count / 2;
  std::nth_element(ns.begin(), middle, ns.begin() + count);
  return *middle;
}

std::optional<double> Lesson::mean(std::span<const std::int64_t> medians, std::size_t stride,
                                   std::size_t candidate) const {
  double sum = 0;
  int ranks = 0;
  for (std::size_t first = 0; first < medians.size(); first += stride, ++ranks) {
    const std::int64_t ns = medians[first + candidate];
    if (ns < 0) return std::nullopt;
    sum += static_cast<double>(ns);
  }
  return sum / ranks;
}

Lesson::Decision Lesson::decide(std::span<const std::int64_t> medians, std::size_t stride) {
  Decision decision{.before = current_, .after = current_};
  std::vector<std::size_t> ready;
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    if (is_ready(i)) ready.push_back(i);
  }
  for (const std::size_t i : ready) candidates_[i].fresh = 0;
  const auto present = mean(medians, stride, current_);
  if (!present) return decision;
  decision.before_ns = decision.after_ns = *present;
  for (const std::size_t i : ready) {
    const auto ns = mean(medians, stride, i);
    if (!ns || *ns >= *present * kClearlyFaster || *ns >= decision.after_ns) continue;
    decision.after = i;
    decision.after_ns = *ns;
  }
  current_ = decision.after;
  if (decision.after != decision.before) {
    for (Candidate& each : candidates_) each.lost = 0;
  } else {
    for (const std::size_t i : ready) ++candidates_[i].lost;
  }
  ready.push_back(decision.before);
  for (const std::size_t i : ready) {
    const auto ns = mean(medians, stride, i);
    if (i == current_ || !ns || *ns <= decision.after_ns * kFarSlower) continue;
    candidates_[i].is_dropped = true;
    ++decision.dropped;
  }
  return decision;
}

}  // namespace unisono::select
