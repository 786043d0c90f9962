// SPDX-License-Identifier: BSD-3-Clause
// The section of docs/reference/transports.md on remote memory by libfabric; the same whether or
// not this build has it.
#pragma once

#include <string_view>

namespace unisono::transport {

inline constexpr std::string_view kOfiReference =
    R"(With `UNISONO_BULK=ofi` libfabric writes long messages to the other host's memory
instead ([how, and at what price](../howto/network.md#long-messages-by-libfabric)):

| `UNISONO_OFI_PROVIDER` | network | tested |
| --- | --- | --- |
| `tcp` | any | yes: libfabric 1.17 (Debian 12), there called `tcp;ofi_rxm` |
| `verbs` | InfiniBand, RoCE | *not tested* |
| `efa` | Amazon's Elastic Fabric Adapter | *not tested* |
| `cxi` | HPE Slingshot | *not tested* |

| | packets | by libfabric |
| --- | --- | --- |
| copies at the sender | one | one; none of data that the receiver fetches |
| copies at the receiver | one | none by Unisono |
| a tag of the job's key | on every packet | only on the flag that reports the arrival |
| registered memory | none | the job's, as a whole |
)";

}  // namespace unisono::transport
