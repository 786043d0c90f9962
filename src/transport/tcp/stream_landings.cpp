// SPDX-License-Identifier: BSD-3-Clause
#include "transport/tcp/stream_landings.hpp"

#include <algorithm>
#include <cstring>

namespace unisono::transport {

bool StreamLandings::begin(int source, const std::byte* place, std::size_t bytes) {
  const auto entry =
      std::ranges::find_if(entries_, [&](const Entry& each) { return each.lacks(source, place); });
  if (entry == entries_.end() || bytes > entry->landing.bytes - entry->landed) return false;
  entry->begun = entry->landed + bytes;
  return true;
}

std::byte* StreamLandings::destination(int source, std::byte* place) const {
  const auto is_begun = [&](const Entry& each) {
    return each.lacks(source, place) && each.begun > each.landed;
  };
  const auto entry = std::ranges::find_if(entries_, is_begun);
  return entry == entries_.end() ? place : entry->landing.target + entry->landed;
}

void StreamLandings::refuse(int source, const std::byte* place, std::size_t bytes) {
  const auto entry =
      std::ranges::find_if(entries_, [&](const Entry& each) { return each.lacks(source, place); });
  if (entry == entries_.end()) return;
  entry->take_back(entry->landed + bytes);
  entries_.erase(entry);
}

void StreamLandings::finish(int source, const std::byte* place) {
  for (Entry& entry : entries_) {
    if (entry.lacks(source, place)) {
      entry.landed = entry.begun;
      return;
    }
  }
}

bool StreamLandings::has_landed(const std::byte* place) {
  const auto entry = std::ranges::find_if(
      entries_, [place](const Entry& each) { return each.landing.place == place; });
  if (entry == entries_.end()) return false;
  const bool is_whole = entry->landed == entry->landing.bytes;
  if (!is_whole) entry->take_back(entry->begun);
  entries_.erase(entry);
  return is_whole;
}

void StreamLandings::withdraw(const std::byte* place, std::size_t bytes) {
  std::erase_if(entries_, [&](const Entry& entry) {
    if (entry.landing.place < place || entry.landing.place >= place + bytes) return false;
    entry.take_back(entry.begun);
    return true;
  });
}

// The bytes that have come go where the rest will go.
void StreamLandings::Entry::take_back(std::size_t bytes) const {
  if (bytes != 0) std::memcpy(landing.place, landing.target, bytes);
}

}  // namespace unisono::transport
