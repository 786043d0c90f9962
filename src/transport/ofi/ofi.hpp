// SPDX-License-Identifier: BSD-3-Clause
// Remote memory by libfabric (OpenFabrics Interfaces): one reliable-datagram endpoint with RMA, of
// a named provider. libfabric is loaded when the first endpoint is opened, so it need not be
// installed elsewhere (docs/decisions/0018). Opening is control path, any thread; the object
// belongs to its rank, one thread at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "transport/ip/ip.hpp"
#include "transport/remote_memory.hpp"

namespace unisono::transport {

struct OfiOptions {
  std::string provider = "tcp";  // libfabric's name of the provider
  // The local address of the endpoint, for providers with Internet addresses. It neither receives
  // nor sends by any other.
  IpAddress address;
  int ranks = 1;
  std::byte* region = nullptr;  // aligned to a page
  std::size_t region_bytes = 0;
};

// Errors: unsupported (built without libfabric; not installed here; it has no such provider),
// system.
base::Result<std::unique_ptr<RemoteMemory>> open_ofi(const OfiOptions& options);

// For people: "libfabric 1.17", or the reason for its absence.
std::string ofi_description();

}  // namespace unisono::transport
