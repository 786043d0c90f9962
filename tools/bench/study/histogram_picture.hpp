// SPDX-License-Identifier: BSD-3-Clause
// Histograms as one SVG file, a panel for each, one below the other. Any thread.
#pragma once

#include <string>
#include <vector>

#include "bench/study/histogram.hpp"

namespace unisono::tools::bench {

struct Panel {
  std::string title;
  Histogram histogram;  // in us
};

std::string histogram_picture(const std::vector<Panel>& panels);

}  // namespace unisono::tools::bench
