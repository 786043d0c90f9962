// SPDX-License-Identifier: BSD-3-Clause
#include "bench/study/overlap.hpp"

#include <algorithm>

#include "base/clock.hpp"
#include "bench/measure/cpu_clock.hpp"
#include "statistics.hpp"

namespace unisono::tools::bench {
namespace {

constexpr std::int64_t kOverlapTrialCalls = 8;
constexpr std::int64_t kTrialShare = 5;  // rounds for each further trial call
constexpr std::int64_t kFewestRounds = 5;
constexpr std::int64_t kMostRounds = 100'000;
constexpr std::int64_t kCalibration = 1 << 20;  // units of work in the calibration

// The caller's work: units that depend on each other, so that neither the compiler nor the
// processor can shorten it. It is counted, not timed: a caller that has lost its core has not
// computed.
class Work {
 public:
  void compute(std::int64_t units) {
    double value = value_;
    for (std::int64_t i = 0; i < units; ++i) value = value * 0.999999 + 1e-6;
    value_ = value;
  }

  // The number of units that take this time on an undisturbed core.
  std::int64_t units_in(double ns) {
    const std::int64_t start = read_cpu_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    compute(kCalibration);
    const std::int64_t spent =
        std::max<std::int64_t>(1, read_cpu_clock_ns(CLOCK_THREAD_CPUTIME_ID) - start);
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(ns * kCalibration) / spent);
  }

 private:
  volatile double value_ = 1;
};

// Times of one kind of turn at this rank, and the processor time in them.
struct Turns {
  std::vector<double> us;
  CpuTime cpu;
};

class OverlapMeasurer {
 public:
  OverlapMeasurer(const Place& place, Cell& cell, const Options& options)
      : place_(place), cell_(cell), options_(options) {}

  base::Status choose_work();
  base::Status run();
  base::Result<Finding> finish();

 private:
  // A turn of `units` of work with the operation under way, or without.
  base::Status turn(Turns& turns, bool communicates, std::int64_t units);
  base::Status communicate(std::int64_t units);
  // The number of ranks that work, and whether this one does; results of the others are not
  // reported.
  int workers() const {
    return options_.workers == 0 ? place_.ranks : std::min(options_.workers, place_.ranks);
  }
  bool works() const { return place_.rank < workers(); }

