// SPDX-License-Identifier: BSD-3-Clause
// How keys are made and what is derived from them (key.hpp). Control path.
#include "wire/key.hpp"

#include <fmt/format.h>
#include <sys/random.h>

#include <cerrno>
#include <system_error>

namespace unisono::wire {

std::uint64_t hash(const Key& key, std::string_view bytes) {
  return unisono_siphash(&key, bytes.data(), bytes.size());
}

base::Result<Key> random_key() {
  Key key{};
  // Once the generator is seeded, up to 256 bytes come in one call; before that, the call waits.
  ssize_t got = -1;
  do {
    got = getrandom(&key, sizeof(key), 0);
  } while (got < 0 && errno == EINTR);
  if (got != static_cast<ssize_t>(sizeof(key))) {
    return base::Error{base::Code::system, fmt::format("getrandom: {}; there is no key for the job",
                                                       std::generic_category().message(errno))};
  }
  return key;
}

Key key_of(std::string_view secret) {
  // Two keys that differ give two independent halves.
  return {hash({1, 0}, secret), hash({2, 0}, secret)};
}

std::uint32_t job_of(const Key& key) {
  return static_cast<std::uint32_t>(hash(key, "unisono: identity of the job"));
}

}  // namespace unisono::wire
