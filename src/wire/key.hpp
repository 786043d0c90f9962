// SPDX-License-Identifier: BSD-3-Clause
// The key of a job: 128 random bits that only its ranks know. Whoever can make a packet's tag has
// the key. It comes through the environment, or sealed in the launcher's key-value store. It never
// appears on a command line or in a log. Pure functions besides random_key(); any thread.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.hpp"
#include "wire/siphash.h"

namespace unisono::wire {

using Key = unisono_key;

// From the kernel's generator of random numbers. Errors: system.
base::Result<Key> random_key();

// The keyed hash (SipHash-2-4) of some bytes.
std::uint64_t hash(const Key& key, std::string_view bytes);

// The key that a secret text stands for. The text must be hard to guess: this is not a slow hash.
Key key_of(std::string_view secret);

// The job's identity in its packets, from which its multicast group and ports are derived. It is
// public and reveals nothing of the key.
std::uint32_t job_of(const Key& key);

}  // namespace unisono::wire
