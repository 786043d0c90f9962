// SPDX-License-Identifier: BSD-3-Clause
#include "check/symbol.hpp"

#include <algorithm>

namespace unisono::check {
namespace {

std::size_t size(std::int64_t value) { return static_cast<std::size_t>(value); }

// Neighbours that continue each other become one run.
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

Piece Values::join(const Piece& left, const Piece& right) {
  Piece result = left;
  if (left.value < 0 || right.value < 0) {
    result.value = kRefused;
    return result;
  }
  if (sizes_[size(left.value)] > ranks_) return result;
  const Key key = {left.value, right.value, right.base - left.base};
  auto found = joined_.find(key);
  if (found == joined_.end()) {
    std::vector<Run> runs(runs_[size(key.left)]);
    for (Run run : runs_[size(key.right)]) {
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
    runs_.push_back(place->first);
    sizes_.push_back(contributions);
  }
  return place->second;
}

Region::Region(std::int64_t count) {
  if (count > 0) pieces_.push_back({0, count, kUndefined, 0, -1});
}

std::vector<Piece> Region::read(std::int64_t offset, std::int64_t count) const {
  std::vector<Piece> result;
  if (count == 0) return result;
  for (std::size_t i = find(offset); i < pieces_.size() && pieces_[i].begin < offset + count; ++i) {
    Piece piece = cut(pieces_[i], std::max(offset, pieces_[i].begin),
                      std::min(offset + count, pieces_[i].end));
    piece.begin -= offset;
    piece.end -= offset;
    result.push_back(piece);
  }
  return result;
}

void Region::write(std::int64_t offset, std::span<const Piece> pieces) {
  if (pieces.empty()) return;
  const std::int64_t end = offset + pieces.back().end;
  const std::size_t first = find(offset);
  const std::size_t last = find(end - 1);
  std::vector<Piece> fresh;
  if (pieces_[first].begin < offset) {
    fresh.push_back(cut(pieces_[first], pieces_[first].begin, offset));
  }
  for (Piece piece : pieces) {
    piece.begin += offset;
    piece.end += offset;
    fresh.push_back(piece);
  }
  if (end < pieces_[last].end) fresh.push_back(cut(pieces_[last], end, pieces_[last].end));

  const auto at = pieces_.begin();
  const auto gap = pieces_.erase(at + static_cast<std::ptrdiff_t>(first),
                                 at + static_cast<std::ptrdiff_t>(last) + 1);
  pieces_.insert(gap, fresh.begin(), fresh.end());
}

std::size_t Region::find(std::int64_t element) const {
  const auto after = std::ranges::upper_bound(pieces_, element, {}, &Piece::begin);
  return static_cast<std::size_t>(after - pieces_.begin()) - 1;
}

Piece cut(const Piece& piece, std::int64_t begin, std::int64_t end) {
  Piece part = piece;
  part.begin = begin;
  part.end = end;
  part.base += begin - piece.begin;
  return part;
}

}  // namespace unisono::check
