// SPDX-License-Identifier: BSD-3-Clause
#include "tune/serial_fit.hpp"

#include <utility>
#include <vector>

namespace unisono::tools::tune {

double SerialFit::ns(int ranks, std::int64_t bytes) const {
  const double message = each.value + per_byte.value * static_cast<double>(bytes);
  return start_up_and_latency.value + (ranks - 1) * message;
}

base::Result<SerialFit> fit_serial(std::span<const SerialTime> times) {
  std::vector<model::Observation> observations;
  for (const SerialTime& time : times) {
    const double messages = time.ranks - 1;
    observations.push_back(
        {.factors = {1, messages, messages * static_cast<double>(time.bytes)}, .ns = time.ns});
  }
  SerialFit result;
  UNISONO_ASSIGN(result.fit, model::fit_linear(observations));
  result.start_up_and_latency = result.fit.parameters[0];
  result.each = result.fit.parameters[1];
  result.per_byte = result.fit.parameters[2];
  return result;
}

}  // namespace unisono::tools::tune
