// SPDX-License-Identifier: BSD-3-Clause
#include "select/select.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <ranges>

#include "base/check.hpp"
#include "model/default_machine.hpp"
#include "select/candidates.hpp"
#include "select/nic/by_nic.hpp"
#include "select/rules.hpp"

namespace unisono::select {
namespace {

using algorithm::Algorithm;
using algorithm::Parameters;
using schedule::Shape;

// The algorithm where ranks know no counts but their own; a row of every such collective.
constexpr std::string_view kLocal = "linear";
// Lengths that share so many first binary digits are chosen for alike: they differ by an eighth.
constexpr int kClassBits = 4;
constexpr std::size_t kMostKnown = 512;

struct Candidate {
  const Algorithm* row = nullptr;
  Parameters parameters = {};
  std::string_view reason = {};
};

// Looks at the candidates, best first, until one is legal and no override excludes it. First come
// rules that hold, then the others from the last one up, as the last ones are the most general.
// Then come algorithms without a rule.
class Search {
 public:
  Search(const Situation& call, const Ruling& ruling)
      : shape_(call.shape), now_(call.now), ruling_(ruling) {
    const auto of_collective = [&](const auto& each) {
      return each.collective == shape_.collective;
    };
    for (const Rule& rule : rules()) {
      if (of_collective(rule) && rule.holds(call) && takes(rule)) return;
    }
    for (const Rule& rule : std::views::reverse(rules())) {
      if (of_collective(rule) && !rule.holds(call) && takes(rule)) return;
    }
    for (const Algorithm& row : algorithm::table()) {
      if (!of_collective(row)) continue;
      if (takes({.row = &row, .parameters = algorithm::default_parameters(row, shape_)})) return;
    }
  }

  // The candidate that was found; if all are excluded, the first legal one.
  Choice choice() const {
    UNISONO_CHECK(first_.row != nullptr, "a collective without rules");
    const Candidate& taken = taken_.row != nullptr ? taken_ : first_;
    Choice choice;
    choice.algorithm = taken.row;
    choice.parameters = taken.parameters;
    choice.reason = taken.reason;
    if (taken.row == first_.row && taken_.row != nullptr) return choice;
    const std::string rule = describe(*ruling_.excluded_by(*first_.row));
    if (taken_.row == nullptr) {
      choice.passed_over.push_back(fmt::format("{}: no other algorithm is legal", rule));
    } else {
      choice.reason = fmt::format("{} excludes {}, the rule's choice", rule,
                                  algorithm::describe(*first_.row, first_.parameters));
    }
    return choice;
  }

 private:
  bool takes(const Rule& rule) {
    const Algorithm* row = algorithm::find(rule.collective, rule.algorithm);
    UNISONO_CHECK(row != nullptr, "a rule that names no algorithm of the table");
    Parameters parameters = algorithm::default_parameters(*row, shape_);
    if (rule.all_ranks) {
      const algorithm::ParameterSpec& spec = row->parameters[0];
      const int high = spec.high == 0 ? std::max(spec.low, shape_.ranks) : spec.high;
      parameters.values[0] = std::clamp(shape_.ranks, spec.low, high);
    }
    if (rule.priced) {
      parameters = with_cheapest(*row, shape_, pricing_of(shape_, now_, EngineKind::inline_));
    }
    read_choices(rule.choices, *row, parameters);
    return takes({.row = row, .parameters = parameters, .reason = rule.reason});
  }

  static void read_choices(std::string_view choices, const Algorithm& row, Parameters& parameters) {
    for (std::size_t i = 0; !choices.empty(); ++i) {
      const std::size_t comma = std::min(choices.find(','), choices.size());
      const auto value = algorithm::read_value(row.parameters[i], choices.substr(0, comma));
      UNISONO_CHECK(value, "a rule with a choice that the row does not have");
      parameters.values[i] = *value;
      choices.remove_prefix(std::min(comma + 1, choices.size()));
    }
  }

  bool takes(const Candidate& candidate) {
    if (!why_not(*candidate.row, shape_, candidate.parameters).empty()) return false;
    if (first_.row == nullptr) first_ = candidate;
    if (ruling_.excluded_by(*candidate.row) != nullptr) return false;
    taken_ = candidate;
    return true;
  }

