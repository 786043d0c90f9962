// SPDX-License-Identifier: BSD-3-Clause
// A device that keeps rows and runs nothing, for what unisonod decides without a kernel.
#pragma once

#include <deque>
#include <map>

#include "nic/device.hpp"

namespace unisono::daemon::test {

class FakeDevice final : public nic::Device {
 public:
  bool native() const override { return false; }
  int interface() const override { return 2; }
  base::Result<std::uint32_t> add_group(const unisono_nic_row& row) override {
    const std::uint32_t index = next++;
    rows[index] = row;
    return index;
  }
  base::Status remove_groups(std::span<const std::uint32_t> gone) override {
    for (const std::uint32_t row : gone) {
      UNISONO_CHECK(rows.erase(row) == 1, "a group that is not there");
    }
    return base::success();
  }
  const unisono_nic_row& row(std::uint32_t row) const override { return rows.at(row); }
  nic::GroupMemory memory(std::uint32_t) const override { return {}; }
  nic::GroupMaps maps(std::uint32_t) const override { return {}; }
  base::Result<nic::Counters> counters() const override { return nic::Counters{}; }
  base::Status trace(std::uint32_t wanted) override {
    every = wanted;
    return base::success();
  }
  int trace_descriptor() const override { return every == 0 ? -1 : 1000; }
  base::Status read_trace(const std::function<bool(const unisono_nic_trace&)>& take) override {
    while (!records.empty()) {
      const unisono_nic_trace record = records.front();
      records.pop_front();
      if (!take(record)) break;
    }
    return base::success();
  }
  base::Result<nic::ProgramFacts> facts(nic::Entry) const override { return nic::ProgramFacts{}; }
  base::Result<nic::TrialRun> try_frame(nic::Entry, std::span<const std::byte>, int) override {
    return nic::TrialRun{};
  }

  std::map<std::uint32_t, unisono_nic_row> rows;
  std::uint32_t next = 0;
  std::uint32_t every = 0;  // of the trace
  std::deque<unisono_nic_trace> records;
};

}  // namespace unisono::daemon::test
