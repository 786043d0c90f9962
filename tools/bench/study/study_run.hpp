// SPDX-License-Identifier: BSD-3-Clause
// Loops over the cells of a study (every collective, every number of ranks, every size) and reports
// on rank 0. All ranks call it together; the main thread.
#pragma once

#include "bench/measure/place.hpp"
#include "bench/options.hpp"
#include "progress.hpp"

namespace unisono::tools::bench {

// The number of wrong elements, known to rank 0.
base::Result<std::int64_t> run_study(const Place& job, const Options& options, Progress& progress);

}  // namespace unisono::tools::bench
