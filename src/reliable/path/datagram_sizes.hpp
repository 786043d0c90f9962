// SPDX-License-Identifier: BSD-3-Clause
// DatagramSizes: how long the datagrams to each rank, and to the group, may be. Full length, until
// the path to a rank's host is found to carry less (paths.hpp). One thread at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <utility>

#include "reliable/path/paths.hpp"
#include "transport/datagrams.hpp"
#include "wire/packet_filter.hpp"

namespace unisono::reliable {

class DatagramSizes {
 public:
  // `datagrams` outlive it. `narrowed`: as in ReliableOptions.
  DatagramSizes(const transport::Datagrams& datagrams, PathOptions options,
                std::function<void(int rank, std::size_t most_bytes)> narrowed);

  // The payload of a full datagram; a multiple of 8, as every payload but a message's last.
  static std::size_t full_payload(const transport::DatagramLimits& limits);

  Paths& paths() { return paths_; }
  const Paths& paths() const { return paths_; }

  // target: as transport::Outgoing::target.
  std::size_t most_bytes(int target) const {
    return target == transport::kGroup ? group_most_bytes_ : paths_.most_bytes(target);
  }
  std::size_t most_payload(int target) const {
    return std::min(payload_bytes_, (most_bytes(target) - wire::kHeaderBytes) / 8 * 8);
  }
  bool is_too_long(int target, std::size_t payload_bytes) const {
    if (!paths_.is_narrow() && group_most_bytes_ == Paths::kAny) return false;
    return wire::kHeaderBytes + payload_bytes > most_bytes(target);
  }

  // The path to the rank's host has changed: calls `narrowed`. 0: it carries next to nothing.
  std::size_t note_path(int rank) const;
  // The carrier of multicasts may have changed, and with it its longest datagram.
  void note_group_carrier();
  // Multicasts have to pass a path that carries so many bytes.
  void narrow_group(std::size_t most_bytes);

 private:
  const transport::Datagrams& datagrams_;
  std::size_t payload_bytes_;
  std::size_t group_most_bytes_ = Paths::kAny;
  Paths paths_;
  std::function<void(int rank, std::size_t most_bytes)> narrowed_;
};

}  // namespace unisono::reliable
