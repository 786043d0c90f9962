// SPDX-License-Identifier: BSD-3-Clause
#include "group/bootstrap/siphash.hpp"

#include <bit>
#include <cstddef>

namespace unisono::group {
namespace {

struct State {
  std::uint64_t v0, v1, v2, v3;

  void round() {
    v0 += v1;
    v2 += v3;
    v1 = std::rotl(v1, 13) ^ v0;
    v3 = std::rotl(v3, 16) ^ v2;
    v0 = std::rotl(v0, 32);
    v2 += v1;
    v0 += v3;
    v1 = std::rotl(v1, 17) ^ v2;
    v3 = std::rotl(v3, 21) ^ v0;
    v2 = std::rotl(v2, 32);
  }

  void compress(std::uint64_t word) {
    v3 ^= word;
    round();
    round();
    v0 ^= word;
  }
};

std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    word |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  }
  return word;
}

}  // namespace

std::uint64_t siphash(const HashKey& key, std::string_view bytes) {
  State state{0x736f6d6570736575U ^ key.low, 0x646f72616e646f6dU ^ key.high,
              0x6c7967656e657261U ^ key.low, 0x7465646279746573U ^ key.high};
  const std::uint64_t length = std::uint64_t{bytes.size()} << 56;
  for (; bytes.size() >= 8; bytes.remove_prefix(8))
    state.compress(little_endian(bytes.substr(0, 8)));
  state.compress(length | little_endian(bytes));
  state.v2 ^= 0xff;
  for (int i = 0; i < 4; ++i) state.round();
  return state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
}

HashKey hash_key_of(std::string_view secret) {
  // Two keys that differ give two independent halves.
  return {siphash({1, 0}, secret), siphash({2, 0}, secret)};
}

}  // namespace unisono::group
