// SPDX-License-Identifier: BSD-3-Clause
// Ranks of one process that talk by UDP on an interface of this host; nothing leaves the machine.
#pragma once

#include <poll.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "loopback.hpp"
#include "transport/udp/options.hpp"
#include "transport/udp/udp.hpp"
#include "wire/key.hpp"

namespace unisono::transport {

struct UdpWorldOptions {
  LocalAddress local{};
  bool offloads = true;
  bool multicast = true;
  std::size_t max_payload = 0;
  std::size_t common_payload = 0;  // meet()'s max_payload; 0: that of the options
};

// A group that no other test and no other run of this test uses.
inline MulticastGroup test_group(Family family) {
  const auto key = wire::random_key();
  return {.endpoint = group_of_job(wire::job_of(*key), family), .ttl = 0};
}

class UdpRanks {
 public:
  static base::Result<std::unique_ptr<UdpRanks>> open(int ranks, const UdpWorldOptions& options) {
    auto result = std::make_unique<UdpRanks>();
    std::optional<MulticastGroup> group;
    if (options.multicast) group = test_group(options.local.address.family);
    std::vector<Endpoint> endpoints;
    for (int rank = 0; rank < ranks; ++rank) {
      UNISONO_ASSIGN(std::unique_ptr<Udp> udp, Udp::open({.rank = rank,
                                                          .local = options.local,
                                                          .why = "test",
                                                          .max_payload = options.max_payload,
                                                          .group = group,
                                                          .offloads = options.offloads}));
      endpoints.push_back(udp->endpoint());
      result->ranks_.push_back(std::move(udp));
    }
    for (auto& udp : result->ranks_) {
      const std::size_t most = udp->limits().max_payload;
      UNISONO_TRY(
          udp->meet(endpoints, options.common_payload == 0 ? most : options.common_payload));
    }
    return result;
  }

  // It is then the caller's.
  std::unique_ptr<Udp> take(int rank) { return std::move(ranks_[static_cast<std::size_t>(rank)]); }
  Udp& at(int rank) { return *ranks_[static_cast<std::size_t>(rank)]; }
  // Loopback loses nothing that fits into the buffers, so a datagram will arrive.
  void wait(int rank) {
    pollfd one{.fd = at(rank).descriptor(), .events = POLLIN, .revents = 0};
    poll(&one, 1, -1);
  }

 private:
  std::vector<std::unique_ptr<Udp>> ranks_;
};

}  // namespace unisono::transport
