// SPDX-License-Identifier: BSD-3-Clause
// Fuzzer of what a foreign process can send to a rank's streams. Bytes made without the job's key
// are no frame, no Hello and no Challenge; a connection with them is rejected or waits for more,
// gets no answer, and leaves the memory as it was. The same holds on a stream of another rank, with
// each kind of tags. A payload behind a genuine header lands in its place; without tags, it may be
// anybody's.
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
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

bool is_zero(std::span<const std::byte> bytes) {
  return std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{0}; });
}

constexpr std::size_t kNumbersBytes = 32;
StreamFrame frame_of(std::span<const std::byte> bytes) {
  const auto raw = beginning<kNumbersBytes>(bytes);
  StreamFrame frame;
  std::memcpy(&frame.place, raw.data(), 8);
  std::memcpy(&frame.bytes, raw.data() + 8, 4);
  frame.forward = raw[12] != std::byte{0};
  std::memcpy(&frame.flag, raw.data() + 16, 8);
  std::memcpy(&frame.value, raw.data() + 24, 8);
  return frame;
}

void try_parsers(std::span<const std::byte> bytes) {
  UNISONO_CHECK(!decode_frame(beginning<kFrameHeaderBytes>(bytes), kKey, 0, kRegion),
                "a frame made without the key");
  UNISONO_CHECK(!decode_hello(beginning<kHelloBytes>(bytes), kKey), "a Hello without the key");
  const HelloBytes hello = encode_hello({.from = 0, .to = 1}, kKey);
  UNISONO_CHECK(!decode_challenge(beginning<kChallengeBytes>(bytes), hello, kKey),
                "a Challenge without the key");
  // A genuine frame with these numbers passes if it fits, and comes back as it was.
  const StreamFrame frame = frame_of(bytes);
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
  UNISONO_CHECK(is_zero(region), "a foreign connection wrote to memory");
}

// A stream that rank 2 has made to rank 1, with that kind of tags.
class Stream {
 public:
  explicit Stream(TagKind tags)
      : identity_{.key = kKey, .rank = 1, .ranks = 4, .region_bytes = kRegion, .tags = tags} {
    static std::vector<std::byte> memory(kRegion);
    region = memory;
    identity_.region = memory.data();
    int ends[2];
    UNISONO_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0, "socketpair");
    theirs_.reset(ends[0]);
    incoming = std::make_unique<IncomingStream>(base::Descriptor(ends[1]), identity_);
    const HelloBytes hello = encode_hello({.from = 2, .to = 1, .tags = tags}, kKey);
    give(hello);
    incoming->read();
    ChallengeBytes challenge{};
    UNISONO_CHECK(recv(theirs_.get(), challenge.data(), challenge.size(), 0) ==
                      static_cast<ssize_t>(challenge.size()),
                  "a Challenge");
    const auto told = decode_challenge(challenge, hello, kKey);
    UNISONO_CHECK(told && told->tags == tags, "the tags of a stream");
    const StreamSession session = make_session(hello, *told, kKey);
    header_key = session.header_key;
    give(session.answer);
    UNISONO_CHECK(incoming->read() == IncomingStream::State::open, "a genuine stream");
  }

  void give(std::span<const std::byte> bytes) const {
    const ssize_t sent = send(theirs_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    UNISONO_CHECK(sent == static_cast<ssize_t>(bytes.size()) || bytes.empty(), "send");
  }

  std::unique_ptr<IncomingStream> incoming;
  wire::Key header_key{};
  std::span<std::byte> region;

 private:
  StreamIdentity identity_;
  base::Descriptor theirs_;
};

// Somebody between the hosts sends them.
void try_foreign_bytes(std::span<const std::byte> bytes, TagKind tags) {
  const Stream stream(tags);
  stream.give(bytes);
  const IncomingStream::State state = stream.incoming->read();
  const bool is_whole = bytes.size() >= kFrameHeaderBytes;
  UNISONO_CHECK(state == (is_whole ? IncomingStream::State::broken : IncomingStream::State::open),
                "the state of a stream with a foreign header");
  UNISONO_CHECK(is_zero(stream.region), "a foreign header wrote to memory");
}

// Behind a genuine header, with the numbers that they begin with.
void try_foreign_payload(std::span<const std::byte> bytes, TagKind tags) {
  const StreamFrame frame = frame_of(bytes);
  if (!decode_frame(encode_frame(frame, kKey, 0), kKey, 0, kRegion)) return;
  const Stream stream(tags);
  stream.give(encode_frame(frame, stream.header_key, 0));
  const std::span payload = bytes.subspan(std::min(bytes.size(), kNumbersBytes));
  stream.give(payload);
  for (int i = 0; i < 3; ++i) stream.incoming->read();
  const bool is_whole = payload.size() >= frame.bytes;
  const bool passes = is_whole && (tags == TagKind::none || frame.bytes == 0);
  const bool raises = passes && frame.flag != kNoFlag;
  UNISONO_CHECK(stream.incoming->flags() == (raises ? 1U : 0U), "the flag of a foreign payload");
  UNISONO_CHECK(!is_whole || passes || stream.incoming->state() == IncomingStream::State::broken,
                "a payload with a wrong tag");
  if (raises) std::ranges::fill(stream.region.subspan(frame.flag, 8), std::byte{0});
  std::ranges::fill(stream.region.subspan(frame.place, frame.bytes), std::byte{0});
  UNISONO_CHECK(is_zero(stream.region), "a payload outside its place");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const bool is_prepared = prepare_handshakes().ok();
  UNISONO_CHECK(is_prepared, "libsodium");
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  try_parsers(bytes);
  try_connection(bytes);
  for (const TagKind tags : {TagKind::poly1305, TagKind::aegis, TagKind::aegis_x2, TagKind::none}) {
    if (!can_tag(PayloadTagger::choose(tags))) continue;
    try_foreign_bytes(bytes, tags);
    try_foreign_payload(bytes, tags);
  }
  return 0;
}
