// SPDX-License-Identifier: BSD-3-Clause
#include "calls/buffers.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "calls/reducer.hpp"
#include "host/host.hpp"

namespace unisono::mpi {
namespace {

// MPI_Pack counts bytes in an int, so longer blocks are packed in parts.
constexpr std::int64_t kMostPackedBytes = std::int64_t{1} << 30;

std::byte* bytes_at(const void* buffer) {
  return const_cast<std::byte*>(static_cast<const std::byte*>(buffer));
}

bool fits_int(std::int64_t bytes) { return bytes <= std::numeric_limits<int>::max(); }

// MPI_Pack takes no longer element than an int counts. If there are no elements, any type will do.
bool can_move(const TypeInfo& info, std::int64_t count) {
  return info.valid && (info.direct || count == 0 || fits_int(info.size) ||
                        (host().Pack_c != nullptr && host().Unpack_c != nullptr));
}

// `count` elements to so many bytes, and back. An MPI error code.
int pack_part(const void* input, std::int64_t count, Handle type, void* output, std::int64_t bytes,
              Handle comm) {
  if (!fits_int(bytes)) {
    std::int64_t position = 0;
    return host().Pack_c(input, count, type, output, bytes, &position, comm);
  }
  int position = 0;
  return host().Pack(input, static_cast<int>(count), type, output, static_cast<int>(bytes),
                     &position, comm);
}

int unpack_part(const void* input, std::int64_t bytes, void* output, std::int64_t count,
                Handle type, Handle comm) {
  if (!fits_int(bytes)) {
    std::int64_t position = 0;
    return host().Unpack_c(input, bytes, &position, output, count, type, comm);
  }
  int position = 0;
  return host().Unpack(input, static_cast<int>(bytes), &position, output, static_cast<int>(count),
                       type, comm);
}

// By integers: the buffer may be MPI_BOTTOM.
std::byte* moved(const void* buffer, std::int64_t bytes) {
  return reinterpret_cast<std::byte*>(reinterpret_cast<std::intptr_t>(buffer) + bytes);
}

// Elements at a place, for the host's MPI_Pack. MPICH's refuses MPI_BOTTOM, from which a type of
// absolute addresses counts: such a type is moved to count from another address.
class Placed {
 public:
  Placed(std::byte* place, Handle type) : place_(place), type_(type) {
    if (place != nullptr) return;
    constexpr std::ptrdiff_t kElsewhere = 4096;
    constexpr std::ptrdiff_t kBack = -kElsewhere;
    constexpr int kOne = 1;
    Handle created = 0;
    if (host().Type_create_hindexed(1, &kOne, &kBack, type, &created) != 0) return;
    host().Type_commit(&created);
    moved_type_ = created;
    type_ = created;
    place_ = moved(nullptr, kElsewhere);
  }
  ~Placed() {
    if (moved_type_ != 0) host().Type_free(&moved_type_);
  }
  Placed(const Placed&) = delete;
  Placed& operator=(const Placed&) = delete;

  std::byte* at(std::int64_t bytes) const { return moved(place_, bytes); }
  Handle type() const { return type_; }

