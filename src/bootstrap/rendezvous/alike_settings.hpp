// SPDX-License-Identifier: BSD-3-Clause
// The settings that all ranks of a job have to set alike: each rank sends its own with its Hello,
// and the rendezvous says which of them differ. Pure; any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/settings/settings.hpp"

namespace unisono::bootstrap {

// The values, in the order of a table, each behind a ';'. A long one is cut, and its hash added.
std::string settings_text(const base::Settings& settings);

// "UNISONO_LEARN: rank 1 has on, all others have off; UNISONO_BUFFERS: ..." `texts`: each rank's
// settings_text(). Empty if they are alike, or not of this form.
std::string differing_settings(std::span<const std::string_view> texts);

}  // namespace unisono::bootstrap
