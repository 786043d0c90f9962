// SPDX-License-Identifier: BSD-3-Clause
// The benchmark's output on guidelines, on rank 0: a line for each as soon as it is known, or JSON
// at the end. One thread.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/result.hpp"
#include "bench/guideline/comparison.hpp"
#include "bench/guideline/contest.hpp"
#include "bench/head.hpp"

namespace unisono::tools::bench {

struct GuidelineResult {
  Comparison comparison;
  Contest contest;
  double at_most = 1;  // the ratio that is still right

  bool holds() const { return contest.ratio() <= at_most; }
};

class GuidelineReport {
 public:
  explicit GuidelineReport(const Job& job);
  ~GuidelineReport();
  GuidelineReport(const GuidelineReport&) = delete;
  GuidelineReport& operator=(const GuidelineReport&) = delete;

  void add(const GuidelineResult& result);
  // Error: the file for JSON cannot be written.
  base::Status end();
  int guidelines() const { return guidelines_; }
  int failures() const { return failures_; }

 private:
  bool table_;
  std::string json_path_;
  Options options_;
  std::unique_ptr<nlohmann::ordered_json> document_;
  std::string heading_;
  int guidelines_ = 0;
  int failures_ = 0;
};

}  // namespace unisono::tools::bench
