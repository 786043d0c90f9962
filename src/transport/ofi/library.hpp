// SPDX-License-Identifier: BSD-3-Clause
// The few functions of libfabric that are symbols of its library. Its other functions are inline
// calls through tables that these return. Loaded once for the process and never unloaded, because
// providers have threads of their own. Any thread.
#pragma once

#include <rdma/fabric.h>

#include <cstdint>
#include <memory>

#include "base/result.hpp"
#include "transport/ofi/ofi.hpp"

namespace unisono::transport {

struct OfiLibrary {
  decltype(&fi_getinfo) getinfo = nullptr;
  decltype(&fi_freeinfo) freeinfo = nullptr;
  decltype(&fi_dupinfo) dupinfo = nullptr;
  decltype(&fi_fabric) fabric = nullptr;
  decltype(&fi_strerror) strerror = nullptr;
  decltype(&fi_version) version = nullptr;
};

// The same answer at every call.
const base::Result<OfiLibrary>& ofi_library();

// open_ofi() with these functions: tests have a provider of their own. `library` outlives it.
base::Result<std::unique_ptr<RemoteMemory>> open_ofi_with(const OfiLibrary& library,
                                                          const OfiOptions& options);

}  // namespace unisono::transport
