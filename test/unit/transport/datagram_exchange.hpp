// SPDX-License-Identifier: BSD-3-Clause
// Sends and receives datagrams of a test's World (datagrams_conformance.hpp). For tests only.
#pragma once

#include <poll.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "base/prng.hpp"
#include "transport/datagrams.hpp"

namespace unisono::transport {

using DatagramBytes = std::vector<std::byte>;

inline DatagramBytes random_datagram(base::Prng& prng, std::size_t length) {
  DatagramBytes bytes(length);
  for (auto& byte : bytes) byte = static_cast<std::byte>(prng.next());
  return bytes;
}

inline std::vector<DatagramBytes> only(const DatagramBytes& bytes) {
  return std::vector<DatagramBytes>(1, bytes);
}

// The next `count` datagrams at a rank, in the order of their bytes: order is not promised.
template <class World>
std::vector<DatagramBytes> receive_some(World& world, int rank, std::size_t count,
                                        std::size_t at_once = 16) {
  std::vector<DatagramBytes> result;
  std::vector<Incoming> incoming(at_once);
  while (result.size() < count) {
    const std::size_t got = world.at(rank).receive(incoming);
    if (got == 0) world.wait(rank);
    for (std::size_t i = 0; i < got; ++i) {
      result.emplace_back(incoming[i].bytes.begin(), incoming[i].bytes.end());
    }
  }
  std::sort(result.begin(), result.end());
  return result;
}

// Sends all of them, coming back as long as there is no room.
template <class World>
void send_all(World& world, int rank, std::span<const Outgoing> datagrams) {
  while (!datagrams.empty()) datagrams = datagrams.subspan(world.at(rank).send(datagrams));
}

inline bool is_readable(int descriptor) {
  pollfd one{.fd = descriptor, .events = POLLIN, .revents = 0};
  return poll(&one, 1, 0) == 1;
}

}  // namespace unisono::transport
