// SPDX-License-Identifier: BSD-3-Clause
// LockedLandings: the carrier's landings under the network's mutex, so that no other thread reads
// from a stream into a target that is withdrawn. Any thread.
#pragma once

#include <cstddef>
#include <mutex>

#include "network/carrier.hpp"
#include "transport/transport.hpp"

namespace unisono::network {

class LockedLandings final : public transport::Landings {
 public:
  // Both outlive it.
  LockedLandings(const Carrier& carrier, std::mutex& mutex) : carrier_(carrier), mutex_(mutex) {}

  void expect(const transport::Landing& landing) override {
    const std::lock_guard lock(mutex_);
    if (carrier_.landings() != nullptr) carrier_.landings()->expect(landing);
  }
  bool has_landed(const std::byte* place) override {
    const std::lock_guard lock(mutex_);
    return carrier_.landings() != nullptr && carrier_.landings()->has_landed(place);
  }
  void withdraw(const std::byte* place, std::size_t bytes) override {
    const std::lock_guard lock(mutex_);
    if (carrier_.landings() != nullptr) carrier_.landings()->withdraw(place, bytes);
  }

 private:
  const Carrier& carrier_;
  std::mutex& mutex_;
};

}  // namespace unisono::network
