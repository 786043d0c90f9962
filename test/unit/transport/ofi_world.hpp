// SPDX-License-Identifier: BSD-3-Clause
// Ranks with a region each and remote memory by libfabric on loopback, all in one process and one
// thread. Where libfabric is missing, make() says so.
#pragma once

#include <poll.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "loopback.hpp"
#include "region.hpp"
#include "transport/ofi/ofi.hpp"

namespace unisono::transport {

inline constexpr std::size_t kOfiRegion = kRegionBytes;

class OfiWorld {
 public:
  static base::Result<std::unique_ptr<OfiWorld>> make(int ranks,
                                                      const std::string& provider = "tcp",
                                                      Family family = Family::v4) {
    UNISONO_ASSIGN(const LocalAddress local, loopback(family));
    auto world = std::make_unique<OfiWorld>();
    for (int rank = 0; rank < ranks; ++rank) {
      world->regions.push_back(std::make_unique<Region>());
      UNISONO_ASSIGN(auto opened, open_ofi({.provider = provider,
                                            .address = local.address,
                                            .ranks = ranks,
                                            .region = world->regions.back()->data(),
                                            .region_bytes = kOfiRegion}));
      world->all.push_back(std::move(opened));
    }
    for (int rank = 0; rank < ranks; ++rank) {
      for (int other = 0; other < ranks; ++other) {
        if (other == rank) continue;
        UNISONO_TRY(world->at(rank).meet(other, world->at(other).card()));
      }
    }
    return world;
  }

  RemoteMemory& at(int rank) { return *all[static_cast<std::size_t>(rank)]; }
  std::byte* region(int rank) { return regions[static_cast<std::size_t>(rank)]->data(); }
  // Until that rank has one more transfer complete; all ranks look meanwhile.
  Completion next_completion(int rank) {
    Completion one;
    for (;;) {
      if (at(rank).poll(std::span(&one, 1)) == 1) return one;
      for (auto& each : all) {
        if (each != nullptr && each.get() != &at(rank)) each->poll({});
      }
    }
  }

  std::vector<std::unique_ptr<Region>> regions;
  std::vector<std::unique_ptr<RemoteMemory>> all;
};

}  // namespace unisono::transport
