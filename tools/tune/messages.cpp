// SPDX-License-Identifier: BSD-3-Clause
#include "tune/messages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/check.hpp"
#include "select/candidates.hpp"
#include "select/override.hpp"

namespace unisono::tools::tune {
namespace {

using schedule::Collective;

// The parameters in their order: o, C + L or the hand-over, and r if it is one of its own.
enum { kOverhead, kOfCall, kReception };

bool is_local(const model::PathParameters& path) {
  return path.level == model::Level::cache || path.level == model::Level::memory;
}

// r(m) keeps its growth.
void set_ends(model::PathParameters& path, double overhead, double reception) {
  path.overhead.number = overhead;
  const double before = path.reception.ns(0);
  for (auto& point : path.reception.points) point.value.number += reception - before;
}
// Helped ranks pass long messages on in parts, through buffers, which cost no less than short
// messages. The probe's broadcasts of long messages took one copy.
void raise_to_short(const model::PathParameters& shorter, model::PathParameters& path) {
  if (shorter.overhead_per_byte.ns() > path.overhead_per_byte.ns()) {
    path.overhead_per_byte = shorter.overhead_per_byte;
  }
  const auto& from = shorter.reception.points.back();
  auto& to = path.reception.points.back();
  const double scale = static_cast<double>(to.bytes) / static_cast<double>(from.bytes);
  if (from.value.number * scale <= to.value.number) return;
  to.value.number = std::round(from.value.number * scale * 1e3) / 1e3;
  to.value.plus_minus = std::round(from.value.plus_minus * scale * 1e3) / 1e3;
  to.value.where = from.value.where + ", of short messages";
}
// A call of one message takes C + L. If other load disturbed the ping-pong, its L may be greater.
void set_start_up(model::PathParameters& path, model::Value start_up_and_latency) {
  path.latency.number = std::min(path.latency.number, start_up_and_latency.number);
  start_up_and_latency.number -= path.latency.number;
  path.start_up = {{.op = {}, .value = std::move(start_up_and_latency)}};
}

// A probe's candidate, priced on machines that differ in the parameters.
class Prediction {
 public:
  static base::Result<Prediction> of(const model::Machine& machine, model::Engine engine, int cores,
                                     const MessageTime& time) {
    const std::string text = fmt::format("{}:{}", schedule::collective_name(time.probe.collective),
                                         time.probe.algorithm);
    UNISONO_ASSIGN(const select::Overrides overrides, select::parse_overrides(text));
    const std::int64_t count =
        time.probe.collective == Collective::barrier ? 0 : time.probe.bytes / 8;
    Prediction result;
    result.shape_ = {.collective = time.probe.collective, .ranks = time.ranks, .count = count};
    const select::Ruling ruling = select::rule_on(overrides, result.shape_, time.probe.bytes);
    if (ruling.rule == nullptr) {
      return base::Error{base::Code::argument, text + " is no candidate of the probe"};
    }
    result.row_ = ruling.rule->algorithm;
    result.parameters_ = ruling.parameters;
    result.machine_ = machine;
    result.work_ = {.engine = engine,
                    .type = arith::Type::float64,
                    .staged_multicast = true,
                    .cores = engine == model::Engine::helping ? cores : time.ranks};
    return result;
  }

  double operator()(std::span<const double> parameters) {
    const bool equal_ends = parameters.size() <= kReception;
    const model::Value of_call{.number = parameters[kOfCall], .where = {}};
    const bool helps = work_.engine == model::Engine::helping;
    if (helps) machine_.hand_over = of_call;
    for (model::PathParameters& path : machine_.paths) {
      if (!is_local(path)) continue;
      set_ends(path, parameters[kOverhead], parameters[equal_ends ? kOverhead : kReception]);
      if (!helps) set_start_up(path, of_call);
    }
    const select::Pricing pricing{.machine = &machine_, .work = work_};
    const auto price = select::price_of(*row_, parameters_, shape_, pricing);
    UNISONO_CHECK(price.ok(), "a probe that is legal and has no price");
    return price->ns;
  }

