// SPDX-License-Identifier: BSD-3-Clause
// The messages of the rendezvous, and their form on the wire: a fixed little-endian header (magic,
// version, type, length of the body) and a body. The server sends a Challenge and the rank answers
// with Hello. The rank then gets a Welcome (over a Unix socket with the memory file attached), a
// Refused, or, over TCP if there is a Unix socket for its host, a Redirect to that. A host relay
// (host_relay.hpp) also sends the Hellos of the ranks that have connected to it, and a Withdrawal
// for each that has ended. A rank that fails after its Hello sends a Withdrawal of its own. All
// messages but the Challenge end in a tag, which proves knowledge of the job key for the other
// side's nonce. Only a Refused that answers a wrong key has no valid tag. Every decoded message may
// come from a peer that is no rank: lengths and ranges are checked before use. Pure functions; any
// thread.
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
#include "bootstrap/address.hpp"
#include "bootstrap/identity.hpp"
#include "transport/ip/ip.hpp"
#include "wire/key.hpp"

namespace unisono::bootstrap {

// The version of the wire format; it changes with any change of a message.
inline constexpr std::uint16_t kMessageVersion = 7;
// Bounds the table of members, so that no peer can make a rank use more memory.
inline constexpr std::uint32_t kMostRanks = 4096;
// No kernel has so many.
inline constexpr std::uint32_t kMostCores = 1 << 20;
// The largest value of UNISONO_SHARED_LIMIT.
inline constexpr std::uint64_t kMostMemoryBytes = std::uint64_t{16} << 40;
inline constexpr std::size_t kMostTextBytes = 4096;  // of Refused
// Longer texts in Hello and Welcome are cut.
inline constexpr std::size_t kMostFailureBytes = 768;
inline constexpr std::size_t kMostSettingsBytes = 448;
inline constexpr std::size_t kMostDifferencesBytes = 1024;

// The length field of a UDP datagram allows no more.
inline constexpr std::uint32_t kMostPayload = 65535;

struct Challenge {
  Nonce nonce{};
  bool operator==(const Challenge&) const = default;
};

struct Hello {
  Nonce nonce{};  // not all zeros
  HostId host{};
  std::uint32_t rank = 0;
  std::uint32_t ranks = 0;
  std::uint64_t memory_bytes = 0;   // least size of the memory file that the rank wants
  std::uint64_t memory_layout = 0;  // JobDescription::memory_layout
  transport::Endpoint endpoint{};   // for datagrams; port 0: none
  std::uint32_t max_payload = 0;    // bytes of a datagram; 0 without an endpoint
  // Where it listens in case it becomes its host's relay (relay_address); 0: nowhere.
  std::uint64_t relay_socket = 0;
  Kernel kernel{};  // of the host, which may share it with others
  // With another code than ok the rank cannot start: the server tells all ranks.
  base::Code failure = base::Code::ok;
  std::string failure_text{};
  std::string settings{};      // alike_settings.hpp
  std::uint64_t warnings = 0;  // a hash of Settings::warnings(); 0: there are none
  bool operator==(const Hello&) const = default;
};

// One rank, as all ranks are told.
struct WelcomeMember {
  std::uint32_t pid = 0;           // 0: on another host than the server
  std::uint32_t host = 0;          // hosts are numbered by their lowest rank, in the order of ranks
  transport::Endpoint endpoint{};  // several hosts only
  bool operator==(const WelcomeMember&) const = default;
};

struct Welcome {
  std::uint64_t memory_bytes = 0;
  std::string job;
  std::uint64_t job_id = 0;  // random, new for each job
  std::uint32_t hosts = 1;
  std::uint32_t max_payload = 0;       // of a datagram, for all ranks; 0: one host, no datagrams
  std::uint32_t shared_cores = 0;      // several hosts on one machine: its cores; 0: not known
  std::vector<WelcomeMember> members;  // by rank
  // Settings that differ between ranks though they should be alike, and which ranks have what;
  // empty: none (alike_settings.hpp).
  std::string differing_settings{};
  std::uint64_t warnings = 0;     // rank 0's, as in Hello
  bool rank_zero_serves = false;  // otherwise a launcher does
  bool operator==(const Welcome&) const = default;
};

struct Refused {
  base::Code code = base::Code::state;
  std::string text;
  // To a host relay: the nonce of the refused Hello; zeros: of its own and of all that it has sent.
  Nonce hello{};
  bool operator==(const Refused&) const = default;
};

inline constexpr std::uint32_t kNoRelay = ~std::uint32_t{0};

struct Redirect {
  std::string name;                // of the abstract socket, without '@'
  HostId host{};                   // where the socket is
  std::uint32_t relay = kNoRelay;  // the rank that listens there; kNoRelay: the server itself
  bool operator==(const Redirect&) const = default;
};

// Why the job cannot start with a rank that has sent its Hello. From the rank, or its host relay.
struct Withdrawal {
  enum class Reason : std::uint32_t {
    ended = 1,   // its connection to the relay has ended
    unseen_pid,  // it is in a pid namespace that the relay does not see
    failed,      // it cannot start, perhaps after the Welcome: see `code` and `text`
  };
  Nonce hello{};  // of the rank's Hello
  Reason reason = Reason::ended;
  base::Code code = base::Code::ok;  // other than ok if it has failed
  std::string text{};                // cut at kMostFailureBytes
  bool operator==(const Withdrawal&) const = default;
};

using Message = std::variant<Challenge, Hello, Welcome, Refused, Redirect, Withdrawal>;

// The bytes of a message. If the type has a tag, that is still zero: see sign().
std::string encode(const Message& message);

struct Decoded {
  Message message;
  std::size_t frame_bytes = 0;  // its length
};
// The message at the beginning of `bytes`; nullopt if more bytes are needed. Error of code argument
// for bytes that no peer of this version sends.
base::Result<std::optional<Decoded>> decode(std::string_view bytes);

// Family, port, address.
inline constexpr std::size_t kEndpointBytes = 2 + 2 + 16;
// The length of every Hello. No message of a rank is longer, so the server buffers no more.
inline constexpr std::size_t kHelloFrameBytes = 12 + 16 + 16 + 4 + 4 + 8 + 8 + kEndpointBytes + 4 +
                                                8 + 8 + 4 + 4 + (4 + kMostFailureBytes) +
                                                (4 + kMostSettingsBytes) + 8 + 8;

// Writes the tag into a frame of a type that has one. `nonce`: the one that the receiver has sent
// last.
void sign(std::string& frame, const wire::Key& key, const Nonce& nonce);
// Whether the tag is right. Takes the same time wherever it differs.
bool signature_is_right(std::string_view frame, const wire::Key& key, const Nonce& nonce);

}  // namespace unisono::bootstrap
