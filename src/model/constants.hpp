// SPDX-License-Identifier: BSD-3-Clause
// Constants of a machine that belong to no path: from which sizes and numbers of ranks on one way
// of a call is faster than another, how long a rank waits in which way, and what the NIC path takes
// for blocks. A machine file may have any of them; the default machine has all. Values; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace unisono::model {

enum class Constant : std::uint8_t {
  split_from,
  priced_from_barrier,
  priced_from_broadcast,
  priced_from_reduce,
  priced_from_allreduce,
  priced_from_allgather,
  priced_from_gather,
  priced_from_scatter,
  priced_from_alltoall,
  priced_from_reduce_scatter,
  priced_from_scan,
  priced_from_exscan,
  priced_from_many_to_many,
  few_ranks,
  link_queue,
  link_bound_from,
  folded_below,
  streamed_broadcast,
  streamed_block,
  streamed_on_shared_cores,
  combined_by_tree_below,
  streamed_piece,
  tiny_block,
  joined_blocks,
  joined_by_hosts,
  combined_by_hosts,
  passed_on,
  many_of_host,
  single_copy_from,
  exchanged_whole,
  exchanged_whole_by,
  pulled_from,
  staged_up_to,
  exchange_from,
  referred_from,
  referred_in_place_from,
  moved_from,
  data_round,
  rank_spin,
  rank_turn,
  background_spin,
  nic_broadcast,
  nic_real_vector,
  nic_gathered,
  nic_host_block,
  nic_block,
  nic_block_per_byte,
  nic_message,
  nic_joined,
  nic_joined_per_byte,
  nic_step,
  nic_back_off,
  nic_back_off_most,
  nic_root_multicast,
};
inline constexpr int kConstantCount = 54;

enum class Quantity : std::uint8_t { bytes, ranks, time, time_per_byte };

struct ConstantRow {
  Constant id;
  std::string_view name;  // its key in machine files
  Quantity quantity;
  std::string_view about;  // half a sentence for people
};
// In the order of the enumeration.
std::span<const ConstantRow, kConstantCount> constant_rows();

}  // namespace unisono::model
