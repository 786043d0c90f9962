// SPDX-License-Identifier: BSD-3-Clause
// Devices: the interfaces that the daemon serves, by position, and the groups of all of them under
// one number each. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "nic/loader/device.hpp"

namespace unisono::daemon {

class Devices {
 public:
  // They outlive this.
  explicit Devices(std::vector<nic::Device*> all) : all_(std::move(all)) {}
  Devices(nic::Device& only) : all_{&only} {}  // NOLINT: one device is several, too

  std::size_t count() const { return all_.size(); }
  nic::Device& at(std::size_t position) const { return *all_[position]; }

  // On the device at that position. The group's number.
  base::Result<std::uint32_t> add_group(std::size_t position, const unisono_nic_row& row) const;
  // The position of a group's device.
  static std::size_t position_of(std::uint32_t number);
  // As Device::remove_groups(); all of them are on the device at that position.
  base::Status remove_groups(std::size_t position, std::span<const std::uint32_t> numbers) const;
  // The group was added, and is not removed.
  const unisono_nic_row& row(std::uint32_t number) const;
  nic::GroupMaps maps(std::uint32_t number) const;

 private:
  std::vector<nic::Device*> all_;
};

}  // namespace unisono::daemon
