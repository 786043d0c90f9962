// SPDX-License-Identifier: BSD-3-Clause
// Profiles for people and programs: a table, JSON, a picture. Pure; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "profile/merge.hpp"

namespace unisono::tools {

// The most rows of a table, if nobody asks for another number.
inline constexpr std::size_t kUsualRows = 40;

// The line above the table of all ranks: how many there are, and the machine file of the
// predictions.
std::string profile_head(const MergedProfile& profile);
// Rows with the share of their time, at most `most` of them; 0: all.
std::string profile_table(const std::vector<ProfileRow>& rows, std::size_t most);
// docs/reference/profile-file.md describes it.
std::string profile_json(const MergedProfile& profile);
// SVG: time and calls over size classes, in the colours of collectives.
std::string profile_picture(const MergedProfile& profile);

}  // namespace unisono::tools
