// SPDX-License-Identifier: BSD-3-Clause
#include "model/own_machine.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "base/check.hpp"
#include "model/machine_file.hpp"

namespace unisono::model {
namespace {

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

}  // namespace unisono::model
