// SPDX-License-Identifier: BSD-3-Clause
// Team: the first ranks of the job, with communicators of their own, so that one job can be
// measured with a growing number of ranks. All ranks of the job make and end it together; the
// others have no calls in between. One thread.
#pragma once

#include "base/result.hpp"
#include "bench/measure/place.hpp"

namespace unisono::tools::bench {

class Team {
 public:
  // `job` outlives it. All of the job's ranks are a team too, with the job's communicators.
  static base::Result<Team> make(const Place& job, int ranks);
  bool has_me() const { return place_.measured != nullptr; }
  const Place& place() const { return place_; }
  // Called by all ranks of the job; ranks outside the team sleep here until it is done.
  base::Status end();

 private:
  explicit Team(const Place& job) : job_(&job) {}

  const Place* job_;
  Place place_;
};

}  // namespace unisono::tools::bench
