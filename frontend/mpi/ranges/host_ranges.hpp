// SPDX-License-Identifier: BSD-3-Clause
// HostRanges: the calls of a communicator that the host MPI does because it was measured to be
// faster (measurement.hpp). They depend on the collective and the bytes of a block, and are the
// same at all ranks, as they come from the job's machine file. Where no rank knows the others'
// blocks, the host does all calls of the collective or none. Any thread, once they are there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "selection.hpp"
#include "unisono/unisono.h"

namespace unisono::mpi {

class HostRanges {
 public:
  // Those that the machine file has for this communicator and the MPI of this name.
  void read(unisono_comm_t comm, const std::string& library);
  // All calls of all collectives, or none.
  void set_all(bool all);

  // Whether there are any of the collective: one load.
  bool have(Collective collective) const { return (collectives_ & bit_of(collective)) != 0; }
  // A number of bytes below 0, not known, is only in a range of all numbers.
  bool contain(Collective collective, std::int64_t bytes) const;
  // For people: "gather 0-31, 1024-"; empty if there are none.
  std::string text() const;

 private:
  struct Range {
    Collective collective;
    std::int64_t from_bytes, up_to_bytes;  // both included

    bool contains(std::int64_t bytes) const;
  };

  std::uint32_t collectives_ = 0;  // bits of those with ranges
  std::vector<Range> all_;
};

}  // namespace unisono::mpi
