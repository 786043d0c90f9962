// SPDX-License-Identifier: BSD-3-Clause
// Place: the position of a rank in the benchmark, and the communication of the ranks about
// measuring. All ranks make the same calls. One thread.
#pragma once

#include <unisono/unisono.h>

#include <cstdint>
#include <vector>

#include "base/result.hpp"

namespace unisono::tools::bench {

// A rank's position, and a communicator of its own for the benchmark's messages, so that the
// measured one carries measured calls only.
struct Place {
  unisono_comm_t measured = nullptr;
  unisono_comm_t control = nullptr;
  int rank = 0;
  int ranks = 1;
};

// The error of a call of the library.
base::Status to_status(int code);

// Every rank gets rank 0's value.
base::Result<std::int64_t> agree(const Place& place, std::int64_t value);

// Reduces the ranks' values, element by element; every rank gets the result.
base::Status combine(const Place& place, std::vector<double>& values, unisono_op_t op);
base::Status combine(const Place& place, std::vector<std::int64_t>& values, unisono_op_t op);

}  // namespace unisono::tools::bench
