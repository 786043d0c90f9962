// SPDX-License-Identifier: BSD-3-Clause
#include "bench/study/cpu.hpp"

#include "bench/measure/measure.hpp"

namespace unisono::tools::bench {
namespace {

base::Result<Finding> measure_cpu(const Place& place, Cell& cell, const Options& options,
                                  const CellShape& shape) {
  Options loops = options;
  loops.method = Method::loop;
  UNISONO_ASSIGN(const Measurement m, measure(place, cell, loops, shape.subject));
  const double share = m.loop.mean > 0 ? 100 * m.cpu_us / m.loop.mean : 0;
  return Finding{{m.loop.median, m.cpu_us, m.agent_us, share}, m.wrong, {}};
}

}  // namespace

Study cpu_study() {
  return {
      .name = "cpu",
      .notes = {"completion: calls back to back, the slowest rank's time for one, median, in us",
                "caller, agent: processor time of the calling thread and of the process's others "
                "for one call, mean of the ranks, in us",
                "share: the caller's processor time of the completion time, in %"},
      .columns = {{"completion", "completion_us"},
                  {"caller", "caller_us"},
                  {"agent", "agent_us"},
                  {"share", "caller_percent", 1}},
      .measure = measure_cpu,
  };
}

}  // namespace unisono::tools::bench