 private:
  schedule::Shape shape_;
  const algorithm::Algorithm* row_ = nullptr;
  algorithm::Parameters parameters_;
  model::Machine machine_;
  model::Work work_;
};

model::Value measured(const model::Estimate& estimate, const std::string& where) {
  // Three digits after the point of a nanosecond: more would be noise.
  return {.number = std::round(estimate.value * 1e3) / 1e3,
          .plus_minus = std::round(estimate.plus_minus * 1e3) / 1e3,
          .origin = model::Origin::measured,
          .where = where};
}

}  // namespace

std::span<const MessageProbe> message_probes(bool oversubscribed) {
  // Each chain has a length of its own, by which kProbedAlgorithms knows it.
  static const std::array<MessageProbe, 9> kProbes = {{
      {Collective::scatter, "linear", 8},   // one sends to several
      {Collective::gather, "linear", 8},    // one receives from several
      {Collective::alltoall, "linear", 8},  // each does both
      {Collective::broadcast, "flat", 8},   // several receive one
      {Collective::barrier, "dissemination", 8},
      {Collective::broadcast, "chain(4)", 520},  // one sends many to one
      {Collective::broadcast, "chain(8)", 528},
      {Collective::broadcast, "chain(16)", 536},
      {Collective::broadcast, "chain(64)", 544},
  }};
  constexpr std::size_t kWithoutChains = 5;
  return std::span(kProbes).first(oversubscribed ? kWithoutChains : kProbes.size());
}

base::Result<MessageCosts> fit_messages(const model::Machine& machine, model::Engine engine,
                                        int cores, std::span<const MessageTime> times) {
  std::vector<model::PredictedTime> predicted;
  int most_ranks = 0;
  for (const MessageTime& each : times) {
    UNISONO_ASSIGN(Prediction one, Prediction::of(machine, engine, cores, each));
    predicted.push_back({std::move(one), each.ns});
    most_ranks = std::max(most_ranks, each.ranks);
  }
  const bool helps = engine == model::Engine::helping;
  const bool equal_ends = helps || most_ranks <= 2;
  const model::PathParameters& path = model::local_path(machine, engine, 8);
  const double hand_over = machine.hand_over ? machine.hand_over->ns() : 0;
  std::vector<double> start = {
      std::max(path.overhead.ns(), 1.0),
      helps ? hand_over : model::start_up_ns(path, {}) + path.latency.ns()};
  if (!equal_ends) start.push_back(start[kOverhead]);
  UNISONO_ASSIGN(const model::Fit fit, model::fit_predictions(predicted, std::move(start)));
  MessageCosts costs;
  costs.overhead = fit.parameters[kOverhead];
  costs.reception = fit.parameters[equal_ends ? kOverhead : kReception];
  costs.deviation = fit.deviation;
  (helps ? costs.hand_over : costs.start_up_and_latency) = fit.parameters[kOfCall];
  return costs;
}

void set_message_costs(model::Machine& machine, model::Engine engine, const MessageCosts& costs,
                       const std::string& where) {
  const bool helps = engine == model::Engine::helping;
  const model::PathParameters shorter = model::local_path(machine, model::Engine::any, 0);
  std::vector<model::PathParameters> own;
  for (model::PathParameters path : machine.paths) {
    if (!is_local(path) || path.engine != model::Engine::any) continue;
    path.engine = engine;
    if (helps && !own.empty()) raise_to_short(shorter, path);
    const model::Value reception = measured(costs.reception, where);
    set_ends(path, costs.overhead.value, reception.number);
    path.overhead = measured(costs.overhead, where);
    path.reception.points.front().value = reception;
    if (!helps) set_start_up(path, measured(costs.start_up_and_latency, where));
    own.push_back(std::move(path));
  }
  machine.paths.insert(machine.paths.begin(), own.begin(), own.end());
  if (helps) machine.hand_over = measured(costs.hand_over, where);
}

}  // namespace unisono::tools::tune
