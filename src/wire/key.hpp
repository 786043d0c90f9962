// SPDX-License-Identifier: BSD-3-Clause
// The key of a job: 128 random bits that only its ranks know; whoever can make a packet's tag has
// it. It comes through the environment, or sealed in the launcher's store; never on a command
// line and never in a log.
// Pure functions besides random_key(); any thread.
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

// The job's identity in its packets and in what is derived from it (multicast group, ports). It is
// public and tells nothing of the key.
std::uint32_t job_of(const Key& key);

}  // namespace unisono::wire
