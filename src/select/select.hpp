// SPDX-License-Identifier: BSD-3-Clause
// Choice of algorithm and parameters for a shape: the user's overrides, or else the table of rules
// (rules.hpp). Pure: all ranks choose alike, since they have the same input. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "algorithm/algorithm.hpp"
#include "select/override.hpp"

namespace unisono::select {

// Facts that are the same at all ranks, besides the shape.
struct Circumstances {
  std::int64_t element_bytes = 1;
  bool oversubscribed = false;  // more ranks than cores
  bool multicast = false;       // a message to many is staged once
  // A message from the first rank of a host to those of the others is one packet.
  bool leaders_multicast = false;
  bool pull = false;  // ranks can read each other's memory
  // Bytes from which that is preferred to buffers; negative: as measured.
  std::int64_t single_copy_from = -1;
};

// The source of the choice.
enum class Origin {
  rule,      // the rule that holds
  override_  // a rule of UNISONO_ALGORITHM
};

struct Choice {
  const algorithm::Algorithm* algorithm = nullptr;
  algorithm::Parameters parameters;
  Origin origin = Origin::rule;
  std::string reason;                    // half a sentence for people
  std::vector<std::string> passed_over;  // overrides that do not fit this call, and why
};

// Always finds a legal one.
Choice choose(const schedule::Shape& shape, const Circumstances& circumstances,
              const Overrides& overrides = {});

// Whether long messages should be read from their senders' memory, in one copy, instead of passing
// through buffers in parts.
bool prefers_single_copy(const schedule::Shape& shape, const Circumstances& circumstances);

// Bytes of the vector, or of a block on the average, as overrides and rules count them; nullopt
// where ranks know different counts.
std::optional<std::int64_t> common_bytes(const schedule::Shape& shape,
                                         const Circumstances& circumstances);

}  // namespace unisono::select
