// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/algorithm.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/life/lasting.hpp"
#include "base/text.hpp"

namespace unisono::algorithm {

namespace {

// The degree of a tree, which is flat if it has as many ranks.
constexpr std::string_view kDegreeName = "degree";

int highest(const ParameterSpec& spec, const Shape& shape) {
  return spec.high != 0 ? spec.high : std::max(spec.low, shape.ranks);
}

// The fault of a shape that no algorithm accepts; empty if there is none.
std::string shape_fault(const Shape& shape) {
  if (shape.ranks < 1) return fmt::format("a shape of {} ranks: there has to be one", shape.ranks);
  if (shape.root < 0 || shape.root >= shape.ranks) {
    return fmt::format("root {} of {} ranks: choose 0 to {}", shape.root, shape.ranks,
                       shape.ranks - 1);
  }
  if (shape.root != 0 && !schedule::is_rooted(shape.collective)) {
    return fmt::format("root {} for {}, which has none: leave it at 0", shape.root,
                       schedule::collective_name(shape.collective));
  }
  if (const auto fault = schedule::blocks_fault(shape); !fault.empty()) return std::string(fault);
  if (const auto fault = schedule::hosts_fault(shape); !fault.empty()) return std::string(fault);
  // The number of elements of all blocks must be representable. For other collectives this is no
  // real limit.
  const std::int64_t limit = std::numeric_limits<std::int64_t>::max() / shape.ranks;
  if (shape.count < 0 || shape.count > limit) {
    return fmt::format("{} elements on {} ranks: choose 0 to {}", shape.count, shape.ranks, limit);
  }
  return {};
}

enum class Fault { none, collective, shape, order, exact, blocks, parameter, by_several, refusal };

bool is_in_range(const ParameterSpec& spec, int value, const Shape& shape) {
  return value >= spec.low && value <= highest(spec, shape);
}

bool is_by_one(const Algorithm& algorithm, const Shape& shape, const Parameters& parameters) {
  return algorithm.by_one != nullptr && algorithm.by_one(shape, parameters);
}

// The first fault.
Fault fault_of(const Algorithm& algorithm, const Shape& shape, const Parameters& parameters) {
  if (shape.collective != algorithm.collective) return Fault::collective;
  if (!shape_fault(shape).empty()) return Fault::shape;
  const bool is_reduction = schedule::is_reduction(shape.collective);
  if (shape.ordered && is_reduction && !algorithm.keeps_order) return Fault::order;
  if (shape.exact && is_reduction && !algorithm.sums_exactly) return Fault::exact;
  if (shape.blocks.given() && !algorithm.unequal_blocks) return Fault::blocks;
  for (std::size_t i = 0; i < algorithm.parameters.size(); ++i) {
    if (!is_in_range(algorithm.parameters[i], parameters.values[i], shape)) return Fault::parameter;
  }
  if (shape.by_one && is_reduction && !is_by_one(algorithm, shape, parameters)) {
    return Fault::by_several;
  }
  const bool is_refused =
      algorithm.refuse != nullptr && algorithm.refuse(shape, parameters) != nullptr;
  return is_refused ? Fault::refusal : Fault::none;
}

std::string parameter_fault(const Algorithm& algorithm, const Shape& shape,
                            const Parameters& parameters) {
  for (std::size_t i = 0; i < algorithm.parameters.size(); ++i) {
    const ParameterSpec& spec = algorithm.parameters[i];
    const int value = parameters.values[i];
    if (is_in_range(spec, value, shape)) continue;
    return fmt::format("{} {}: {} is {}; at {} ranks choose {} to {}",
                       schedule::collective_name(algorithm.collective), algorithm.name, spec.name,
                       value, shape.ranks, print_value(spec, spec.low),
                       print_value(spec, highest(spec, shape)));
  }
  return {};
}

bool is_any(const Algorithm&) { return true; }
bool keeps_order(const Algorithm& row) { return row.keeps_order; }
bool sums_exactly(const Algorithm& row) { return row.sums_exactly; }
bool may_be_by_one(const Algorithm& row) { return row.by_one != nullptr; }
bool takes_unequal_blocks(const Algorithm& row) { return row.unequal_blocks; }

std::vector<std::string_view> names_of(Collective collective, bool (*fits)(const Algorithm&)) {
  std::vector<std::string_view> names;
  for (const Algorithm& row : table()) {
    if (row.collective == collective && fits(row)) names.push_back(row.name);
  }
  return names;
}

// With the lowest value of the first one that lets one rank apply the operator; if none does, as
// they are.
Parameters parameters_by_one(const Algorithm& algorithm, const Shape& shape,
                             const Parameters& parameters) {
  const ParameterSpec& spec = algorithm.parameters[0];
  Parameters other = parameters;
  for (other.values[0] = spec.low; other.values[0] <= highest(spec, shape); ++other.values[0]) {
    if (!algorithm.by_one(shape, other)) continue;
    if (algorithm.refuse == nullptr || algorithm.refuse(shape, other) == nullptr) return other;
  }
  return parameters;
}

}  // namespace

// Mock-ups look for the rows of their parts each time that they are built, thousands of times for a
// choice by price.
const Algorithm* find(Collective collective, std::string_view name) {
  static const std::vector<std::vector<const Algorithm*>>& kRows = base::lasting([] {
    std::vector<std::vector<const Algorithm*>> rows(schedule::kCollectiveCount);
    for (const Algorithm& row : table()) {
      rows[static_cast<std::size_t>(row.collective)].push_back(&row);
    }
    return rows;
  }());
  const auto index = static_cast<std::size_t>(collective);
  if (index >= kRows.size()) return nullptr;
  for (const Algorithm* row : kRows[index]) {
    if (row->name == name) return row;
  }
  return nullptr;
}

std::string explain_unknown(Collective collective, std::string_view name) {
  std::vector<std::string_view> names = names_of(collective, is_any);
  const std::string_view nearest = base::nearest_name(name, names);
  std::stable_partition(names.begin(), names.end(),
                        [&](std::string_view known) { return known == nearest; });
  return fmt::format("{} has no algorithm '{}'; choose one of: {}",
                     schedule::collective_name(collective), name, fmt::join(names, ", "));
}

Parameters default_parameters(const Algorithm& algorithm, const Shape& shape) {
  Parameters parameters;
  for (std::size_t i = 0; i < algorithm.parameters.size(); ++i) {
    const ParameterSpec& spec = algorithm.parameters[i];
    parameters.values[i] = std::clamp(spec.fallback, spec.low, highest(spec, shape));
  }
  if (algorithm.parameters.empty()) return parameters;
  if (shape.by_one && algorithm.by_one != nullptr && !algorithm.by_one(shape, parameters)) {
    return parameters_by_one(algorithm, shape, parameters);
  }
  if (algorithm.refuse == nullptr) return parameters;
  Parameters lower = parameters;
  for (int& value = lower.values[0]; value >= algorithm.parameters[0].low; --value) {
    if (algorithm.refuse(shape, lower) == nullptr) return lower;
  }
  return parameters;
}

namespace {

int largest_host(const Shape& shape) {
  if (!shape.hosts.given()) return shape.ranks;
  std::size_t most = 0;
  for (int host = 0; host < shape.hosts.hosts(); ++host) {
    most = std::max(most, shape.hosts.members(host).size());
  }
  return static_cast<int>(most);
}

}  // namespace

Parameters effective_parameters(const Algorithm& algorithm, const Shape& shape,
                                const Parameters& parameters) {
  Parameters effective = parameters;
  const int most_halvings = std::bit_width(static_cast<unsigned>(shape.ranks)) - 1;
  int left = shape.ranks;  // of the ranks, in each group of the halvings so far
  for (std::size_t i = 0; i < algorithm.parameters.size(); ++i) {
    int& value = effective.values[i];
    if (algorithm.parameters[i].counted == Counted::halvings) {
      value = std::min(value, most_halvings);
      left >>= value;
    } else if (algorithm.parameters[i].counted == Counted::children_in_host) {
      value = std::min(value, std::max(1, largest_host(shape) - 1));
    } else if (left < shape.ranks && algorithm.parameters[i].name == kDegreeName) {
      value = std::min(value, std::max(left, algorithm.parameters[i].low));  // a flat tree
    }
  }
  return effective;
}

std::string why_illegal(const Algorithm& algorithm, const Shape& shape,
                        const Parameters& parameters) {
  const std::string_view collective = schedule::collective_name(algorithm.collective);
  switch (fault_of(algorithm, shape, parameters)) {
    case Fault::none:
      break;
    case Fault::collective:
      return fmt::format("{} {} cannot do {}; {}", collective, algorithm.name,
                         schedule::collective_name(shape.collective),
                         explain_unknown(shape.collective, algorithm.name));
    case Fault::shape:
      return fmt::format("{} {}: {}", collective, algorithm.name, shape_fault(shape));
    case Fault::order:
      return fmt::format(
          "{} {} does not combine in the order of ranks, which an operator that does not commute "
          "needs; choose one of: {}",
          collective, algorithm.name, fmt::join(names_of(algorithm.collective, keeps_order), ", "));
    case Fault::exact:
      return fmt::format(
          "{} {} rounds partial sums, which a reproducible sum must not "
          "(UNISONO_REPRODUCIBLE); choose one of: {}",
          collective, algorithm.name,
          fmt::join(names_of(algorithm.collective, sums_exactly), ", "));
    case Fault::blocks:
      return fmt::format("{} {} needs blocks of equal length; choose one of: {}", collective,
                         algorithm.name,
                         fmt::join(names_of(algorithm.collective, takes_unequal_blocks), ", "));
    case Fault::parameter:
      return parameter_fault(algorithm, shape, parameters);
    case Fault::by_several:
      return fmt::format(
          "{} {} lets several ranks apply the operator, and UNISONO_HETEROGENEOUS is on; choose "
          "one "
          "of: {}",
          collective, describe(algorithm, parameters),
          fmt::join(names_of(algorithm.collective, may_be_by_one), ", "));
    case Fault::refusal:
      return fmt::format("{} {} on {} ranks: {}", collective, describe(algorithm, parameters),
                         shape.ranks, algorithm.refuse(shape, parameters));
  }
  return {};
}

bool is_legal(const Algorithm& algorithm, const Shape& shape, const Parameters& parameters) {
  return fault_of(algorithm, shape, parameters) == Fault::none;
}

bool ranks_are_alike(const Algorithm& algorithm, const Shape& shape) {
  if (shape.blocks.given() || (algorithm.alike_in_shares && shape.count % shape.ranks != 0)) {
    return false;
  }
  switch (algorithm.alike) {
    case Alike::never:
      return false;
    case Alike::always:
      return true;
    case Alike::powers_of_two:
      return std::has_single_bit(static_cast<unsigned>(shape.ranks));
  }
  return false;
}

base::Result<Schedule> build(const Algorithm& algorithm, const Shape& shape,
                             const Parameters& parameters, int rank) {
  if (std::string why = why_illegal(algorithm, shape, parameters); !why.empty()) {
    return base::Error{base::Code::argument, std::move(why)};
  }
  if (rank < 0 || rank >= shape.ranks) {
    return base::Error{base::Code::argument,
                       fmt::format("{} {}: rank {} of {} ranks: choose 0 to {}",
                                   schedule::collective_name(algorithm.collective), algorithm.name,
                                   rank, shape.ranks, shape.ranks - 1)};
  }
  return algorithm.build(shape, parameters, rank);
}

std::string print_value(const ParameterSpec& spec, int value) {
  if (spec.low == kUsual && value == kUsual) return std::string(kUsualName);
  const bool is_named = value >= 0 && static_cast<std::size_t>(value) < spec.names.size();
  return is_named ? std::string(spec.names[static_cast<std::size_t>(value)])
                  : fmt::format("{}", value);
}

std::optional<int> read_value(const ParameterSpec& spec, std::string_view text) {
  if (!spec.names.empty()) {
    const auto found = std::ranges::find(spec.names, text);
    if (found == spec.names.end()) return std::nullopt;
    return static_cast<int>(found - spec.names.begin());
  }
  if (spec.low == kUsual && text == kUsualName) return kUsual;
  const auto value = base::parse_integer(text);
  if (!value || *value < std::numeric_limits<int>::min() ||
      *value > std::numeric_limits<int>::max()) {
    return std::nullopt;
  }
  return static_cast<int>(*value);
}

std::string print_choices(const ParameterSpec& spec) {
  if (!spec.names.empty()) return fmt::format("{}", fmt::join(spec.names, ", "));
  if (spec.low == kUsual) return fmt::format("{}, or a whole number", kUsualName);
  return spec.high != 0 ? fmt::format("a whole number, {} to {}", spec.low, spec.high)
                        : fmt::format("a whole number, {} or more", spec.low);
}

std::string describe(const Algorithm& algorithm, const Parameters& parameters) {
  std::string text(algorithm.name);
  for (std::size_t i = 0; i < algorithm.parameters.size(); ++i) {
    text += fmt::format("{}{}", i == 0 ? "(" : ",",
                        print_value(algorithm.parameters[i], parameters.values[i]));
  }
  if (!algorithm.parameters.empty()) text += ")";
  return text;
}

}  // namespace unisono::algorithm
