// SPDX-License-Identifier: BSD-3-Clause
#include "own_fingerprint.hpp"

#include <fmt/format.h>
#include <unisono/unisono.h>

#include "base/settings/settings.hpp"
#include "machine.hpp"

namespace unisono::tools {

model::Fingerprint own_fingerprint() {
  const Machine machine = describe_machine();
  model::Fingerprint fingerprint;
  fingerprint.machine =
      fmt::format("{}, {} cores, {}", machine.processor, machine.usable_cores, machine.kernel);
  fingerprint.version = unisono_version();
  const base::Environment environment = base::process_environment();
  for (const auto setting :
       {base::Setting::engine, base::Setting::spin, base::Setting::short_slices}) {
    const std::string_view name = base::setting_row(setting).name;
    const auto found = environment.find(name);
    if (found == environment.end() || found->second.empty()) continue;
    fingerprint.settings +=
        fmt::format("{}{}={}", fingerprint.settings.empty() ? "" : " ", name, found->second);
  }
  return fingerprint;
}

}  // namespace unisono::tools
