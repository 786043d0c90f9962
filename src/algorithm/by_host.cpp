// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/by_host.hpp"

#include <algorithm>

#include "algorithm/block_run.hpp"

namespace unisono::algorithm::two_level {

ByHost::ByHost(const Shape& shape, const Levels& levels) : shape_(shape), levels_(levels) {
  const int hosts = levels.hosts();
  counts_.reserve(static_cast<std::size_t>(hosts));
  for (int host = 0; host < hosts; ++host) {
    const int size = levels.size(host);
    std::int64_t count = 0;
    if (shape.blocks.given()) {
      for (int i = 0; i < size; ++i) count += block_of(host, i).count;
    } else {
      count = shape.count * size;
    }
    counts_.push_back(count);
  }
}

Shape ByHost::inner() const {
  if (std::ranges::all_of(counts_, [&](std::int64_t count) { return count == counts_[0]; })) {
    return {.count = counts_[0]};
  }
  return {.blocks = *schedule::Blocks::of_ranks(counts_)};
}

Range ByHost::part(Range vector, int host) const {
  for (int before = 0; before < host; ++before) vector = behind(vector, count(before));
  return first_of(vector, count(host));
}

Range ByHost::part(Range vector, int host, int place) const {
  return part_of_host(part(vector, host), host, place);
}

Range ByHost::part_of_host(Range blocks, int host, int place) const {
  for (int i = 0; i < place; ++i) blocks = behind(blocks, block_of(host, i).count);
  return first_of(blocks, block_of(host, place).count);
}

void ByHost::to_output(Builder& b, Range vector, std::span<const OpId> after) const {
  const auto copy = [&](Range target, Range source) {
    b.copy(target, source);
    for (const OpId before : after) b.also_after(before);
  };
  if (is_sorted()) return copy(schedule::output(0, vector.count), vector);
  for (int host = 0; host < levels_.hosts(); ++host) {
    for (int i = 0; i < levels_.size(host); ++i) {
      copy(output(block_of(host, i)), part(vector, host, i));
    }
  }
}

Value ByHost::from_ranks(Builder& b, Value vector) const {
  if (is_sorted()) return vector;
  Value sorted{b.scratch(vector.range.count), vector.ready};
  for (int host = 0; host < levels_.hosts(); ++host) {
    for (int i = 0; i < levels_.size(host); ++i) {
      const schedule::Block block = block_of(host, i);
      const Range source = first_of(behind(vector.range, block.offset), block.count);
      sorted.ready = b.copy(part(sorted.range, host, i), source, {sorted.ready});
    }
  }
  return sorted;
}

}  // namespace unisono::algorithm::two_level
