// SPDX-License-Identifier: BSD-3-Clause
// The profiles of a job's ranks, together. Files that are incomplete and ranks without a file are
// named, and take no part. Pure, but for read_profiles(); any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "profile/rank_file.hpp"

namespace unisono::tools {

struct MergedProfile {
  std::vector<RankFile> ranks;          // those with a complete file, in order
  int job_ranks = 0;                    // of the job
  std::vector<ProfileRow> rows;         // of all ranks together, longest time first
  std::vector<std::string> left_out;    // a sentence for each file or rank that is not in it
  std::vector<std::string> unfinished;  // and for each one whose last calls may be missing
  std::vector<std::string> learned;     // of all ranks, each sentence once
  std::int64_t ns = 0;                  // of all rows
};

// Errors: no file, files of several jobs, two of one rank.
base::Result<MergedProfile> merge_profiles(std::vector<RankFile> files);
// Those of files. Errors: also a file that cannot be read, or is damaged.
base::Result<MergedProfile> read_profiles(const std::vector<std::string>& names);
// Longest time first; of equal ones, in the order of their names.
void sort_by_time(std::vector<ProfileRow>& rows);

}  // namespace unisono::tools
