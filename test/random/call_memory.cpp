// SPDX-License-Identifier: BSD-3-Clause
#include "random/call_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <stdexcept>

namespace unisono::test::programs {
namespace {

constexpr std::byte kUntouched{0xa5};
constexpr std::byte kScribbled{0x5c};

// Where a buffer begins if its type is aligned so, and no better.
constexpr std::size_t kLine = 64;

std::size_t aligned_up(std::size_t at, std::size_t alignment) {
  return (at + alignment - 1) / alignment * alignment;
}

// The types of an alltoallw: their sizes divide kUnit of program.cpp.
constexpr std::array kPairTypes = {
    UNISONO_BYTE + 0,       UNISONO_INT16 + 0, UNISONO_FLOAT32 + 0, UNISONO_INT64 + 0,
    UNISONO_COMPLEX128 + 0, kBuiltIn + 1,      kBuiltIn + 2,        kBuiltIn + 4};
constexpr std::int64_t kPairUnit = 48;

// Whether the values of a block depend on its receiver.
bool tells_receivers_apart(const Call& call) {
  const Function f = call.function;
  const bool has_input_blocks =
      f == Function::scatter || f == Function::scatterv || f == Function::alltoall || has_pairs(f);
  return has_input_blocks && !call.shared_input;
}

}  // namespace

CallMemory::CallMemory(const Program& program, int call, int rank, unisono_comm_t world,
                       base::Prng& own)
    : program_(program),
      number_(call),
      call_(program.calls[static_cast<std::size_t>(call)]),
      rank_(rank),
      ranks_(
          static_cast<int>(program.groups[static_cast<std::size_t>(call_.group)].members.size())),
      size_(size_of_type(call_.type)),
      own_(&own) {
  end_ = kGuard;
  lay_out();
  end_ += kGuard;
  const std::size_t bytes = end_ + kLine;
  std::byte* memory = nullptr;
  if (draw(6)) {
    if (unisono_memory_alloc(world, bytes, &shared_) != UNISONO_OK) {
      throw std::runtime_error(unisono_last_error());
    }
    memory = static_cast<std::byte*>(shared_);
  } else {
    memory_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
    memory = memory_.get();
  }
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  begin_ = memory + (kLine - address % kLine) % kLine;
  place_arguments();
}

CallMemory::~CallMemory() {
  if (shared_ != nullptr) unisono_memory_free(shared_);
}

bool CallMemory::is_in_place() {
  if (call_.in_place == InPlace::nowhere) return false;
  return call_.in_place == InPlace::everywhere || draw(2);
}

// One that begins where its type may, on an odd multiple of its alignment.
std::size_t CallMemory::add_region(std::size_t bytes) {
  const std::size_t alignment =
      call_.function == Function::alltoallw ? 16 : alignment_of_type(call_.type);
  if (draw(2)) end_ += own_->below(200);
  end_ = aligned_up(end_, alignment);
  if (end_ / alignment % 2 == 0 && draw(2)) end_ += alignment;
  const std::size_t begin = end_;
  end_ += bytes;
  return begin;
}

std::vector<std::int64_t> CallMemory::equal_counts() const {
  if (call_.counts.size() > 1) return call_.counts;
  return std::vector<std::int64_t>(static_cast<std::size_t>(ranks_), call_.counts.front());
}

std::int64_t CallMemory::sent(int from, int to) const {
  if (!has_pairs(call_.function)) return call_.counts.front();
  return call_.counts[static_cast<std::size_t>(from * ranks_ + to)];
}

CallMemory::Blocks CallMemory::place_blocks(const std::vector<std::int64_t>& counts,
                                            bool may_overlap, std::vector<unisono_type_t>* types) {
  Blocks blocks;
  blocks.places.resize(counts.size());
  blocks.sizes.assign(counts.size(), types != nullptr ? 1 : size_);
  std::vector<std::size_t> order(counts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const bool has_places = call_.function == Function::allgatherv ||
                          call_.function == Function::many_to_many ||
                          call_.function == Function::gatherv ||
                          call_.function == Function::scatterv || has_pairs(call_.function);
  const bool gaps = call_.gaps && has_places;
  if (gaps) std::shuffle(order.begin(), order.end(), *own_);
  const std::int64_t step = types != nullptr ? 16 : 1;
  std::int64_t end = gaps ? static_cast<std::int64_t>(own_->below(3)) * step : 0;
  std::int64_t most = end;
  for (const std::size_t r : order) {
    const std::int64_t length = types != nullptr ? counts[r] * kPairUnit : counts[r];
    blocks.places[r] = end;
    most = std::max(most, end + length);
    if (may_overlap) continue;
    end += length;
    if (gaps && draw(2)) end += static_cast<std::int64_t>(own_->below(70)) * step;
  }
  blocks.bytes = static_cast<std::size_t>(std::max(most, end)) * (types != nullptr ? 1 : size_);
  for (std::size_t r = 0; types != nullptr && r < counts.size(); ++r) {
    const int type = kPairTypes[own_->below(kPairTypes.size())];
    types->push_back(OwnKinds::get().type(type));
    blocks.sizes[r] = size_of_type(type);
  }
  return blocks;
}

CallMemory::Pieces CallMemory::pieces_of(const Blocks& blocks,
                                         const std::vector<std::int64_t>& counts,
                                         std::size_t begin) const {
  const bool in_bytes = call_.function == Function::alltoallw;
  Pieces pieces;
  for (std::size_t r = 0; r < counts.size(); ++r) {
    pieces.push_back(
        {.place = begin + static_cast<std::size_t>(blocks.places[r]) * (in_bytes ? 1 : size_),
         .count = in_bytes ? counts[r] * kPairUnit : counts[r],
         .peer = static_cast<int>(r),
         .size = in_bytes ? 1 : size_});
  }
  return pieces;
}

void CallMemory::lay_out() {
  switch (call_.function) {
    case Function::barrier:
      return;
    case Function::broadcast:
      return lay_out_vector();
    case Function::reduce:
    case Function::allreduce:
    case Function::reduce_scatter_block:
    case Function::reduce_scatter:
    case Function::scan:
    case Function::exscan:
      return lay_out_reduction();
    case Function::allgather:
    case Function::gather:
    case Function::allgatherv:
    case Function::many_to_many:
    case Function::gatherv:
      return lay_out_gathered();
    case Function::scatter:
    case Function::scatterv:
      return lay_out_scattered();
    case Function::alltoall:
    case Function::alltoallv:
    case Function::alltoallw:
      return lay_out_exchanged();
  }
}

void CallMemory::lay_out_vector() {
  const std::int64_t count = call_.counts.front();
  output_at_ = add_region(static_cast<std::size_t>(count) * size_);
  has_output_ = true;
  const Piece all{output_at_, count, call_.root, size_};
  if (rank_ == call_.root) before_ = {all};
  after_ = {all};
  arguments_.count = count;
}

void CallMemory::lay_out_reduction() {
  reduces_ = true;
  const Function f = call_.function;
  const bool scatters = f == Function::reduce_scatter || f == Function::reduce_scatter_block;
  const std::vector<std::int64_t> blocks = equal_counts();
  const auto own = static_cast<std::size_t>(rank_);
  std::int64_t whole = call_.counts.front(), result = whole;
  if (scatters) {
    whole = std::accumulate(blocks.begin(), blocks.end(), std::int64_t{0});
    result = blocks[own];
    result_first_ = std::accumulate(blocks.begin(), blocks.begin() + rank_, std::int64_t{0});
  }
  const bool gets =
      (f != Function::reduce || rank_ == call_.root) && (f != Function::exscan || rank_ > 0);
  in_place_ = is_in_place() && (f != Function::reduce || gets);
  has_input_ = has_output_ = true;
  const std::size_t whole_bytes = static_cast<std::size_t>(whole) * size_;
  const std::size_t result_bytes = static_cast<std::size_t>(result) * size_;
  if (in_place_) {
    input_at_ = output_at_ = add_region(whole_bytes);
    if (scatters) {
      undefined_from_ = output_at_ + result_bytes;
      undefined_end_ = output_at_ + whole_bytes;
    }
  } else {
    const bool is_output_first = draw(2);
    if (is_output_first) output_at_ = add_region(result_bytes);
    input_at_ = add_region(whole_bytes);
    if (!is_output_first) output_at_ = add_region(result_bytes);
    if (!gets && f == Function::reduce && draw(2)) has_output_ = false;
  }
  before_ = {{input_at_, whole, rank_, size_}};
  if (gets) after_ = {{output_at_, result, 0, size_}};
  arguments_.count = call_.counts.front();
  if (f == Function::reduce_scatter) arguments_.output_counts = blocks;
}

void CallMemory::lay_out_gathered() {
  const Function f = call_.function;
  const std::vector<std::int64_t> counts = equal_counts();
  const auto own = static_cast<std::size_t>(rank_);
  const bool is_to_root = f == Function::gather || f == Function::gatherv;
  const bool receives =
      is_to_root ? rank_ == call_.root : call_.receives.empty() || call_.receives[own] != 0;
  in_place_ = receives && is_in_place();
  arguments_.receives = call_.receives;
  arguments_.count = counts[own];
  if (f == Function::allgatherv || f == Function::many_to_many || receives) {
    arguments_.output_counts = counts;
  }
  has_input_ = true;
  if (receives) {
    const Blocks blocks = place_blocks(counts, false, nullptr);
    output_at_ = add_region(blocks.bytes);
    has_output_ = true;
    after_ = pieces_of(blocks, counts, output_at_);
    if (call_.gaps) arguments_.output_places = blocks.places;
  }
  if (in_place_) {
    before_ = {after_[own]};
    if (draw(2))
      arguments_.count = f == Function::allgather || f == Function::gather ? arguments_.count
                                                                           : -7;  // it is ignored
    return;
  }
  input_at_ = add_region(static_cast<std::size_t>(counts[own]) * size_);
  before_ = {{input_at_, counts[own], rank_, size_}};
}

void CallMemory::lay_out_scattered() {
  const std::vector<std::int64_t> counts = equal_counts();
  const auto own = static_cast<std::size_t>(rank_);
  const bool is_root = rank_ == call_.root;
  const bool is_v = call_.function == Function::scatterv;
  in_place_ = is_root && is_in_place();
  has_output_ = true;
  arguments_.count = counts[own];
  if (is_root) {
    const Blocks blocks = place_blocks(counts, is_v && call_.shared_input, nullptr);
    input_at_ = add_region(blocks.bytes);
    has_input_ = true;
    before_ = pieces_of(blocks, counts, input_at_);
    if (is_v) arguments_.input_counts = counts;
    if (is_v && (call_.gaps || call_.shared_input)) arguments_.input_places = blocks.places;
  }
  if (in_place_) return;
  output_at_ = add_region(static_cast<std::size_t>(counts[own]) * size_);
  after_ = {{output_at_, counts[own], call_.root, size_}};
}

void CallMemory::lay_out_exchanged() {
  const bool is_w = call_.function == Function::alltoallw;
  std::vector<std::int64_t> out, in;
  for (int r = 0; r < ranks_; ++r) {
    out.push_back(sent(rank_, r));
    in.push_back(sent(r, rank_));
  }
  in_place_ = is_in_place();
  has_input_ = has_output_ = true;
  const bool overlap = call_.function != Function::alltoall && call_.shared_input;
  const Blocks to = place_blocks(in, false, is_w ? &arguments_.output_types : nullptr);
  output_at_ = add_region(to.bytes);
  after_ = pieces_of(to, in, output_at_);
  if (in_place_) {
    before_ = after_;
  } else {
    const Blocks from = place_blocks(out, overlap, is_w ? &arguments_.input_types : nullptr);
    input_at_ = add_region(from.bytes);
    before_ = pieces_of(from, out, input_at_);
    if (call_.gaps || overlap) arguments_.input_places = from.places;
    for (std::size_t r = 0; is_w && r < out.size(); ++r) {
      out[r] = out[r] * kPairUnit / static_cast<std::int64_t>(from.sizes[r]);
    }
  }
  if (call_.gaps) arguments_.output_places = to.places;
  for (std::size_t r = 0; is_w && r < in.size(); ++r) {
    in[r] = in[r] * kPairUnit / static_cast<std::int64_t>(to.sizes[r]);
  }
  arguments_.count = call_.counts.front();
  if (has_pairs(call_.function)) {
    if (!in_place_) arguments_.input_counts = out;
    arguments_.output_counts = in;
  }
}

void CallMemory::place_arguments() {
  const bool scatters = call_.function == Function::scatter || call_.function == Function::scatterv;
  if (has_input_) arguments_.input = begin_ + input_at_;
  if (has_output_) arguments_.output = begin_ + output_at_;
  if (in_place_ && scatters) arguments_.output = UNISONO_IN_PLACE;
  if (in_place_ && !scatters) arguments_.input = UNISONO_IN_PLACE;
}

Tile CallMemory::tile_between(int from, int to, int round, std::int64_t most,
                              std::size_t size) const {
  const int receiver = tells_receivers_apart(call_) ? to : 0;
  const std::uint64_t key = key_of(program_, number_, round);
  return moved_tile(key + static_cast<std::uint64_t>(from * 64 + receiver), size, most);
}

void CallMemory::fill(int round) {
  std::memset(begin_, static_cast<int>(kUntouched), end_);
  for (const Piece& piece : before_) {
    if (piece.count == 0) continue;
    if (reduces_) {
      contribution(key_of(program_, number_, round), call_.type, call_.op, rank_, piece.count)
          .put(begin_ + piece.place, 0, piece.count);
      continue;
    }
    // A block of an input that lies in its output goes to its own rank, or to the peer of it.
    const bool gathers = !tells_receivers_apart(call_);
    tile_between(rank_, gathers ? 0 : piece.peer, round, piece.count, piece.size)
        .put(begin_ + piece.place, 0, piece.count);
  }
  expected_.assign(begin_, begin_ + end_);
  put_result(round);
}

void CallMemory::put_result(int round) {
  for (const Piece& piece : after_) {
    if (piece.count == 0) continue;
    std::byte* const at = expected_.data() + piece.place;
    if (reduces_) {
      tile_of_result(round, result_first_ + piece.count).put(at, result_first_, piece.count);
    } else {
      tile_between(piece.peer, rank_, round, piece.count, piece.size).put(at, 0, piece.count);
    }
  }
}

Tile CallMemory::tile_of_result(int round, std::int64_t most) const {
  int last = ranks_ - 1;
  if (call_.function == Function::scan) last = rank_;
  if (call_.function == Function::exscan) last = rank_ - 1;
  return reduced_tile(key_of(program_, number_, round), call_.type, call_.op, last, most);
}

// Results of built-in operators may differ in padding bytes and in the sign of a zero.
bool CallMemory::is_same_element(std::size_t at) const {
  const bool is_lax = reduces_ && !is_own_operator(call_.op) && call_.type < kBuiltIn;
  if (!is_lax || after_.empty() || at < after_.front().place) return false;
  const std::size_t element = (at - after_.front().place) / size_;
  if (std::cmp_greater_equal(element, after_.front().count)) return false;
  const std::size_t place = after_.front().place + element * size_;
  return harness::load(call_.type, begin_ + place) ==
         harness::load(call_.type, expected_.data() + place);
}

std::string CallMemory::difference() const {
  for (std::size_t at = 0; at < end_;) {
    const std::size_t some = std::min<std::size_t>(end_ - at, 4096);
    if (std::memcmp(begin_ + at, expected_.data() + at, some) == 0) {
      at += some;
      continue;
    }
    for (const std::size_t most = at + some; at < most; ++at) {
      if (begin_[at] == expected_[at] || is_undefined(at) || is_same_element(at)) continue;
      return report(at);
    }
  }
  return {};
}

std::string CallMemory::report(std::size_t at) const {
  std::size_t differing = 0, last = at;
  for (std::size_t i = at; i < end_; ++i) {
    if (begin_[i] == expected_[i] || is_undefined(i) || is_same_element(i)) continue;
    ++differing;
    last = i;
  }
  std::string where = "outside of the results";
  for (const Piece& piece : after_) {
    const std::size_t bytes = static_cast<std::size_t>(piece.count) * piece.size;
    if (at < piece.place || at >= piece.place + bytes) continue;
    where = fmt::format("element {} of {} of the block of {}", (at - piece.place) / piece.size,
                        piece.count, piece.peer);
  }
  return fmt::format(
      "byte {} of {} is {:#04x}, not {:#04x}: {}; {} bytes up to {} differ; input at {}, output at "
      "{}{}{}",
      at, end_, static_cast<int>(begin_[at]), static_cast<int>(expected_[at]), where, differing,
      last, input_at_, output_at_, in_place_ ? ", in place" : "",
      shared_ != nullptr ? ", in the library's memory" : "");
}

void CallMemory::scribble() { std::memset(begin_, static_cast<int>(kScribbled), end_); }

std::string CallMemory::difference_from_scribble() const {
  for (std::size_t at = 0; at < end_; ++at) {
    if (begin_[at] == kScribbled) continue;
    return fmt::format("byte {} of {} was written after the call", at, end_);
  }
  return {};
}

}  // namespace unisono::test::programs
