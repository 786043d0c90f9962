// SPDX-License-Identifier: BSD-3-Clause
// What a machine file of this user has to be of: this machine, this version, and the settings that
// change how ranks wait and who executes their steps. Before any thread calls setenv.
#pragma once

#include "model/machine.hpp"

namespace unisono::tools {

model::Fingerprint own_fingerprint();

}  // namespace unisono::tools
