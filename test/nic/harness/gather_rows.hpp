// SPDX-License-Identifier: BSD-3-Clause
// Rows of allgathers in the NIC program, as the engine makes them: with blocks that are forwarded
// singly, and with blocks that are joined to messages of doubling size.
#pragma once

#include <vector>

#include "algorithm/algorithm.hpp"
#include "nic/harness/frames.hpp"
#include "nic/lowering/row.hpp"

namespace unisono::nic::test {

// One operation in flight, so two slots.
template <typename Lower>
unisono_nic_row gather_row(const char* name, int ranks, int rank, const Lower& lower_part) {
  schedule::Shape shape;
  shape.collective = schedule::Collective::allgather;
  shape.ranks = ranks;
  shape.count = 1;
  std::vector<unisono_nic_address> addresses;
  for (int each = 0; each < ranks; ++each) addresses.push_back(host_address(each));
  GroupAddresses group;
  group.id = {79, 0};
  group.key = {0x0123456789ABCDEF, 0xFEDCBA9876543210};
  group.ranks = addresses;
  group.depth = 1;
  const auto& algorithm = *algorithm::find(shape.collective, name);
  return *make_row(*lower_part(*algorithm::build(algorithm, shape, {}, rank)), group);
}

inline unisono_nic_row forwarding_row(int ranks, int rank) {
  return gather_row("concurrent-broadcast", ranks, rank, lower_allgather);
}
inline unisono_nic_row doubling_row(int ranks, int rank) {
  return gather_row("bruck", ranks, rank, lower_doubling);
}

}  // namespace unisono::nic::test