  const Place& place_;
  Cell& cell_;
  const Options& options_;
  Work work_;
  std::int64_t units_ = 0;
  std::int64_t rounds_ = kFewestRounds;
  std::int64_t phase_ = 0;
  std::int64_t wrong_ = 0;
  Turns pure_, computed_, together_;
  Turns empty_;  // cost of reading the clocks
};

base::Status OverlapMeasurer::communicate(std::int64_t units) {
  unisono_request_t request = nullptr;
  UNISONO_TRY(to_status(cell_.start(0, &request)));
  const std::int64_t pieces = options_.polls + 1;
  for (std::int64_t piece = 0; piece < pieces; ++piece) {
    if (units > 0) work_.compute(units / pieces + (piece < units % pieces ? 1 : 0));
    int done = 0;
    if (piece + 1 < pieces && request != nullptr) {
      UNISONO_TRY(to_status(unisono_test(&request, &done)));
    }
  }
  return request == nullptr ? base::success() : to_status(unisono_wait(&request));
}

base::Status OverlapMeasurer::turn(Turns& turns, bool communicates, std::int64_t units) {
  if (communicates) cell_.prepare(0, phase_);
  UNISONO_TRY(to_status(unisono_barrier(place_.measured)));
  const CpuTime cpu_start = CpuTime::now();
  const std::int64_t start_ns = base::now_ns();
  if (communicates) {
    UNISONO_TRY(communicate(units));
  } else {
    work_.compute(units);
  }
  const std::int64_t end_ns = base::now_ns();
  turns.cpu += CpuTime::now() - cpu_start;
  turns.us.push_back(static_cast<double>(end_ns - start_ns) * 1e-3);
  if (communicates) wrong_ += cell_.wrong(0, phase_++);
  return base::success();
}

base::Status OverlapMeasurer::choose_work() {
  Turns first;
  const std::int64_t trials =
      options_.warmup >= 0 ? std::max<std::int64_t>(options_.warmup, 1) : kOverlapTrialCalls;
  const std::int64_t start_ns = base::now_ns();
  for (std::int64_t i = 0; i < trials; ++i) UNISONO_TRY(turn(first, true, 0));
  const double turn_ns =
      std::max(1.0, static_cast<double>(base::now_ns() - start_ns) / static_cast<double>(trials));
  // A round is communication twice and work twice.
  const auto fitting = static_cast<std::int64_t>(options_.seconds * 1e9 / (4 * turn_ns));
  UNISONO_ASSIGN(rounds_, agree(place_, options_.iterations > 0
                                            ? options_.iterations
                                            : std::clamp(fitting, kFewestRounds, kMostRounds)));
  // A few calls know too little of how long one takes where other programs run.
  Turns trial;
  for (std::int64_t i = 0; i < trials + rounds_ / kTrialShare; ++i) {
    UNISONO_TRY(turn(trial, true, 0));
  }
  const double pure_us = summarize(std::move(trial.us)).median;
  UNISONO_ASSIGN(const std::int64_t pure_ns,
                 agree(place_, static_cast<std::int64_t>(pure_us * 1e3)));
  if (works()) units_ = work_.units_in(static_cast<double>(pure_ns));
  return base::success();
}

base::Status OverlapMeasurer::run() {
  for (std::int64_t i = 0; i < rounds_; ++i) {
    UNISONO_TRY(turn(empty_, false, 0));
    UNISONO_TRY(turn(pure_, true, 0));
    UNISONO_TRY(turn(computed_, false, units_));
    UNISONO_TRY(turn(together_, true, units_));  // last: the report names the last algorithm
  }
  return base::success();
}

base::Result<Finding> OverlapMeasurer::finish() {
  double medians[3] = {};
  std::size_t at = 0;
  for (Turns* turns : {&pure_, &computed_, &together_}) {
    for (double& us : turns->us) us = works() ? us / workers() : 0;
    UNISONO_TRY(combine(place_, turns->us, UNISONO_SUM));
    medians[at++] = summarize(std::move(turns->us)).median;
  }
  const auto [pure, computed, together] = medians;
  const std::int64_t share = works() ? 1 : 0;
  std::vector<std::int64_t> sums{share * (together_.cpu.caller_ns - computed_.cpu.caller_ns),
                                 share * (pure_.cpu.caller_ns - empty_.cpu.caller_ns),
                                 share * together_.cpu.agent_ns(), wrong_};
  UNISONO_TRY(combine(place_, sums, UNISONO_SUM));
  const auto per_call = [this](std::int64_t ns) {
    return static_cast<double>(ns) * 1e-3 / static_cast<double>(rounds_ * workers());
  };
  return Finding{
      {together, computed, pure, overlap_percent(together, computed, pure),
       std::max(0.0, per_call(sums[0])), std::max(0.0, per_call(sums[1])), per_call(sums[2])},
      sums[3],
      {}};
}

base::Result<Finding> measure_overlap(const Place& place, Cell& cell, const Options& options,
                                      const CellShape&) {
  OverlapMeasurer measurer(place, cell, options);
  UNISONO_TRY(measurer.choose_work());
  UNISONO_TRY(measurer.run());
  return measurer.finish();
}

}  // namespace

double overlap_percent(double together, double computed, double pure) {
  return pure > 0 ? 100 * (1 - (together - computed) / pure) : 0;
}

Study overlap_study() {
  return {
      .name = "overlap",
      .notes =
          {"overall: start, compute, wait; compute: the work alone; pure: start and wait alone",
           "times: by turns, a barrier before each, mean of the ranks that work, median, in us",
           "overlap: 1 - (overall - compute) / pure, in %",
           "below 0: both together took longer than one after the other; above 100: less than the "
           "work alone",
           "caller: processor time of the calling thread for one operation, without its work",
           "alone: the same in pure; agent: that of the process's other threads in overall; mean, "
           "in us"},
      .columns = {{"overall", "overall_us"},
                  {"compute", "compute_us"},
                  {"pure", "pure_us"},
                  {"overlap", "overlap_percent", 1},
                  {"caller", "caller_us"},
                  {"alone", "caller_alone_us"},
                  {"agent", "agent_us"}},
      .measure = measure_overlap,
  };
}

}  // namespace unisono::tools::bench
