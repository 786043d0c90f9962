// SPDX-License-Identifier: BSD-3-Clause
#include "bench/measure/measure.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "base/clock.hpp"
#include "bench/measure/cpu_clock.hpp"
#include "bench/measure/single_calls.hpp"

namespace unisono::tools::bench {
namespace {

constexpr std::int64_t kLoops = 7;
constexpr std::int64_t kFewestLoops = 3;  // where calls are so slow that one hardly fits the time
constexpr std::int64_t kMostCalls = 1'000'000;  // in one loop
constexpr std::int64_t kMostSamples = 100'000;  // single calls
constexpr std::int64_t kFewestSamples = 5;
// Single calls whose time sets the number. A trial may lose its core, so the fastest counts.
constexpr std::int64_t kTrials = 3;
constexpr std::int64_t kTrialCalls = 4;
// Calls of a loop that sets the number of the others. The first calls of a communicator make its
// memory real, some 64 slot indexes in turn, and take many times as long as later ones.
constexpr std::int64_t kFewestTrials = 64;
constexpr double kWarmupShare = 0.05;  // of the time for a cell

class Measurer {
 public:
  Measurer(const Place& place, Cell& cell, const Options& options, const Subject& subject)
      : place_(place), cell_(cell), options_(options), subject_(subject) {}

  base::Status loop();
  base::Status single();
  base::Status finish();
  Measurement take() && { return std::move(result_); }

 private:
  struct LoopTime {
    std::int64_t elapsed_ns = 0;
    CpuTime cpu;
  };

  double method_ns() const {
    return options_.seconds * 1e9 / (options_.method == Method::both ? 2 : 1);
  }
  base::Result<std::int64_t> warm_up();
  base::Result<LoopTime> one_loop(std::int64_t calls);
  base::Result<std::int64_t> choose_samples();
  base::Status check_barriers(std::vector<std::int64_t> enter, std::vector<std::int64_t> leave);

