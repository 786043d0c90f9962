// SPDX-License-Identifier: BSD-3-Clause
// The lines of a profile's file: JSON, one object in each. Pure; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "profile/profile.hpp"

namespace unisono::profile {

inline constexpr int kFileVersion = 1;

std::string first_line(const Origin& origin, const std::string& host, int process);
// One for each form in which calls of the row were made.
std::string lines_of(const Row& row, std::size_t& count);
// A file without it is incomplete. `rows`: the number of lines in between.
// `learned`: the sentences of Profile::add_learned. `has_ended`: the rank makes no more calls.
std::string last_line(std::size_t rows, const std::vector<std::string>& learned = {},
                      bool has_ended = true);

}  // namespace unisono::profile
