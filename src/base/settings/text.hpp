// SPDX-License-Identifier: BSD-3-Clause
// Texts made from the settings table: the values a row accepts, the dump of `info --config` and the
// reference page (both declared in settings.hpp). Used inside base only.
#pragma once

#include <string>

#include "base/settings/settings.hpp"

namespace unisono::base {

// "a time from 1ms to 24h (e.g. 500ms, 2s)", "one of auto, inline, helping"
std::string accepted_values(const SettingRow& row);

}  // namespace unisono::base
