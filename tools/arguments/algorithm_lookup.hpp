// SPDX-License-Identifier: BSD-3-Clause
// How people name rows of the algorithm table on the command line: "ring" (in every collective that
// has one), "allreduce" (all rows of a collective), "allreduce/ring" (one row). Any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "algorithm/algorithm.hpp"
#include "base/result.hpp"

namespace unisono::tools {

// "allreduce/ring"
std::string row_name(const algorithm::Algorithm& algorithm);

// The rows that `name` means, in the order of the table, at least one; the error suggests the
// nearest name.
base::Result<std::vector<const algorithm::Algorithm*>> find_rows(std::string_view name);

// The one row that `name` means; the error lists the candidates.
base::Result<const algorithm::Algorithm*> find_row(std::string_view name);

// Sets parameters from "name=value" texts over the fallback values.
base::Result<algorithm::Parameters> parse_parameters(const algorithm::Algorithm& algorithm,
                                                     const schedule::Shape& shape,
                                                     const std::vector<std::string>& assignments);

}  // namespace unisono::tools
