// SPDX-License-Identifier: BSD-3-Clause
#include "explain/explanation.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "algorithm/mock/slot_counts.hpp"
#include "algorithm/pattern/circulant_turns.hpp"
#include "comm/communicator.hpp"
#include "engine/nic/nic_group.hpp"
#include "nic/service/probe.hpp"
#include "plan/plan_cache.hpp"
#include "schedule/spares.hpp"
#include "select/nic/by_nic.hpp"
#include "select/nic/pays.hpp"
#include "select/nic/tree_choice.hpp"
#include "transport/ip/network_settings.hpp"
#include "transport/table.hpp"

namespace unisono::tools {
namespace {

// A plan has the schedules of all ranks, also where one stands for all.
constexpr int kMostPlannedRanks = 1024;
// Candidates of more ranks are not compared, as each comparison builds two schedules of each rank.
constexpr int kMostComparedRanks = 64;

// The context of a communicator of all ranks of a job on this machine. Whether ranks can read each
// other's memory is found when a job starts; here they can, unless the setting forbids it. Ranks of
// several hosts have no shared memory (comm::Communicator). They have streams, unless a setting
// forbids those.
base::Result<plan::PlanContext> make_context(const RanksPlace& place,
                                             const base::Settings& settings,
                                             const model::Machine& machine) {
  const bool one_memory = !place.hosts.given();
  const transport::Capabilities has = transport::local_rows().front().capabilities();
  const bool has_streams = transport::choose_remote_memory(settings).row != nullptr;
  const comm::Links links = one_memory    ? comm::Links::none
                            : has_streams ? comm::Links::streams
                                          : comm::Links::datagrams;
  const std::int64_t left =
      settings.bytes(base::Setting::shared_limit) / std::max(1, place.hosts.hosts());
  const int few = static_cast<int>(model::constant_of(machine, model::Constant::few_ranks).count());
  const comm::SegmentLayout layout = comm::plan_segment(
      place.ranks, settings, links, comm::spread_over(place.hosts, place.multicast, few, left));
  plan::PlanContext context;
  context.ranks = place.ranks;
  context.hosts = place.hosts;
  for (int rank = 0; rank < place.ranks && !one_memory; ++rank) {
    if (place.multicast) context.group.push_back(place.hosts.place(rank) == 0);
  }
  context.oversubscribed = one_memory && place.oversubscribed;
  context.cores = place.cores;
  context.shared_cores = place.shared_cores;
  context.staged_multicast = has.multicast;
  context.multicast = one_memory ? has.multicast : place.multicast && place.hosts.are_alone();
  context.nic_multicasts = place.multicast;
  context.streams = layout.streams;
  context.shared_receive_buffers = one_memory && has.shared_receive_buffers;
  context.engine = settings.engine();
  context.pull = one_memory && settings.toggle(base::Setting::single_copy) != base::Toggle::off;
  context.single_copy_from = settings.bytes(base::Setting::single_copy_from);
  context.reproducible = settings.reproducible();
  context.heterogeneous = settings.toggle(base::Setting::heterogeneous) == base::Toggle::on;
  context.check = settings.toggle(base::Setting::check);
  context.receive_buffers = layout.receive_buffers;
  context.machine = &machine;
  UNISONO_ASSIGN(context.overrides, select::overrides_of(settings));
  return context;
}

// A price that is among `priced` already, or a new one; nullopt if there are too many steps.
std::optional<model::Price> find_price(const algorithm::Algorithm& row,
                                       const algorithm::Parameters& parameters,
                                       const schedule::Shape& shape, const select::Pricing& pricing,
                                       const std::vector<select::Priced>& priced) {
  const auto found = std::ranges::find_if(priced, [&](const select::Priced& each) {
    return each.row == &row && each.parameters == parameters;
  });
  if (found != priced.end()) return found->price;
  return select::price_if_priceable(row, parameters, shape, pricing);
}

base::Status fill_costs(Candidate& candidate, const schedule::Shape& shape,
                        const select::Pricing& pricing, const std::vector<select::Priced>& priced) {
  const algorithm::Algorithm& row = *candidate.row;
  candidate.price = find_price(row, candidate.parameters, shape, pricing, priced);
  if (!candidate.price) return base::success();
  if (select::one_stands_for_all(row, shape)) {
    UNISONO_ASSIGN(const auto any, algorithm::build(row, shape, candidate.parameters, 0));
    candidate.cost = schedule::cost_of_alike(any);
    if (shape.hosts.given()) candidate.between_hosts = schedule::cost_between_hosts_of_alike(any);
    return base::success();
  }
  std::vector<schedule::Schedule> set;
  set.reserve(static_cast<std::size_t>(shape.ranks));
  for (int rank = 0; rank < shape.ranks; ++rank) {
    UNISONO_ASSIGN(auto one, algorithm::build(row, shape, candidate.parameters, rank));
    set.push_back(std::move(one));
  }
  candidate.cost = schedule::cost(set);
  if (shape.hosts.given()) candidate.between_hosts = schedule::cost_between_hosts(set);
  for (schedule::Schedule& each : set) schedule::Spares::give_back(std::move(each));
  return base::success();
}

base::Result<Candidate> judge(const algorithm::Algorithm& row, const schedule::Shape& shape,
                              const select::Choice& choice, const select::Ruling& ruling,
                              const select::Pricing& pricing,
                              const std::vector<select::Priced>& priced) {
  Candidate candidate{.row = &row,
                      .parameters = choice.algorithm == &row
                                        ? choice.parameters
                                        : algorithm::default_parameters(row, shape),
                      .why_not = {},
                      .excluded_by = {},
                      .is_for_exact = row.sums_exactly && !shape.exact,
                      .is_for_by_one = row.only_for_by_one && !shape.by_one,
                      .cost = {},
                      .between_hosts = {},
                      .price = {}};
  if (const auto* rule = ruling.excluded_by(row)) candidate.excluded_by = describe(*rule);
  candidate.why_not = select::why_not(row, shape, candidate.parameters);
  if (candidate.why_not.empty()) UNISONO_TRY(fill_costs(candidate, shape, pricing, priced));
  return candidate;
}

base::Result<bool> have_equal_schedules(const select::Priced& a, const select::Priced& b,
                                        const schedule::Shape& shape) {
  // Equal schedules have equal prices, which most others have not.
  if (a.price.ns != b.price.ns || a.price.in_row_ns != b.price.in_row_ns) return false;
  for (int rank = 0; rank < shape.ranks; ++rank) {
    UNISONO_ASSIGN(const auto one, algorithm::build(*a.row, shape, a.parameters, rank));
    UNISONO_ASSIGN(const auto other, algorithm::build(*b.row, shape, b.parameters, rank));
    if (one != other) return false;
  }
  return true;
}

base::Result<std::vector<std::size_t>> find_equals(const std::vector<select::Priced>& priced,
                                                   const schedule::Shape& shape) {
  std::vector<std::size_t> first;
  if (shape.ranks > kMostComparedRanks) return first;
  for (std::size_t i = 0; i < priced.size(); ++i) {
    first.push_back(i);
    for (std::size_t j = 0; j < i && first[i] == i; ++j) {
      if (first[j] != j) continue;
      UNISONO_ASSIGN(const bool equal, have_equal_schedules(priced[i], priced[j], shape));
      if (equal) first[i] = j;
    }
  }
  return first;
}

// The way of an allgather off the trees.
std::string describe_blocks(const plan::NicCall& call, const select::NicShape& shape,
                            bool multicasts) {
  const std::size_t bytes = call.bytes * static_cast<std::size_t>(shape.most_a_host);
  const std::size_t packets = (bytes + nic::kPacketBytes - 1) / nic::kPacketBytes;
  const char* const way = !multicasts             ? "hosts forward blocks to one another"
                          : shape.most_a_host > 1 ? "each host multicasts the blocks of its ranks"
                                                  : "each rank multicasts its block";
  return packets > 1 ? fmt::format("{}, in {} packets", way, packets) : way;
}

// Whether the other hosts have a daemon is not to be known here; whether this one has, is.
base::Error why_not_by_nic(const std::string& why) { return {base::Code::unsupported, why}; }

base::Result<std::string> find_nic(const schedule::Shape& shape, select::Circumstances now,
                                   const RanksPlace& place, const base::Settings& settings,
                                   const select::Choice& choice) {
  if (!place.hosts.given()) return why_not_by_nic("all ranks are on one host");
  if (settings.toggle(base::Setting::nic) == base::Toggle::off) {
    return why_not_by_nic("UNISONO_NIC is off");
  }
  const nic::Preferences preferences = nic::Preferences::of(settings);
  now.nic = preferences;
  UNISONO_TRY(select::check_nic_call(shape, now, choice));
  const select::NicShape nic_shape = select::nic_shape_of(shape, now);
  UNISONO_ASSIGN(const plan::NicCall lowered, plan::lower_call(nic_shape, 0));
  UNISONO_ASSIGN(const transport::NetworkSettings networks, transport::network_settings(settings));
  UNISONO_ASSIGN(const nic::Capabilities own,
                 nic::probe_capabilities(settings.text(base::Setting::nic_socket), preferences,
                                         [&](const std::string& interface, std::uint32_t ipv4) {
                                           return networks.networks.allows(
                                               interface, transport::ipv4_address(ipv4));
                                         }));
  // Hosts are machines of their own, like this one.
  std::vector<nic::Capabilities> offers(static_cast<std::size_t>(place.hosts.hosts()), own);
  for (std::size_t host = 0; host < offers.size(); ++host) {
    offers[host].machine = static_cast<std::uint32_t>(host);
  }
  const auto choice_of_splits =
      select::choose_splits(offers, place.hosts.are_alone(), place.multicast, *now.machine);
  const int splits = plan::splits_of(lowered, choice_of_splits);
  const std::string tree = select::nic_tree_name(place.hosts, splits, place.multicast);
  const std::size_t packets = (lowered.bytes + nic::kPacketBytes - 1) / nic::kPacketBytes;
  const std::string whole = packets > 1 ? fmt::format("in {} packets ", packets) : "";
  const bool casts = lowered.sender >= 0 && lowered.bytes <= nic::kPacketBytes &&
                     select::nic_root_multicasts(*now.machine, own.preferences.rooted,
                                                 place.hosts.hosts(), place.multicast);
  return fmt::format("if the other hosts have a unisonod as this one has; {}",
                     casts             ? "the root multicasts its block"
                     : lowered.gathers ? describe_blocks(lowered, nic_shape, place.multicast)
                     : splits > 0      ? "in pieces on the trees " + tree
                                       : whole + "on the tree " + tree);
}

}  // namespace

base::Result<Explanation> explain(const plan::Call& call, const RanksPlace& place,
                                  const base::Settings& settings, const model::Machine& machine) {
  UNISONO_ASSIGN(const plan::PlanContext context, make_context(place, settings, machine));
  const schedule::Shape shape = plan::shape_of(call, context);
  const select::Circumstances now = plan::circumstances_of(call, context);
  Explanation result;
  result.choice = select::choose(shape, now, context.overrides);
  if (settings.toggle(base::Setting::learn) == base::Toggle::on) {
    result.to_try = select::candidates_to_try(shape, now, context.overrides, result.choice);
  }
  const select::Ruling ruling =
      select::rule_on(context.overrides, shape, select::common_bytes(shape, now));
  result.by_rule = select::choose_by_rule(shape, now, context.overrides);
  result.by_price = select::choose_by_price(shape, now, context.overrides);
  const select::Pricing pricing = select::pricing_of(shape, now, result.choice.engine);
  UNISONO_ASSIGN(result.priced, select::price_candidates(shape, pricing));
  UNISONO_ASSIGN(result.first_of_equals, find_equals(result.priced, shape));
  const select::Choice& choice = result.choice;
  schedule::Spares spares;
  const schedule::Spares::Use use_spares(spares);
  algorithm::pattern::CirculantTurns turns;
  const algorithm::pattern::CirculantTurns::Use use_turns(turns);
  algorithm::mock::SlotCounts slots;
  const algorithm::mock::SlotCounts::Use use_slots(slots);
  result.price = find_price(*choice.algorithm, choice.parameters, shape, pricing, result.priced);
  for (const algorithm::Algorithm& row : algorithm::table()) {
    if (row.collective != call.collective) continue;
    UNISONO_ASSIGN(Candidate candidate,
                   judge(row, shape, result.choice, ruling, pricing, result.priced));
    result.candidates.push_back(std::move(candidate));
  }
  result.engine = choice.engine;
  if (result.price && shape.ranks <= kMostPlannedRanks) {
    plan::PlanCache plans(context);
    UNISONO_ASSIGN(const plan::Plan* const plan, plans.find(call, true));
    result.engine = plan->engine;
    result.way = {.single_copy = plan->single_copy, .size = plan->size, .segments = plan->segments};
  }
  const auto nic = find_nic(shape, now, place, settings, result.choice);
  result.by_nic = nic.ok();
  result.why_nic = nic.ok() ? *nic : nic.error().message;
  if (call.collective == schedule::Collective::barrier && place.hosts.given()) {
    result.nic_barrier = select::barrier_prices(place.hosts, now);
    result.nic_asks = select::nic_asks(shape, now, result.choice, ruling);
  }
  return result;
}

base::Result<std::vector<SimulatedCandidate>> explain_on_tree(const plan::Call& call,
                                                              const RanksPlace& place,
                                                              const base::Settings& settings,
                                                              const model::Machine& machine,
                                                              const TreePlace& tree) {
  UNISONO_ASSIGN(const auto placement, find_placement(tree, machine, place.ranks, "--holes"));
  if (placement.ranks() < place.ranks) {
    return base::argument_error(
        fmt::format("the tree has nodes for {} ranks, not for {}", placement.ranks(), place.ranks));
  }
  UNISONO_ASSIGN(const plan::PlanContext context, make_context(place, settings, machine));
  const schedule::Shape shape = plan::shape_of(call, context);
  const select::Circumstances now = plan::circumstances_of(call, context);
  model::Work work = select::pricing_of(shape, now, select::EngineKind::inline_).work;
  work.cores = 0;
  return simulate_on_tree(shape, work, machine, placement);
}

}  // namespace unisono::tools
