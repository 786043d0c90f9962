// SPDX-License-Identifier: BSD-3-Clause
// Messages of the drop-in on stderr, by UNISONO_LOG as those of the library. Any thread.
#pragma once

namespace unisono::mpi {

// Only with UNISONO_LOG=info or debug.
__attribute__((format(printf, 1, 2))) void log_info(const char* format, ...);
__attribute__((format(printf, 1, 2))) void log_warning(const char* format, ...);

}  // namespace unisono::mpi
