// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/devices.hpp"

#include "nic/program/tables.h"

namespace unisono::daemon {
namespace {

// A number has the position of its device above the index of its row.
constexpr unsigned kRowBits = 24;
constexpr std::uint32_t kRowMask = (1U << kRowBits) - 1;
static_assert(UNISONO_NIC_ROWS_MAX <= kRowMask);

std::uint32_t row_of(std::uint32_t number) { return number & kRowMask; }

}  // namespace

base::Result<std::uint32_t> Devices::add_group(std::size_t position,
                                               const unisono_nic_row& row) const {
  UNISONO_ASSIGN(const std::uint32_t index, at(position).add_group(row));
  return static_cast<std::uint32_t>(position) << kRowBits | index;
}

std::size_t Devices::position_of(std::uint32_t number) { return number >> kRowBits; }

base::Status Devices::remove_groups(std::size_t position,
                                    std::span<const std::uint32_t> numbers) const {
  std::vector<std::uint32_t> rows;
  for (const std::uint32_t number : numbers) rows.push_back(row_of(number));
  return at(position).remove_groups(rows);
}

const unisono_nic_row& Devices::row(std::uint32_t number) const {
  return at(position_of(number)).row(row_of(number));
}

nic::GroupMaps Devices::maps(std::uint32_t number) const {
  return at(position_of(number)).maps(row_of(number));
}

}  // namespace unisono::daemon
