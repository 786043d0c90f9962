// SPDX-License-Identifier: BSD-3-Clause
// Moody et al., SC 2003: reductions in the NIC. The parameters were measured on crescendo, a
// machine with the same NIC as the 906 nodes of ALC (table 2). Each published latency has a
// hardware barrier in it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "model/closed_form/nic_reduce.hpp"
#include "paper/claim.hpp"
#include "paper/simulate.hpp"
#include "sim/events.hpp"
#include "sim/sweep.hpp"

namespace unisono::tools {
namespace {

constexpr int kReduceNodes = 906, kReduceDegree = 4;  // section 6.3
constexpr int kNodesOfDistribution = 900;             // section 6.4
// Fitted on the mean and the deviation of reductions by processes (add_consistency).
constexpr double kNoisePeriodUs = 165000, kNoiseLengthUs = 135;
constexpr double kReduceTolerancePercent = 15, kWideTolerancePercent = 25, kNearlyBestPercent = 5;

struct Case {
  int nodes = kReduceNodes;
  int count = 1;
  int degree = kReduceDegree;
  int splits = 0;
  arith::Type type = arith::Type::float64;
};

// The reduction alone, in microseconds.
base::Result<double> reduction_us(const model::Machine& machine, const Case& which) {
  Operation operation;
  operation.shape = {schedule::Collective::reduce, which.nodes, 0, which.count};
  operation.work = {model::Engine::nic, which.type, arith::Operator::sum, true};
  operation.algorithm = which.splits == 0 ? "fnomial" : "fnomial-split";
  operation.parameters = which.splits == 0 ? algorithm::Parameters{{which.degree}}
                                           : algorithm::Parameters{{which.splits, which.degree}};
  return latency_us(machine, operation);
}

base::Status add_degrees(Inputs& inputs, PaperReport& report) {
  UNISONO_ASSIGN(const model::Machine crescendo, inputs.machine("crescendo"));
  constexpr int kFewNodes = 31, kHighest = 16, kElement = 8;
  const auto parameters = [&](int count) {
    const std::int64_t bytes = std::int64_t{kElement} * count;
    return model::nic_reduce::parameters_of(
        model::remote_path(crescendo, model::Engine::nic, bytes), arith::Operator::sum,
        arith::Type::float64, bytes);
  };
  for (const int count : {1, 2, 4, 8}) {
    const double published = inputs.published().at(
        fmt::format("/nic-reduce/best_degree_31_nodes_float64_sum/{}", count));
    report.claims.push_back({fmt::format("31 nodes, {} x float64: best degree by T(P, f)", count),
                             "", published,
                             1.0 * best_degree(parameters(count), kFewNodes, kHighest), 0});
    // T counts a latency too many where a subtree is small. So the schedule may prefer another one.
    double least = 0, best = 0;
    for (int degree = 2; degree <= kHighest; ++degree) {
      UNISONO_ASSIGN(
          const double time,
          reduction_us(crescendo, {.nodes = kFewNodes, .count = count, .degree = degree}));
      if (degree == static_cast<int>(published)) best = time;
      if (degree == 2 || time < least) least = time;
    }
    report.claims.push_back(
        {fmt::format("31 nodes, {} x float64: that degree over the best simulated", count), "x", 1,
         best / least, kNearlyBestPercent,
         "the schedule does not wait a latency for small subtrees, which T(P, f) counts"});
  }
  model::nic_reduce::Parameters p = parameters(8);
  report.claims.push_back({"best degree, reduction dear (8 x float64)", "",
                           inputs.published().at("/nic-reduce/best_degree_range/low"),
                           std::max(2.0, std::round(optimal_degree(p))), 0});
  p.reduction = 0;
  report.claims.push_back({"best degree, reduction free, rounded up", "",
                           inputs.published().at("/nic-reduce/best_degree_range/high"),
                           std::ceil(optimal_degree(p)), 0});
  return base::success();
}

base::Status add_latencies(Inputs& inputs, const model::Machine& alc, double barrier,
                           PaperReport& report) {
  Published& published = inputs.published();
  const auto latency = [&](int number) {
    return published.at(fmt::format("/nic-reduce/latency_us/{}/nic", number));
  };
  const auto improvement = [&](int number) {
    return 1 + published.at(
                   fmt::format("/nic-reduce/latency_us/{}/improvement_over_mpi_percent", number)) /
                   100;
  };
  UNISONO_ASSIGN(double int32, reduction_us(alc, {.type = arith::Type::int32}));
  UNISONO_ASSIGN(double float64, reduction_us(alc, {}));
  int32 += barrier;
  float64 += barrier;
  report.claims.push_back(
      {"906 nodes, sum of int32", "us", latency(0), int32, kReduceTolerancePercent});
  report.claims.push_back(
      {"906 nodes, sum of float64", "us", latency(1), float64, kReduceTolerancePercent});
  // Section 6.3 blames system noise for what two processes a node take longer, without a number.
  // A host that the noise delays cannot start the next reduction, so all wait. If detours are
  // longer than a reduction, they take a share of the time, whatever is reduced.
  const double stretch = latency(2) / int32;
  report.claims.push_back({"1812 processes, sum of float64", "us", latency(3), float64 * stretch,
                           kReduceTolerancePercent});
  // The host's processor adds either type in no time, so MPI takes as long for both.
  const double mpi = latency(2) * improvement(2);
  report.claims.push_back({"1812 processes, float64: MPI's time over the NIC's", "x",
                           improvement(3), mpi / (float64 * stretch), kWideTolerancePercent});
  report.parameters.push_back(
      fmt::format("fitted: noise with two processes a node takes {:.0f} % of the time; on int32 "
                  "({:.0f} us), checked with float64",
                  (1 - 1 / stretch) * 100, latency(2)));
  report.parameters.push_back(
      fmt::format("fitted: a reduction by MPI takes {:.0f} us; on the improvement for int32, "
                  "checked with that for float64",
                  mpi));
  return base::success();
}

// The allreduce of processes that the paper compares with, one process a node: up a tree, whose
// processors receive each message, then a hardware broadcast.
class HostReduction {
 public:
  static base::Result<HostReduction> make(model::Machine machine, double best_us) {
    HostReduction result;
    UNISONO_ASSIGN(const double reception,
                   fit(0, best_us, best_us, [&](double us) -> base::Result<double> {
                     UNISONO_ASSIGN(const sim::ProgramSet programs, programs_of(machine, us));
                     return sim::to_ns(sim::sweep(programs).finish) / 1e3;
                   }));
    UNISONO_ASSIGN(result.programs_, programs_of(machine, reception));
    return result;
  }

