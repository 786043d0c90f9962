// SPDX-License-Identifier: BSD-3-Clause
// Combination: an engine over a network, and the numbers of ranks that cross tests sweep. For tests
// of one thread.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "harness/scale.hpp"
#include "harness/world.hpp"

namespace unisono::test {

inline bool full_sweep = false;  // the argument --full

struct Combination {
  const char* engine;
  // shm, pull: shm with single copies; virtual, multicast: virtual with staged multicast
  const char* network;
};

inline constexpr Combination kCombinations[] = {
    {"inline", "shm"},      {"helping", "shm"},      {"inline", "pull"},      {"inline", "virtual"},
    {"helping", "virtual"}, {"inline", "multicast"}, {"helping", "multicast"}};

inline std::string combination_name(const testing::TestParamInfo<Combination>& info) {
  return std::string(info.param.engine) + "_" + info.param.network;
}

inline std::vector<int> swept_ranks() {
  // Sanitizers look at memory, of which 8 ranks show nothing new and take most of the time.
  if (!full_sweep && harness::kSanitized) return {1, 2, 3, 5};
  if (!full_sweep) return {1, 2, 3, 5, 8};
  std::vector<int> all(12);
  std::iota(all.begin(), all.end(), 1);
  return all;
}

// Kernels do not depend on the number of ranks. Where only their memory matters, testing all types
// and operators once in place and once not suffices; they take most of the time.
inline bool all_types_at(int ranks) {
  return full_sweep || !harness::kSanitized || ranks == 2 || ranks == 3;
}

inline std::unique_ptr<World> make_world(const Combination& setup, int ranks,
                                         const base::Environment& more = {}) {
  const auto is = [&setup](const char* network) {
    return std::strcmp(setup.network, network) == 0;
  };
  WorldOptions options{.ranks = ranks,
                       .virtual_network = is("virtual") || is("multicast"),
                       .network = {.seed = static_cast<std::uint64_t>(ranks)},
                       .settings = {{"UNISONO_ENGINE", setup.engine}, {"UNISONO_CHANNELS", "4"}}};
  if (is("pull")) {
    options.settings["UNISONO_SINGLE_COPY"] = "on";
    options.settings["UNISONO_SINGLE_COPY_FROM"] = "64";
  }
  for (const auto& [name, value] : more) options.settings[name] = value;
  options.network.multicast = is("multicast");
  return std::make_unique<World>(options);
}

}  // namespace unisono::test
