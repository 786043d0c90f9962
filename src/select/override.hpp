// SPDX-License-Identifier: BSD-3-Clause
// Overrides: the user's own choice of algorithms, from UNISONO_ALGORITHM. Entries for collectives
// are joined by '|', the rules of an entry by ';', and blanks may stand between any two signs:
//
//   allreduce: pairwise@0-4K; ring@64K-inf | broadcast: fnomial(4) | barrier: ^pairwise
//
// A rule is [^]algorithm[(parameter,...)][@low-high]: low <= bytes < high, of the vector or block.
// Rules count in their order: the first that fits a call and is legal for it wins, and ^ means that
// the algorithm is not to be taken by any later rule, nor by default. Values; any thread.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "algorithm/algorithm.hpp"
#include "base/result.hpp"
#include "base/settings/settings.hpp"

namespace unisono::select {

struct OverrideRule {
  const algorithm::Algorithm* algorithm = nullptr;
  bool never = false;  // ^
  int given = 0;       // so many of the parameters; the others are left at their defaults
  algorithm::Parameters parameters{};
  std::int64_t low = 0, high = kNoEnd;  // bytes

  static constexpr std::int64_t kNoEnd = std::numeric_limits<std::int64_t>::max();

  bool everywhere() const { return low == 0 && high == kNoEnd; }
  bool operator==(const OverrideRule&) const = default;
};

struct Overrides {
  std::vector<OverrideRule> rules;

  bool operator==(const Overrides&) const = default;
};

// The error gives the position of the fault, and suggests the nearest name.
base::Result<Overrides> parse_overrides(std::string_view text);
// UNISONO_ALGORITHM.
base::Result<Overrides> overrides_of(const base::Settings& settings);

// "ring@64K-inf"; and the whole text, from which parse_overrides makes the same rules.
std::string describe(const OverrideRule& rule);
std::string print(const Overrides& overrides);

// The effect of the rules on one call.
struct Ruling {
  const OverrideRule* rule = nullptr;  // that chooses; one of the `overrides` given
  algorithm::Parameters parameters;    // for its algorithm
  std::vector<const OverrideRule*> never;
  std::vector<std::string> passed_over;  // rules that fit the size but not the call, and why

  // The rule that keeps the algorithm out; nullptr if none does.
  const OverrideRule* excluded_by(const algorithm::Algorithm& algorithm) const;
};

// Without `bytes`, ranks know different counts, and rules with a range fit no call.
Ruling rule_on(const Overrides& overrides, const schedule::Shape& shape,
               std::optional<std::int64_t> bytes);

// The message for an unknown collective: the nearest name, or all of them.
std::string explain_unknown_collective(std::string_view name);

// Whether a rank knows the counts of its own blocks only: the choice must not depend on counts, and
// the algorithm must not either.
bool has_local_counts(const schedule::Shape& shape);

// Like algorithm::why_illegal, also for calls with local counts.
std::string why_not(const algorithm::Algorithm& algorithm, const schedule::Shape& shape,
                    const algorithm::Parameters& parameters);
// Whether that is empty, without the text for people: a choice asks it for each candidate.
bool can_do(const algorithm::Algorithm& algorithm, const schedule::Shape& shape,
            const algorithm::Parameters& parameters);

}  // namespace unisono::select
