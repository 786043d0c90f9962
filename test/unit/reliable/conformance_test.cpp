// SPDX-License-Identifier: BSD-3-Clause
// What every transport has to do, by packets over UDP on loopback, and with long messages by
// libfabric or by streams beside them.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "reliable/bulk/bulk.hpp"
#include "reliable/reliable.hpp"
#include "transport/tcp/tcp.hpp"
#include "unit/transport/ofi_world.hpp"
#include "unit/transport/transport_conformance.hpp"
#include "unit/transport/udp_world.hpp"

namespace unisono::transport::conformance_test {
namespace {

static_assert(kOfiRegion == kConformanceRegion);

class Packets {
 public:
  static base::Result<std::unique_ptr<Packets>> make(int ranks) {
    auto world = std::make_unique<Packets>();
    UNISONO_TRY(world->open(ranks));
    return world;
  }

  base::Status open(int ranks) {
    UNISONO_ASSIGN(const LocalAddress local, loopback(Family::v4));
    UNISONO_ASSIGN(auto udp, UdpRanks::open(ranks, {.local = local, .multicast = false}));
    for (int rank = 0; rank < ranks; ++rank) {
      regions_.push_back(std::make_unique<Region>());
      reliable::ReliableOptions options;
      options.key = wire::key_of("test");
      options.ranks = ranks;
      options.region = region(rank);
      options.region_bytes = kConformanceRegion;
      options.now_ns = base::now_ns;
      reliable_.push_back(std::make_unique<reliable::Reliable>(udp->take(rank), options));
    }
    return base::success();
  }

  Transport& at(int rank) { return reliable(rank); }
  std::byte* region(int rank) { return regions_[static_cast<std::size_t>(rank)]->data(); }
  void step() {
    for (auto& each : reliable_) each->progress();
  }

 protected:
  reliable::Reliable& reliable(int rank) { return *reliable_[static_cast<std::size_t>(rank)]; }
  std::vector<std::unique_ptr<Region>> regions_;
  std::vector<std::unique_ptr<reliable::Reliable>> reliable_;
};

struct ByOfi {
  static base::Result<std::unique_ptr<RemoteMemory>> open(int, int ranks, std::byte* region) {
    return open_ofi({.address = *parse_ip("127.0.0.1"),
                     .ranks = ranks,
                     .region = region,
                     .region_bytes = kConformanceRegion});
  }
};

struct ByTcp {
  static base::Result<std::unique_ptr<RemoteMemory>> open(int rank, int ranks, std::byte* region) {
    return open_tcp({.address = *parse_ip("127.0.0.1"),
                     .rank = rank,
                     .ranks = ranks,
                     .key = wire::key_of("test"),
                     .region = region,
                     .region_bytes = kConformanceRegion});
  }
};

template <class By>
class PacketsAnd : public Packets {
 public:
  static base::Result<std::unique_ptr<PacketsAnd>> make(int ranks) {
    auto world = std::make_unique<PacketsAnd>();
    UNISONO_TRY(world->open(ranks));
    std::vector<std::unique_ptr<RemoteMemory>> memories;
    for (int rank = 0; rank < ranks; ++rank) {
      UNISONO_ASSIGN(auto memory, By::open(rank, ranks, world->region(rank)));
      memories.push_back(std::move(memory));
    }
    for (auto& memory : memories) {
      for (int rank = 0; rank < ranks; ++rank) {
        if (memories[static_cast<std::size_t>(rank)] == memory) continue;
        UNISONO_TRY(memory->meet(rank, memories[static_cast<std::size_t>(rank)]->card()));
      }
    }
    for (int rank = 0; rank < ranks; ++rank) {
      auto& memory = memories[static_cast<std::size_t>(rank)];
      UNISONO_ASSIGN(auto bulk, reliable::Bulk::over(
                                    world->reliable(rank), std::move(memory),
                                    {.rank = rank, .ranks = ranks, .region = world->region(rank)}));
      world->bulk_.push_back(std::move(bulk));
    }
    return world;
  }

  Transport& at(int rank) { return *bulk_[static_cast<std::size_t>(rank)]; }
  void step() {
    for (auto& each : bulk_) each->progress();
  }

 private:
  std::vector<std::unique_ptr<reliable::Bulk>> bulk_;
};

struct WayNames {
  template <class Way>
  static std::string GetName(int index) {
    static const char* const kNames[] = {"packets", "packets_and_ofi", "packets_and_tcp"};
    return kNames[index];
  }
};

using Ways = testing::Types<Packets, PacketsAnd<ByOfi>, PacketsAnd<ByTcp>>;
INSTANTIATE_TYPED_TEST_SUITE_P(Reliable, TransportConformance, Ways, WayNames);

}  // namespace
}  // namespace unisono::transport::conformance_test
