// SPDX-License-Identifier: BSD-3-Clause
// Packing: blocks that are put together in one message, and taken out of it. Adjacent blocks are
// one copy. Only all-to-alls of several levels use it; any thread with its own Builder.
#pragma once

#include <vector>

#include "algorithm/block_run.hpp"

namespace unisono::algorithm::alltoall {

struct Move {
  Range target, source;
};

// Joins adjacent moves that stay adjacent, and drops empty ones.
inline std::vector<Move> joined(const std::vector<Move>& moves) {
  std::vector<Move> runs;
  for (const Move& move : moves) {
    if (move.source.count == 0) continue;
    if (!runs.empty() && follows(runs.back().source, move.source) &&
        follows(runs.back().target, move.target)) {
      runs.back().source.count += move.source.count;
      runs.back().target.count += move.target.count;
    } else {
      runs.push_back(move);
    }
  }
  return runs;
}

// The sources one after another, as one value: itself if it is in one piece, or in scratch memory.
inline Value packed(Builder& b, const std::vector<Range>& sources, const std::vector<OpId>& after) {
  std::int64_t count = 0;
  for (const Range& source : sources) count += source.count;
  std::vector<Move> moves;
  for (Range rest = schedule::scratch(0, count); const Range& source : sources) {
    moves.push_back({first_of(rest, source.count), source});
    rest = behind(rest, source.count);
  }
  const std::vector<Move> runs = joined(moves);
  if (runs.size() == 1 && after.size() <= 1) {
    return {runs[0].source, after.empty() ? Builder::kNone : after[0]};
  }
  const Range whole = b.scratch(count);
  OpId copied = Builder::kNone;
  for (const Move& run : runs) {
    copied =
        b.copy(first_of(behind(whole, run.target.offset), run.target.count), run.source, {copied});
    for (const OpId before : after) b.also_after(before);
  }
  return {whole, copied};
}

// Copies the sources to their targets, once all of `after` are done.
inline void copy_all(Builder& b, const std::vector<Move>& moves, const std::vector<OpId>& after) {
  for (const Move& run : joined(moves)) {
    b.copy(run.target, run.source);
    for (const OpId before : after) b.also_after(before);
  }
}

}  // namespace unisono::algorithm::alltoall
