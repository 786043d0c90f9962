// SPDX-License-Identifier: BSD-3-Clause
#include "comm/agreement/electorate.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

#include "base/text.hpp"

namespace unisono::comm {

int Electorate::leader() const {
  int first = 0;
  while (first < members_.size() && !takes_part(first)) ++first;
  return first;
}

base::Error Electorate::excluded() const {
  const job::Job& job = members_.job();
  const auto limit_of = [&job](base::Setting setting) {
    return base::format_time_ns(job.settings().time_ns(setting));
  };
  std::string limits =
      fmt::format("{} (UNISONO_DETECT_TIMEOUT)", limit_of(base::Setting::detect_timeout));
  if (job.hosts().count() > 1) {
    limits = fmt::format("{} (UNISONO_DETECT_TIMEOUT_HOSTS), or saw it stopped for {}",
                         limit_of(base::Setting::detect_timeout_hosts), limits);
  }
  return {
      base::Code::rank_lost,
      fmt::format("this rank was taken for lost by the others, which did not hear of it for {}. "
                  "They go on without it, and it cannot come back; end it",
                  limits)};
}

base::Error Electorate::no_quorum() const {
  std::vector<std::string> gone;
  for (int m = 0; m < members_.size(); ++m) {
    if (takes_part(m)) continue;
    const std::string place = members_.job().hosts().place_of(members_.job_rank(m));
    gone.push_back(place.empty() ? fmt::format("{}", m) : fmt::format("{} ({})", m, place));
  }
  return {base::Code::rank_lost,
          fmt::format(
              "ranks {} are lost, or have freed the communicator, and with them too many "
              "hosts. The others "
              "cannot know whether the missing ones go on without them. It takes more than half "
              "of the communicator's hosts, or half of them with that of rank 0",
              fmt::join(gone, ", "))};
}

}  // namespace unisono::comm
