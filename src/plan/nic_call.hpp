// SPDX-License-Identifier: BSD-3-Clause
// NicCall: a collective as the NIC path executes it. The same trees serve barrier, allreduce,
// reduce, broadcast and some allgathers. A reduce is an allreduce whose result only one rank takes.
// The others are allreduces with the bitwise or. To a broadcast all ranks but the root contribute
// zeros, if its root does not multicast its block itself. To an allgather each rank contributes its
// block at its place. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "arith/kernel.hpp"
#include "arith/type.hpp"
#include "base/result.hpp"
#include "select/nic/by_nic.hpp"
#include "select/nic/split_choice.hpp"

namespace unisono::plan {

// A collective, as the NIC path does it.
struct NicCall {
  // enum unisono_nic_combine; above UNISONO_NIC_COMBINE_BITS a digest of the call, which
  // distinguishes ranks whose vectors have other numbers of packets.
  std::uint32_t combine = 0;
  std::size_t bytes = 0;           // of the vector: up to nic::kWordsMax words
  std::size_t gives = 0;           // bytes of it that this rank contributes, ...
  std::size_t offset = 0;          // ... from here on
  bool takes = true;               // this rank takes the result
  arith::Kernel kernel = nullptr;  // the same operator on a processor; none: nothing is combined
  std::int64_t count = 0;          // number of its elements, and ...
  std::size_t element_bytes = 1;   // ... how long they are
  bool gathers = false;            // an allgather off the trees, with blocks of `bytes`, ...
  bool joins = false;              // ... which are joined to messages of doubling size
  bool asks = false;               // a barrier in which the root asks whether all have come
  // The root of a broadcast of at most a packet, which may multicast the block itself; -1: all
  // hosts contribute.
  int sender = -1;
};

using select::NicShape;

// The part of `rank` in a collective; Code::unsupported as select::check_nic_shape says.
base::Result<NicCall> lower_call(const NicShape& shape, int rank);
// An allgather off the trees, of blocks of so many bytes, with this shape's ranks, hosts and costs.
// The same at all ranks.
NicCall gather_off_trees(const NicShape& shape, std::size_t block_bytes);

// How often a call's vector is halved.
int splits_of(const NicCall& call, const select::SplitChoice& choice);

}  // namespace unisono::plan
