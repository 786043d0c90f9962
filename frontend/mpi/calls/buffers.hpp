// SPDX-License-Identifier: BSD-3-Clause
// Buffers of MPI calls as contiguous bytes, which is what Unisono moves. Elements without gaps stay
// where they lie. Others are packed by the host MPI before the call, and unpacked after it. Ranks
// may so use different datatypes of the same signature. Any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "calls/integers.hpp"
#include "host/types.hpp"

namespace unisono::mpi {

class Reducer;

// Whether the program gave MPI_IN_PLACE for a buffer.
bool is_in_place(const void* buffer);

// Memory of a call's own, aligned for every type.
class Scratch {
 public:
  std::byte* allocate(std::int64_t bytes) {
    const auto blocks = static_cast<std::size_t>(bytes) / sizeof(std::max_align_t) + 1;
    memory_ = std::make_unique_for_overwrite<std::max_align_t[]>(blocks);
    return reinterpret_cast<std::byte*>(memory_.get());
  }

 private:
  std::unique_ptr<std::max_align_t[]> memory_;
};

// Numbers of a call's own, one a block. Few of them need no allocation.
class BlockNumbers {
 public:
  void resize(int blocks) {
    if (static_cast<std::size_t>(blocks) > few_.size()) {
      many_ = std::make_unique_for_overwrite<std::int64_t[]>(static_cast<std::size_t>(blocks));
    }
  }
  std::int64_t* data() { return many_ != nullptr ? many_.get() : few_.data(); }
  const std::int64_t* data() const { return many_ != nullptr ? many_.get() : few_.data(); }
  std::int64_t& operator[](int block) { return data()[block]; }

 private:
  std::array<std::int64_t, 16> few_;
  std::unique_ptr<std::int64_t[]> many_;
};

// Elements in the caller's buffer: one block, or one for each rank. Those that stay where they lie
// cost next to nothing: small collectives take less than an allocation.
class Elements {
 public:
  // One block. Equal blocks of all ranks are one block as well.
  Elements(const void* buffer, std::int64_t count, Handle type, Handle comm)
      : type_bytes_(plain_bytes(type)),
        place_(const_cast<void*>(buffer)),
        data_(const_cast<void*>(buffer)) {
    if (type_bytes_ == 0) [[unlikely]] {
      set_derived(count, type, comm);
    } else {
      bytes_ = count * type_bytes_;
      valid_ = buffer != nullptr || bytes_ == 0;
    }
  }
  // Blocks with counts and displacements in elements.
  Elements(const void* buffer, Integers counts, Integers displacements, int blocks, Handle type,
           Handle comm);
  // The same with displacements in bytes, and a type for each block: an array of the program's.
  Elements(const void* buffer, Integers counts, Integers displacements, int blocks,
           const void* types, Handle comm);
  Elements(const Elements&) = delete;
  Elements& operator=(const Elements&) = delete;

  // False: a type is invalid, or there are elements and no buffer. The host MPI reports it.
  bool valid() const { return valid_; }
  // Whether they stay where they lie, of a predefined type.
  bool is_plain() const { return !is_derived_ && data_ == place_; }
  // For elements of one type.
  std::int64_t type_bytes() const { return type_bytes_; }
  // Bytes of the block, or of all.
  std::int64_t bytes() const { return bytes_; }
  // In bytes, for calls with blocks.
  const std::int64_t* counts() const { return counts_.data(); }
  const std::int64_t* displacements() const { return displacements_.data(); }

  // From now on the caller may free the type and the communicator. An MPI error code.
  int keep();
  // Makes data() hold the elements. An MPI error code.
  int load() { return direct_ ? 0 : pack_all(); }
  // Makes data() a copy of elements that lie in the caller's buffer.
  void copy();
  // Whether elements of both that stay where they lie share memory, or lie between each other.
  bool overlaps(const Elements& other) const {
    if (direct_ && data_ != place_) return true;  // copied before
    if (!direct_ || !other.direct_ || bytes_ == 0 || other.bytes_ == 0) return false;
    const Extent mine = extent(), others = other.extent();
    return mine.begin < others.end && others.begin < mine.end;
  }
  // Blocks that share bytes, which MPI does not allow in an output, get places of their own in
  // data(). store() then brings one after the other, as most MPIs do.
  void separate_blocks() {
    if (may_share_) separate_shared_blocks();
  }
  // Makes data() a place for the elements.
  void reserve() {
    if (!direct_) reserve_packed();
  }
  // Brings what was received at data() to the caller's buffer.
  int store() { return direct_ ? 0 : unpack_all(); }
  void* data() const { return data_; }

