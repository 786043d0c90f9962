// SPDX-License-Identifier: BSD-3-Clause
#include "plan/nic_call.hpp"

#include <fmt/format.h>

#include "nic/lowering/lower.hpp"
#include "select/nic/pays.hpp"

namespace unisono::plan {
namespace {

using base::Code;
using base::Error;
using base::Status;
using schedule::Collective;

Status check_blocks(const NicShape& shape, std::size_t bytes) {
  if (!shape.one_a_host) {
    return Error{Code::unsupported, "an allgather goes there with one rank a host only"};
  }
  if (shape.ranks > UNISONO_NIC_RANKS_MAX) {
    return Error{Code::unsupported,
                 fmt::format("an allgather goes there with up to {} ranks", UNISONO_NIC_RANKS_MAX)};
  }
  if (bytes <= nic::kPacketBytes) return base::success();
  return Error{Code::unsupported, fmt::format("blocks of {} bytes do not fit one packet, {} bytes",
                                              bytes, nic::kPacketBytes)};
}

Status check_vector(const NicShape& shape, const NicCall& call) {
  const std::size_t most =
      select::nic_packets_that_pay(shape.collective, call.combine) * nic::kPacketBytes;
  if (call.bytes <= most) return base::success();
  return Error{Code::unsupported,
               fmt::format("a vector of {} bytes is faster without it; up to {} bytes go by it",
                           call.bytes, most)};
}

}  // namespace

base::Result<NicCall> lower_call(const NicShape& shape, int rank) {
  NicCall call;
  call.bytes = static_cast<std::size_t>(shape.count) * arith::type_size(shape.type);
  switch (shape.collective) {
    case Collective::barrier:
      call.bytes = 0;
      call.combine = UNISONO_NIC_NOTHING;
      return call;
    case Collective::allreduce:
    case Collective::reduce: {
      UNISONO_ASSIGN(call.combine, nic::lower_operator(shape.op, shape.type));
      call.kernel = arith::find_kernel(shape.op, shape.type);
      call.count = shape.count;
      call.element_bytes = arith::type_size(shape.type);
      call.takes = shape.collective == Collective::allreduce || rank == shape.root;
      break;
    }
    case Collective::broadcast:
      call.combine = UNISONO_NIC_OR;
      call.gives = rank == shape.root;
      call.takes = !call.gives;
      break;
    case Collective::allgather:
      UNISONO_TRY(check_blocks(shape, call.bytes));
      call.gathers = true;
      return call;
    case Collective::gather:
    case Collective::scatter:
    case Collective::alltoall:
    case Collective::reduce_scatter:
    case Collective::scan:
    case Collective::exscan:
    case Collective::many_to_many:
      return Error{Code::unsupported, fmt::format("the NIC path does no {}",
                                                  schedule::collective_name(shape.collective))};
  }
  UNISONO_TRY(check_vector(shape, call));
  return call;
}

int splits_of(const NicCall& call, const select::SplitChoice& choice) {
  return choice.splits(nic::words_of(call.bytes), select::nic_adds_floats(call.combine));
}

}  // namespace unisono::plan
