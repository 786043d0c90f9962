// SPDX-License-Identifier: BSD-3-Clause
#include "api/arguments/own_blocks.hpp"

#include <vector>

namespace unisono::api {
namespace {

using base::Result;
using base::Status;
using schedule::Blocks;
using schedule::Collective;
using Numbers = std::vector<std::int64_t>;

std::size_t at(int rank) { return static_cast<std::size_t>(rank); }

// One of a gather's leaves, or of a scatter's: it has one block.
Result<CheckedBlocks> check_leaf(const Arguments& arguments, int rank, int ranks,
                                 std::int64_t element_bytes) {
  const std::int64_t count = arguments.count;
  if (count < 0) return wrong_argument("count is {}; it must be 0 or more", count);
  if (count > kMostBytes / element_bytes) {
    return wrong_argument("count {} of {} byte elements overflows (limit {} bytes)", count,
                          element_bytes, kMostBytes);
  }
  Numbers counts(at(ranks), 0);
  counts[at(rank)] = count;
  CheckedBlocks checked;
  UNISONO_ASSIGN(checked.blocks, Blocks::of_ranks(counts));
  return checked;
}

Result<CheckedBlocks> check_root(const Arguments& arguments, int rank, int ranks,
                                 std::int64_t element_bytes) {
  const bool gathers = arguments.collective == Collective::gather;
  const void* const of_own_block = gathers ? arguments.input : arguments.output;
  const ArraySource source{gathers ? arguments.blocks->output : arguments.blocks->input, ranks,
                           element_bytes};
  UNISONO_ASSIGN(Numbers counts, read_counts(source));
  if (of_own_block != UNISONO_IN_PLACE && arguments.count != counts[at(rank)]) {
    return wrong_argument(
        "count is {}, but counts[{}], which is this rank's, is {}; they must be equal",
        arguments.count, rank, counts[at(rank)]);
  }
  CheckedBlocks checked;
  UNISONO_ASSIGN(checked.blocks, Blocks::of_ranks(counts));
  UNISONO_ASSIGN(
      (gathers ? checked.output : checked.input),
      read_places(source, std::move(counts), gathers ? Overlap::refused : Overlap::allowed));
  return checked;
}

// Each block lies as its type asks, wherever the buffer begins.
Status check_alignment(const char* name, const void* buffer, const ReadBlocks& blocks,
                       const std::vector<TypeEntry>& types) {
  if (buffer == nullptr || buffer == UNISONO_IN_PLACE) return base::success();
  std::int64_t packed = 0;
  for (std::size_t r = 0; r < types.size(); ++r) {
    const std::int64_t place = blocks.places == nullptr ? packed : (*blocks.places)[r];
    packed += blocks.counts[r];
    const auto address =
        reinterpret_cast<std::uintptr_t>(buffer) + static_cast<std::uintptr_t>(place);
    const auto alignment = static_cast<std::uintptr_t>(types[r].alignment);
    if (blocks.counts[r] == 0 || address % alignment == 0) continue;
    return wrong_argument(
        "{} is misaligned for the block of rank {}: {} bytes from its start is address {:#x}, "
        "which "
        "is no multiple of {}",
        name, r, place, address, alignment);
  }
  return base::success();
}

class PairChecker {
 public:
  PairChecker(const Arguments& arguments, int rank, int ranks, std::int64_t element_bytes)
      : arguments_(arguments), rank_(rank), ranks_(ranks), element_bytes_(element_bytes) {}

  Result<CheckedBlocks> check() const {
    CheckedBlocks checked;
    UNISONO_ASSIGN(checked.output,
                   read(arguments_.blocks->output, "output", arguments_.output, Overlap::refused));
    if (arguments_.input == UNISONO_IN_PLACE) {
      checked.input = checked.output;
    } else {
      UNISONO_ASSIGN(checked.input,
                     read(arguments_.blocks->input, "input", arguments_.input, Overlap::allowed));
    }
    const std::int64_t sent = checked.input.counts[at(rank_)];
    const std::int64_t received = checked.output.counts[at(rank_)];
    if (sent != received) {
      return wrong_argument(
          "the block that rank {0} sends to itself has {1} {3} by input_counts[{0}], but {2} by "
          "output_counts[{0}]; they must be equal",
          rank_, sent, received, is_typed() ? "bytes" : "elements");
    }
    UNISONO_ASSIGN(checked.blocks,
                   Blocks::of_pairs_of(rank_, checked.input.counts, checked.output.counts));
    return checked;
  }

 private:
  bool is_typed() const { return arguments_.blocks->scope == CountScope::of_own_typed; }

  Result<ReadBlocks> read(const BlockArray& arrays, const char* name, const void* buffer,
                          Overlap overlap) const {
    ArraySource source{arrays, ranks_, element_bytes_};
    if (is_typed()) {
      UNISONO_ASSIGN(source.types, read_types(arrays, ranks_));
    }
    UNISONO_ASSIGN(Numbers counts, read_counts(source));
    UNISONO_ASSIGN(ReadBlocks blocks, read_places(source, std::move(counts), overlap));
    UNISONO_TRY(check_alignment(name, buffer, blocks, source.types));
    return blocks;
  }

  const Arguments& arguments_;
  int rank_, ranks_;
  std::int64_t element_bytes_;
};

}  // namespace

Result<CheckedBlocks> check_own_blocks(const Arguments& arguments, int rank, int ranks,
                                       std::int64_t element_bytes) {
  if (arguments.collective == Collective::alltoall) {
    return PairChecker(arguments, rank, ranks, element_bytes).check();
  }
  return rank == arguments.root ? check_root(arguments, rank, ranks, element_bytes)
                                : check_leaf(arguments, rank, ranks, element_bytes);
}

}  // namespace unisono::api
