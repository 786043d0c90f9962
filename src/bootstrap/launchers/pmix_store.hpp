// SPDX-License-Identifier: BSD-3-Clause
// PMIx's key-value store, by its client library as installed with the launcher (libpmix.so.2). The
// library is loaded when a store is opened, so that Unisono does not depend on it. The declarations
// in the source are what versions 3 to 5 of the standard have in common. Rules:
// key_value_store.hpp.
#pragma once

#include <memory>

#include "bootstrap/launchers/stores.hpp"

namespace unisono::bootstrap {

// `with_mpi`: there is an MPI library in this process, which uses the same client library. Errors:
// unsupported (no library; it does not know the launcher).
base::Result<std::unique_ptr<KeyValueStore>> open_pmix_store(const StoreOptions& options,
                                                             bool with_mpi);

}  // namespace unisono::bootstrap