  // Single calls under noise, of which each meets another part; ascending, without the highest 1 %.
  base::Result<std::vector<double>> times_us(const sim::Noise& noise) const {
    constexpr int kCalls = 2000, kTrimmedPercent = 1;
    std::vector<double> times;
    for (int call = 0; call < kCalls; ++call) {
      sim::EventOptions options;
      options.noise = noise;
      options.seed = static_cast<std::uint64_t>(call) + 1;
      UNISONO_ASSIGN(const sim::EventOutcome simulated, sim::simulate_events(programs_, options));
      times.push_back(sim::to_ns(simulated.outcome.finish) / 1e3);
    }
    std::ranges::sort(times);
    times.resize(times.size() - times.size() * kTrimmedPercent / 100);
    return times;
  }

 private:
  static base::Result<sim::ProgramSet> programs_of(model::Machine& machine, double reception_us) {
    for (model::PathParameters& path : machine.paths) {
      if (path.level != model::Level::hosts) continue;
      for (model::Curve::Point& point : path.reception.points) {
        point.value = {reception_us, 0, model::Unit::us, model::Origin::assumed, "fitted"};
      }
    }
    Operation operation;
    operation.shape = {schedule::Collective::allreduce, kNodesOfDistribution, 0, 1};
    operation.algorithm = "gather-release";
    operation.parameters = {{kReduceDegree - 1, 0}};
    operation.work = {model::Engine::any, arith::Type::float64, arith::Operator::sum, true};
    return compile(machine, operation);
  }

