// SPDX-License-Identifier: BSD-3-Clause
#include "explanation.hpp"

#include <algorithm>

#include "group/communicator.hpp"
#include "group/plan_cache.hpp"
#include "transport/shm/shm.hpp"

namespace unisono::tools {
namespace {

// What a communicator of all ranks of a job on this machine would say. Whether ranks can read each
// other's memory turns out when a job starts; here they can, unless the setting forbids it.
base::Result<group::PlanContext> make_context(int ranks, bool oversubscribed,
                                              const base::Settings& settings) {
  const transport::Capabilities has = transport::SharedMemory().capabilities();
  const group::SegmentLayout layout = group::Communicator::plan_layout(ranks, settings);
  group::PlanContext context;
  context.ranks = ranks;
  context.oversubscribed = oversubscribed;
  context.staged_multicast = context.multicast = has.multicast;
  context.shared_windows = has.shared_windows;
  context.engine = settings.engine();
  context.pull = settings.toggle(base::Setting::single_copy) != base::Toggle::off;
  context.single_copy_from = settings.bytes(base::Setting::single_copy_from);
  context.check = settings.toggle(base::Setting::check);
  context.small = layout.small;
  context.bulk = layout.bulk;
  UNISONO_ASSIGN(context.overrides, select::overrides_of(settings));
  return context;
}

base::Result<schedule::Cost> cost_of(const Candidate& candidate, const schedule::Shape& shape) {
  std::vector<schedule::Schedule> set;
  set.reserve(static_cast<std::size_t>(shape.ranks));
  for (int rank = 0; rank < shape.ranks; ++rank) {
    UNISONO_ASSIGN(schedule::Schedule one,
                   algorithm::build(*candidate.row, shape, candidate.parameters, rank));
    set.push_back(std::move(one));
  }
  return schedule::cost(set);
}

base::Result<Candidate> judge(const algorithm::Algorithm& row, const schedule::Shape& shape,
                              const select::Choice& choice, const select::Ruling& ruling) {
  Candidate candidate{.row = &row,
                      .parameters = choice.algorithm == &row
                                        ? choice.parameters
                                        : algorithm::default_parameters(row, shape),
                      .why_not = {},
                      .excluded_by = {},
                      .cost = {}};
  if (const auto* rule = ruling.excluded_by(row)) candidate.excluded_by = describe(*rule);
  candidate.why_not = select::why_not(row, shape, candidate.parameters);
  if (candidate.why_not.empty()) {
    UNISONO_ASSIGN(candidate.cost, cost_of(candidate, shape));
  }
  return candidate;
}

}  // namespace

base::Result<Explanation> explain(const group::Call& call, int ranks, bool oversubscribed,
                                  const base::Settings& settings) {
  UNISONO_ASSIGN(const group::PlanContext context, make_context(ranks, oversubscribed, settings));
  const schedule::Shape shape = group::shape_of(call, ranks);
  const select::Circumstances now = group::circumstances_of(call, context);
  Explanation result;
  result.choice = select::choose(shape, now, context.overrides);
  const select::Ruling ruling =
      select::rule_on(context.overrides, shape, select::common_bytes(shape, now));
  for (const algorithm::Algorithm& row : algorithm::table()) {
    if (row.collective != call.collective) continue;
    UNISONO_ASSIGN(Candidate candidate, judge(row, shape, result.choice, ruling));
    result.candidates.push_back(std::move(candidate));
  }
  group::PlanCache plans(context);
  UNISONO_ASSIGN(const group::CachedPlan* const cached, plans.find(call, true));
  result.helping = cached->plan.helping;
  result.single_copy = cached->single_copy;
  result.bulk = cached->plan.bulk;
  result.segments = cached->plan.segments;
  return result;
}

}  // namespace unisono::tools
