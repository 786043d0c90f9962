// SPDX-License-Identifier: BSD-3-Clause
// Machines for tests of simulations: every parameter is there, none equals another.
#pragma once

#include <string>
#include <vector>

#include "algorithm/algorithm.hpp"
#include "model/machine.hpp"
#include "sim/program/program.hpp"

namespace unisono::sim {

enum class MachineKind { plain, gapless, staging, multicasting };

inline model::Value value_of(double number, model::Unit unit = model::Unit::ns) {
  return {number, 0, unit, model::Origin::assumed, "test"};
}

inline model::Machine test_machine(MachineKind kind = MachineKind::plain) {
  using model::Unit;
  const auto path_of = [&](model::Level level, double scale) {
    model::PathParameters path;
    path.level = level;
    path.latency = value_of(1700 * scale);
    path.overhead = value_of(310 * scale);
    path.overhead_per_byte = value_of(0.37 * scale, Unit::ns_per_byte);
    path.gap = value_of(kind == MachineKind::gapless ? 0 : 530 * scale);
    path.gap_per_byte = value_of(kind == MachineKind::gapless ? 0 : 1.3 * scale, Unit::ns_per_byte);
    path.reception.points = {{0, value_of(120 * scale)}, {100, value_of(190 * scale)}};
    path.reduction = {{std::nullopt, std::nullopt, {{{8, value_of(70)}, {800, value_of(900)}}}}};
    path.start_up = {{std::nullopt, value_of(41)}};
    path.copy_per_byte = value_of(0.11 * scale, Unit::ns_per_byte);
    return path;
  };
  model::Machine machine;
  machine.name = "test";
  machine.hosts = 1 << 20;
  machine.cores_per_host = 64;
  machine.paths = {path_of(model::Level::memory, 0.1), path_of(model::Level::hosts, 1)};
  model::PathParameters& hosts = machine.paths.back();
  if (kind == MachineKind::staging) {
    hosts.staged_per_byte = value_of(0.21, Unit::ns_per_byte);
    hosts.staging_per_byte = value_of(0.05, Unit::ns_per_byte);
  }
  if (kind == MachineKind::multicasting) hosts.multicast_latency = value_of(2900);
  return machine;
}

inline model::Work test_work() {
  return {model::Engine::any, arith::Type::float64, arith::Operator::sum, true};
}

inline std::vector<schedule::Schedule> set_of(const algorithm::Algorithm& row,
                                              const schedule::Shape& shape) {
  std::vector<schedule::Schedule> set;
  const algorithm::Parameters parameters = algorithm::default_parameters(row, shape);
  for (int rank = 0; rank < shape.ranks; ++rank) {
    set.push_back(*algorithm::build(row, shape, parameters, rank));
  }
  return set;
}

inline ProgramSet programs_of(const std::vector<schedule::Schedule>& set,
                              const model::Machine& machine) {
  return *ProgramSet::compile(
      static_cast<int>(set.size()),
      [&](int rank) {
        return base::Result<schedule::Schedule>(set[static_cast<std::size_t>(rank)]);
      },
      machine, test_work());
}

}  // namespace unisono::sim
