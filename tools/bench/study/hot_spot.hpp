// SPDX-License-Identifier: BSD-3-Clause
// The hot spot: everyone sends to one at once, and more and more do. What arrives there shows
// whether the network, and the library's turns on it, hold up. A gather to the root, back to back.
#pragma once

#include "bench/study/study.hpp"

namespace unisono::tools::bench {

Study hot_spot_study();

}  // namespace unisono::tools::bench
