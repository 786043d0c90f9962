// SPDX-License-Identifier: BSD-3-Clause
// Network: messages on the links of a fat tree, and how long they hold each other up. Two models:
//
//   wormhole   a message takes the links of its way one after another, waits for each that another
//              message has, and keeps all until it has passed
//   sharing    messages of a link share its bandwidth, max-min fair; none is faster than its sender
//
// A message that meets no other arrives when the sweep says. Deterministic by seed. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/prng.hpp"
#include "sim/program/program.hpp"
#include "topology/fat_tree/link_loads.hpp"
#include "topology/fat_tree/placement.hpp"

namespace unisono::sim {

enum class Contention : std::uint8_t { none, wormhole, sharing };

struct NetworkParameters {
  Contention contention = Contention::none;
  topology::fat_tree::Ascent ascent = topology::fat_tree::Ascent::least_loaded;
  double link_ns_per_byte = 0;  // of each direction; 0: links have no limit
  double switch_delay_ns = 0;   // of each switch on the way, beside the latency of the machine
  // By the height of a path's smallest subtree: the additional time of a byte, compared with the
  // sender. Far nodes are slower where links wait for answers. Heights beyond the last count as the
  // last.
  std::vector<double> far_ns_per_byte;
};

// A message on its way.
struct Passage {
  Time start = 0;     // its first byte enters
  Time duration = 0;  // its last byte leaves so much later if nothing holds it up
  std::int64_t bytes = 0;
  int source = 0, target = 0;  // ranks
  std::int32_t slot = 0;
  Time rest = 0;  // from there to its arrival
};

class Network {
 public:
  Network(const topology::fat_tree::Placement& placement, NetworkParameters parameters,
          std::uint64_t seed);

  // The message enters at its start, which must not be before others'. When it arrives; with
  // sharing only settle() knows, and the answer is negative.
  Time enter(const Passage& passage);

  // sharing: works out the rates of all messages at `now`, and calls arrive(passage, time) for
  // those that have passed. The time of the next settle(), negative if there is none.
  Time settle(Time now, const std::function<void(const Passage&, Time)>& arrive);

  std::int64_t held_up() const { return held_up_; }  // messages

 private:
  struct Flow {
    Passage passage;
    Time finish = 0, updated = 0;
    double remaining = 0;                         // bytes
    double fastest = 0, rate = 0, next_rate = 0;  // bytes a picosecond
    bool slowed = false;
    std::uint32_t first_link = 0, links = 0;  // in links_
  };

  Passage lengthened(const Passage& passage) const;
  template <typename Load>
  void find_way(const Passage& passage, const Load& load);
  Time pass_as_worm(const Passage& passage);
  void add_flow(const Passage& passage);
  void share();
  void compact();

  topology::fat_tree::Placement placement_;
  NetworkParameters parameters_;
  base::Prng random_;
  std::vector<int> way_;
  std::vector<Time> free_;  // wormhole, by link
  std::vector<Flow> flows_;
  std::vector<int> links_;     // of flows
  std::vector<int> flows_on_;  // sharing, by link
  // Working memory of share(), by link.
  std::vector<double> load_, left_;
  std::vector<int> open_;
  std::int64_t held_up_ = 0;
};

}  // namespace unisono::sim
