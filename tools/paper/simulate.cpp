// SPDX-License-Identifier: BSD-3-Clause
#include "paper/simulate.hpp"

#include "model/machine_file.hpp"
#include "paper/claim.hpp"
#include "sim/sweep.hpp"

namespace unisono::tools {

base::Result<model::Machine> Inputs::machine(const std::string& name) const {
  return model::read_machine_file(machines_ + "/" + name + ".json");
}

base::Result<sim::ProgramSet> compile(const model::Machine& machine, const Operation& operation) {
  const auto* row = algorithm::find(operation.shape.collective, operation.algorithm);
  return sim::ProgramSet::compile(
      operation.shape.ranks,
      [&](int rank) { return build(*row, operation.shape, operation.parameters, rank); }, machine,
      operation.work);
}

base::Result<double> latency_us(const model::Machine& machine, const Operation& operation) {
  UNISONO_ASSIGN(const sim::ProgramSet programs, compile(machine, operation));
  return sim::to_ns(sim::sweep(programs).finish) / 1e3;
}

base::Result<double> fit(double low, double high, double target,
                         const std::function<base::Result<double>(double)>& f) {
  constexpr int kHalvings = 40;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    UNISONO_ASSIGN(const double value, f(middle));
    (value < target ? low : high) = middle;
  }
  return (low + high) / 2;
}

}  // namespace unisono::tools
