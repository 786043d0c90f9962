// SPDX-License-Identifier: BSD-3-Clause
// SplitChoice: the number of pieces into which the NIC path cuts a vector. Each piece has a tree of
// its own (allreduce/split-release). The choice follows from the costs of packets and words. A
// program combines half a vector in half the time, and trees work side by side. But each tree sends
// packets of its own, which need processors. So splitting pays for long vectors where hosts have
// processors of their own, and never where the total cost of all packets decides. Pure; the same at
// all ranks that have the same capabilities and the same machine file. Any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "model/machine.hpp"
#include "nic/port/vector_limit.hpp"
#include "nic/service/capabilities.hpp"

namespace unisono::select {

// Processors of all hosts together; hosts on one machine count once.
int processors_of(std::span<const nic::Capabilities> hosts);

// Costs at a host's processor in the NIC path, in nanoseconds; words have 8 bytes.
struct NicCosts {
  double packet = 0, packet_word = 0;  // a packet that arrives, is verified and kept: r
  double send = 0, send_word = 0;      // a packet made from kept data: o, O
  double integer = 0, real = 0;        // a word combined with another: c
  double doorbell = 0;                 // the system call of the last contribution on its host: C
  double multicast = 0;                // the time of a packet to all on the network

  static NicCosts of(const model::Machine& machine);
};

// An allreduce of this many words among hosts, on 2^splits trees in which a parent takes `fan_in`
// children for each level.
struct SplitWork {
  int hosts = 2;
  int processors = 2;
  int fan_in = 1;
  std::size_t words = 0;
  bool adds_floats = false;
  NicCosts costs = {};
};
// Its computed time in nanoseconds.
double split_cost_ns(const SplitWork& work, int splits);

class SplitChoice {
 public:
  static constexpr int kMost = 2;  // 2^2 trees for a group

  SplitChoice() = default;  // no vector is cut
  // The cheapest, up to `most` splits, in no more pieces than hosts. `work`: its hosts, processors,
  // fan-in and costs.
  static SplitChoice computed(SplitWork work, int most);
  // So often, whatever it costs, but no vector into more pieces than it has words.
  static SplitChoice forced(int splits);

  // For up to nic::kWordsMax words.
  int splits(std::size_t words, bool adds_floats) const {
    return splits_[adds_floats ? 1 : 0][words];
  }
  int most() const { return most_; }

 private:
  using ByWords = std::array<std::uint8_t, nic::kWordsMax + 1>;
  std::array<ByWords, 2> splits_ = {};
  int most_ = 0;
};

// How often hosts with such capabilities halve their vectors. Never where results go to more than
// two hosts without multicast.
SplitChoice choose_splits(std::span<const nic::Capabilities> hosts, bool one_rank_a_host,
                          bool multicasts, const model::Machine& machine);

}  // namespace unisono::select
