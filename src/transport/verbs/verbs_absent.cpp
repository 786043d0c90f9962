// SPDX-License-Identifier: BSD-3-Clause
// Built instead of the other sources of this folder where the headers of libibverbs are missing.
#include "transport/verbs/verbs.hpp"

namespace unisono::transport {

base::Result<std::unique_ptr<RemoteMemory>> open_verbs(const VerbsOptions&) {
  return base::Error{base::Code::unsupported,
                     "this Unisono was built without verbs; build it where the headers of "
                     "libibverbs are (Debian: libibverbs-dev)"};
}

std::string verbs_description() { return "verbs: built without (Debian: libibverbs-dev)"; }

}  // namespace unisono::transport
