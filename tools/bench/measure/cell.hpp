// SPDX-License-Identifier: BSD-3-Clause
// Cell: one collective at one size, bound to buffers, ready to be called repeatedly, and able to
// verify the result. It has several pairs of buffers, used in turn, so that it detects a rank that
// runs ahead into another's data. One thread.
#pragma once

#include <unisono/unisono.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "base/result.hpp"
#include "bench/measure/pattern.hpp"
#include "bench/options.hpp"

namespace unisono::tools::bench {

struct CellShape {
  Subject subject;
  std::int64_t count = 0;  // of the vector, or of a block (the average if lengths differ)
  int root = 0;
  int rank = 0;
  int ranks = 1;
  Uneven uneven = Uneven::halves;  // the blocks of an unequal subject
};

class Cell {
 public:
  // `pattern` outlives the cell. Error: no memory for the buffers.
  static base::Result<Cell> make(const CellShape& shape, const Options& options,
                                 const Pattern& pattern, unisono_comm_t comm);

  // Pairs of buffers; a power of two. `turn` below means pair turn % buffers().
  int buffers() const { return static_cast<int>(buffers_.size()); }

  // Writes the input of this phase, and fills the output with wrong values.
  void prepare(std::int64_t turn, std::int64_t phase);
  // The collective; returns its error code. Does nothing else: this call is timed.
  int call(std::int64_t turn) const;
  // The same in split phase: returns the error code of starting it.
  int start(std::int64_t turn, unisono_request_t* request) const;
  // Elements of the output that are wrong for this phase; always 0 for a barrier.
  std::int64_t wrong(std::int64_t turn, std::int64_t phase) const;

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  using Memory = std::unique_ptr<std::byte[], Free>;
  struct Buffers {
    Memory input;
    Memory output;
  };
  // The blocks of a buffer, in elements.
  struct Blocks {
    std::vector<std::int64_t> counts;
    std::vector<std::int64_t> places;

    void add(std::int64_t count);
    std::int64_t total() const { return places.back() + counts.back(); }
  };
  Cell(const CellShape& shape, const Options& options, const Pattern& pattern, unisono_comm_t comm);
  static base::Result<Memory> allocate(std::int64_t bytes);
  Blocks input_blocks() const;
  Blocks output_blocks() const;
  std::int64_t of_rank(int rank) const {
    return block_count(shape_.subject, shape_.uneven, rank, shape_.ranks, shape_.count);
  }
  std::int64_t of_pair(int a, int b) const { return of_rank(a + b); }
  std::int64_t bytes(const Blocks& blocks) const { return blocks.total() * element_bytes_; }
  void fill_blocks(std::int64_t phase, std::byte* input) const;
  std::int64_t wrong_blocks(std::int64_t phase, const std::byte* output) const;
  // A blocking call; with a request, a split-phase start.
  int call_or_start(std::int64_t turn, unisono_request_t* request) const;
  int equal(const void* input, void* output, unisono_request_t* request) const;
  int unequal(const void* input, void* output, unisono_request_t* request) const;

  CellShape shape_;
  const Pattern* pattern_;
  unisono_comm_t comm_;
  unisono_type_t type_;
  unisono_op_t op_;
  std::int64_t element_bytes_;
  Blocks input_;   // where it does not consist of blocks, one
  Blocks output_;  // likewise
  std::uint64_t mask_ = 0;
  std::vector<Buffers> buffers_;
};

}  // namespace unisono::tools::bench
