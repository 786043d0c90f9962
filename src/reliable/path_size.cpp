// SPDX-License-Identifier: BSD-3-Clause
#include "reliable/path_size.hpp"

#include <algorithm>

#include "wire/sequence.hpp"

namespace unisono::reliable {

PathSize::Witness* PathSize::place_for(int stream, std::uint64_t number, std::int64_t now_ns) {
  Witness* free = nullptr;
  for (Witness& witness : witnesses_) {
    const bool is_taken = witness.bytes != 0;
    if (is_taken && witness.stream == stream && witness.number == number) return &witness;
    if (!is_taken || now_ns - witness.noted_ns > kStaleNs) free = &witness;
  }
  if (free != nullptr) *free = {.stream = stream, .number = number};
  return free;
}

void PathSize::note_repeat(int stream, std::uint64_t number, std::size_t bytes,
                           std::int64_t now_ns) {
  Witness* const witness = place_for(stream, number, now_ns);
  if (witness == nullptr) return;
  witness->bytes = std::min(bytes, most_bytes_);
  witness->status = 0;
  witness->awaits_status = true;
  witness->noted_ns = now_ns;
}

void PathSize::note_status(std::uint64_t control) {
  for (Witness& witness : witnesses_) {
    if (witness.bytes == 0 || !witness.awaits_status) continue;
    witness.awaits_status = false;
    witness.status = control;
  }
}

bool PathSize::note_request(int stream, std::uint64_t place, std::uint64_t mask,
                            std::uint32_t heard) {
  for (Witness& witness : witnesses_) {
    if (witness.bytes == 0 || witness.stream != stream || witness.number - place >= 64) continue;
    if ((mask >> (witness.number - place) & 1) == 0) {  // it has come
      witness = {};
      continue;
    }
    if (witness.status == 0) continue;
    if (wire::is_before(heard, static_cast<std::uint32_t>(witness.status))) continue;
    witness.status = 0;
    ++witness.vanished;
    if (judge(witness)) return true;
  }
  return false;
}

bool PathSize::judge(const Witness& witness) {
  if (witness.vanished < kVanished) return false;
  const auto* const shorter =
      std::ranges::find_if(kSteps, [&witness](std::size_t step) { return step < witness.bytes; });
  if (shorter != kSteps.end()) {
    most_bytes_ = *shorter;
    witnesses_ = {};
    return true;
  }
  if (blocked_ || witness.vanished < kBlocked) return false;
  blocked_ = true;
  return true;
}

}  // namespace unisono::reliable
