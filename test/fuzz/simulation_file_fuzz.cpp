// SPDX-License-Identifier: BSD-3-Clause
// Fuzzer of what simulations read: GOAL texts and binaries that are accepted compile and end, noise
// that is accepted delays no work for ever; a refusal names its file.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.hpp"
#include "sim/goal/goal_binary.hpp"
#include "sim/goal/goal_file.hpp"
#include "sim/noise.hpp"
#include "sim/sweep.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace unisono;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto traces =
      sim::is_goal_binary(text) ? sim::parse_goal_binary(text, "f") : sim::parse_goal(text, "f");
  if (traces.ok()) {
    model::Machine machine;
    machine.paths.resize(1);
    machine.paths[0].level = model::Level::hosts;
    machine.paths[0].reception.points = {{}};
    const auto programs = sim::ProgramSet::compile_traces(*traces, machine);
    UNISONO_CHECK(sim::sweep(programs).finish >= 0, "a schedule that ends before it begins");
  } else {
    UNISONO_CHECK(traces.error().message.starts_with("f:"), "an error without its file");
    UNISONO_CHECK(traces.error().message.size() < 512, "a message as long as the text");
  }
  const auto noise = sim::Noise::parse(text, "f");
  if (noise.ok()) {
    UNISONO_CHECK(noise->end_of(7, 1000, 3) >= 1007, "work that noise makes shorter");
  } else {
    UNISONO_CHECK(!noise.error().message.empty(), "an error without a message");
  }
  return 0;
}
