// SPDX-License-Identifier: BSD-3-Clause
#include "plan/nic_call.hpp"

#include "base/check.hpp"
#include "model/default_machine.hpp"
#include "nic/lowering/lower.hpp"
#include "nic/port/vector_limit.hpp"
#include "select/nic/pays.hpp"

namespace unisono::plan {

using schedule::Collective;

namespace {

// Elements are words, whatever the blocks consist of: the rest of the last word is zero.
NicCall gather_on_tree(const NicShape& shape, std::size_t block_bytes, int rank) {
  NicCall call;
  call.combine = UNISONO_NIC_OR;
  call.bytes = block_bytes * static_cast<std::size_t>(shape.ranks);
  call.gives = block_bytes;
  call.offset = block_bytes * static_cast<std::size_t>(rank);
  call.kernel = arith::find_kernel(arith::Operator::bitwise_or, arith::Type::uint64);
  call.count = static_cast<std::int64_t>(nic::words_of(call.bytes));
  return call;
}

}  // namespace

base::Result<NicCall> lower_call(const NicShape& shape, int rank) {
  UNISONO_TRY(select::check_nic_shape(shape));
  NicCall call;
  call.bytes = static_cast<std::size_t>(shape.count) * arith::type_size(shape.type);
  call.gives = call.bytes;
  switch (shape.collective) {
    case Collective::barrier:
      call.bytes = call.gives = 0;
      call.combine = UNISONO_NIC_NOTHING;
      call.asks = shape.asks;
      return call;
    case Collective::allreduce:
    case Collective::reduce: {
      UNISONO_ASSIGN(call.combine, nic::lower_operator(shape.op, shape.type));
      call.kernel = arith::find_kernel(shape.op, shape.type);
      call.count = shape.count;
      call.element_bytes = arith::type_size(shape.type);
      call.takes = shape.collective == Collective::allreduce || rank == shape.root;
      return call;
    }
    case Collective::broadcast:
      call.combine = UNISONO_NIC_OR;
      call.takes = rank != shape.root;
      if (call.takes) call.gives = 0;
      if (call.bytes <= nic::kPacketBytes) call.sender = shape.root;
      return call;
    case Collective::allgather:
      if (select::nic_gathers_on_tree(shape)) return gather_on_tree(shape, call.bytes, rank);
      return gather_off_trees(shape, call.bytes);
    case Collective::gather:
    case Collective::scatter:
    case Collective::alltoall:
    case Collective::reduce_scatter:
    case Collective::scan:
    case Collective::exscan:
    case Collective::many_to_many:
      break;
  }
  UNISONO_CHECK(false, "a collective that the NIC path was found to do");
  return call;
}

NicCall gather_off_trees(const NicShape& shape, std::size_t block_bytes) {
  const model::Machine& machine = shape.machine ? *shape.machine : model::default_machine();
  NicCall call;
  call.bytes = call.gives = block_bytes;
  call.gathers = true;
  // Only where each host has one rank.
  call.joins =
      shape.ranks == shape.hosts &&
      select::nic_joins_blocks(select::NicBlockCosts::of(machine), shape.hosts, block_bytes);
  return call;
}

int splits_of(const NicCall& call, const select::SplitChoice& choice) {
  return choice.splits(nic::words_of(call.bytes), select::nic_adds_floats(call.combine));
}

}  // namespace unisono::plan
