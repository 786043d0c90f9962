// SPDX-License-Identifier: BSD-3-Clause
#include "select/override.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/text.hpp"

namespace unisono::select {
namespace {

using algorithm::Algorithm;
using algorithm::Parameters;
using schedule::Collective;
using schedule::Shape;

std::string range_text(const OverrideRule& rule) {
  if (rule.everywhere()) return {};
  const std::string high = rule.high == OverrideRule::kNoEnd ? "inf" : base::format_size(rule.high);
  return fmt::format("@{}-{}", base::format_size(rule.low), high);
}

// The rule's parameters; the row's defaults for the rest. Values that may grow with the number of
// ranks are limited by it, as the defaults are.
Parameters parameters_for(const OverrideRule& rule, const Shape& shape) {
  Parameters parameters = algorithm::default_parameters(*rule.algorithm, shape);
  for (int i = 0; i < rule.given; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const algorithm::ParameterSpec& spec = rule.algorithm->parameters[at];
    parameters.values[at] = rule.parameters.values[at];
    if (spec.high != 0) continue;
    parameters.values[at] = std::min(parameters.values[at], std::max(spec.low, shape.ranks));
  }
  return parameters;
}

}  // namespace

std::string describe(const OverrideRule& rule) {
  std::string text = rule.never ? "^" : "";
  text += rule.algorithm->name;
  for (int i = 0; i < rule.given; ++i) {
    const auto at = static_cast<std::size_t>(i);
    text += fmt::format(
        "{}{}", i == 0 ? "(" : ",",
        algorithm::print_value(rule.algorithm->parameters[at], rule.parameters.values[at]));
  }
  if (rule.given > 0) text += ")";
  return text + range_text(rule);
}

std::string print(const Overrides& overrides) {
  std::string text;
  const OverrideRule* last = nullptr;
  for (const OverrideRule& rule : overrides.rules) {
    const Collective collective = rule.algorithm->collective;
    if (last != nullptr && last->algorithm->collective == collective) {
      text += ";";
    } else {
      text +=
          fmt::format("{}{}:", last == nullptr ? "" : "|", schedule::collective_name(collective));
    }
    text += describe(rule);
    last = &rule;
  }
  return text;
}

base::Result<Overrides> overrides_of(const base::Settings& settings) {
  const std::string& text = settings.text(base::Setting::algorithm);
  if (text.empty()) return Overrides{};
  auto parsed = parse_overrides(text);
  if (!parsed) {
    return base::Error{
        parsed.error().code,
        fmt::format("{}=\"{}\" is not valid: {}", base::setting_row(base::Setting::algorithm).name,
                    text, parsed.error().message)};
  }
  return parsed;
}

const OverrideRule* Ruling::excluded_by(const Algorithm& algorithm) const {
  const auto found = std::ranges::find(never, &algorithm, &OverrideRule::algorithm);
  return found == never.end() ? nullptr : *found;
}

std::string explain_unknown_collective(std::string_view name) {
  std::array<std::string_view, schedule::kCollectiveCount> known;
  for (std::size_t i = 0; i < known.size(); ++i) {
    known[i] = schedule::collective_name(static_cast<Collective>(i));
  }
  const std::string_view nearest = base::nearest_name(name, known);
  return nearest.empty()
             ? fmt::format("no collective is named '{}'; choose one of: {}", name,
                           fmt::join(known, ", "))
             : fmt::format("no collective is named '{}'; did you mean {}?", name, nearest);
}

bool has_local_counts(const Shape& shape) {
  return shape.blocks.given() &&
         (shape.collective == Collective::gather || shape.collective == Collective::scatter ||
          shape.collective == Collective::alltoall);
}

std::string why_not(const Algorithm& algorithm, const Shape& shape, const Parameters& parameters) {
  if (has_local_counts(shape) && !algorithm.local_counts) {
    return fmt::format("{} {} needs all counts, and ranks know those of their own blocks only",
                       schedule::collective_name(algorithm.collective), algorithm.name);
  }
  return algorithm::why_illegal(algorithm, shape, parameters);
}

bool can_do(const Algorithm& algorithm, const Shape& shape, const Parameters& parameters) {
  return (!has_local_counts(shape) || algorithm.local_counts) &&
         algorithm::is_legal(algorithm, shape, parameters);
}

Ruling rule_on(const Overrides& overrides, const Shape& shape, std::optional<std::int64_t> bytes) {
  Ruling ruling;
  for (const OverrideRule& rule : overrides.rules) {
    if (rule.algorithm->collective != shape.collective) continue;
    if (!rule.everywhere() && (!bytes || *bytes < rule.low || *bytes >= rule.high)) continue;
    if (rule.never) {
      ruling.never.push_back(&rule);
      continue;
    }
    if (const OverrideRule* by = ruling.excluded_by(*rule.algorithm)) {
      ruling.passed_over.push_back(
          fmt::format("{}: {} stands before it", describe(rule), describe(*by)));
      continue;
    }
    const Parameters parameters = parameters_for(rule, shape);
    if (std::string why = why_not(*rule.algorithm, shape, parameters); !why.empty()) {
      ruling.passed_over.push_back(fmt::format("{}: {}", describe(rule), why));
      continue;
    }
    ruling.rule = &rule;
    ruling.parameters = parameters;
    break;
  }
  return ruling;
}

}  // namespace unisono::select
