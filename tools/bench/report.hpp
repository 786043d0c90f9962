// SPDX-License-Identifier: BSD-3-Clause
// The output of the benchmark, on rank 0: a table for people, the layout of the OSU
// micro-benchmarks for scripts that parse it, or complete JSON. Lines are printed as soon as they
// are known. JSON is one document at the end. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "bench/head.hpp"
#include "bench/measure/measure.hpp"
#include "bench/options.hpp"

namespace unisono::tools::bench {

class Report {
 public:
  virtual ~Report() = default;

  virtual void begin(const Job& job) = 0;
  virtual void subject(const Subject& subject) = 0;
  // `bytes` and `count` are 0 for a barrier.
  virtual void cell(std::int64_t bytes, std::int64_t count, const Measurement& measurement) = 0;
  virtual base::Status end() = 0;  // an error if the file of JSON cannot be written
};

// Writes to stdout, and JSON to `json_path` too if it is not empty; the file is created at once.
base::Result<std::unique_ptr<Report>> make_report(Format format, const std::string& json_path);

}  // namespace unisono::tools::bench
