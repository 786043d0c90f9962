// SPDX-License-Identifier: BSD-3-Clause
// PathSize: how long the datagrams to one peer may be. A path may carry less than the interfaces at
// its ends say, and report it to nobody: short datagrams pass, full ones vanish. A peer that asks
// once more for a packet, though it has heard a status that left behind the packet's last
// repetition, shows that the one vanished and the other passed. If that happens to one packet again
// and again, datagrams become shorter, and never longer again (docs/decisions/0042). Losses without
// regard to length hardly ever look like that, and shorter datagrams do no harm.
//
// A packet of which even the shortest form vanishes has no way to the peer, although the peer is
// there: blocked. No clock of its own. A value type; one thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace unisono::reliable {

class PathSize {
 public:
  // What every path of IPv6 carries (1280 bytes with 48 of IP and UDP), and every one of IPv4 (576
  // with 68).
  static constexpr std::array<std::size_t, 2> kSteps{1232, 508};
  // So often in a row one packet vanishes; of a path that loses every tenth datagram, one packet in
  // a hundred thousand does. It takes about 30 ms of a rank that waits.
  static constexpr int kVanished = 4;
  // Of a path that loses half of all, one packet in four thousand million.
  static constexpr int kBlocked = 32;
  // As `stream`: packets to this peer alone. Others are named by the rank that multicast them.
  static constexpr int kLink = -1;

  std::size_t most_bytes() const { return most_bytes_; }  // of a datagram, with its header
  bool is_blocked() const { return blocked_; }

  // Packet `number` goes to the peer again, in datagrams of `bytes` at most.
  void note_repeat(int stream, std::uint64_t number, std::size_t bytes, std::int64_t now_ns);
  // Status number `control` has left, behind all that was repeated before.
  void note_status(std::uint64_t control);
  // The peer lacks number `place` + i for each bit i of `mask`, and has heard statuses up to one
  // that ends in the bits `heard`. Whether most_bytes() or is_blocked() has changed.
  bool note_request(int stream, std::uint64_t place, std::uint64_t mask, std::uint32_t heard);

 private:
  // A packet whose repetitions are watched.
  struct Witness {
    int stream = kLink;
    std::uint64_t number = 0;
    std::size_t bytes = 0;  // 0: none
    std::uint64_t status = 0;
    bool awaits_status = false;  // no status has left since the last repetition
    int vanished = 0;
    std::int64_t noted_ns = 0;
  };
  // Of many packets that vanish a few tell as much. One that is not asked for any more has come.
  static constexpr std::size_t kWitnesses = 4;
  static constexpr std::int64_t kStaleNs = 500'000'000;

  Witness* place_for(int stream, std::uint64_t number, std::int64_t now_ns);
  bool judge(const Witness& witness);

  std::array<Witness, kWitnesses> witnesses_{};
  std::size_t most_bytes_ = std::numeric_limits<std::size_t>::max();
  bool blocked_ = false;
};

}  // namespace unisono::reliable
