// SPDX-License-Identifier: BSD-3-Clause
// Fuzzer of what a foreign process can send to a rank's streams. Bytes made without the job's key
// are no frame, no Hello and no Challenge; a connection with them is rejected or waits for more,
// gets no answer, and leaves the memory as it was.
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "base/check.hpp"
#include "transport/tcp/frame.hpp"
#include "transport/tcp/handshake.hpp"
#include "transport/tcp/incoming_stream.hpp"

namespace {

using namespace unisono;
using namespace unisono::transport;

constexpr wire::Key kKey{0x0123456789abcdef, 0xfedcba9876543210};
constexpr std::uint64_t kRegion = 1 << 16;

template <std::size_t kCount>
std::array<std::byte, kCount> beginning(std::span<const std::byte> bytes) {
  std::array<std::byte, kCount> first{};
  std::copy_n(bytes.begin(), std::min(kCount, bytes.size()), first.begin());
  return first;
}

void try_parsers(std::span<const std::byte> bytes) {
  UNISONO_CHECK(!decode_frame(beginning<kFrameHeaderBytes>(bytes), kKey, 0, kRegion),
                "a frame made without the key");
  UNISONO_CHECK(!decode_hello(beginning<kHelloBytes>(bytes), kKey), "a Hello without the key");
  const HelloBytes hello = encode_hello({.from = 0, .to = 1}, kKey);
  UNISONO_CHECK(!decode_challenge(beginning<kChallengeBytes>(bytes), hello, kKey),
                "a Challenge without the key");
  // A genuine frame with these numbers passes if it fits, and comes back as it was.
  const auto raw = beginning<kFrameHeaderBytes>(bytes);
  StreamFrame frame;
  std::memcpy(&frame.place, raw.data(), 8);
  std::memcpy(&frame.bytes, raw.data() + 8, 4);
  frame.forward = raw[12] != std::byte{0};
  std::memcpy(&frame.flag, raw.data() + 16, 8);
  std::memcpy(&frame.value, raw.data() + 24, 8);
  const auto again = decode_frame(encode_frame(frame, kKey, 3), kKey, 3, kRegion);
  if (!again) return;
  UNISONO_CHECK(*again == frame, "a round trip changed the frame");
  UNISONO_CHECK(frame.place + frame.bytes <= kRegion, "a payload outside the region");
  UNISONO_CHECK(frame.flag == kNoFlag || frame.flag + 8 <= kRegion, "a flag outside the region");
}

void try_connection(std::span<const std::byte> bytes) {
  static std::vector<std::byte> region(kRegion);
  int ends[2];
  UNISONO_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0, "socketpair");
  const base::Descriptor theirs(ends[0]);
  const StreamIdentity identity{
      .key = kKey, .rank = 1, .ranks = 4, .region = region.data(), .region_bytes = kRegion};
  IncomingStream stream(base::Descriptor(ends[1]), identity);
  const ssize_t sent = send(theirs.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  UNISONO_CHECK(sent == static_cast<ssize_t>(bytes.size()) || bytes.empty(), "send");
  const IncomingStream::State state = stream.read();
  const bool may_go_on = bytes.size() < kHelloBytes && may_be_hello(bytes);
  UNISONO_CHECK(
      state == (may_go_on ? IncomingStream::State::greeting : IncomingStream::State::rejected),
      "the state of a foreign connection");
  std::byte answer{};
  UNISONO_CHECK(recv(theirs.get(), &answer, 1, 0) <= 0, "a foreign connection got an answer");
  UNISONO_CHECK(std::ranges::all_of(region, [](std::byte byte) { return byte == std::byte{0}; }),
                "a foreign connection wrote to memory");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const bool is_prepared = prepare_handshakes().ok();
  UNISONO_CHECK(is_prepared, "libsodium");
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  try_parsers(bytes);
  try_connection(bytes);
  return 0;
}
