// SPDX-License-Identifier: BSD-3-Clause
#include "select/select.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace unisono::select {
namespace {

using algorithm::Collective;
using schedule::Shape;

// Vectors longer than this are worth splitting over the ranks.
constexpr std::int64_t kSplitBytes = 16 * 1024;
// Up to so many ranks, one that combines for all beats a tree.
constexpr int kFewRanks = 8;

// From here on, two copies no longer stay in the caches. One copy then wins where sender and
// receiver each have a core; a reduction does better with the parts that buffers give it.
constexpr std::int64_t kSingleCopyBytes = 4 << 20;

// Blocks no longer than this are worth a longer way with fewer messages.
constexpr std::int64_t kShortBlockBytes = 256;

struct Pick {
  std::string_view name;
  int parameter = 0;  // 0: the row's own default
};

Pick pick_allreduce(const Shape& shape, const Circumstances& now) {
  const std::int64_t bytes = shape.count * now.element_bytes;
  const bool splits = bytes >= kSplitBytes && shape.count >= shape.ranks && !shape.ordered;
  if (splits) return {"ring"};
  if (now.oversubscribed && shape.ranks > 2) return {"gather-release", shape.ranks};
  return {"pairwise"};
}

// In a gather, scatter or alltoall of unequal blocks a rank knows its own counts only, so that the
// choice may not depend on counts, and has to be an algorithm that needs no others.
Pick pick_blocks(const Shape& shape, const Circumstances& now) {
  if (shape.blocks.given() || now.oversubscribed || shape.ranks <= kFewRanks) return {"linear"};
  const std::int64_t bytes = shape.count * now.element_bytes;
  if (shape.collective == Collective::alltoall) {
    return {bytes <= kShortBlockBytes ? "bruck" : "linear"};
  }
  return {bytes <= kSplitBytes ? "fnomial" : "linear"};
}

// Of a vector, or of a block on the average.
std::int64_t elements(const Shape& shape) {
  const bool unequal = shape.blocks.given() && !schedule::has_pairs(shape.collective);
  return unequal ? shape.blocks.total() / shape.ranks : shape.count;
}

Pick pick(const Shape& shape, const Circumstances& now) {
  const std::int64_t bytes = elements(shape) * now.element_bytes;
  switch (shape.collective) {
    case Collective::barrier:
      if (now.oversubscribed && shape.ranks > 2) return {"gather-release", shape.ranks};
      return {"dissemination"};
    case Collective::broadcast:
      if (now.multicast) return {"flat"};
      return {"fnomial"};
    case Collective::reduce:
      if (now.oversubscribed || shape.ranks <= kFewRanks) return {"serial"};
      return {"fnomial"};
    case Collective::allreduce:
      return pick_allreduce(shape, now);
    case Collective::allgather:
      if (now.oversubscribed && shape.ranks > 2 && bytes <= 256) return {"gather-release"};
      if (now.multicast) return {"direct"};
      return {bytes <= kSplitBytes ? "recursive-doubling" : "ring"};
    case Collective::gather:
    case Collective::scatter:
    case Collective::alltoall:
      return pick_blocks(shape, now);
    case Collective::scan:
    case Collective::exscan:
      if (now.oversubscribed || bytes > kSplitBytes) return {"linear"};
      return {"recursive-doubling"};
    case Collective::reduce_scatter:
      return {"pairwise"};
    case Collective::many_to_many:
      return {now.multicast ? "direct" : "concurrent-broadcast"};
  }
  return {};
}

}  // namespace

bool prefers_single_copy(const Shape& shape, const Circumstances& now) {
  if (!now.pull) return false;
  const std::int64_t bytes = shape.count * now.element_bytes;
  if (now.single_copy_from >= 0) return bytes >= now.single_copy_from;
  return !now.oversubscribed && !schedule::is_reduction(shape.collective) &&
         bytes >= kSingleCopyBytes;
}

Choice choose(const Shape& shape, const Circumstances& circumstances) {
  const Pick name = pick(shape, circumstances);
  const algorithm::Algorithm* algorithm = algorithm::find(shape.collective, name.name);
  UNISONO_CHECK(algorithm != nullptr, "a rule that names no algorithm of the table");
  algorithm::Parameters parameters = algorithm::default_parameters(*algorithm, shape);
  if (name.parameter > 0 && !algorithm->parameters.empty()) {
    const auto& spec = algorithm->parameters[0];
    const int high = spec.high == 0 ? std::max(spec.low, shape.ranks) : spec.high;
    parameters.values[0] = std::clamp(name.parameter, spec.low, high);
  }
  UNISONO_CHECK(algorithm::why_illegal(*algorithm, shape, parameters).empty(),
                "a rule that picks an illegal algorithm");
  return {algorithm, parameters};
}

}  // namespace unisono::select
