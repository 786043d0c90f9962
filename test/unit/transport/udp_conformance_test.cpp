// SPDX-License-Identifier: BSD-3-Clause
// UDP as a way for datagrams: IPv4 and IPv6, with and without the kernel's offloads, on loopback
// and on an interface that has the size of an Ethernet frame.
#include <memory>

#include "datagrams_conformance.hpp"
#include "harness/network_namespace.hpp"
#include "udp_world.hpp"

namespace unisono::transport::udp_conformance_test {
namespace {

template <Family kFamily, bool kOffloads>
struct Loopback {
  static base::Result<std::unique_ptr<Loopback>> make(int ranks) {
    UNISONO_ASSIGN(const LocalAddress local, loopback(kFamily));
    auto world = std::make_unique<Loopback>();
    // IPv6 has no multicast on loopback unless the host was set up for it.
    UNISONO_ASSIGN(world->ranks, UdpRanks::open(ranks, {.local = local,
                                                        .offloads = kOffloads,
                                                        .multicast = kFamily == Family::v4}));
    return world;
  }
  Udp& at(int rank) { return ranks->at(rank); }
  void wait(int rank) { ranks->wait(rank); }
  std::unique_ptr<UdpRanks> ranks;
};

// An interface of 1500 bytes in a network of its own.
template <Family kFamily>
struct Ethernet {
  static base::Result<std::unique_ptr<Ethernet>> make(int ranks) {
    auto world = std::make_unique<Ethernet>();
    UNISONO_ASSIGN(world->network, harness::NetworkNamespace::enter());
    UNISONO_TRY(world->network->add_interface("unisono0", "10.71.0.1/24", "fd71::1/64"));
    UNISONO_ASSIGN(const std::vector<LocalAddress> locals, local_addresses());
    for (const LocalAddress& local : locals) {
      if (local.interface != "unisono0" || local.address.family != kFamily ||
          local.address.is_link_local()) {
        continue;
      }
      UNISONO_ASSIGN(world->ranks, UdpRanks::open(ranks, {.local = local}));
      return world;
    }
    return base::Error{base::Code::system, "the new interface has no address"};
  }
  Udp& at(int rank) { return ranks->at(rank); }
  void wait(int rank) { ranks->wait(rank); }
  std::unique_ptr<harness::NetworkNamespace> network;
  std::unique_ptr<UdpRanks> ranks;
};

using Ways = testing::Types<Loopback<Family::v4, true>, Loopback<Family::v4, false>,
                            Loopback<Family::v6, true>, Loopback<Family::v6, false>,
                            Ethernet<Family::v4>, Ethernet<Family::v6>>;

struct WayNames {
  template <class Way>
  static std::string GetName(int index) {
    static const char* const kNames[] = {
        "v4", "v4_without_offloads", "v6", "v6_without_offloads", "v4_ethernet", "v6_ethernet"};
    return kNames[index];
  }
};

INSTANTIATE_TYPED_TEST_SUITE_P(Udp, DatagramsConformance, Ways, WayNames);

}  // namespace
}  // namespace unisono::transport::udp_conformance_test
