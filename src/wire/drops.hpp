// SPDX-License-Identifier: BSD-3-Clause
// Drops: how many packets were dropped, by reason. The reasons are those of packet.h, in the order
// of its checks, so that a program in the kernel counts the same. Value types. One thread writes;
// readers beside it may see a count that is one too low.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "wire/packet.h"

namespace unisono::wire {

enum class Drop : std::uint8_t {
  none = UNISONO_DROP_NONE,
  too_short = UNISONO_DROP_SHORT,
  magic = UNISONO_DROP_MAGIC,
  version = UNISONO_DROP_VERSION,
  kind = UNISONO_DROP_KIND,
  length = UNISONO_DROP_LENGTH,
  job = UNISONO_DROP_JOB,
  sender = UNISONO_DROP_SENDER,
  target = UNISONO_DROP_TARGET,
  tag = UNISONO_DROP_TAG,
  replay = UNISONO_DROP_REPLAY,
};
inline constexpr std::size_t kDropCount = UNISONO_DROP_COUNT;

// One word each, as counters are named: "tag", "replay".
std::string_view drop_name(Drop drop);
// An explanation for people: "made without the job's key, or damaged".
std::string_view drop_meaning(Drop drop);

struct Drops {
  std::array<std::uint64_t, kDropCount> counts{};  // counts[0] stays 0

  void count(Drop drop) { ++counts[static_cast<std::size_t>(drop)]; }
  std::uint64_t of(Drop drop) const { return counts[static_cast<std::size_t>(drop)]; }
  std::uint64_t total() const;
  // "tag 3, replay 1"; empty if there are none.
  std::string text() const;
  bool operator==(const Drops&) const = default;
};

}  // namespace unisono::wire
