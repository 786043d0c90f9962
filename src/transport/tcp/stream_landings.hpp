// SPDX-License-Identifier: BSD-3-Clause
// StreamLandings: Landings of messages that come in pieces, one behind the other. A message that
// has begun to go to its place goes on there. One thread at a time.
#pragma once

#include <cstddef>
#include <vector>

#include "transport/transport.hpp"

namespace unisono::transport {

class StreamLandings final : public Landings {
 public:
  void expect(const Landing& landing) override { entries_.push_back({landing}); }

  // Before the first byte of a piece: true if it goes to a buffer.
  bool begin(int source, const std::byte* place, std::size_t bytes);
  // Where the piece goes now: the landing may have been withdrawn amid it.
  std::byte* destination(int source, std::byte* place) const;
  // So many bytes of the piece are there, and the target cannot be written: the message goes on to
  // its place.
  void refuse(int source, const std::byte* place, std::size_t bytes);
  // All of the piece is there, and genuine.
  void finish(int source, const std::byte* place);

  bool has_landed(const std::byte* place) override;
  void withdraw(const std::byte* place, std::size_t bytes) override;

 private:
  struct Entry {
    Landing landing;
    std::size_t landed = 0;  // bytes in whole pieces, from the first on
    std::size_t begun = 0;   // the same and the piece that comes
    bool lacks(int source, const std::byte* place) const {
      return landing.source == source && landed < landing.bytes && landing.place + landed == place;
    }
    void take_back(std::size_t bytes) const;
  };

  std::vector<Entry> entries_;
};

}  // namespace unisono::transport
