// SPDX-License-Identifier: BSD-3-Clause
#include "check/symbol.hpp"

#include <algorithm>

#include "base/index.hpp"

namespace unisono::check {
namespace {

using base::index;

// Merges neighbouring runs that continue each other.
std::vector<Run> compact(std::vector<Run> runs) {
  std::size_t kept = 0;
  for (std::size_t i = 1; i < runs.size(); ++i) {
    if (runs[i].first == runs[kept].last + 1 && runs[i].element == runs[kept].element) {
      runs[kept].last = runs[i].last;
    } else {
      runs[++kept] = runs[i];
    }
  }
  runs.resize(kept + 1);
  return runs;
}

}  // namespace

Values::Values(int ranks, bool ordered) : ranks_(ranks), ordered_(ordered) {
  for (std::int32_t rank = 0; rank < ranks; ++rank) intern({{rank, rank, 0}});
}

SymbolRange Values::join(const SymbolRange& left, const SymbolRange& right) {
  SymbolRange result = left;
  if (left.value < 0 || right.value < 0) {
    result.value = kRefused;
    return result;
  }
  if (sizes_[index(left.value)] > ranks_) return result;
  const Key key = {left.value, right.value, right.base - left.base};
  auto found = joined_.find(key);
  if (found == joined_.end()) {
    std::vector<Run> runs(*runs_[index(key.left)]);
    for (Run run : *runs_[index(key.right)]) {
      run.element += key.distance;
      runs.push_back(run);
    }
    if (!ordered_) std::ranges::sort(runs);
    const std::int64_t shift = runs.front().element;
    for (Run& run : runs) run.element -= shift;
    found = joined_.emplace(key, Joined{intern(compact(std::move(runs))), shift}).first;
  }
  result.value = found->second.value;
  result.base = left.base + found->second.shift;
  return result;
}

ValueId Values::intern(std::vector<Run> runs) {
  const auto [place, is_new] = ids_.emplace(std::move(runs), static_cast<ValueId>(runs_.size()));
  if (is_new) {
    std::int64_t contributions = 0;
    for (const Run& run : place->first) contributions += run.last - run.first + 1;
    runs_.push_back(&place->first);
    sizes_.push_back(contributions);
  }
  return place->second;
}

void Region::read(std::int64_t offset, std::int64_t count, std::vector<SymbolRange>& pieces) const {
  pieces.clear();
  if (count == 0) return;
  if (pieces_.empty()) {
    pieces.push_back({0, count, kUndefined, offset, -1});
    return;
  }
  for (std::size_t i = find(offset); i < pieces_.size() && pieces_[i].begin < offset + count; ++i) {
    SymbolRange piece = cut(pieces_[i], std::max(offset, pieces_[i].begin),
                            std::min(offset + count, pieces_[i].end));
    piece.begin -= offset;
    piece.end -= offset;
    pieces.push_back(piece);
  }
}

void Region::write(std::int64_t offset, std::span<const SymbolRange> pieces) {
  if (pieces.empty()) return;
  if (pieces_.empty()) pieces_.push_back({0, count_, kUndefined, 0, -1});
  const std::int64_t end = offset + pieces.back().end;
  const std::size_t first = find(offset);
  const std::size_t last = find(end - 1);
  // The remaining parts of the pieces at the two ends, which may be the same piece.
  const SymbolRange front = cut(pieces_[first], pieces_[first].begin, offset);
  const SymbolRange back = cut(pieces_[last], end, pieces_[last].end);
  const std::size_t has_front = front.begin < front.end ? 1 : 0;
  const std::size_t has_back = back.begin < back.end ? 1 : 0;

  const std::size_t old_count = last - first + 1;
  const std::size_t new_count = has_front + pieces.size() + has_back;
  const auto at = pieces_.begin() + static_cast<std::ptrdiff_t>(first);
  if (new_count > old_count) {
    pieces_.insert(at, new_count - old_count, SymbolRange{});
  } else {
    pieces_.erase(at, at + static_cast<std::ptrdiff_t>(old_count - new_count));
  }
  std::size_t next = first;
  if (has_front != 0) pieces_[next++] = front;
  for (SymbolRange piece : pieces) {
    piece.begin += offset;
    piece.end += offset;
    pieces_[next++] = piece;
  }
  if (has_back != 0) pieces_[next] = back;
}

std::size_t Region::find(std::int64_t element) const {
  const auto after = std::ranges::upper_bound(pieces_, element, {}, &SymbolRange::begin);
  return static_cast<std::size_t>(after - pieces_.begin()) - 1;
}

SymbolRange cut(const SymbolRange& piece, std::int64_t begin, std::int64_t end) {
  SymbolRange part = piece;
  part.begin = begin;
  part.end = end;
  part.base += begin - piece.begin;
  return part;
}

}  // namespace unisono::check
