// SPDX-License-Identifier: BSD-3-Clause
#include "bench/study/hot_spot.hpp"

#include <algorithm>

#include "bench/measure/measure.hpp"

namespace unisono::tools::bench {
namespace {

base::Result<Finding> measure_hot_spot(const Place& place, Cell& cell, const Options& options,
                                       const CellShape& shape) {
  Options loops = options;
  loops.method = Method::loop;
  UNISONO_ASSIGN(const Measurement m, measure(place, cell, loops, shape.subject));
  const auto block =
      static_cast<double>(shape.count) * static_cast<double>(arith::type_size(options.type));
  const double us = std::max(m.loop.median, 1e-3);
  const double sender = block / us;  // bytes for each us are MB for each second
  return Finding{{m.loop.median, sender * (place.ranks - 1), sender, m.cpu_us}, m.wrong, {}};
}

}  // namespace

Study hot_spot_study() {
  return {
      .name = "hot-spot",
      .notes = {"all ranks send a block of this size to the root (a gather), back to back",
                "time: for one block of everyone, the slowest rank's, median, in us",
                "delivered: bytes that arrive at the root from the others, in MB/s (10^6 bytes)",
                "sender: each one's part of it",
                "caller: processor time of the calling thread for one call, mean of the ranks, in "
                "us"},
      .columns = {{"time", "time_us"},
                  {"delivered", "delivered_MBps"},
                  {"sender", "sender_MBps"},
                  {"caller", "caller_us"}},
      .measure = measure_hot_spot,
  };
}

}  // namespace unisono::tools::bench
