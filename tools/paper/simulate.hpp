// SPDX-License-Identifier: BSD-3-Clause
// What the papers' reports have in common: one collective on one machine, and the fit of a
// parameter that no paper publishes. Any thread.
#pragma once

#include <functional>
#include <string_view>

#include "algorithm/algorithm.hpp"
#include "model/costs.hpp"
#include "sim/program/program.hpp"

namespace unisono::tools {

struct Operation {
  schedule::Shape shape;
  std::string_view algorithm;
  algorithm::Parameters parameters = {};
  model::Work work = {model::Engine::any, arith::Type::byte, std::nullopt, true};
};

base::Result<sim::ProgramSet> compile(const model::Machine& machine, const Operation& operation);
// Microseconds until the last rank has ended, without contention.
base::Result<double> latency_us(const model::Machine& machine, const Operation& operation);

// The value between low and high at which f, which rises, is `target`; low or high if it is not
// between them.
base::Result<double> fit(double low, double high, double target,
                         const std::function<base::Result<double>(double)>& f);

}  // namespace unisono::tools
