// SPDX-License-Identifier: BSD-3-Clause
// The section of docs/reference/transports.md on remote memory by verbs; the same whether or not
// this build has it.
#pragma once

#include <string_view>

namespace unisono::transport {

inline constexpr std::string_view kVerbsReference =
    R"(With `UNISONO_BULK=verbs` RDMA devices carry long messages, over InfiniBand or RoCE
([how](../howto/network.md#long-messages-by-verbs)):

| | packets | by verbs |
| --- | --- | --- |
| copies at the sender | one | one, to registered memory; a second of a rest that waits |
| copies at the receiver | one | one |
| a tag of the job's key | on every packet | on requests for connections |
| registered memory | none | 545 KiB for each rank to which, and from which, long messages go |
| descriptors | two for each rank | four more |

| device | tested |
| --- | --- |
| soft-RoCE (`rdma_rxe`), Linux 6.1, in a virtual machine | yes: correctness only |
| InfiniBand and RoCE hardware | *not tested* |
)";

}  // namespace unisono::transport
