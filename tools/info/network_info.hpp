// SPDX-License-Identifier: BSD-3-Clause
// The transports that this host would use towards another: for `unisono info --network ADDRESS`.
// Opens the sockets that a rank would, sends nothing, and closes them.
#pragma once

#include <string>

#include "base/result.hpp"
#include "base/settings/settings.hpp"

namespace unisono::tools {

// Indented "key: value" lines. `peer` is an address in numbers. Errors: those of the settings, the
// choice and the sockets.
base::Result<std::string> network_text(const std::string& peer, const base::Settings& settings);

}  // namespace unisono::tools