  sim::ProgramSet programs_;
};

// The largest share of the times that any band of this width has, in percent.
double share_within(const std::vector<double>& ascending, double width) {
  std::size_t most = 0, last = 0;
  for (std::size_t first = 0; first < ascending.size(); ++first) {
    while (last < ascending.size() && ascending[last] <= ascending[first] + width) ++last;
    most = std::max(most, last - first);
  }
  return 100.0 * static_cast<double>(most) / static_cast<double>(ascending.size());
}

// Section 6.4. In the NIC no noise meets a reduction under way, so all take the same time.
base::Status add_consistency(Inputs& inputs, const model::Machine& alc, double barrier,
                             PaperReport& report) {
  const auto published = [&](const char* name) {
    return inputs.published().at(std::string("/nic-reduce/consistency_900_nodes_float64_sum_us/") +
                                 name);
  };
  UNISONO_ASSIGN(const double nic, reduction_us(alc, {.nodes = kNodesOfDistribution}));
  report.claims.push_back({"900 nodes, float64 in the NIC: mean", "us", published("nic/mean"),
                           nic + barrier, kWideTolerancePercent});
  report.claims.push_back({"900 nodes, float64 in the NIC: share within 4 us", "%",
                           published("nic_share_within_4us_percent"), 100, kWideTolerancePercent});
  // The processes of asci-q have the same network and library.
  UNISONO_ASSIGN(const model::Machine processes, inputs.machine("asci-q"));
  const double mean = published("host/mean");
  constexpr double kBestOverMean = 3;  // section 6.3: the best times are about three times better
  UNISONO_ASSIGN(const HostReduction host, HostReduction::make(processes, mean / kBestOverMean));
  UNISONO_ASSIGN(const sim::Noise noise, sim::Noise::random(sim::to_time(kNoisePeriodUs * 1e3),
                                                            sim::to_time(kNoiseLengthUs * 1e3), 1));
  UNISONO_ASSIGN(const std::vector<double> times, host.times_us(noise));
  const double simulated_mean =
      std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size());
  double squares = 0;
  for (const double time : times) squares += (time - simulated_mean) * (time - simulated_mean);
  const double deviation = std::sqrt(squares / static_cast<double>(times.size()));
  report.claims.push_back({"900 nodes, float64 by processes: share within 20 us", "%",
                           published("host_share_within_20us_percent"), share_within(times, 20),
                           kWideTolerancePercent});
  report.parameters.push_back(fmt::format(
      "fitted: noise takes a process's core for {:.0f} us every {:.0f} ms. Chosen by reductions "
      "by processes: their mean ({:.1f} us, published {:.1f}) and standard deviation ({:.1f} us, "
      "published {:.1f}). Checked with the share within 20 us",
      kNoiseLengthUs, kNoisePeriodUs / 1e3, simulated_mean, mean, deviation,
      published("host/stddev")));
  return base::success();
}

base::Status add_splits(Inputs& inputs, const model::Machine& alc, double barrier,
                        PaperReport& report) {
  constexpr int kSplitNodes = 512;
  const auto time = [&](int count, int splits) -> base::Result<double> {
    UNISONO_ASSIGN(const double alone,
                   reduction_us(alc, {.nodes = kSplitNodes, .count = count, .splits = splits}));
    return alone + barrier;
  };
  UNISONO_ASSIGN(const double two, time(2, 0));
  UNISONO_ASSIGN(const double two_split, time(2, 1));
  UNISONO_ASSIGN(const double eight, time(8, 0));
  UNISONO_ASSIGN(const double eight_split, time(8, 3));
  UNISONO_ASSIGN(const double sixteen, time(16, 0));
  UNISONO_ASSIGN(const double sixteen_split, time(16, 4));
  report.claims.push_back({"512 nodes, 8 x float64, 3 splits: speed-up, nearly 3", "x", 3,
                           eight / eight_split, kWideTolerancePercent});
  report.claims.push_back({"512 nodes, 16 x float64, 4 splits: speed-up, over 3",
                           "x",
                           3,
                           sixteen / sixteen_split,
                           kWideTolerancePercent,
                           {},
                           Bound::at_least});
  const char* const why =
      "the published model has no cost of parting and joining a vector, and no figure above 64 "
      "bytes";
  report.claims.push_back(
      {"512 nodes, 16 x float64, 4 splits", "us",
       inputs.published().at(
           "/nic-reduce/vector_split_512_nodes_float64_sum/16_elements_4_splits_us"),
       sixteen_split, kWideTolerancePercent, why});
  report.orders.push_back({"512 nodes, 2 x float64: whole before 1 split", 0, two < two_split});
  return base::success();
}

}  // namespace

base::Result<PaperReport> report_nic_reduce(Inputs& inputs) {
  UNISONO_ASSIGN(const model::Machine alc, inputs.machine("alc"));
  if (!alc.hardware_barrier) {
    return base::Error{base::Code::argument, "alc.json lacks hardware_barrier"};
  }
  PaperReport report{"nic-reduce", "Moody et al.: Scalable NIC-based Reduction", {}, {}, {}};
  const double barrier = alc.hardware_barrier->ns() / 1e3;
  report.parameters = {"published: L, r, c, C of table 2, measured on crescendo",
                       "published elsewhere: barrier of 10 us (asci-q, section 5)"};
  UNISONO_TRY(add_degrees(inputs, report));
  UNISONO_TRY(add_latencies(inputs, alc, barrier, report));
  UNISONO_TRY(add_consistency(inputs, alc, barrier, report));
  UNISONO_TRY(add_splits(inputs, alc, barrier, report));
  return report;
}

}  // namespace unisono::tools
