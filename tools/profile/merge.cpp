// SPDX-License-Identifier: BSD-3-Clause
#include "profile/merge.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/file/read_file.hpp"

namespace unisono::tools {
namespace {

using base::Error;

auto key_of(const ProfileRow& row) {
  const profile::Kind& kind = row.kind;
  return std::tuple(kind.collective, row.form, kind.op, kind.type, kind.bytes_class, kind.ranks,
                    kind.hosts, kind.algorithm, kind.engine, kind.reason);
}

// Files of other jobs, and a rank twice.
base::Status check(const std::vector<RankFile>& files) {
  for (std::size_t i = 1; i < files.size(); ++i) {
    const RankFile& one = files[i - 1];
    const RankFile& other = files[i];
    if (one.origin.job != other.origin.job || one.origin.ranks != other.origin.ranks) {
      return base::argument_error(fmt::format(
          "{} is of the job {} of {} ranks, {} of the job {} of {}", one.file, one.origin.job,
          one.origin.ranks, other.file, other.origin.job, other.origin.ranks));
    }
    if (one.origin.rank == other.origin.rank) {
      return base::argument_error(
          fmt::format("{} and {} are both of rank {}", one.file, other.file, one.origin.rank));
    }
  }
  return base::success();
}

// Names of many ranks fill no screen.
std::string names_of(const std::vector<int>& ranks) {
  constexpr std::size_t kMostNamed = 8;
  if (ranks.size() <= kMostNamed) return fmt::format("{}", fmt::join(ranks, ", "));
  const std::vector<int> first(ranks.begin(), ranks.begin() + kMostNamed);
  return fmt::format("{} and {} more", fmt::join(first, ", "), ranks.size() - kMostNamed);
}

void name_missing(const std::vector<RankFile>& files, MergedProfile& merged) {
  std::vector<int> missing;
  auto next = files.begin();
  for (int rank = 0; rank < merged.job_ranks; ++rank) {
    if (next != files.end() && next->origin.rank == rank) {
      ++next;
    } else {
      missing.push_back(rank);
    }
  }
  if (missing.empty()) return;
  merged.left_out.push_back(fmt::format("no file was given of rank{} {}",
                                        missing.size() == 1 ? "" : "s", names_of(missing)));
}

}  // namespace

void sort_by_time(std::vector<ProfileRow>& rows) {
  std::ranges::sort(rows, [](const ProfileRow& a, const ProfileRow& b) {
    if (a.totals.ns != b.totals.ns) return a.totals.ns > b.totals.ns;
    return key_of(a) < key_of(b);
  });
}

base::Result<MergedProfile> merge_profiles(std::vector<RankFile> files) {
  if (files.empty()) return base::argument_error("no file is given");
  std::ranges::sort(files, {}, [](const RankFile& each) {
    return std::tuple(each.origin.rank, std::string_view(each.file));
  });
  UNISONO_TRY(check(files));
  MergedProfile merged;
  merged.job_ranks = files.front().origin.ranks;
  std::map<decltype(key_of(ProfileRow())), ProfileRow> rows;
  for (const RankFile& each : files) {
    if (!each.is_complete) {
      merged.left_out.push_back(fmt::format(
          "{} has no last line: rank {} was killed, or still runs", each.file, each.origin.rank));
      continue;
    }
    if (!each.has_ended) {
      merged.unfinished.push_back(
          fmt::format("{}: rank {} was killed, or still runs", each.file, each.origin.rank));
    }
    for (const ProfileRow& row : each.rows) {
      ProfileRow& sum = rows[key_of(row)];
      sum.kind = row.kind;
      sum.form = row.form;
      add_totals(sum.totals, row.totals);
    }
    for (const std::string& text : each.learned) {
      if (std::ranges::find(merged.learned, text) == merged.learned.end()) {
        merged.learned.push_back(text);
      }
    }
  }
  name_missing(files, merged);
  std::erase_if(files, [](const RankFile& each) { return !each.is_complete; });
  merged.ranks = std::move(files);
  for (auto& [key, row] : rows) merged.rows.push_back(std::move(row));
  sort_by_time(merged.rows);
  for (const ProfileRow& row : merged.rows) {
    if (__builtin_add_overflow(merged.ns, row.totals.ns, &merged.ns)) merged.ns = INT64_MAX;
  }
  return merged;
}

base::Result<MergedProfile> read_profiles(const std::vector<std::string>& names) {
  std::vector<RankFile> files;
  for (const std::string& name : names) {
    UNISONO_ASSIGN(const std::string text, base::read_file(name));
    UNISONO_ASSIGN(RankFile file, parse_rank_file(text, name));
    files.push_back(std::move(file));
  }
  return merge_profiles(std::move(files));
}

}  // namespace unisono::tools
