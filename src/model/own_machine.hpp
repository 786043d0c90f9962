// SPDX-License-Identifier: BSD-3-Clause
// The machine file of this user on this machine, which `unisono tune` writes into a cache folder.
// It counts only if its fingerprint is that of the machine, version and settings which ask for it,
// and its text is whole. find_machine() decides between it, the user's own and the default one.
// Control path; any thread.
#pragma once

#include <string>

#include "base/result.hpp"
#include "base/settings/settings.hpp"
#include "model/machine.hpp"

namespace unisono::model {

// FOLDER/machine.json
std::string own_machine_path(const std::string& folder);

// Creates the folder if need be. The machine needs a fingerprint.
base::Status write_own_machine(const Machine& machine, const std::string& folder);

// Errors say why the file is refused: it cannot be read, is damaged, or is of something else.
base::Result<Machine> read_own_machine(const std::string& folder, const Fingerprint& expected);

// This machine, this version, and the settings that change how ranks wait and who executes their
// steps. All cores count that the process may use, also if it is bound to some of them.
Fingerprint own_fingerprint(const base::Settings& settings);

struct FoundMachine {
  Machine machine;
  std::string path;  // of its file; empty: it is the default one
  std::string note;  // why the file of `unisono tune` does not count; empty: it does, or is none
};
// UNISONO_MACHINE of these settings, or the file of `unisono tune` in their cache folder, or the
// default machine. An error only where the user's own file cannot be read.
base::Result<FoundMachine> find_machine(const base::Settings& settings);

}  // namespace unisono::model
