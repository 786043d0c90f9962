// SPDX-License-Identifier: BSD-3-Clause
// Fuzzer of the bootstrap's wire format: an accepted message lies within the input and within the
// limits, and survives another round trip.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.hpp"
#include "bootstrap/rendezvous/message.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace unisono::bootstrap;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto decoded = decode(bytes);
  if (!decoded.ok() || !decoded->has_value()) return 0;
  const Decoded& first = **decoded;
  UNISONO_CHECK(first.frame_bytes <= size, "a frame longer than the input");
  if (const auto* hello = std::get_if<Hello>(&first.message)) {
    UNISONO_CHECK(hello->rank < hello->ranks && hello->ranks <= kMostRanks, "limits of Hello");
    UNISONO_CHECK(hello->max_payload <= kMostPayload, "payload of Hello");
    UNISONO_CHECK(hello->nonce != Nonce{}, "a Hello that a Refused cannot name");
  }
  if (const auto* redirect = std::get_if<Redirect>(&first.message)) {
    UNISONO_CHECK(redirect->relay < kMostRanks || redirect->relay == kNoRelay, "relay of Redirect");
  }
  if (std::holds_alternative<Withdrawal>(first.message)) {
    UNISONO_CHECK(first.frame_bytes <= kHelloFrameBytes,
                  "what a rank says is no longer than Hello");
  }
  if (const auto* welcome = std::get_if<Welcome>(&first.message)) {
    UNISONO_CHECK(welcome->members.size() <= kMostRanks, "limits of Welcome");
    for (const WelcomeMember& member : welcome->members) {
      UNISONO_CHECK(member.host < welcome->hosts, "hosts of Welcome");
    }
  }
  const auto again = decode(encode(first.message));
  UNISONO_CHECK(again.ok() && again->has_value(), "encode() gave what decode() refuses");
  UNISONO_CHECK((*again)->message == first.message, "a round trip changed the message");
  static_cast<void>(
      signature_is_right(bytes.substr(0, first.frame_bytes), unisono::wire::Key{}, Nonce{}));
  return 0;
}
