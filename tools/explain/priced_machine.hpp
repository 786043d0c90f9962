// SPDX-License-Identifier: BSD-3-Clause
// The machine by which `unisono explain` predicts times: the file that the user names, or that of
// `unisono tune`, or else the default one. Main thread.
#pragma once

#include <string>

#include "base/result.hpp"
#include "model/machine.hpp"

namespace unisono::tools {

struct PricedMachine {
  model::Machine machine;
  std::string note;  // why the file of `unisono tune` does not count; empty: it does, or is none
};

// path: of the user's file; empty if he names none.
base::Result<PricedMachine> find_priced_machine(const std::string& path);

}  // namespace unisono::tools
