// SPDX-License-Identifier: BSD-3-Clause
// Built instead of ofi.cpp where libfabric's headers are missing.
#include "transport/ofi/ofi.hpp"

namespace unisono::transport {

base::Result<std::unique_ptr<RemoteMemory>> open_ofi(const OfiOptions&) {
  return base::Error{base::Code::unsupported,
                     "this Unisono was built without libfabric; build it where its headers are "
                     "(Debian: libfabric-dev)"};
}

std::string ofi_description() { return "built without (Debian: libfabric-dev)"; }

}  // namespace unisono::transport
