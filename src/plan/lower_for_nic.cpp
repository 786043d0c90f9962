// SPDX-License-Identifier: BSD-3-Clause
#include "plan/lower_for_nic.hpp"

#include <fmt/format.h>

#include "arith/type.hpp"
#include "select/nic/pays.hpp"

namespace unisono::plan {
namespace {

using base::Code;
using base::Error;
using schedule::Collective;

Error refusal(std::string why) { return {Code::unsupported, std::move(why)}; }

// The type of elements does not matter if none are combined.
NicShape as_bytes(const Call& call, const topology::HostMap& hosts) {
  NicShape shape;
  shape.ranks = hosts.ranks();
  shape.one_a_host = hosts.are_alone();
  shape.collective = call.collective;
  shape.type = arith::Type::byte;
  shape.count = call.count * call.element_bytes;
  shape.root = call.root;
  return shape;
}

}  // namespace

base::Result<NicCall> nic_call_of(const Call& call, const select::Choice& choice,
                                  const NicCommunicator& path, int rank) {
  if (call.purpose != Purpose::user) {
    return refusal(call.blocks.given() ? "its blocks have lengths of their own"
                                       : "it makes a communicator");
  }
  if (choice.origin == select::Origin::override_) {
    return refusal("UNISONO_ALGORITHM asks for " +
                   algorithm::describe(*choice.algorithm, choice.parameters));
  }
  if (call.collective != Collective::barrier && call.count == 0) {
    return refusal("there is nothing to send");
  }
  if (call.collective == Collective::reduce || call.collective == Collective::broadcast) {
    const base::Toggle wish = path.preferences.rooted;
    if (wish == base::Toggle::off) return refusal("UNISONO_NIC_ROOTED is off");
    if (wish == base::Toggle::automatic &&
        !select::nic_rooted_pays(call.collective, path.hosts.hosts())) {
      return refusal("all ranks would wait for all there (UNISONO_NIC_ROOTED=on)");
    }
  }
  if (!schedule::is_reduction(call.collective)) return lower_call(as_bytes(call, path.hosts), rank);
  if (call.op >= kFirstUserNumber || call.type >= kFirstUserNumber) {
    return refusal("the NIC knows no types and operators of the user's");
  }
  NicShape shape = as_bytes(call, path.hosts);
  shape.op = static_cast<arith::Operator>(call.op);
  shape.type = static_cast<arith::Type>(call.type);
  shape.count = call.count;
  return lower_call(shape, rank);
}

}  // namespace unisono::plan
