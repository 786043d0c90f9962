// SPDX-License-Identifier: BSD-3-Clause
// A device that keeps rows and executes nothing, for tests of unisonod's decisions without a
// kernel.
#pragma once

#include <sys/eventfd.h>

#include <deque>
#include <map>

#include "base/descriptor.hpp"
#include "nic/loader/device.hpp"

namespace unisono::daemon::test {

class FakeDevice final : public nic::Device {
 public:
  bool native() const override { return false; }
  int interface() const override { return 2; }
  base::Result<std::uint32_t> add_group(const unisono_nic_row& row) override {
    const std::uint32_t index = next++;
    rows[index] = row;
    memory_of[index].reset(eventfd(0, EFD_CLOEXEC));
    return index;
  }
  base::Status remove_groups(std::span<const std::uint32_t> gone) override {
    for (const std::uint32_t row : gone) UNISONO_CHECK(rows.contains(row), "is not there");
    if (removes_nothing) return base::Error{base::Code::system, "NIC program: it is busy"};
    for (const std::uint32_t row : gone) {
      rows.erase(row);
      memory_of.erase(row);
    }
    return base::success();
  }
  const unisono_nic_row& row(std::uint32_t row) const override { return rows.at(row); }
  nic::GroupMemory memory(std::uint32_t) const override { return {}; }
  nic::GroupMaps maps(std::uint32_t row) const override {
    return {memory_of.at(row).get(), -1, {}};
  }
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
  std::map<std::uint32_t, base::Descriptor> memory_of;  // stands for a map, by row
  bool removes_nothing = false;
  std::uint32_t next = 0;
  std::uint32_t every = 0;  // of the trace
  std::deque<unisono_nic_trace> records;
};

}  // namespace unisono::daemon::test
