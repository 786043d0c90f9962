// SPDX-License-Identifier: BSD-3-Clause
// EngineKind: which of the engines carries out a call. A value; any thread.
#pragma once

#include <cstdint>

namespace unisono::select {

// The engine that runs the operations of a plan: the calling rank, any awake rank of the host, or
// the program in the NIC path.
enum class EngineKind : std::uint8_t { inline_, helping, nic };
inline constexpr int kEngineCount = 3;
constexpr const char* engine_name(EngineKind engine) {
  constexpr const char* kNames[] = {"inline", "helping", "nic"};
  return kNames[static_cast<int>(engine)];
}

}  // namespace unisono::select
