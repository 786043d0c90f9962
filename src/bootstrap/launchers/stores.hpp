// SPDX-License-Identifier: BSD-3-Clause
// The key-value stores that launchers offer, and how a rank opens one. Control path; any thread.
#pragma once

#include <cstdint>
#include <memory>

#include "base/result.hpp"
#include "bootstrap/kvs/key_value_store.hpp"

namespace unisono::bootstrap {

enum class StoreKind { none, pmi, pmix };

struct StoreOptions {
  StoreKind kind = StoreKind::none;
  int descriptor = -1;  // pmi: PMI_FD, which stays the launcher's
  int rank = 0;
  int ranks = 1;
  std::int64_t timeout_ns = 0;  // of each wait
};

// Errors: unsupported (the launcher's library or descriptor is missing, or of another version), and
// those of KeyValueStore::fence().
base::Result<std::unique_ptr<KeyValueStore>> open_store(const StoreOptions& options);

}  // namespace unisono::bootstrap
