// SPDX-License-Identifier: BSD-3-Clause
#include "engine/nic/host_reduction.hpp"

#include <algorithm>

#include "algorithm/pattern/fan_in.hpp"
#include "base/check.hpp"

namespace unisono::engine {

struct alignas(64) HostReduction::Header {
  std::atomic<std::uint64_t> arrived;  // for all operations together
};

struct alignas(64) HostReduction::Place {
  std::uint32_t combine;
  std::uint32_t words;
  std::uint64_t bytes;
  std::uint64_t gives;
  std::uint64_t data[nic::kWordsMax];
};

std::int64_t HostReduction::memory_bytes(int ranks) {
  return static_cast<std::int64_t>(sizeof(Header)) +
         ranks * static_cast<std::int64_t>(sizeof(Place));
}

// A parent is at a lower place than its children, which are complete before they are combined.
HostReduction::HostReduction(std::byte* memory, int place, int ranks, int fan_in)
    : memory_(memory), place_(place), ranks_(ranks) {
  const auto tree = algorithm::pattern::fan_in_tree(ranks, fan_in);
  for (int parent = ranks - 1; parent >= 0; --parent) {
    for (int child = 0; child < tree.node(parent).children; ++child) {
      steps_.emplace_back(parent, tree.child(parent, child));
    }
  }
}

bool HostReduction::give(const Contribution& own) {
  const std::size_t words = nic::words_of(own.bytes);
  UNISONO_CHECK(words <= nic::kWordsMax, "HostReduction::give of more than the longest vector");
  Place& place = at(place_);
  place.combine = own.combine;
  place.words = static_cast<std::uint32_t>(words);
  place.bytes = own.bytes;
  place.gives = own.own.bytes != 0 ? 1 : 0;
  own.own.copy_to(std::as_writable_bytes(std::span(place.data, words)), 0);
  ++operations_;
  const std::uint64_t before = arrived().fetch_add(1, std::memory_order_acq_rel);
  return before + 1 == operations_ * static_cast<std::uint64_t>(ranks_);
}

std::optional<int> HostReduction::mismatching_place() const {
  const Place& own = at(place_);
  for (int i = 0; i < ranks_; ++i) {
    if (at(i).combine != own.combine || at(i).bytes != own.bytes) return i;
  }
  return std::nullopt;
}

std::span<const std::uint64_t> HostReduction::combine(arith::Kernel kernel, std::int64_t count) {
  int result = 0;
  if (kernel == nullptr) {
    while (result + 1 < ranks_ && at(result).gives == 0) ++result;
  } else {
    for (const auto& [target, source] : steps_) {
      kernel(at(target).data, at(target).data, at(source).data, count, nullptr);
    }
  }
  return {at(result).data, at(result).words};
}

bool HostReduction::is_complete() const {
  return arrived().load(std::memory_order_acquire) >=
         operations_ * static_cast<std::uint64_t>(ranks_);
}

HostReduction::Place& HostReduction::at(int place) const {
  return reinterpret_cast<Place*>(memory_ + sizeof(Header))[place];
}

std::atomic<std::uint64_t>& HostReduction::arrived() const {
  return reinterpret_cast<Header*>(memory_)->arrived;
}

}  // namespace unisono::engine
