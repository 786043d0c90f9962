// SPDX-License-Identifier: BSD-3-Clause
// Processor time beside completion time: what a call costs its caller, and the library's agent.
#pragma once

#include "bench/study/study.hpp"

namespace unisono::tools::bench {

Study cpu_study();

}  // namespace unisono::tools::bench
