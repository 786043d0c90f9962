// SPDX-License-Identifier: BSD-3-Clause
// unisono profile: the files that a job's ranks wrote with UNISONO_PROFILE, merged.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "commands.hpp"
#include "profile/merge.hpp"
#include "profile/report.hpp"
#include "text_file.hpp"

namespace unisono::tools {
namespace {

struct ProfileOptions {
  std::vector<std::string> files;
  bool json = false;
  std::string svg;
  int rank = -1;
  std::size_t rows = kUsualRows;
};

base::Result<std::string> table_of(const MergedProfile& profile, const ProfileOptions& options) {
  if (options.rank < 0) return profile_head(profile) + profile_table(profile.rows, options.rows);
  const auto found = std::ranges::find(profile.ranks, options.rank,
                                       [](const RankFile& each) { return each.origin.rank; });
  if (found == profile.ranks.end()) {
    return base::Error{base::Code::argument,
                       fmt::format("--rank: there is no whole file of rank {}", options.rank)};
  }
  std::vector<ProfileRow> rows = found->rows;
  sort_by_time(rows);
  return fmt::format("rank {} of {}, on {}\n", options.rank, profile.job_ranks, found->host) +
         profile_table(rows, options.rows);
}

base::Result<int> show(const ProfileOptions& options) {
  UNISONO_ASSIGN(const MergedProfile profile, read_profiles(options.files));
  for (const std::string& each : profile.left_out) {
    fmt::print(stderr, "unisono profile: not merged: {}\n", each);
  }
  for (const std::string& each : profile.unfinished) {
    fmt::print(stderr, "unisono profile: without its last calls: {}\n", each);
  }
  if (!options.svg.empty()) {
    UNISONO_TRY(write_text_file(options.svg, profile_picture(profile)));
  }
  if (options.json) {
    fmt::print("{}", profile_json(profile));
  } else {
    UNISONO_ASSIGN(const std::string table, table_of(profile, options));
    fmt::print("{}", table);
    for (const std::string& each : profile.learned) fmt::print("learned: {}\n", each);
  }
  const bool is_whole = profile.left_out.empty() && profile.unfinished.empty();
  return is_whole ? kExitSuccess : kExitFailure;
}

int run(const ProfileOptions& options) {
  const base::Result<int> shown = show(options);
  if (shown.ok()) return *shown;
  fmt::print(stderr, "unisono profile: {}\n", shown.error().message);
  return kExitUsage;
}

}  // namespace

void add_profile(CLI::App& app, int& exit_status) {
  CLI::App* command = app.add_subcommand(
      "profile",
      "Show which collectives a job made, and how long they took\n\n"
      "The files are those that the ranks wrote with UNISONO_PROFILE=FILE, as with unisono run\n"
      "--profile=FILE. Rows are sorted by the time of all their calls. The exit status is 1 if a "
      "rank\n"
      "has no whole file: it was killed, so that its last calls are missing, or its file was not\n"
      "given.");
  auto options = std::make_shared<ProfileOptions>();
  command->add_option("FILES", options->files, "The files, one of each rank")
      ->required()
      ->type_name("FILE...");
  command->add_flag("--json", options->json, "Print JSON: all ranks together, and each");
  command->add_option("--svg", options->svg, "Write a picture: time and calls over sizes")
      ->type_name("PICTURE");
  command->add_option("--rank", options->rank, "Show the rows of this rank only")
      ->check(CLI::Range(0, 4095))
      ->type_name("RANK");
  command->add_option("--rows", options->rows, "Most rows of the table; 0: all of them")
      ->check(CLI::Range(0, std::numeric_limits<int>::max()))
      ->type_name("N")
      ->capture_default_str();
  command->footer("Example:\n  unisono run -n 4 --profile=p ./program\n  unisono profile p.*");
  command->callback([options, &exit_status] { exit_status = run(*options); });
}

}  // namespace unisono::tools
