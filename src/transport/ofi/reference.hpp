// SPDX-License-Identifier: BSD-3-Clause
// What docs/reference/transports.md says of remote memory by libfabric, whether or not this build
// has it.
#pragma once

#include <string_view>

namespace unisono::transport {

inline constexpr std::string_view kOfiReference =
    R"(With `UNISONO_BULK=ofi` long messages are written to the other host's memory
by libfabric instead ([how, and at what price](../howto/network.md#long-messages-by-libfabric)):

| `UNISONO_OFI_PROVIDER` | network | tested |
| --- | --- | --- |
| `tcp` | any | yes: libfabric 1.17 (Debian 12), there called `tcp;ofi_rxm` |
| `verbs` | InfiniBand, RoCE | *not tested* |
| `efa` | Amazon's Elastic Fabric Adapter | *not tested* |
| `cxi` | HPE Slingshot | *not tested* |

| | packets | by libfabric |
| --- | --- | --- |
| copies at the sender | one | one; none of what the receiver fetches |
| copies at the receiver | one | none by Unisono |
| bears a tag of the job's key | every packet | only the flag that says it has arrived |
| memory is registered | no | the job's, as a whole |
)";

}  // namespace unisono::transport
