// SPDX-License-Identifier: BSD-3-Clause
// PMIx's board: its client library, as the launcher's machine has it (libpmix.so.2), loaded when it
// is needed. Declared here is what the standard's versions 3 to 5 have in common of the calls used.
// board.hpp has the rules.
#pragma once

#include <memory>

#include "bootstrap/kvs/board.hpp"

namespace unisono::bootstrap {

// `shared`: there is an MPI library in this process, which uses the same client library. Errors:
// unsupported (no library; it does not know the launcher).
base::Result<std::unique_ptr<Board>> open_pmix_board(const BoardOptions& options, bool shared);

}  // namespace unisono::bootstrap
