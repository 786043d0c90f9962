// SPDX-License-Identifier: BSD-3-Clause
// The job's memory file: a memfd. It has no name in any file system and vanishes with its last
// user. It is sparse, has mode 0600 and is sealed against shrinking, so no rank can take pages away
// from another.
#pragma once

#include <cstdint>

#include "base/descriptor.hpp"
#include "base/result.hpp"

namespace unisono::memory {

// Error of code resources that names the limit if the process may not create files of that size.
base::Result<base::Descriptor> create_memory(std::uint64_t bytes);

// Whether a received descriptor is such a file of that size.
base::Status verify_memory(const base::Descriptor& memory, std::uint64_t bytes);

}  // namespace unisono::memory
