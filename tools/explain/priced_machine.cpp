// SPDX-License-Identifier: BSD-3-Clause
#include "explain/priced_machine.hpp"

#include <filesystem>

#include "base/settings/user_folder.hpp"
#include "model/default_machine.hpp"
#include "model/machine_file.hpp"
#include "model/own_machine.hpp"
#include "own_fingerprint.hpp"

namespace unisono::tools {

base::Result<PricedMachine> find_priced_machine(const std::string& path) {
  PricedMachine found;
  if (!path.empty()) {
    UNISONO_ASSIGN(found.machine, model::read_machine_file(path));
    return found;
  }
  found.machine = model::default_machine();
  const std::string folder = base::user_cache_folder(base::process_environment());
  std::error_code error;
  if (folder.empty() || !std::filesystem::exists(model::own_machine_path(folder), error)) {
    return found;
  }
  auto own = model::read_own_machine(folder, own_fingerprint());
  if (own) {
    found.machine = std::move(*own);
  } else {
    found.note = own.error().message + "; the default machine is taken";
  }
  return found;
}

}  // namespace unisono::tools
