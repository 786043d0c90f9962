// SPDX-License-Identifier: BSD-3-Clause
// Measurements: stored results of the benchmark scripts, read when a report first needs them. A
// file that another tool wrote, or that lacks a needed figure, is refused: the error names the file
// and what was expected. One thread at a time.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace unisono::tools {

struct MeasurementFile {
  std::string_view name;
  std::string_view tool;  // the script that writes such files
};
inline constexpr MeasurementFile kNicPath{"2026-11-nic-path.json", "nic/compare.py"};
inline constexpr MeasurementFile kDistribution{"2026-11-nic-distribution.json", "nic/compare.py"};
inline constexpr MeasurementFile kConsistency{"2026-11-nic-consistency.json", "nic/consistency.py"};
inline constexpr MeasurementFile kLastInLastOut{"2026-11-nic-last-in-last-out.json",
                                                "nic/compare.py"};
inline constexpr MeasurementFile kProcessorTime{"2026-11-nic-processor-time.json",
                                                "nic/processor_time.py"};
inline constexpr MeasurementFile kHosts{"2026-11-hosts.json", "peers/compare.py"};

struct MeasurementSource {
  std::string file;
  std::string command;
  std::string machine;
};

class Measurements {
 public:
  explicit Measurements(std::string folder) : folder_(std::move(folder)) {}

  // The number at a place of the only result that has all members of `row`; a positive one.
  base::Result<double> at(const MeasurementFile& file, const nlohmann::json& row,
                          const std::string& place);
  // The command and the machine that a file came from.
  base::Result<MeasurementSource> source(const MeasurementFile& file);

 private:
  base::Result<const nlohmann::json*> content(const MeasurementFile& file);
  std::string path(const MeasurementFile& file) const;

  std::string folder_;
  std::map<std::string, nlohmann::json, std::less<>> read_;
};

}  // namespace unisono::tools
