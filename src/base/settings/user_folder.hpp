// SPDX-License-Identifier: BSD-3-Clause
// Where programs keep files of their user that they can make again (XDG Base Directory
// Specification). Any thread while none calls setenv.
#pragma once

#include <string>

#include "base/settings/settings.hpp"

namespace unisono::base {

// $XDG_CACHE_HOME/unisono, or $HOME/.cache/unisono; empty if neither is an absolute path.
std::string user_cache_folder(const Environment& environment);

}  // namespace unisono::base
