// SPDX-License-Identifier: BSD-3-Clause
// StreamIdentity: what all streams of a rank share. It outlives them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/clock.hpp"
#include "transport/ip/ip.hpp"
#include "transport/tcp/stream_landings.hpp"
#include "transport/tcp/tags/payload_tag.hpp"
#include "wire/key.hpp"

namespace unisono::transport {

struct StreamIdentity {
  wire::Key key{};  // the job's
  int rank = 0;
  int ranks = 1;
  IpAddress address{};          // the host's on the network that the job uses
  std::byte* region = nullptr;  // where payloads and flags of other ranks belong
  std::size_t region_bytes = 0;
  std::int64_t silence_ns = 10 * base::kSecond;  // how long sent bytes may stay unacknowledged
  std::string congestion{};            // the congestion control that its streams set; empty: none
  TagKind tags = TagKind::poly1305;    // that it prefers
  StreamLandings* landings = nullptr;  // of payloads that do not go to the region; null: none
};

}  // namespace unisono::transport
