// SPDX-License-Identifier: BSD-3-Clause
// The profile of one rank, read from its file (src/profile/text.hpp). A file without a last line is
// told from a damaged one: the rank was killed before it saved any call, or still runs. Pure; any
// thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "profile/profile.hpp"

namespace unisono::tools {

// A kind of call in one form, with its counters.
struct ProfileRow {
  profile::Kind kind;
  profile::Form form = profile::Form::blocking;
  profile::Series::Totals totals;
};
const char* form_name(profile::Form form);
// Adds the calls of a row of the same kind and form. Sums that are too large stay at the limit.
void add_totals(profile::Series::Totals& sum, const profile::Series::Totals& more);
// The time that a share of the calls did not exceed, from the histogram: the middle of its bucket.
// 0 without calls.
std::int64_t percentile_ns(const profile::Series::Totals& totals, double share);

struct RankFile {
  std::string file;
  profile::Origin origin;
  std::string host;
  std::vector<ProfileRow> rows;
  std::vector<std::string> learned;  // choices that measured times have changed, in sentences
  bool is_complete = false;          // it has the last line
  bool has_ended = false;            // it was written at the rank's end, not before
};

// Error: it is no such file, or is damaged; with file and line.
base::Result<RankFile> parse_rank_file(std::string_view text, const std::string& file);

}  // namespace unisono::tools
