// SPDX-License-Identifier: BSD-3-Clause
// Remote memory by the kernel's TCP: each rank listens at one address and connects to the ranks to
// which it sends long messages (decision 50). Opening is control path, any thread; the object
// belongs to its rank, one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "transport/ip/ip.hpp"
#include "transport/remote_memory.hpp"
#include "wire/key.hpp"

namespace unisono::transport {

struct TcpOptions {
  IpAddress address;  // the only one at which it listens, and from which it connects
  int rank = 0;
  int ranks = 1;
  wire::Key key{};              // the job's
  std::byte* region = nullptr;  // whose flags other ranks raise
  std::size_t region_bytes = 0;
  std::int64_t silence_ns = 10 * base::kSecond;  // how long sent bytes may stay unacknowledged
  bool tags_payloads = true;  // false: only where the other rank wants that; headers always are
};

// Errors: system.
base::Result<std::unique_ptr<RemoteMemory>> open_tcp(const TcpOptions& options);

// For people: "tags by libcrypto".
std::string tcp_description();

}  // namespace unisono::transport
