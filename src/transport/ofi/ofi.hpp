// SPDX-License-Identifier: BSD-3-Clause
// Remote memory by libfabric (OpenFabrics Interfaces): one reliable-datagram endpoint with RMA, by
// whichever provider is named. libfabric is loaded when the first endpoint is opened, so those who
// do not ask for it need not have it (docs/decisions/0018). Opening is control path, any thread;
// the object is its rank's, one thread at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "transport/ip/ip.hpp"
#include "transport/remote_memory.hpp"

namespace unisono::transport {

struct OfiOptions {
  std::string provider = "tcp";  // by libfabric's name
  // The only one at which it is heard, and from which it sends, with providers that have addresses
  // of the Internet protocol.
  IpAddress address;
  int ranks = 1;
  std::byte* region = nullptr;  // aligned to a page
  std::size_t region_bytes = 0;
};

// Errors: unsupported (built without libfabric; not installed here; it has no such provider),
// system.
base::Result<std::unique_ptr<RemoteMemory>> open_ofi(const OfiOptions& options);

// For people: "libfabric 1.17", or why there is none.
std::string ofi_description();

}  // namespace unisono::transport
