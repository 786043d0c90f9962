// SPDX-License-Identifier: BSD-3-Clause
// Counters for Prometheus: the text, and the file that node_exporter's textfile collector reads
// (docs/howto/nic-path.md). The text is pure; the file has one writer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "nic/loader/device.hpp"
#include "nic/service/protocol.hpp"

namespace unisono::daemon {

struct InterfaceSample {
  std::string name;
  bool native = false;
  nic::Counters counters = {};
};

struct MetricsSample {
  std::vector<InterfaceSample> interfaces;  // one or more
  bool up = true;                           // false in the last file of a daemon
  nic::ServiceCounters service;
  std::uint32_t connections = 0;
  std::uint32_t groups = 0;
  std::uint64_t bytes = 0;
  std::uint64_t retained_bytes = 0;
};

// In the text exposition format 0.0.4; each sample has the label `interface`. Where the daemon
// counts for all of its interfaces together, the label has their names, separated by commas.
std::string metrics_text(const MetricsSample& sample);

// A reader sees the old text or the new one as a whole, because the text goes to PATH.tmp first.
// The collector does not read that file: its name does not end in .prom.
class MetricsFile {
 public:
  explicit MetricsFile(std::string path) : path_(std::move(path)) {}

  // Replaces the file, with permissions 0644. An error names the path; the old file is then
  // unchanged. Anything but a regular file at the path is an error, because it would be replaced.
  base::Status write(const std::string& text) const;

 private:
  std::string path_;
};

}  // namespace unisono::daemon
