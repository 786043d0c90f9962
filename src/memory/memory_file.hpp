// SPDX-License-Identifier: BSD-3-Clause
// The job's memory file: a memfd, so it has no name in any file system and goes with its last user.
// Sparse, 0600, sealed against shrinking, so that no rank can take pages away from under another.
#pragma once

#include <cstdint>

#include "base/descriptor.hpp"
#include "base/result.hpp"

namespace unisono::memory {

// Error of code resources that names the limit if the process may not have files of that size.
base::Result<base::Descriptor> create_memory(std::uint64_t bytes);

// Whether a descriptor that was received is such a file of that size.
base::Status verify_memory(const base::Descriptor& memory, std::uint64_t bytes);

}  // namespace unisono::memory
