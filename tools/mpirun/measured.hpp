// SPDX-License-Identifier: BSD-3-Clause
// What `unisono mpirun --tune` makes of the times that the drop-in measured
// (frontend/mpi/ranges/measurement.hpp): the ranges in which the MPI is faster. Main thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/settings/settings.hpp"
#include "model/machine.hpp"

namespace unisono::tools {

// Nanoseconds of a call.
struct MeasuredCell {
  std::string collective;
  std::int64_t bytes = 0;
  double loop = 0, host_loop = 0;      // of calls in a row
  double single = 0, host_single = 0;  // of calls behind a barrier each

  // How many times faster the MPI is: the geometric mean of both ways of calling.
  double speed_up() const;
};

struct Measured {
  std::string library;
  int ranks = 0, hosts = 0;
  std::vector<MeasuredCell> cells;  // of a collective in a row, with ascending bytes
};

// `file` is its name in errors.
base::Result<Measured> parse_measured(std::string_view text, const std::string& file);

// The MPI is faster in some cells. Between such a cell and another one, the border is at the
// geometric mean of their bytes. A range goes on beyond the first and the last measured size.
model::HostMpi ranges_of(const Measured& measured);

// The machine file of `unisono tune` with these ranges; if there is none of this machine, one with
// the values of the default machine. Gives its path.
base::Result<std::string> keep_ranges(const base::Settings& settings, model::HostMpi ranges);

}  // namespace unisono::tools
