// SPDX-License-Identifier: BSD-3-Clause
// The benchmark's output on a study, on rank 0: a table line by line, or JSON at the end, and the
// picture of its histograms if wanted. One thread.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bench/head.hpp"
#include "bench/study/histogram_picture.hpp"
#include "bench/study/study.hpp"

namespace unisono::tools::bench {

// The subject of a line.
struct StudyLine {
  Subject subject;
  std::int64_t bytes = 0;
  std::int64_t count = 0;
  int ranks = 1;
  std::string algorithm;
  std::string engine;
};

class StudyReport {
 public:
  StudyReport(const Job& job, const Study& study);
  ~StudyReport();
  StudyReport(const StudyReport&) = delete;
  StudyReport& operator=(const StudyReport&) = delete;

  void add(const StudyLine& line, const Finding& finding);
  // Error: a file cannot be written.
  base::Status end();

 private:
  void print_heading(const Subject& subject);
  void print_finding(const StudyLine& line, const Finding& finding);

  const Study& study_;
  Options options_;
  std::unique_ptr<nlohmann::ordered_json> document_;
  std::vector<Panel> panels_;
  std::string heading_;
};

}  // namespace unisono::tools::bench
