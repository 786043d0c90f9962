// SPDX-License-Identifier: BSD-3-Clause
// Processor time besides completion time: the cost of a call for its caller, and for the library's
// agent.
#pragma once

#include "bench/study/study.hpp"

namespace unisono::tools::bench {

Study cpu_study();

}  // namespace unisono::tools::bench
