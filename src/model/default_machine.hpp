// SPDX-License-Identifier: BSD-3-Clause
// The machine to assume where nobody measured one: machines/default.json, which the build puts into
// the binary. Any thread.
#pragma once

#include "model/machine.hpp"

namespace unisono::model {

const Machine& default_machine();

}  // namespace unisono::model
