// SPDX-License-Identifier: BSD-3-Clause
#include "select/nic/by_nic.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.hpp"
#include "model/default_machine.hpp"
#include "nic/lowering/lower.hpp"
#include "nic/port/vector_limit.hpp"
#include "select/nic/asking.hpp"
#include "select/nic/pays.hpp"
#include "select/select.hpp"

namespace unisono::select {
namespace {

using base::Code;
using base::Error;
using base::Status;
using schedule::Collective;

Error refusal(std::string why) { return {Code::unsupported, std::move(why)}; }

std::size_t bytes_of(const NicShape& shape) {
  return static_cast<std::size_t>(shape.count) * arith::type_size(shape.type);
}

const model::Machine& machine_of(const NicShape& shape) {
  return shape.machine != nullptr ? *shape.machine : model::default_machine();
}

Status check_blocks(const NicShape& shape) {
  if (nic_gathers_on_tree(shape)) {
    const std::size_t most = nic_bytes_to_gather(machine_of(shape), shape.hosts);
    if (bytes_of(shape) <= most / static_cast<std::size_t>(shape.ranks)) return base::success();
    return refusal(
        fmt::format("{} blocks of {} bytes are faster without it; up to {} bytes of all go by it",
                    shape.ranks, bytes_of(shape), most));
  }
  const std::size_t most = nic_bytes_of_host(machine_of(shape));
  if (bytes_of(shape) <= most / static_cast<std::size_t>(shape.most_a_host)) return base::success();
  return refusal(
      fmt::format("blocks of {} bytes are faster without it; up to {} bytes of a host go "
                  "by it",
                  bytes_of(shape), most));
}

int most_a_host(const topology::HostMap& hosts) {
  std::size_t most = 1;
  for (int host = 0; host < hosts.hosts(); ++host) {
    most = std::max(most, hosts.members(host).size());
  }
  return static_cast<int>(most);
}

Status check_vector(const NicShape& shape, std::uint32_t combine) {
  const std::size_t most = nic_bytes_that_pay(machine_of(shape), shape.collective, combine);
  if (bytes_of(shape) <= most) return base::success();
  return refusal(fmt::format("a vector of {} bytes is faster without it; up to {} bytes go by it",
                             bytes_of(shape), most));
}

Status check_rooted(const schedule::Shape& shape, const Circumstances& now) {
  const Collective collective = shape.collective;
  if (collective != Collective::reduce && collective != Collective::broadcast) {
    return base::success();
  }
  const int hosts = shape.hosts.hosts();
  if (now.nic->rooted == base::Toggle::off) return refusal("UNISONO_NIC_ROOTED is off");
  if (now.nic->rooted == base::Toggle::on || nic_rooted_pays(collective, hosts)) {
    return base::success();
  }
  const auto bytes = static_cast<std::size_t>(shape.count * now.element_bytes);
  if (collective == Collective::broadcast && bytes <= nic::kPacketBytes &&
      nic_root_multicasts(machine_of(nic_shape_of(shape, now)), now.nic->rooted, hosts,
                          now.nic_multicasts)) {
    return base::success();
  }
  return refusal("receivers would wait for all ranks there (UNISONO_NIC_ROOTED=on)");
}

// The one algorithm by which a user may choose between ways of the NIC path.
bool is_asking(const algorithm::Algorithm& row) {
  return row.collective == Collective::barrier && row.name == kAskingBarrier;
}

}  // namespace

bool nic_asks(const schedule::Shape& shape, const Circumstances& now, const Choice& choice,
              const Ruling& ruling) {
  if (shape.collective != Collective::barrier || !now.nic_multicasts) return false;
  if (choice.origin == Origin::override_) return is_asking(*choice.algorithm);
  const auto is_out = [](const OverrideRule* rule) { return is_asking(*rule->algorithm); };
  return std::ranges::none_of(ruling.never, is_out) && barrier_prices(shape.hosts, now).asks();
}

NicShape nic_shape_of(const schedule::Shape& shape, const Circumstances& now) {
  NicShape nic;
  nic.collective = shape.collective;
  nic.type = arith::Type::byte;
  nic.count = shape.count * now.element_bytes;
  nic.root = shape.root;
  nic.ranks = shape.ranks;
  nic.hosts = shape.hosts.hosts();
  nic.most_a_host = most_a_host(shape.hosts);
  nic.machine = now.machine;
  if (!schedule::is_reduction(shape.collective)) return nic;
  UNISONO_CHECK(now.op && now.type, "a user's operator in the NIC path");
  nic.op = *now.op;
  nic.type = *now.type;
  nic.count = shape.count;
  return nic;
}

bool nic_gathers_on_tree(const NicShape& shape) {
  if (shape.hosts > UNISONO_NIC_RANKS_MAX) return true;
  const std::size_t most = nic_bytes_to_gather(machine_of(shape), shape.hosts);
  return shape.most_a_host > 1 && bytes_of(shape) <= most / static_cast<std::size_t>(shape.ranks);
}

Status check_nic_shape(const NicShape& shape) {
  switch (shape.collective) {
    case Collective::barrier:
      return base::success();
    case Collective::allreduce:
    case Collective::reduce: {
      UNISONO_ASSIGN(const std::uint32_t combine, nic::lower_operator(shape.op, shape.type));
      return check_vector(shape, combine);
    }
    case Collective::broadcast:
      return check_vector(shape, UNISONO_NIC_OR);
    case Collective::allgather:
      return check_blocks(shape);
    case Collective::gather:
    case Collective::scatter:
    case Collective::alltoall:
    case Collective::reduce_scatter:
    case Collective::scan:
    case Collective::exscan:
    case Collective::many_to_many:
      break;
  }
  return refusal(
      fmt::format("the NIC path does no {}", schedule::collective_name(shape.collective)));
}

Status check_nic_call(const schedule::Shape& shape, const Circumstances& now,
                      const Choice& choice) {
  if (!now.nic) return refusal("the communicator has none");
  if (!now.is_plain) {
    return refusal(shape.blocks.given() ? "its blocks have lengths of their own"
                                        : "it makes a communicator");
  }
  if (shape.exact) return refusal("it rounds partial sums, and UNISONO_REPRODUCIBLE is on");
  if (shape.by_one) {
    return refusal("several hosts combine there, and UNISONO_HETEROGENEOUS is on");
  }
  if (choice.origin == Origin::override_ && !is_asking(*choice.algorithm)) {
    return refusal("UNISONO_ALGORITHM asks for " +
                   algorithm::describe(*choice.algorithm, choice.parameters));
  }
  if (shape.collective != Collective::barrier && shape.count == 0) {
    return refusal("there is nothing to send");
  }
  UNISONO_TRY(check_rooted(shape, now));
  if (schedule::is_reduction(shape.collective) && !(now.op && now.type)) {
    return refusal("the NIC knows no types and operators of the user's");
  }
  return check_nic_shape(nic_shape_of(shape, now));
}

}  // namespace unisono::select
