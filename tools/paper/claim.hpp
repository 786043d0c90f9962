// SPDX-License-Identifier: BSD-3-Clause
// Claims: published numbers beside simulated ones. A claim states its tolerance where its number
// stands, before anything is simulated. Any thread.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "model/machine.hpp"

namespace unisono::tools {

struct Claim {
  std::string what;
  std::string unit;
  double published = 0;
  double simulated = 0;
  double tolerance_percent = 0;
  std::string why = {};  // where it deviates: the reason, as far as it is known

  double deviation_percent() const { return (simulated / published - 1) * 100; }
  bool holds() const { return std::abs(deviation_percent()) <= tolerance_percent; }
};

// An order that a paper states: of two strategies, the first is the better one.
struct OrderClaim {
  std::string what;
  double published_gap_percent = 0;  // how much better
  bool holds = false;
};

struct PaperReport {
  std::string paper;  // short name
  std::string title;
  std::vector<std::string> parameters;  // what was simulated with, and where it comes from
  std::vector<Claim> claims;
  std::vector<OrderClaim> orders;
};

// `machine` is the paper's: lemieux, alc.
base::Result<PaperReport> report_fat_tree(const model::Machine& machine);
base::Result<PaperReport> report_nic_reduce(const model::Machine& machine);

}  // namespace unisono::tools