 private:
  struct Block {
    std::byte* place;    // in the caller's buffer
    std::int64_t count;  // elements
    std::int64_t at;     // bytes in data()
    Handle type;
    TypeInfo info;

    std::int64_t part() const;  // elements that one MPI_Pack takes
  };
  // Holds elements that are packed or copied. Most blocks stay where they lie and have none.
  struct Packed {
    ~Packed();

    std::vector<Block> blocks;       // of those that are packed
    std::vector<std::byte*> places;  // in the caller's buffer, of blocks that are copied
    std::vector<Handle> kept_types;  // the drop-in's own, of the blocks
    Handle comm = 0;                 // for MPI_Pack
    Scratch scratch;
  };
  // Where elements lie that are not moved: from the first byte to the end of the last one.
  struct Extent {
    std::intptr_t begin, end;
  };
  Extent extent() const {
    const auto base = reinterpret_cast<std::intptr_t>(place_);
    return block_count_ == 0 ? Extent{base, base + bytes_} : extent_of_blocks();
  }
  Extent extent_of_blocks() const;
  void set_derived(std::int64_t count, Handle type, Handle comm);
  bool set_plain_blocks(Integers counts, Integers displacements, const void* types);
  void set_derived_blocks(Integers counts, Integers displacements, const void* types, Handle comm);
  void place_from_lowest();
  void separate_shared_blocks();
  void add_block(const Block& block, Handle comm);
  void reserve_packed();
  int pack(const Block& block);
  int pack_all();
  int unpack(const Block& block);
  int unpack_all();

  bool valid_ = true;
  bool is_derived_ = false;  // some type is not plain
  bool direct_ = true;       // the elements stay where they lie
  bool may_share_ = false;   // some block begins before the end of one in front of it
  int block_count_ = 0;      // of those with counts and displacements
  std::int64_t type_bytes_ = 0;
  std::int64_t bytes_ = 0;
  void* place_;  // the caller's buffer
  void* data_;
  std::unique_ptr<Packed> packed_;
  BlockNumbers counts_, displacements_;
};

// The buffers of a reduction, aligned for the type: MPI allows any address. Elements with gaps are
// copied, so that the gaps in the caller's buffer stay as they are.
class ReductionBuffers {
 public:
  // `in_place`: receive holds the input.
  ReductionBuffers(const void* send, void* receive, bool in_place, std::int64_t input_bytes,
                   std::int64_t output_bytes, const Reducer& reduction);
  // Whether both are where the program has them.
  bool are_plain() const { return !in_place_ && input_ == send_ && output_ == receive_; }
  std::int64_t input_bytes() const { return input_bytes_; }
  std::int64_t output_bytes() const { return output_bytes_; }
  const void* input() const { return input_; }  // or UNISONO_IN_PLACE
  void* output() const { return output_; }
  // The call brings no output, and the program's place for it is neither read nor written.
  void leave_output() { receive_ = output_; }
  // Before each call.
  void load() {
    if (input_ != send_ || output_ != receive_) copy_in();
  }
  // After each call.
  void finish() {
    if (output_ != receive_) copy(output_, receive_, output_bytes_);
  }

 private:
  void copy_in();
  void copy(const void* from, void* to, std::int64_t bytes) const;

  const Reducer& reduction_;
  const void* send_;
  void* receive_;
  bool in_place_;
  std::int64_t input_bytes_, output_bytes_;
  const void* input_;
  void* output_;
  Scratch input_copy_, output_copy_;
};

}  // namespace unisono::mpi
