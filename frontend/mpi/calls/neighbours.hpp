// SPDX-License-Identifier: BSD-3-Clause
// The persistent collectives of neighbours, with ints and with large counts. The host MPI does them
// all; the drop-in notes their requests. An MPI without large counts gets ints. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "host/functions.hpp"

namespace unisono::mpi::ours {

#define UNISONO_MPI_DECLARE(name, parameters, ...) int name parameters;
namespace narrow {
using Count = int;
using Offset = int;
UNISONO_MPI_NEIGHBOURS(UNISONO_MPI_DECLARE)
}  // namespace narrow
namespace large {
using Count = std::int64_t;
using Offset = std::ptrdiff_t;
UNISONO_MPI_NEIGHBOURS(UNISONO_MPI_DECLARE)
}  // namespace large
#undef UNISONO_MPI_DECLARE

}  // namespace unisono::mpi::ours
