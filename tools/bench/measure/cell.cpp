// SPDX-License-Identifier: BSD-3-Clause
#include "bench/measure/cell.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace unisono::tools::bench {
namespace {

using schedule::Collective;

constexpr std::size_t kAlignment = 4096;
constexpr int kPoison = 0xa5;

// More pairs see more mistakes, but should not push each other out of the first-level cache, and
// huge ones should not fill the memory. `bytes`: of the larger buffer of any rank.
std::uint64_t pairs_of_buffers(std::int64_t bytes) {
  constexpr std::int64_t kSmall = 4096;
  constexpr std::int64_t kHuge = 8 << 20;
  if (bytes <= kSmall) return 4;
  return bytes <= kHuge ? 2 : 1;
}

// All ranks have to take the same number of pairs: the turns' phases depend on it. Unequal blocks
// count as equal ones here.
std::int64_t longest_buffer(const CellShape& shape, std::int64_t block_bytes) {
  return block_bytes * (schedule::has_blocks(shape.subject.collective) ? shape.ranks : 1);
}

}  // namespace

void Cell::Blocks::add(std::int64_t count) {
  places.push_back(counts.empty() ? 0 : total());
  counts.push_back(count);
}

Cell::Cell(const CellShape& shape, const Options& options, const Pattern& pattern,
           unisono_comm_t comm)
    : shape_(shape),
      pattern_(&pattern),
      comm_(comm),
      type_(static_cast<unisono_type_t>(options.type)),
      op_(static_cast<unisono_op_t>(options.op)),
      element_bytes_(static_cast<std::int64_t>(arith::type_size(options.type))),
      input_(input_blocks()),
      output_(output_blocks()) {}

Cell::Blocks Cell::input_blocks() const {
  const Collective collective = shape_.subject.collective;
  const bool scatters = collective == Collective::scatter && shape_.rank == shape_.root;
  Blocks blocks;
  if (!scatters && collective != Collective::alltoall && collective != Collective::reduce_scatter) {
    blocks.add(of_rank(shape_.rank));
    return blocks;
  }
  for (int r = 0; r < shape_.ranks; ++r) {
    blocks.add(collective == Collective::alltoall ? of_pair(shape_.rank, r) : of_rank(r));
  }
  return blocks;
}

Cell::Blocks Cell::output_blocks() const {
  const Collective collective = shape_.subject.collective;
  const bool gathers = collective == Collective::gather && shape_.rank == shape_.root;
  Blocks blocks;
  if (!gathers && collective != Collective::alltoall && collective != Collective::allgather) {
    blocks.add(of_rank(shape_.rank));
    return blocks;
  }
  for (int r = 0; r < shape_.ranks; ++r) {
    blocks.add(collective == Collective::alltoall ? of_pair(r, shape_.rank) : of_rank(r));
  }
  return blocks;
}

base::Result<Cell> Cell::make(const CellShape& shape, const Options& options,
                              const Pattern& pattern, unisono_comm_t comm) {
  Cell cell(shape, options, pattern, comm);
  const std::uint64_t pairs =
      pairs_of_buffers(longest_buffer(shape, shape.count * cell.element_bytes_));
  cell.mask_ = pairs - 1;
  for (std::uint64_t i = 0; i < pairs; ++i) {
    UNISONO_ASSIGN(Memory input, allocate(cell.bytes(cell.input_)));
    UNISONO_ASSIGN(Memory output, allocate(cell.bytes(cell.output_)));
    cell.buffers_.push_back({std::move(input), std::move(output)});
  }
  return cell;
}

base::Result<Cell::Memory> Cell::allocate(std::int64_t bytes) {
  const std::size_t rounded =
      (static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1)) + kAlignment - 1) / kAlignment *
      kAlignment;
  Memory memory(static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded)));
  if (memory == nullptr) {
    return base::Error{base::Code::resources,
                       fmt::format("no memory for a buffer of {} bytes: use smaller --sizes or "
                                   "fewer ranks",
                                   rounded)};
  }
  std::memset(memory.get(), kPoison, rounded);  // touches the pages
  return memory;
}

void Cell::prepare(std::int64_t turn, std::int64_t phase) {
  const Buffers& pair = buffers_[static_cast<std::uint64_t>(turn) & mask_];
  std::memset(pair.output.get(), kPoison, static_cast<std::size_t>(bytes(output_)));
  switch (shape_.subject.collective) {
    case Collective::barrier:
      break;
    case Collective::broadcast:
      if (shape_.rank == shape_.root) {
        pattern_->fill(shape_.root, phase, shape_.count, pair.output.get());
      }
      break;
    case Collective::reduce:
    case Collective::allreduce:
    case Collective::allgather:
    case Collective::gather:
    case Collective::scan:
    case Collective::exscan:
      pattern_->fill(shape_.rank, phase, input_.counts[0], pair.input.get());
      break;
    case Collective::scatter:
    case Collective::alltoall:
    case Collective::reduce_scatter:
      fill_blocks(phase, pair.input.get());
      break;
    case Collective::many_to_many:
      break;  // not measured
  }
}

// In a scatter, the input is the root's.
void Cell::fill_blocks(std::int64_t phase, std::byte* input) const {
  if (input_.counts.size() != static_cast<std::size_t>(shape_.ranks)) return;
  for (std::size_t block = 0; block < input_.counts.size(); ++block) {
    pattern_->fill(shape_.rank, Pattern::phase_of(static_cast<int>(block), phase),
                   input_.counts[block], input + input_.places[block] * element_bytes_);
  }
}

std::int64_t Cell::wrong(std::int64_t turn, std::int64_t phase) const {
  const std::byte* output = buffers_[static_cast<std::uint64_t>(turn) & mask_].output.get();
  const std::int64_t own_phase = Pattern::phase_of(shape_.rank, phase);
  switch (shape_.subject.collective) {
    case Collective::barrier:
      return 0;
    case Collective::broadcast:
      return pattern_->wrong(shape_.root, phase, shape_.count, output);
    case Collective::reduce:
      if (shape_.rank != shape_.root) return 0;
      return pattern_->wrong_reduced(phase, shape_.count, output);
    case Collective::allreduce:
      return pattern_->wrong_reduced(phase, shape_.count, output);
    case Collective::allgather:
      return wrong_blocks(phase, output);
    case Collective::gather:
      return shape_.rank == shape_.root ? wrong_blocks(phase, output) : 0;
    case Collective::scatter:
      return pattern_->wrong(shape_.root, own_phase, output_.counts[0], output);
    case Collective::alltoall:
      return wrong_blocks(own_phase, output);
    case Collective::reduce_scatter:
      return pattern_->wrong_reduced(own_phase, output_.counts[0], output);
    case Collective::scan:
      return pattern_->wrong_reduced(phase, shape_.count, output, Reduced::upto);
    case Collective::exscan:
      if (shape_.rank == 0) return 0;
      return pattern_->wrong_reduced(phase, shape_.count, output, Reduced::before);
    case Collective::many_to_many:
      break;  // not measured
  }
  return 0;
}

// Each rank's block in turn.
std::int64_t Cell::wrong_blocks(std::int64_t phase, const std::byte* output) const {
  std::int64_t differences = 0;
  for (std::size_t block = 0; block < output_.counts.size(); ++block) {
    differences += pattern_->wrong(static_cast<int>(block), phase, output_.counts[block],
                                   output + output_.places[block] * element_bytes_);
  }
  return differences;
}

}  // namespace unisono::tools::bench
