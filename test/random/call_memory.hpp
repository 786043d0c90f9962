// SPDX-License-Identifier: BSD-3-Clause
// CallMemory: the buffers of one call at one rank, from their contents before it to the comparison
// of every byte after it. Input and output lie in one piece of memory, over each other or close
// together, and no better aligned than their type asks. For tests only; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/prng.hpp"
#include "random/program.hpp"
#include "random/tile.hpp"
#include "unisono/unisono.h"

namespace unisono::test::programs {

// The arguments of a function of the library; a call uses those that it has.
struct Arguments {
  const void* input = nullptr;
  void* output = nullptr;
  std::int64_t count = 0;
  std::vector<std::int64_t> input_counts, output_counts;
  // Empty: NULL.
  std::vector<std::int64_t> input_places, output_places;
  std::vector<unisono_type_t> input_types, output_types;
  std::vector<int> receives;
};

class CallMemory {
 public:
  // `rank` in the communicator. `own`: for what this rank decides for itself.
  CallMemory(const Program& program, int call, int rank, unisono_comm_t world, base::Prng& own);
  ~CallMemory();
  CallMemory(const CallMemory&) = delete;
  CallMemory& operator=(const CallMemory&) = delete;

  const Arguments& arguments() const { return arguments_; }

  // As it has to be before a round.
  void fill(int round);
  // After a round: the first difference from the expected contents; empty if there is none.
  std::string difference() const;
  // The caller may use its buffers for anything else now. After that, nothing writes there.
  void scribble();
  std::string difference_from_scribble() const;

 private:
  static constexpr std::size_t kGuard = 64;

  // Elements of a block, from `place` on. `peer` sends or receives it.
  struct Piece {
    std::size_t place = 0;  // in the memory
    std::int64_t count = 0;
    int peer = 0;
    std::size_t size = 1;  // of an element
  };
  using Pieces = std::vector<Piece>;

  // Where the blocks of a buffer lie.
  struct Blocks {
    std::vector<std::int64_t> places;  // in elements, or bytes in an alltoallw
    std::vector<std::size_t> sizes;    // of elements
    std::size_t bytes = 0;             // of the whole buffer
  };

  void lay_out();
  void lay_out_reduction();
  void lay_out_vector();    // broadcast
  void lay_out_gathered();  // blocks of all ranks, which go to some or to all
  void lay_out_scattered();
  void lay_out_exchanged();
  void place_arguments();

  Blocks place_blocks(const std::vector<std::int64_t>& counts, bool may_overlap,
                      std::vector<unisono_type_t>* types);
  Pieces pieces_of(const Blocks& blocks, const std::vector<std::int64_t>& counts,
                   std::size_t begin) const;
  std::size_t add_region(std::size_t bytes);
  bool draw(std::uint64_t one_in) { return own_->below(one_in) == 0; }
  bool is_in_place();
  std::vector<std::int64_t> equal_counts() const;
  std::int64_t sent(int from, int to) const;

  void put_result(int round);
  Tile tile_between(int from, int to, int round, std::int64_t most, std::size_t size) const;
  Tile tile_of_result(int round, std::int64_t most) const;
  bool is_same_element(std::size_t at) const;
  bool is_undefined(std::size_t at) const { return at >= undefined_from_ && at < undefined_end_; }
  std::string report(std::size_t at) const;

  const Program& program_;
  const int number_;
  const Call& call_;
  const int rank_, ranks_;
  const std::size_t size_;
  base::Prng* own_;

  Arguments arguments_;
  bool in_place_ = false, has_input_ = false, has_output_ = false;
  std::size_t input_at_ = 0, output_at_ = 0, end_ = 0;
  Pieces before_, after_;
  bool reduces_ = false;
  std::int64_t result_first_ = 0;  // of a reduction: the element of the vector
  std::size_t undefined_from_ = 0, undefined_end_ = 0;

  std::unique_ptr<std::byte[]> memory_;
  void* shared_ = nullptr;  // of the library instead
  std::byte* begin_ = nullptr;
  std::vector<std::byte> expected_;
};

}  // namespace unisono::test::programs
