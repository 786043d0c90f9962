// SPDX-License-Identifier: BSD-3-Clause
// What the drop-in knows of a datatype that is not in the table of predefined ones. It is kept as
// an attribute of the type, so it ends with it, and a later call costs one look. Any thread.
#pragma once

#include "host/types.hpp"

namespace unisono::mpi {

// Not valid: the type is null, invalid, or not committed. The host MPI reports such a type.
TypeInfo derived_type_info(Handle type);

}  // namespace unisono::mpi
