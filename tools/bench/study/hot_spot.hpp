// SPDX-License-Identifier: BSD-3-Clause
// The hot spot: all ranks send to one at once, and their number grows. The rate at the root shows
// whether the network, and the library's scheduling on it, cope. A gather to the root, back to
// back.
#pragma once

#include "bench/study/study.hpp"

namespace unisono::tools::bench {

Study hot_spot_study();

}  // namespace unisono::tools::bench
