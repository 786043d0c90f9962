// SPDX-License-Identifier: BSD-3-Clause
#include "select/select.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <ranges>

#include "base/check.hpp"
#include "select/rules.hpp"

namespace unisono::select {
namespace {

using algorithm::Algorithm;
using algorithm::Parameters;
using schedule::Shape;

// From this size on, two copies no longer stay in the caches. One copy is then faster if sender and
// receiver each have a core. A reduction does better with the parts that buffers give it.
constexpr std::int64_t kSingleCopyBytes = 4 << 20;

// The candidates, best first. First come rules that hold, then the others from the last one up, as
// the last ones are the most general. Then come algorithms without a rule.
class Candidates {
 public:
  Candidates(const Situation& call, const Ruling& ruling) : shape_(call.shape), ruling_(ruling) {
    const auto of_collective = [&](const auto& each) {
      return each.collective == shape_.collective;
    };
    for (const Rule& rule : rules()) {
      if (of_collective(rule) && rule.holds(call)) add(rule);
    }
    for (const Rule& rule : std::views::reverse(rules())) {
      if (of_collective(rule) && !rule.holds(call)) add(rule);
    }
    for (const Algorithm& row : algorithm::table()) {
      if (of_collective(row)) add(row, algorithm::default_parameters(row, shape_), {});
    }
  }

  // The first that no override excludes; if all are excluded, the first of all.
  Choice take() {
    UNISONO_CHECK(!legal_.empty(), "a collective without rules");
    const Choice& first = legal_.front();
    for (Choice& choice : legal_) {
      if (ruling_.excluded_by(*choice.algorithm) != nullptr) continue;
      if (choice.algorithm != first.algorithm) {
        choice.reason = fmt::format("{} excludes {}, the rule's choice",
                                    describe(*ruling_.excluded_by(*first.algorithm)),
                                    algorithm::describe(*first.algorithm, first.parameters));
      }
      return std::move(choice);
    }
    Choice choice = first;
    choice.passed_over.emplace_back(fmt::format("{}: no other algorithm is legal",
                                                describe(*ruling_.excluded_by(*choice.algorithm))));
    return choice;
  }

 private:
  void add(const Rule& rule) {
    const Algorithm* row = algorithm::find(rule.collective, rule.algorithm);
    UNISONO_CHECK(row != nullptr, "a rule that names no algorithm of the table");
    Parameters parameters = algorithm::default_parameters(*row, shape_);
    if (rule.all_ranks) {
      const algorithm::ParameterSpec& spec = row->parameters[0];
      const int high = spec.high == 0 ? std::max(spec.low, shape_.ranks) : spec.high;
      parameters.values[0] = std::clamp(shape_.ranks, spec.low, high);
    }
    read_choices(rule.choices, *row, parameters);
    add(*row, parameters, rule.reason);
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

  void add(const Algorithm& row, const Parameters& parameters, std::string_view reason) {
    if (!why_not(row, shape_, parameters).empty()) return;
    legal_.push_back({&row, parameters, Origin::rule, std::string(reason), {}});
  }

  const Shape& shape_;
  const Ruling& ruling_;
  std::vector<Choice> legal_;
};

}  // namespace

std::optional<std::int64_t> common_bytes(const Shape& shape, const Circumstances& now) {
  if (has_local_counts(shape)) return std::nullopt;
  const std::int64_t elements =
      shape.blocks.given() ? shape.blocks.total() / shape.ranks : shape.count;
  return elements * now.element_bytes;
}

bool prefers_single_copy(const Shape& shape, const Circumstances& now) {
  if (!now.pull) return false;
  const std::int64_t bytes = shape.count * now.element_bytes;
  if (now.single_copy_from >= 0) return bytes >= now.single_copy_from;
  return !now.oversubscribed && !schedule::is_reduction(shape.collective) &&
         bytes >= kSingleCopyBytes;
}

Choice choose(const Shape& shape, const Circumstances& circumstances, const Overrides& overrides) {
  const auto bytes = common_bytes(shape, circumstances);
  Ruling ruling = rule_on(overrides, shape, bytes);
  Choice choice;
  if (ruling.rule != nullptr) {
    choice = {
        ruling.rule->algorithm, ruling.parameters, Origin::override_, describe(*ruling.rule), {}};
  } else {
    choice = Candidates({shape, circumstances, bytes.value_or(0)}, ruling).take();
  }
  std::ranges::move(choice.passed_over, std::back_inserter(ruling.passed_over));
  choice.passed_over = std::move(ruling.passed_over);
  return choice;
}

}  // namespace unisono::select
