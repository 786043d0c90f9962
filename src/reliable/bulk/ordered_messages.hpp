// SPDX-License-Identifier: BSD-3-Clause
// OrderedMessages: the puts of a Bulk whose remote memory raises flags itself. A message whose
// first long put finds the memory ready goes there as a whole, with its flag. Any other message
// goes as packets. Short puts before the first long one are kept until that is decided. One thread
// at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "reliable/bulk/bulk_messages.hpp"
#include "reliable/reliable.hpp"
#include "transport/remote_memory.hpp"
#include "transport/transport.hpp"

namespace unisono::reliable {

class OrderedMessages {
 public:
  // All outlive it.
  struct Parts {
    Reliable& reliable;
    transport::RemoteMemory& memory;
    BulkCounts& counts;
  };
  // `from_bytes`: the least long put. Offsets begin at `region`.
  OrderedMessages(const Parts& parts, int ranks, std::size_t from_bytes, const std::byte* region)
      : parts_(parts),
        from_bytes_(from_bytes),
        region_(region),
        peers_(static_cast<std::size_t>(ranks)) {}

  // `may_go`: whether the target has not been given up.
  void put(const transport::Put& message, bool may_go);

 private:
  enum class Way : std::uint8_t { undecided, memory, packets };
  struct Peer {
    Way way = Way::undecided;  // of the message that waits for its flag
    BulkMessage kept;          // its short puts
  };

  void put_by(Way way, const transport::Put& message);
  void put_kept_by(Way way, Peer& peer);

  const Parts parts_;
  const std::size_t from_bytes_;
  const std::byte* const region_;
  std::vector<Peer> peers_;  // by rank
};

}  // namespace unisono::reliable