  const Place& place_;
  Cell& cell_;
  const Options& options_;
  const Subject subject_;
  std::int64_t phase_ = 0;
  std::int64_t wrong_ = 0;  // at this rank
  Measurement result_;
};

// Returns the number of calls that fit into the method's time, at least 1.
base::Result<std::int64_t> Measurer::warm_up() {
  const double enough_ns = method_ns() * kWarmupShare;
  // Two loops in a row must be long enough, and the faster one counts. Where ranks share cores, a
  // loop of a few calls may wait a thousand times their duration for the scheduler.
  double last_ns = 0;
  double last_call_ns = std::numeric_limits<double>::max();
  for (std::int64_t calls = options_.warmup > 0 ? options_.warmup : 1;; calls *= 2) {
    UNISONO_ASSIGN(const LoopTime time, one_loop(calls));
    const auto elapsed_ns = static_cast<double>(time.elapsed_ns);
    const double call_ns = std::max(1.0, elapsed_ns / static_cast<double>(calls));
    // Rank 0 says how many calls fit, or 0: not known well enough yet.
    const bool known = options_.warmup >= 0 || calls >= kMostCalls ||
                       (std::min(elapsed_ns, last_ns) >= enough_ns &&
                        (calls >= kFewestTrials || elapsed_ns >= method_ns()));
    const auto fitting = static_cast<std::int64_t>(method_ns() / std::min(call_ns, last_call_ns));
    last_ns = elapsed_ns;
    last_call_ns = call_ns;
    UNISONO_ASSIGN(const std::int64_t agreed,
                   agree(place_, known ? std::max<std::int64_t>(fitting, 1) : 0));
    if (agreed > 0) return agreed;
  }
}

base::Result<Measurer::LoopTime> Measurer::one_loop(std::int64_t calls) {
  const std::int64_t used = std::min<std::int64_t>(cell_.buffers(), calls);
  const std::int64_t first_phase = phase_;
  phase_ += used;
  for (std::int64_t i = 0; i < used; ++i) cell_.prepare(i, first_phase + i);
  UNISONO_TRY(to_status(unisono_barrier(place_.measured)));
  const CpuTime cpu_start = CpuTime::now();
  const std::int64_t start = base::now_ns();
  for (std::int64_t i = 0; i < calls; ++i) {
    if (const int code = cell_.call(i); code != UNISONO_OK) [[unlikely]] {
      return to_status(code).error();
    }
  }
  const std::int64_t end = base::now_ns();
  const CpuTime cpu_end = CpuTime::now();
  for (std::int64_t i = 0; i < used; ++i) wrong_ += cell_.wrong(i, first_phase + i);
  return LoopTime{end - start, cpu_end - cpu_start};
}

base::Status Measurer::loop() {
  UNISONO_ASSIGN(const std::int64_t fitting, warm_up());
  const std::int64_t wanted = options_.iterations > 0 ? options_.iterations : fitting;
  const std::int64_t fewest = options_.iterations > 0 ? 1 : kFewestLoops;
  const std::int64_t loops = std::clamp(wanted, fewest, kLoops);
  const std::int64_t calls = std::clamp<std::int64_t>(wanted / loops, 1, kMostCalls);
  std::vector<double> times;
  CpuTime cpu;
  for (std::int64_t i = 0; i < loops; ++i) {
    UNISONO_ASSIGN(const LoopTime time, one_loop(calls));
    times.push_back(static_cast<double>(time.elapsed_ns) * 1e-3 / static_cast<double>(calls));
    cpu += time.cpu;
  }
  UNISONO_TRY(combine(place_, times, UNISONO_MAX));
  std::vector<std::int64_t> spent{cpu.caller_ns, cpu.agent_ns()};
  UNISONO_TRY(combine(place_, spent, UNISONO_SUM));
  result_.loop = summarize(std::move(times));
  result_.loop_calls = calls;
  const auto all_calls = static_cast<double>(calls * loops * place_.ranks);
  result_.cpu_us = static_cast<double>(spent[0]) * 1e-3 / all_calls;
  result_.agent_us = static_cast<double>(spent[1]) * 1e-3 / all_calls;
  return base::success();
}

base::Result<std::int64_t> Measurer::choose_samples() {
  const std::int64_t trial =
      options_.warmup >= 0 ? std::max<std::int64_t>(options_.warmup, 1) : kTrialCalls;
  std::int64_t trial_ns = std::numeric_limits<std::int64_t>::max();
  for (std::int64_t i = 0; i < (options_.warmup >= 0 ? 1 : kTrials); ++i) {
    const std::int64_t start = base::now_ns();
    UNISONO_ASSIGN(const SingleCalls tried, call_singly(place_, cell_, trial, phase_));
    trial_ns = std::clamp<std::int64_t>(base::now_ns() - start, 1, trial_ns);
    wrong_ += tried.wrong;
  }
  if (options_.iterations > 0) return options_.iterations;
  const double call_ns = static_cast<double>(trial_ns) / static_cast<double>(trial);
  const auto fitting = static_cast<std::int64_t>(method_ns() / call_ns);
  return agree(place_, std::clamp(fitting, kFewestSamples, kMostSamples));
}

base::Status Measurer::single() {
  UNISONO_ASSIGN(const std::int64_t samples, choose_samples());
  UNISONO_ASSIGN(SingleCalls calls, call_singly(place_, cell_, samples, phase_));
  wrong_ += calls.wrong;
  std::vector<double> times = calls.times_us();
  for (double& time : times) time /= place_.ranks;
  UNISONO_TRY(combine(place_, times, UNISONO_SUM));
  result_.single = summarize(std::move(times));
  UNISONO_ASSIGN(result_.single_cpu_us, calls.mean_cpu_us(place_));
  if (subject_.collective == schedule::Collective::barrier) {
    return check_barriers(std::move(calls.enter_ns), std::move(calls.leave_ns));
  }
  return base::success();
}

// All processes of the machine have the same monotonic clock: no rank may leave before all have
// entered.
base::Status Measurer::check_barriers(std::vector<std::int64_t> enter,
                                      std::vector<std::int64_t> leave) {
  UNISONO_TRY(combine(place_, enter, UNISONO_MAX));
  UNISONO_TRY(combine(place_, leave, UNISONO_MIN));
  if (place_.rank != 0) return base::success();  // counted once for all
  for (std::size_t i = 0; i < enter.size(); ++i) wrong_ += leave[i] < enter[i] ? 1 : 0;
  return base::success();
}

base::Status Measurer::finish() {
  unisono_comm_info_t info{};
  info.size = sizeof info;
  UNISONO_TRY(to_status(unisono_comm_info(place_.measured, &info)));
  result_.algorithm = info.algorithm;
  result_.engine = info.engine;
  std::vector<std::int64_t> wrong{wrong_};
  UNISONO_TRY(combine(place_, wrong, UNISONO_SUM));
  result_.wrong = wrong[0];
  return base::success();
}

}  // namespace

base::Result<Measurement> measure(const Place& place, Cell& cell, const Options& options,
                                  const Subject& subject) {
  Measurer measurer(place, cell, options, subject);
  if (has_loop(options.method)) UNISONO_TRY(measurer.loop());
  if (has_single(options.method)) UNISONO_TRY(measurer.single());
  UNISONO_TRY(measurer.finish());
  return std::move(measurer).take();
}

}  // namespace unisono::tools::bench
