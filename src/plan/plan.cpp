// SPDX-License-Identifier: BSD-3-Clause
#include "plan/plan.hpp"

#include <algorithm>
#include <bit>

namespace unisono::plan {

Rotation rotate(const ReceiveGeometry& geometry, std::int64_t bytes, std::int64_t round) {
  if (bytes <= 0) return {};
  const std::int64_t places = std::min(geometry.data_bytes, round / geometry.slot_indexes) / bytes;
  const auto used = std::bit_floor(static_cast<std::uint64_t>(std::max<std::int64_t>(places, 1)));
  return {.slot_indexes_log2 = std::countr_zero(static_cast<unsigned>(geometry.slot_indexes)),
          .mask = used - 1,
          .bytes = bytes,
          .is_long = 2 * geometry.slot_indexes * static_cast<std::int64_t>(used) * bytes > round};
}

}  // namespace unisono::plan