  const Shape& shape_;
  const Circumstances& now_;
  const Ruling& ruling_;
  Candidate first_, taken_;  // the first legal one; the first that is not excluded
};

void insist_on_local(schedule::Collective collective, Choice& choice) {
  if (choice.algorithm->name == kLocal) return;
  choice.passed_over.push_back(fmt::format(
      "{}: only {} is for ranks that know no counts but their own", choice.reason, kLocal));
  choice.algorithm = algorithm::find(collective, kLocal);
  choice.parameters = {};
  choice.origin = Origin::rule;
  choice.reason = "ranks know no counts but their own";
}

// Why ranks do not do each other's steps; empty: they do.
std::string_view why_not_helping(const Shape& shape, const Circumstances& now) {
  if (!now.shared_receive_buffers) return "ranks cannot write to each other's receive buffers";
  if (shape.ranks == 1) return "there is one rank";
  if (schedule::is_reduction(shape.collective) && !now.op) {
    return "a user's function has an address in its own process only";
  }
  // Any waiting rank could execute the steps of the one that shall compute.
  if (shape.by_one) return "one process applies the operator (UNISONO_HETEROGENEOUS)";
  if (now.local_counts) return "ranks do not know each other's counts";
  if (now.engine == base::EngineChoice::inline_) return "UNISONO_ENGINE asks for it";
  if (now.engine == base::EngineChoice::automatic && !now.oversubscribed) {
    return "every rank has a core";
  }
  return {};
}

// The engine if the call does not take the NIC path.
EngineKind host_engine(const Shape& shape, const Circumstances& now) {
  return why_not_helping(shape, now).empty() ? EngineKind::helping : EngineKind::inline_;
}

void choose_engine(const Shape& shape, const Circumstances& now, const Ruling& ruling,
                   Choice& choice) {
  if (now.nic) {
    const base::Status fits = check_nic_call(shape, now, choice);
    if (fits.ok()) {
      choice.engine = EngineKind::nic;
      choice.nic_asks = nic_asks(shape, now, choice, ruling);
      choice.engine_reason = "all hosts have a NIC path, and it is faster or asked for";
      return;
    }
    choice.why_not_nic = fits.error().message;
  }
  const std::string_view why_not = why_not_helping(shape, now);
  choice.engine = host_engine(shape, now);
  choice.engine_reason = !why_not.empty() ? why_not
                         : now.engine == base::EngineChoice::automatic
                             ? "ranks outnumber cores, so that one without a core would delay all"
                             : "UNISONO_ENGINE asks for it";
}

std::optional<Priced> cheapest_of(const Shape& shape, const Circumstances& now,
                                  const Overrides& overrides) {
  if (shape.ranks == 1 || shape.blocks.given() || now.local_counts) return std::nullopt;
  const Ruling ruling = rule_on(overrides, shape, common_bytes(shape, now));
  const Pricing pricing = pricing_of(shape, now, host_engine(shape, now));
  return cheapest_candidate(shape, pricing, ruling);
}

// is_about: it is that of a class, in which lengths differ.
std::optional<Choice> choice_of(const std::optional<Priced>& cheapest, const Circumstances& now,
                                bool is_about) {
  if (!cheapest) return std::nullopt;
  Choice choice;
  choice.algorithm = cheapest->row;
  choice.parameters = cheapest->parameters;
  choice.origin = Origin::price;
  choice.reason =
      fmt::format("the cheapest candidate on the machine \"{}\", {}{:.2f} us", machine_of(now).name,
                  is_about || cheapest->is_estimate ? "about " : "", cheapest->price.ns / 1000);
  return choice;
}

std::optional<Choice> priced_choice(const Shape& shape, const Circumstances& now,
                                    const Overrides& overrides) {
  return choice_of(cheapest_of(shape, now, overrides), now, false);
}

// The greatest of at most so many elements whose length has four binary digits and then zeros.
std::int64_t first_of_class(std::int64_t count) {
  const int dropped =
      static_cast<int>(std::bit_width(static_cast<std::uint64_t>(count))) - kClassBits;
  return dropped <= 0 ? count : count >> dropped << dropped;
}

// The choice by price for the calls of a class. All ranks are on one host, so that it does not
// matter which one is the root.
std::optional<Choice> choose_of_class(const Shape& shape, const Circumstances& now,
                                      const Overrides& overrides, const Ruling& ruling,
                                      KnownChoices& known) {
  Shape first = shape;
  first.count = first_of_class(shape.count);
  first.root = 0;
  // Rules may end within a class.
  if (rule_on(overrides, first, common_bytes(first, now)).never != ruling.never) {
    return priced_choice(shape, now, overrides);
  }
  const PricedCall key{.collective = shape.collective,
                       .count = first.count,
                       .element_bytes = now.element_bytes,
                       .ordered = shape.ordered,
                       .op = now.op,
                       .type = now.type};
  auto found = known.own.find(key);
  if (found == known.own.end()) {
    if (known.own.size() >= kMostKnown) known.own.clear();
    const auto price = [&] { return cheapest_of(first, now, overrides); };
    const auto cheapest =
        known.shared == nullptr ? price() : known.shared->find_or_make(key, price);
    found = known.own.emplace(key, choice_of(cheapest, now, true)).first;
  }
  const std::optional<Choice>& choice = found->second;
  if (choice && !why_not(*choice->algorithm, shape, choice->parameters).empty()) {
    return priced_choice(shape, now, overrides);
  }
  return choice;
}

// From which length on calls of ranks that help each other go by price. For some short ones, rules
// choose better on the machine. There a rank that only sends returns before the price ends, or a
// short block costs less than its price.
model::Constant priced_from(schedule::Collective collective) {
  using model::Constant;
  switch (collective) {
    case schedule::Collective::barrier:
      return Constant::priced_from_barrier;
    case schedule::Collective::broadcast:
      return Constant::priced_from_broadcast;
    case schedule::Collective::reduce:
      return Constant::priced_from_reduce;
    case schedule::Collective::allreduce:
      return Constant::priced_from_allreduce;
    case schedule::Collective::allgather:
      return Constant::priced_from_allgather;
    case schedule::Collective::gather:
      return Constant::priced_from_gather;
    case schedule::Collective::scatter:
      return Constant::priced_from_scatter;
    case schedule::Collective::alltoall:
      return Constant::priced_from_alltoall;
    case schedule::Collective::reduce_scatter:
      return Constant::priced_from_reduce_scatter;
    case schedule::Collective::scan:
      return Constant::priced_from_scan;
    case schedule::Collective::exscan:
      return Constant::priced_from_exscan;
    case schedule::Collective::many_to_many:
      return Constant::priced_from_many_to_many;
  }
  return Constant::split_from;
}

}  // namespace

std::optional<std::int64_t> common_bytes(const Shape& shape, const Circumstances& now) {
  if (has_local_counts(shape)) return std::nullopt;
  const std::int64_t elements =
      shape.blocks.given() ? shape.blocks.total() / shape.ranks : shape.count;
  return elements * now.element_bytes;
}

// Calls of ranks that help each other, from the machine's length on. Their best algorithm changes
// with the number of ranks and the length, and prices follow that better than rules. A machine file
// that does not know the error of its prices is not sure enough.
bool goes_by_price(const Shape& shape, const Circumstances& now) {
  const auto bytes = common_bytes(shape, now);
  if (shape.exact || shape.hosts.given() || !bytes || !machine_of(now).price_error ||
      host_engine(shape, now) != EngineKind::helping) {
    return false;
  }
  // Those that a rank which gets all of them receives.
  const bool of_all_ranks =
      schedule::has_blocks(shape.collective) || shape.collective == schedule::Collective::reduce;
  const std::int64_t all = of_all_ranks ? *bytes * shape.ranks : *bytes;
  return all >= model::constant_of(machine_of(now), priced_from(shape.collective)).count();
}

const model::Machine& machine_of(const Circumstances& now) {
  return now.machine != nullptr ? *now.machine : model::default_machine();
}

// From some size on, two copies no longer stay in the caches. One copy is then faster if sender and
// receiver each have a core. A reduction does better with the parts that buffers give it.
bool prefers_single_copy(const Shape& shape, const Circumstances& now) {
  if (!now.pull) return false;
  const std::int64_t bytes = shape.count * now.element_bytes;
  if (bytes == 0) return false;  // whatever the machine file says
  if (now.single_copy_from >= 0) return bytes >= now.single_copy_from;
  return !now.oversubscribed && !schedule::is_reduction(shape.collective) &&
         bytes >= model::constant_of(machine_of(now), model::Constant::single_copy_from).count();
}

Choice choose_by_rule(const Shape& shape, const Circumstances& now, const Overrides& overrides) {
  const auto bytes = common_bytes(shape, now);
  const Ruling ruling = rule_on(overrides, shape, bytes);
  return Search({shape, now, bytes.value_or(0)}, ruling).choice();
}

std::optional<Choice> choose_by_price(const Shape& shape, const Circumstances& now,
                                      const Overrides& overrides) {
  return priced_choice(shape, now, overrides);
}

Choice choose(const Shape& shape, const Circumstances& circumstances, const Overrides& overrides,
              KnownChoices* known) {
  const auto bytes = common_bytes(shape, circumstances);
  Ruling ruling = rule_on(overrides, shape, bytes);
  Choice choice;
  if (ruling.rule != nullptr) {
    choice.algorithm = ruling.rule->algorithm;
    choice.parameters = ruling.parameters;
    choice.origin = Origin::override_;
    choice.reason = describe(*ruling.rule);
  } else {
    std::optional<Choice> cheapest;
    if (goes_by_price(shape, circumstances)) {
      KnownChoices none;
      cheapest = choose_of_class(shape, circumstances, overrides, ruling,
                                 known == nullptr ? none : *known);
    }
    choice = cheapest ? std::move(*cheapest) : choose_by_rule(shape, circumstances, overrides);
  }
  std::ranges::move(choice.passed_over, std::back_inserter(ruling.passed_over));
  choice.passed_over = std::move(ruling.passed_over);
  if (circumstances.local_counts) insist_on_local(shape.collective, choice);
  choose_engine(shape, circumstances, ruling, choice);
  return choice;
}

Choice choose_as(const Choice& choice, const Algorithm& row, const Parameters& parameters,
                 std::string reason) {
  Choice other = choice;
  other.algorithm = &row;
  other.parameters = parameters;
  other.origin = Origin::learned;
  other.reason = std::move(reason);
  return other;
}

}  // namespace unisono::select
