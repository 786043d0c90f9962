// SPDX-License-Identifier: BSD-3-Clause
// Ranks on hosts of their own that multicast over virtual datagrams, and repair each other's
// multicasts in trees. In one thread.
#pragma once

#include <cstdint>
#include <vector>

#include "reliable/group/group.hpp"
#include "unit/reliable/ranks.hpp"

namespace unisono::reliable {

inline transport::VirtualDatagramOptions with_multicast() {
  transport::VirtualDatagramOptions options = steady();
  options.multicast = true;
  return options;
}

inline ReliableOptions with_arity(int arity) {
  ReliableOptions options;
  options.repair_arity = arity;
  return options;
}

// Ranks that repair each other's multicasts in trees.
class Multicasters : public Ranks {
 public:
  Multicasters(int ranks, int arity,
               const transport::VirtualDatagramOptions& network = with_multicast())
      : Ranks(ranks, network, with_arity(arity)) {}
  Multicasters(int ranks, const transport::VirtualDatagramOptions& network,
               const ReliableOptions& options)
      : Ranks(ranks, network, options) {}

  const GroupCounts& counts(int rank) { return at(rank).group().counts(); }
  void put_to_all(int from, const std::vector<std::byte>& bytes, std::size_t flag,
                  std::uint64_t value) {
    at(from).put_to_all({.source = bytes.data(),
                         .place = region(from),
                         .bytes = bytes.size(),
                         .flag = reinterpret_cast<std::uint64_t*>(region(from) + flag),
                         .flag_value = value});
  }
  bool all_have(int origin, std::uint64_t value, std::size_t flag = kFlag) {
    for (int rank = 0; rank < size(); ++rank) {
      if (rank != origin && word(rank, flag) != value) return false;
    }
    return true;
  }
};

}  // namespace unisono::reliable
