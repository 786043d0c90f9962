// SPDX-License-Identifier: BSD-3-Clause
// Consistency: does a call take as long each time? Many calls, a barrier before each, the slowest
// rank's time; the highest percent is left out, as one interrupt more or less decides on it.
#pragma once

#include "bench/study/study.hpp"

namespace unisono::tools::bench {

Study consistency_study();

}  // namespace unisono::tools::bench