 private:
  std::byte* place_;
  Handle type_;
  Handle moved_type_ = 0;
};

}  // namespace

bool is_in_place(const void* buffer) { return buffer == host().constants.in_place; }

std::int64_t Elements::Block::part() const {
  return std::max<std::int64_t>(1, kMostPackedBytes / std::max<std::int64_t>(1, info.size));
}

Elements::Packed::~Packed() {
  for (Handle& type : kept_types) host().Type_free(&type);
}

void Elements::add_block(const Block& block, Handle comm) {
  if (packed_ == nullptr) packed_ = std::make_unique<Packed>();
  packed_->comm = comm;
  packed_->blocks.push_back(block);
}

void Elements::set_derived(std::int64_t count, Handle type, Handle comm) {
  const TypeInfo info = type_info(type);
  is_derived_ = true;
  direct_ = info.direct;
  type_bytes_ = info.size;
  bytes_ = count * info.size;
  valid_ = can_move(info, count) && !(direct_ && place_ == nullptr && bytes_ > 0);
  if (!direct_) add_block({bytes_at(place_), count, 0, type, info}, comm);
}

Elements::Elements(const void* buffer, Integers counts, Integers displacements, int blocks,
                   Handle type, Handle comm)
    : block_count_(blocks), place_(const_cast<void*>(buffer)), data_(const_cast<void*>(buffer)) {
  const TypeInfo info = type_info(type);
  valid_ = info.valid;
  direct_ = info.direct;
  type_bytes_ = info.size;
  counts_.resize(blocks);
  displacements_.resize(blocks);
  for (int i = 0; i < blocks; ++i) {
    const std::int64_t offset = displacements[i] * info.extent;
    valid_ = valid_ && can_move(info, counts[i]);
    if (!direct_) add_block({moved(buffer, offset), counts[i], bytes_, type, info}, comm);
    counts_[i] = counts[i] * info.size;
    displacements_[i] = direct_ ? offset : bytes_;
    bytes_ += counts_[i];
  }
  if (direct_) place_from_lowest();
}

Elements::Elements(const void* buffer, Integers counts, Integers displacements, int blocks,
                   const void* types, Handle comm)
    : block_count_(blocks), place_(const_cast<void*>(buffer)), data_(const_cast<void*>(buffer)) {
  counts_.resize(blocks);
  displacements_.resize(blocks);
  if (!set_plain_blocks(counts, displacements, types)) {
    set_derived_blocks(counts, displacements, types, comm);
  }
}

// False, and nothing is done, if a type is not plain.
bool Elements::set_plain_blocks(Integers counts, Integers displacements, const void* types) {
  std::int64_t bytes = 0;
  for (int i = 0; i < block_count_; ++i) {
    // An empty block's type may be anything.
    const std::int64_t each = counts[i] == 0 ? 0 : plain_bytes(host().handle_at(types, i));
    if (counts[i] != 0 && each == 0) return false;
    counts_[i] = counts[i] * each;
    displacements_[i] = displacements[i];
    bytes += counts_[i];
  }
  bytes_ = bytes;
  place_from_lowest();
  return true;
}

// MPI's displacements may be negative, count from MPI_BOTTOM, and be anything for empty blocks.
// Unisono's are 0 or more, from a buffer.
void Elements::place_from_lowest() {
  constexpr std::int64_t kNowhere = std::numeric_limits<std::int64_t>::max();
  std::int64_t lowest = kNowhere, end = -kNowhere;
  for (int i = 0; i < block_count_; ++i) {
    if (counts_[i] == 0) continue;
    may_share_ = may_share_ || displacements_[i] < end;
    lowest = std::min(lowest, displacements_[i]);
    end = std::max(end, displacements_[i] + counts_[i]);
  }
  // The program gave no buffer if a block lies in the first page: absolute addresses lie behind it.
  constexpr std::int64_t kFirstPage = 4096;
  if (bytes_ > 0 && place_ == nullptr && lowest < kFirstPage) valid_ = false;
  const bool stays = bytes_ == 0 || (lowest >= 0 && place_ != nullptr);
  const std::int64_t from = stays ? 0 : lowest;
  for (int i = 0; i < block_count_; ++i) {
    const bool is_there = displacements_[i] >= from && displacements_[i] <= end;
    displacements_[i] = counts_[i] == 0 && !is_there ? 0 : displacements_[i] - from;
  }
  place_ = data_ = moved(place_, from);
}

void Elements::separate_shared_blocks() {
  std::vector<int> order;
  for (int i = 0; i < block_count_; ++i) {
    if (counts_[i] != 0) order.push_back(i);
  }
  std::sort(order.begin(), order.end(),
            [this](int a, int b) { return displacements_[a] < displacements_[b]; });
  const auto shares = [this](int one, int next) {
    return displacements_[one] + counts_[one] > displacements_[next];
  };
  if (std::adjacent_find(order.begin(), order.end(), shares) == order.end()) return;
  const Host& mpi = host();
  const TypeInfo byte = type_info(mpi.constants.byte);
  std::int64_t at = 0;
  for (int i = 0; i < block_count_; ++i) {
    add_block({moved(place_, displacements_[i]), counts_[i], at, mpi.constants.byte, byte},
              mpi.constants.comm_world);
    displacements_[i] = at;
    at += counts_[i];
  }
  direct_ = false;
  is_derived_ = true;
}

void Elements::set_derived_blocks(Integers counts, Integers displacements, const void* types,
                                  Handle comm) {
  for (int i = 0; i < block_count_; ++i) {
    const Handle type = host().handle_at(types, i);
    const TypeInfo info =
        counts[i] == 0 ? TypeInfo{.direct = true, .valid = true} : type_info(type);
    valid_ = valid_ && can_move(info, counts[i]);
    direct_ = direct_ && info.direct;
    add_block({moved(place_, displacements[i]), counts[i], bytes_, type, info}, comm);
    counts_[i] = counts[i] * info.size;
    displacements_[i] = bytes_;
    bytes_ += counts_[i];
  }
  if (!direct_) return;
  packed_.reset();
  for (int i = 0; i < block_count_; ++i) displacements_[i] = displacements[i];
  place_from_lowest();
}

int Elements::keep() {
  if (packed_ == nullptr) return 0;
  for (Block& block : packed_->blocks) {
    if (block.count == 0) continue;
    // MPI_Type_dup would call the program's functions for the type's attributes.
    Handle kept = 0;
    if (const int error = host().Type_contiguous(1, block.type, &kept); error != 0) return error;
    packed_->kept_types.push_back(kept);
    if (const int error = host().Type_commit(&kept); error != 0) return error;
    block.type = kept;
  }
  packed_->comm = host().constants.comm_world;
  return 0;
}

int Elements::pack_all() {
  reserve_packed();
  for (const Block& block : packed_->blocks) {
    if (const int error = pack(block); error != 0) return error;
  }
  return 0;
}

Elements::Extent Elements::extent_of_blocks() const {
  const auto base = reinterpret_cast<std::intptr_t>(place_);
  Extent all{base, base};
  for (int i = 0, found = 0; i < block_count_; ++i) {
    if (counts_.data()[i] == 0) continue;
    const std::intptr_t begin = base + displacements_.data()[i];
    const std::intptr_t end = begin + counts_.data()[i];
    all = found++ == 0 ? Extent{begin, end}
                       : Extent{std::min(all.begin, begin), std::max(all.end, end)};
  }
  return all;
}

// Block by block: between them there may be no memory.
void Elements::copy() {
  if (packed_ == nullptr) packed_ = std::make_unique<Packed>();
  std::vector<std::byte*>& places = packed_->places;
  const auto blocks = static_cast<std::size_t>(block_count_);
  std::byte* const copied = packed_->scratch.allocate(bytes_);
  if (blocks == 0) std::memcpy(copied, place_, static_cast<std::size_t>(bytes_));
  std::int64_t at = 0;
  for (std::size_t i = 0; i < blocks; ++i) {
    std::int64_t& displacement = displacements_[static_cast<int>(i)];
    if (places.size() <= i) places.push_back(moved(place_, displacement));
    displacement = at;
    const std::int64_t bytes = counts_[static_cast<int>(i)];
    if (bytes > 0) std::memcpy(copied + at, places[i], static_cast<std::size_t>(bytes));
    at += bytes;
  }
  data_ = copied;
}

void Elements::reserve_packed() { data_ = packed_->scratch.allocate(bytes_); }

int Elements::unpack_all() {
  for (const Block& block : packed_->blocks) {
    if (const int error = unpack(block); error != 0) return error;
  }
  return 0;
}

int Elements::pack(const Block& block) {
  if (block.count == 0) return 0;
  const Placed placed(block.place, block.type);
  std::byte* const target = static_cast<std::byte*>(data_) + block.at;
  for (std::int64_t done = 0; done < block.count; done += block.part()) {
    const std::int64_t count = std::min(block.part(), block.count - done);
    const int error =
        pack_part(placed.at(done * block.info.extent), count, placed.type(),
                  target + done * block.info.size, count * block.info.size, packed_->comm);
    if (error != 0) return error;
  }
  return 0;
}

int Elements::unpack(const Block& block) {
  if (block.count == 0) return 0;
  const Placed placed(block.place, block.type);
  const std::byte* const source = static_cast<std::byte*>(data_) + block.at;
  for (std::int64_t done = 0; done < block.count; done += block.part()) {
    const std::int64_t count = std::min(block.part(), block.count - done);
    const int error =
        unpack_part(source + done * block.info.size, count * block.info.size,
                    placed.at(done * block.info.extent), count, placed.type(), packed_->comm);
    if (error != 0) return error;
  }
  return 0;
}

ReductionBuffers::ReductionBuffers(const void* send, void* receive, bool in_place,
                                   std::int64_t input_bytes, std::int64_t output_bytes,
                                   const Reducer& reduction)
    : reduction_(reduction),
      send_(in_place ? UNISONO_IN_PLACE : send),
      receive_(receive),
      in_place_(in_place),
      input_bytes_(input_bytes),
      output_bytes_(output_bytes),
      input_(send_),
      output_(receive) {
  const auto is_usable = [&reduction](const void* buffer) {
    const auto address = reinterpret_cast<std::uintptr_t>(buffer);
    return !reduction.has_gaps() &&
           address % static_cast<std::uintptr_t>(reduction.alignment()) == 0;
  };
  if (!in_place && !is_usable(send) && input_bytes > 0) {
    input_ = input_copy_.allocate(input_bytes);
  }
  if (receive != nullptr && !is_usable(receive)) {
    output_ = output_copy_.allocate(std::max(input_bytes, output_bytes));
  }
}

void ReductionBuffers::copy_in() {
  if (input_ != send_) copy(send_, const_cast<void*>(input_), input_bytes_);
  if (output_ != receive_) copy(receive_, output_, in_place_ ? input_bytes_ : output_bytes_);
}

void ReductionBuffers::copy(const void* from, void* to, std::int64_t bytes) const {
  if (reduction_.has_gaps()) {
    reduction_.copy_elements(from, to, bytes / reduction_.size());
  } else {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }
}

}  // namespace unisono::mpi
