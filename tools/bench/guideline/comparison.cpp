// SPDX-License-Identifier: BSD-3-Clause
#include "bench/guideline/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace unisono::tools::bench {
namespace {

using schedule::Collective;

// How long a part of the right side is, beside the size of the left one.
enum class Extent : std::uint8_t {
  absent,  // there is no such part
  same,
  word,        // 8 bytes, or an element that is larger
  all_blocks,  // the blocks of all ranks
};

struct Part {
  Collective collective = Collective::barrier;
  Extent extent = Extent::absent;
};

// `left` takes no longer than the parts of `right`, one after the other.
struct Row {
  Collective left;
  std::array<Part, 2> right;
};

using enum Collective;
using enum Extent;

constexpr Row kTable[] = {
    {barrier, {{{allreduce, word}}}},
    {reduce, {{{allreduce, same}}}},
    {allreduce, {{{reduce, same}, {broadcast, same}}}},
    {allgather, {{{allreduce, all_blocks}}}},
    {allgather, {{{gather, same}, {broadcast, all_blocks}}}},
    {allgather, {{{alltoall, same}}}},
    {gather, {{{allgather, same}}}},
    {scatter, {{{broadcast, all_blocks}}}},
    {reduce_scatter, {{{reduce, all_blocks}, {scatter, same}}}},
};

// A longer vector may change the algorithm or the kind of buffer. The fifth rank of a hypercube
// adds two steps to the two of four ranks.
constexpr double kTwiceTheSize = 2.5;
constexpr double kOneRankMore = 2.5;
// With a rank less there is still communication.
constexpr int kFewestRanks = 3;

class Maker {
 public:
  Maker(const Options& options, int ranks) : options_(options), ranks_(ranks) {}

  std::vector<Comparison> make() {
    for (const Subject& subject : options_.subjects) {
      const Collective collective = subject.collective;
      if (subject.unequal || !is_defined(collective)) continue;
      for (const Row& row : kTable) {
        if (row.left != collective || !is_defined(row)) continue;
        for (const std::int64_t bytes : sizes(collective)) add_row(row, bytes);
      }
      add_sizes(collective);
      add_ranks(collective);
    }
    return std::move(made_);
  }

 private:
  std::vector<std::int64_t> sizes(Collective collective) const {
    return collective == barrier ? std::vector<std::int64_t>{0} : options_.sizes;
  }

  bool is_defined(Collective collective) const {
    return !schedule::is_reduction(collective) || arith::fits(options_.op, options_.type);
  }
  bool is_defined(const Row& row) const {
    return std::ranges::all_of(row.right, [this](const Part& part) {
      return part.extent == absent || is_defined(part.collective);
    });
  }

  std::int64_t bytes_of(Extent extent, std::int64_t bytes) const {
    switch (extent) {
      case absent:
      case same:
        break;
      case word:
        return std::max<std::int64_t>(8,
                                      static_cast<std::int64_t>(arith::type_size(options_.type)));
      case all_blocks:
        return bytes * ranks_;
    }
    return bytes;
  }

  void add(std::string text, Side left, Side right, double limit) {
    made_.push_back({std::move(text), std::move(left), std::move(right), limit});
  }

  void add_row(const Row& row, std::int64_t bytes) {
    std::string text = fmt::format("{} <=", schedule::collective_name(row.left));
    Side right{{}, ranks_};
    for (const Part& part : row.right) {
      if (part.extent == absent) continue;
      const std::int64_t length = bytes_of(part.extent, bytes);
      text += fmt::format("{} {}", right.acts.empty() ? "" : " +",
                          schedule::collective_name(part.collective));
      if (part.extent == word) text += fmt::format(" of {} bytes", length);
      if (part.extent == all_blocks) text += " of all blocks";
      right.acts.push_back({part.collective, length});
    }
    add(std::move(text), {{{row.left, bytes}}, ranks_}, std::move(right), 1);
  }

  void add_sizes(Collective collective) {
    if (collective == barrier) return;
    for (std::size_t i = 0; i + 1 < options_.sizes.size(); ++i) {
      const std::int64_t half = options_.sizes[i];
      if (half == 0 || options_.sizes[i + 1] != 2 * half) continue;
      add(fmt::format("{} <= {} x half the size", schedule::collective_name(collective),
                      kTwiceTheSize),
          {{{collective, 2 * half}}, ranks_}, {{{collective, half}}, ranks_}, kTwiceTheSize);
    }
  }

  // Skipped if the root would be missing. Also skipped if the last rank exceeds the cores: no
  // library can avoid the jump in time there.
  void add_ranks(Collective collective) {
    if (ranks_ < kFewestRanks || ranks_ - 1 == options_.usable_cores) return;
    if (schedule::is_rooted(collective) && options_.root == ranks_ - 1) return;
    for (const std::int64_t bytes : sizes(collective)) {
      add(fmt::format("{} <= {} x on {} ranks", schedule::collective_name(collective), kOneRankMore,
                      ranks_ - 1),
          {{{collective, bytes}}, ranks_}, {{{collective, bytes}}, ranks_ - 1}, kOneRankMore);
    }
  }

  const Options& options_;
  int ranks_;
  std::vector<Comparison> made_;
};

}  // namespace

std::vector<Comparison> comparisons(const Options& options, int ranks) {
  return Maker(options, ranks).make();
}

}  // namespace unisono::tools::bench
