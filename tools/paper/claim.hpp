// SPDX-License-Identifier: BSD-3-Clause
// Claims: published numbers beside simulated ones. A claim states its tolerance where its number
// stands, before anything is simulated. A parameter that no paper publishes is fitted on other
// numbers than those that it is checked with, and the report says so. Measured rows stand beside
// them without a tolerance: the machine is not the paper's. Any thread.
#pragma once

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "model/machine.hpp"
#include "paper/measurements.hpp"
#include "paper/published.hpp"

namespace unisono::tools {

enum class Bound : std::uint8_t {
  near,      // within the tolerance on either side
  at_least,  // "over three times": more is no deviation
};

struct Claim {
  std::string what;
  std::string unit;
  double published = 0;
  double simulated = 0;
  double tolerance_percent = 0;
  std::string why = {};  // where it deviates: the reason, as far as it is known
  Bound bound = Bound::near;

  double deviation_percent() const { return (simulated / published - 1) * 100; }
  bool holds() const {
    const double deviation = deviation_percent();
    if (bound == Bound::at_least && deviation > 0) return true;
    return std::abs(deviation) <= tolerance_percent;
  }
};

// An order that a paper states: of two strategies, the first is the better one.
struct OrderClaim {
  std::string what;
  double published_gap_percent = 0;  // how much better; 0: the paper does not say
  bool holds = false;
};

// A figure of the kind that a paper publishes, measured on this project's engines.
struct MeasuredRow {
  std::string what;
  std::string unit;
  std::optional<double> published;  // nothing: the paper has no such figure
  double measured = 0;
  std::string comparable;  // how far the two can be compared, and why no further
};

struct MeasuredPart {
  std::vector<MeasurementSource> sources;
  std::vector<MeasuredRow> rows;
  std::string without;  // the paper's figures that have no measured counterpart, and why
};

struct PaperReport {
  std::string paper;  // short name
  std::string title;
  std::vector<std::string> parameters;  // what was simulated with, and where it comes from
  std::vector<Claim> claims;
  std::vector<OrderClaim> orders;
  MeasuredPart measured = {};
};

// Where reports take their data from: the folder of the machine files, the published numbers, and
// the stored measurements.
class Inputs {
 public:
  Inputs(std::string machines, Published published, Measurements measurements)
      : machines_(std::move(machines)),
        published_(std::move(published)),
        measurements_(std::move(measurements)) {}

  base::Result<model::Machine> machine(const std::string& name) const;
  Published& published() { return published_; }
  Measurements& measurements() { return measurements_; }

 private:
  std::string machines_;
  Published published_;
  Measurements measurements_;
};

base::Result<PaperReport> report_nic_reduce(Inputs& inputs);
base::Result<PaperReport> report_fat_tree(Inputs& inputs);
base::Result<PaperReport> report_nic_allgather(Inputs& inputs);
base::Result<PaperReport> report_asci_q(Inputs& inputs);
base::Result<PaperReport> report_rdma_mcast(Inputs& inputs);

// The measured part of a paper's report.
base::Result<MeasuredPart> measured_nic_reduce(Inputs& inputs);
base::Result<MeasuredPart> measured_fat_tree(Inputs& inputs);
base::Result<MeasuredPart> measured_nic_allgather(Inputs& inputs);
base::Result<MeasuredPart> measured_asci_q(Inputs& inputs);
base::Result<MeasuredPart> measured_rdma_mcast(Inputs& inputs);

}  // namespace unisono::tools
