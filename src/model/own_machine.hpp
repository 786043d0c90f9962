// SPDX-License-Identifier: BSD-3-Clause
// The machine file of this user on this machine, which `unisono tune` writes into a cache folder.
// It counts only if its fingerprint is that of the machine, version and settings which ask for it,
// and its text is whole. Control path; any thread.
#pragma once

#include <string>

#include "base/result.hpp"
#include "model/machine.hpp"

namespace unisono::model {

// FOLDER/machine.json
std::string own_machine_path(const std::string& folder);

// Creates the folder if need be. The machine needs a fingerprint.
base::Status write_own_machine(const Machine& machine, const std::string& folder);

// Errors say why the file is refused: it cannot be read, is damaged, or is of something else.
base::Result<Machine> read_own_machine(const std::string& folder, const Fingerprint& expected);

}  // namespace unisono::model
