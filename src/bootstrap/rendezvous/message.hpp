// SPDX-License-Identifier: BSD-3-Clause
// The messages of the bootstrap, and their form on the wire: a fixed little-endian header (magic,
// version, type, length of the body) and a body. Exchange: the rendezvous sends a Challenge, the
// rank answers with Hello, and gets Welcome (on a Unix socket with the memory file as an attached
// descriptor), Refused or, over TCP where a Unix socket leads to the job as well, Redirect. A gate
// (gate.hpp) says Hello also for the ranks that came to it, and Objection to those that ended.
// All but the Challenge end in a tag that proves knowledge of the job key for the other side's
// nonce; only a Refused that answers a wrong key has none that is right. Everything decoded here
// may come from a stranger: lengths and ranges are checked before use. Pure functions; any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "transport/udp/ip.hpp"
#include "wire/key.hpp"

namespace unisono::bootstrap {

// Of the wire format; changes with any change of a message.
inline constexpr std::uint16_t kMessageVersion = 4;
// Bounds the member table, so it bounds what a stranger can make us hold.
inline constexpr std::uint32_t kMostRanks = 4096;
// As UNISONO_SHARED_LIMIT's largest value.
inline constexpr std::uint64_t kMostMemoryBytes = std::uint64_t{16} << 40;
inline constexpr std::size_t kMostTextBytes = 4096;  // of Refused
inline constexpr std::size_t kMostNameBytes = 107;   // of an abstract socket: sun_path less one

// Of a UDP datagram, so that it can be one at all.
inline constexpr std::uint32_t kMostPayload = 65535;

using Nonce = std::array<char, 16>;   // random, used once
using HostId = std::array<char, 16>;  // equal means: abstract Unix sockets reach (address.hpp)

struct Challenge {
  Nonce nonce{};
  bool operator==(const Challenge&) const = default;
};

struct Hello {
  Nonce nonce{};  // not all zeros
  HostId host{};
  std::uint32_t rank = 0;
  std::uint32_t ranks = 0;
  std::uint64_t memory_bytes = 0;   // size of the memory file that the rank would like at least
  std::uint64_t memory_layout = 0;  // JobDescription::memory_layout
  transport::Endpoint endpoint{};   // for datagrams; port 0: none
  std::uint32_t max_payload = 0;    // bytes of a datagram; 0 without an endpoint
  std::uint64_t door = 0;  // where ranks of its host may come to it (gate_address); 0: nowhere
  bool operator==(const Hello&) const = default;
};

// What every rank is told of one of them.
struct WelcomePlace {
  std::uint32_t pid = 0;           // 0: on another host than the rendezvous'
  std::uint32_t host = 0;          // hosts are numbered by their first rank, in the order of ranks
  transport::Endpoint endpoint{};  // several hosts only
  bool operator==(const WelcomePlace&) const = default;
};

struct Welcome {
  std::uint64_t memory_bytes = 0;
  std::string job;
  std::uint64_t job_id = 0;  // random, new for each job
  std::uint32_t hosts = 1;
  std::uint32_t max_payload = 0;     // that all ranks can take; 0: one host, so no datagrams
  std::vector<WelcomePlace> places;  // by rank
  bool operator==(const Welcome&) const = default;
};

struct Refused {
  base::Code code = base::Code::state;
  std::string text;
  Nonce hello{};  // to a gate: of the Hello that is refused; zeros: the receiver's, and all by it
  bool operator==(const Refused&) const = default;
};

inline constexpr std::uint32_t kNoGate = ~std::uint32_t{0};

struct Redirect {
  std::string name;              // of the abstract socket, without '@'
  HostId host{};                 // on which it is
  std::uint32_t gate = kNoGate;  // the rank that listens there; kNoGate: the rendezvous itself
  bool operator==(const Redirect&) const = default;
};

// Why the job cannot start with a rank that came by a gate.
struct Objection {
  enum class Reason : std::uint32_t {
    ended = 1,   // its connection has
    unseen_pid,  // it is in a pid namespace that the gate does not see
  };
  Nonce hello{};  // of the rank's Hello
  Reason reason = Reason::ended;
  bool operator==(const Objection&) const = default;
};

using Message = std::variant<Challenge, Hello, Welcome, Refused, Redirect, Objection>;

// The bytes of a message, its tag (if the type has one) not yet made: see sign().
std::string encode(const Message& message);

struct Decoded {
  Message message;
  std::size_t frame_bytes = 0;  // how many of the bytes it took
};
// The message at the beginning of `bytes`; empty if more bytes are needed. An error of code
// argument for anything that no peer of this version sends.
base::Result<std::optional<Decoded>> decode(std::string_view bytes);

// Family, port, address.
inline constexpr std::size_t kEndpointBytes = 2 + 2 + 16;
// Every Hello has this length, and nothing else that a rank says is longer; a reader holds no more.
inline constexpr std::size_t kHelloFrameBytes =
    12 + 16 + 16 + 4 + 4 + 8 + 8 + kEndpointBytes + 4 + 8 + 8;

// Writes the tag at the end of the frame of a message that has one. `nonce` is the one that
// the receiver has sent last.
void sign(std::string& frame, const wire::Key& key, const Nonce& nonce);
// Whether the tag is right; takes the same time wherever it differs.
bool signature_is_right(std::string_view frame, const wire::Key& key, const Nonce& nonce);

}  // namespace unisono::bootstrap
