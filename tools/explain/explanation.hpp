// SPDX-License-Identifier: BSD-3-Clause
// Why a call gets its algorithm: every row of the table with its cost and predicted time, the
// library's choice, and the reason. It uses the code that chooses in a job, with the circumstances
// of a job on one machine or on several hosts. Main thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "arguments/tree_place.hpp"
#include "base/result.hpp"
#include "base/settings/settings.hpp"
#include "explain/measured.hpp"
#include "explain/on_tree.hpp"
#include "model/price.hpp"
#include "plan/call.hpp"
#include "plan/geometry.hpp"
#include "schedule/cost.hpp"
#include "select/candidates.hpp"
#include "select/nic/asking.hpp"
#include "select/select.hpp"

namespace unisono::tools {

struct Candidate {
  const algorithm::Algorithm* row = nullptr;
  algorithm::Parameters parameters;
  std::string why_not;  // it is not legal; empty: it is
  std::string excluded_by;
  bool is_for_exact = false;           // chosen for reproducible sums only, and this call is none
  bool is_for_by_one = false;          // ... for heterogeneous jobs only, and this is none
  std::optional<schedule::Cost> cost;  // if legal: of the whole vector in one part
  std::optional<schedule::CostBetweenHosts> between_hosts;  // if legal, and there are several
  std::optional<model::Price> price;                        // if legal, as `cost`
};

struct Explanation {
  std::vector<Candidate> candidates;   // in the order of the table
  std::vector<select::Priced> priced;  // all legal parameters of all rows, cheapest first
  // For each of these, the index of the first one with the same schedules, which may be its own.
  // Empty for so many ranks that schedules are not compared.
  std::vector<std::size_t> first_of_equals;
  select::Choice choice;
  std::vector<select::Priced> to_try;      // with UNISONO_LEARN, what calls try; first the choice
  select::Choice by_rule;                  // what the rules would choose
  std::optional<select::Choice> by_price;  // ... and what prices would
  std::optional<model::Price> price;       // of the choice; none: it has too many steps
  select::EngineKind engine = select::EngineKind::inline_;
  // How the data goes; none for so many ranks that no plan is made here.
  struct Way {
    bool single_copy = false;
    plan::SizeClass size = plan::SizeClass::small;  // of its receive buffers
    std::int64_t segments = 1;
  };
  std::optional<Way> way;
  std::optional<std::vector<MeasuredCalls>> measured;      // with profiles of a job
  std::optional<std::vector<SimulatedCandidate>> on_tree;  // if the ranks are on one
  bool by_nic = false;                                     // blocking calls take the NIC path
  std::string why_nic;                                     // ... or why not
  // The two ways of a barrier between hosts there, and whether it would ask.
  std::optional<select::NicBarrierPrices> nic_barrier;
  bool nic_asks = false;
};

// Where the ranks run. `cores` and `oversubscribed` do not count where there are several hosts.
struct RanksPlace {
  int ranks = 1;
  int cores = 1;  // of this host
  bool oversubscribed = false;
  topology::HostMap hosts{};
  bool multicast = false;  // between hosts
  int shared_cores = 0;    // of the machine that all hosts are on; 0: each has its own
};
// `machine` is the one for predicted times.
base::Result<Explanation> explain(const plan::Call& call, const RanksPlace& place,
                                  const base::Settings& settings, const model::Machine& machine);
// The candidates on a tree, whose nodes have a rank each.
base::Result<std::vector<SimulatedCandidate>> explain_on_tree(const plan::Call& call,
                                                              const RanksPlace& place,
                                                              const base::Settings& settings,
                                                              const model::Machine& machine,
                                                              const TreePlace& tree);

}  // namespace unisono::tools
