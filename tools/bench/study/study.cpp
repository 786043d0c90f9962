// SPDX-License-Identifier: BSD-3-Clause
#include "bench/study/study.hpp"

#include "base/check.hpp"
#include "bench/study/consistency.hpp"
#include "bench/study/cpu.hpp"
#include "bench/study/hot_spot.hpp"
#include "bench/study/overlap.hpp"

namespace unisono::tools::bench {

const Study& study_of(const Options& options) {
  static const Study overlap = overlap_study();
  static const Study consistency = consistency_study();
  static const Study cpu = cpu_study();
  static const Study hot_spot = hot_spot_study();
  switch (options.aim) {
    case Aim::overlap:
      return overlap;
    case Aim::consistency:
      return consistency;
    case Aim::cpu:
      return cpu;
    case Aim::hot_spot:
      return hot_spot;
    case Aim::times:
    case Aim::guidelines:
      break;
  }
  UNISONO_CHECK(false, "an aim that is no study");
}

}  // namespace unisono::tools::bench
