// SPDX-License-Identifier: BSD-3-Clause
#include "profile/job_files.hpp"

#include <algorithm>
#include <string_view>
#include <system_error>
#include <utility>

namespace unisono::tools {
namespace {

namespace fs = std::filesystem;

bool is_rank(std::string_view text) {
  return !text.empty() &&
         std::ranges::all_of(text, [](char digit) { return digit >= '0' && digit <= '9'; });
}

}  // namespace

JobFiles::JobFiles(std::string file) : file_(std::move(file)), before_(find()) {}

// A folder or file that is gone meanwhile has nothing of this job.
JobFiles::Times JobFiles::find() const {
  const fs::path path(file_);
  const std::string prefix = path.filename().string() + ".";
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  Times times;
  std::error_code failure;
  for (fs::directory_iterator each(folder, failure), end; !failure && each != end;
       each.increment(failure)) {
    const std::string name = each->path().filename().string();
    if (!name.starts_with(prefix) || !is_rank(std::string_view(name).substr(prefix.size()))) {
      continue;
    }
    std::error_code gone;
    const auto time = fs::last_write_time(each->path(), gone);
    if (!gone) times.emplace(path.has_parent_path() ? each->path().string() : name, time);
  }
  return times;
}

std::vector<std::string> JobFiles::written() const {
  std::vector<std::string> names;
  for (const auto& [name, time] : find()) {
    const auto found = before_.find(name);
    if (found == before_.end() || found->second != time) names.push_back(name);
  }
  return names;
}

}  // namespace unisono::tools
