// SPDX-License-Identifier: BSD-3-Clause
#include "select/nic/pays.hpp"

#include <algorithm>

#include "nic/port/vector_limit.hpp"
#include "select/nic/tree_choice.hpp"

namespace unisono::select {
namespace {

using schedule::Collective;

// Costs at a host's program, in nanoseconds (bench/hop). First of a block that comes by itself and
// is kept. Then of a message whose blocks are kept, joined to others and sent.
constexpr double kBlockNs = 270;
constexpr double kBlockWordNs = 4;
constexpr double kMessageNs = 570;
constexpr double kJoinedNs = 45;
constexpr double kJoinedWordNs = 9;
constexpr double kStepNs = 300;

}  // namespace

bool nic_adds_floats(std::uint32_t combine) {
  const std::uint32_t how = combine & UNISONO_NIC_COMBINE_MASK;
  return how == UNISONO_NIC_SUM_FLOAT32 || how == UNISONO_NIC_SUM_FLOAT64;
}

std::uint32_t nic_packets_that_pay(Collective collective, std::uint32_t combine) {
  if (collective == Collective::broadcast) return 1;
  return nic_adds_floats(combine) ? 2 : nic::kPacketsMax;
}

bool nic_rooted_pays(Collective collective, int hosts) {
  return collective == Collective::reduce && hosts > 1 + nic_fan_in(hosts);
}

bool nic_joins_blocks(int ranks, std::size_t block_bytes) {
  const auto words = static_cast<double>(nic::words_of(block_bytes));
  const double singly = (ranks - 1) * (kBlockNs + words * kBlockWordNs);
  double joined = 0;
  double largest = 0;
  for (int distance = 1; distance < ranks; distance *= 2) {
    const double blocks = std::min(distance, ranks - distance);
    joined += kMessageNs + blocks * (kJoinedNs + words * kJoinedWordNs);
    if (distance > 1) joined += kStepNs;
    largest = std::max(largest, blocks);
  }
  return largest * (1 + words) <= UNISONO_NIC_WORDS_MAX && joined < singly;
}

}  // namespace unisono::select
