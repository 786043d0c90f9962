// SPDX-License-Identifier: BSD-3-Clause
// The section of docs/reference/transports.md on streams.
#pragma once

#include <string_view>

namespace unisono::transport {

inline constexpr std::string_view kTcpReference =
    R"(Long messages between hosts go by connections of the kernel's TCP, if all ranks can use it
([how](../howto/network.md#long-messages-by-tcp)):

| | packets | streams |
| --- | --- | --- |
| copies at the sender, the kernel's apart | one | none, or one of a rest that waits |
| copies at the receiver, the kernel's apart | one | none |
| a tag of the job's key | SipHash-2-4 on every packet | GMAC, AEGIS or Poly1305; none if so asked |
| congestion control, pacing | none | the kernel's; instead of BBR, CUBIC or Reno |
| descriptors | two for each rank | two more, and two for each rank with which long messages go |
)";

}  // namespace unisono::transport
