// SPDX-License-Identifier: BSD-3-Clause
// Two ways to a barrier in the NIC path (decision 62). Ranks *tell*: each sends its contribution
// when it comes. Or the root *asks* whether all have come, and programs answer for ranks that came
// before. A question is a packet to every host, and saves a doorbell packet of each rank that came
// before it. Computed from the costs of packets in the machine file. Pure; any thread.
#pragma once

#include <string_view>

#include "select/nic/split_choice.hpp"
#include "topology/host_map.hpp"

namespace unisono::select {

struct Circumstances;

inline constexpr std::string_view kAskingBarrier = "test-and-set";

struct NicBarrierPrices {
  double telling_ns = 0;
  double asking_ns = 0;
  // Asking has to be cheaper by more than the error of the computed costs.
  bool asks() const { return asking_ns < 0.9 * telling_ns; }
};

// From the last arrival until all ranks are released, where any rank may be the last. `work`: its
// hosts, processors, fan-in and costs.
NicBarrierPrices nic_barrier_prices(const SplitWork& work);
// The same for the hosts of a communicator. If they are not known to share a machine, each has
// processors of its own.
NicBarrierPrices barrier_prices(const topology::HostMap& hosts, const Circumstances& circumstances);

}  // namespace unisono::select
