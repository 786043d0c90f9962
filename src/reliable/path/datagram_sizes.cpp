// SPDX-License-Identifier: BSD-3-Clause
#include "reliable/path/datagram_sizes.hpp"

#include <cstdint>
#include <limits>

#include "base/check.hpp"

namespace unisono::reliable {

std::size_t DatagramSizes::full_payload(const transport::DatagramLimits& limits) {
  UNISONO_CHECK(limits.max_payload >= wire::kHeaderBytes + 8, "room in a datagram");
  return std::min<std::size_t>(limits.max_payload - wire::kHeaderBytes,
                               std::numeric_limits<std::uint16_t>::max()) /
         8 * 8;
}

DatagramSizes::DatagramSizes(const transport::Datagrams& datagrams, PathOptions options,
                             std::function<void(int, std::size_t)> narrowed)
    : datagrams_(datagrams),
      payload_bytes_(full_payload(datagrams.limits())),
      paths_(std::move(options)),
      narrowed_(std::move(narrowed)) {
  note_group_carrier();
}

void DatagramSizes::note_group_carrier() {
  const std::size_t most = datagrams_.limits().max_group_payload;
  group_most_bytes_ = most == 0 ? Paths::kAny : most;
}

std::size_t DatagramSizes::note_path(int rank) const {
  const std::size_t most_bytes = paths_.is_blocked(rank) ? 0 : paths_.most_bytes(rank);
  if (narrowed_) narrowed_(rank, most_bytes);
  return most_bytes;
}

void DatagramSizes::narrow_group(std::size_t most_bytes) {
  if (!datagrams_.limits().multicast) return;
  most_bytes = std::max(most_bytes, Paths::kSteps.back());
  if (most_bytes >= std::min(group_most_bytes_, datagrams_.limits().max_payload)) return;
  group_most_bytes_ = most_bytes;
  if (narrowed_) narrowed_(transport::kGroup, most_bytes);
}

}  // namespace unisono::reliable
