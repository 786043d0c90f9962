// SPDX-License-Identifier: BSD-3-Clause
// Session: the part of the benchmark that every rank of the job runs: joins the job, measures cell
// after cell, reports on rank 0, leaves. Once per process, by the main thread.
#pragma once

#include "bench/options.hpp"

namespace unisono::tools::bench {

// The process's exit status; failures have been reported on stderr. Rank 0 exits with failure if
// any result was wrong; the others succeed unless the library failed them.
int run_session(const Options& options);

}  // namespace unisono::tools::bench
