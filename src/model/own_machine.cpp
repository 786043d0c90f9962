// SPDX-License-Identifier: BSD-3-Clause
#include "model/own_machine.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "base/check.hpp"
#include "model/default_machine.hpp"
#include "model/machine_file.hpp"
#include "topology/cores.hpp"
#include "topology/processor.hpp"
#include "topology/spare_core.hpp"

namespace unisono::model {
namespace {

constexpr std::string_view kDefault = "default";  // the value of UNISONO_MACHINE
// It grows when `unisono tune` measures something else: files of an older one are refused.
constexpr int kTuneVersion = 2;

// Ranks are bound by launchers, but `unisono tune` is not.
int cores_of_machine() {
  const topology::UsableCores usable = topology::usable_cores();
  topology::UsableCores allowed = topology::allowed_cores();
  if (allowed.mask == topology::UsableCores{}.mask) allowed.mask = usable.mask;
  allowed.quota = usable.quota;
  return topology::count_cores(allowed);
}

base::Error foreign(const std::string& path, std::string_view what, std::string_view found,
                    std::string_view expected) {
  return {base::Code::state,
          fmt::format("{}: made for {} \"{}\", expected \"{}\"; run unisono tune", path, what,
                      found, expected)};
}

}  // namespace

std::string own_machine_path(const std::string& folder) { return folder + "/machine.json"; }

base::Status write_own_machine(const Machine& machine, const std::string& folder) {
  UNISONO_CHECK(machine.fingerprint.has_value(), "a machine of nobody");
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    return base::Error{base::Code::system, fmt::format("creating {}: {}", folder, error.message())};
  }
  return write_machine_file(machine, own_machine_path(folder));
}

base::Result<Machine> read_own_machine(const std::string& folder, const Fingerprint& expected) {
  const std::string path = own_machine_path(folder);
  Machine machine;
  UNISONO_ASSIGN(machine, read_machine_file(path));
  if (!machine.fingerprint) {
    return base::Error{base::Code::state,
                       fmt::format("{}: expected a fingerprint; run unisono tune", path)};
  }
  const Fingerprint& found = *machine.fingerprint;
  if (found.machine != expected.machine) {
    return foreign(path, "machine", found.machine, expected.machine);
  }
  if (found.version != expected.version) {
    return foreign(path, "version", found.version, expected.version);
  }
  if (found.settings != expected.settings) {
    return foreign(path, "settings", found.settings, expected.settings);
  }
  return machine;
}

Fingerprint own_fingerprint(const base::Settings& settings) {
  Fingerprint own;
  own.machine = fmt::format("{}, {} cores, {}", topology::processor_name(), cores_of_machine(),
                            topology::kernel_name());
  own.version = fmt::format("{}, tune {}", UNISONO_VERSION, kTuneVersion);
  for (const auto setting :
       {base::Setting::engine, base::Setting::spin, base::Setting::short_slices}) {
    const std::string_view value = settings.as_written(setting);
    if (value.empty()) continue;
    own.settings += fmt::format("{}{}={}", own.settings.empty() ? "" : " ",
                                base::setting_row(setting).name, value);
  }
  return own;
}

base::Result<FoundMachine> find_machine(const base::Settings& settings) {
  FoundMachine found;
  const std::string& named = settings.text(base::Setting::machine);
  if (!named.empty() && named != kDefault) {
    auto read = read_machine_file(named);
    if (!read) {
      return base::Error{read.error().code, "UNISONO_MACHINE: " + read.error().message};
    }
    found.machine = std::move(*read);
    found.path = named;
    return found;
  }
  found.machine = default_machine();
  const std::string& folder = settings.cache_folder();
  std::error_code error;
  if (!named.empty() || folder.empty() ||
      !std::filesystem::exists(own_machine_path(folder), error)) {
    return found;
  }
  auto own = read_own_machine(folder, own_fingerprint(settings));
  if (own) {
    found.machine = std::move(*own);
    found.path = own_machine_path(folder);
  } else {
    found.note = own.error().message + "; the default machine is taken";
  }
  return found;
}

}  // namespace unisono::model
