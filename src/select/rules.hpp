// SPDX-License-Identifier: BSD-3-Clause
// The table of rules: the choice for a collective unless the user overrides it. The rules of a
// collective are tried in order, and the last one always holds.
//
// They were measured on shared memory (bench/peers, unisono bench --guidelines) with 2 to 8 ranks
// on 2 cores. Rules for many ranks with a core each, and those of many_to_many, follow from steps
// and bytes. Rules for several hosts follow from the packets between them (schedule/cost.hpp). Each
// packet costs a processor as much as dozens of messages in shared memory. They also follow from
// measurements with two and four ranks on each of four hosts (docs/decisions/0015). Pure; any
// thread.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "schedule/shape.hpp"
#include "select/select.hpp"

namespace unisono::select {

// A call as the rules see it.
struct Situation {
  const schedule::Shape& shape;
  const Circumstances& now;
  // Length of the vector, or of a block (the average if they differ). 0 if counts are local: ranks
  // would choose differently, so no rule may depend on it.
  std::int64_t bytes = 0;

  const model::Machine& machine() const { return machine_of(now); }
  // Whether there are several hosts, and one with several ranks.
  bool shares_hosts() const { return shape.hosts.given() && !shape.hosts.are_alone(); }
  // Hosts of one rank each that are on one machine, and have fewer cores than ranks. Then their
  // messages take the same cores, and the work of all hosts counts more than the longest path.
  bool hosts_share_cores() const {
    return shape.hosts.are_alone() && now.shared_cores > 0 && shape.ranks > now.shared_cores;
  }
  // More ranks than cores, and more than two ranks: two exchange in pairs anyway.
  bool oversubscribed() const { return now.oversubscribed && shape.ranks > 2; }
};

struct Rule {
  schedule::Collective collective;
  std::string_view algorithm;
  bool all_ranks;  // its first parameter is the number of ranks, not the row's default
  bool (*holds)(const Situation& call);
  std::string_view reason;        // half a sentence for people
  std::string_view choices = {};  // the first parameters, "flat,first"
  bool priced = false;            // its first parameter is the cheapest number (with_cheapest())
};

std::span<const Rule> rules();

}  // namespace unisono::select
