// SPDX-License-Identifier: BSD-3-Clause
// Trial: one collective on all ranks of a World, from the buffers before to the outputs after.
// Blocks lie next to each other or with gaps, input and output apart or in place; what may not be
// written is compared too. For tests of one thread.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "harness/collective_data.hpp"
#include "harness/world.hpp"

namespace unisono::test {

inline constexpr std::byte kUntouchedByte{0xee};

struct Manner {
  bool in_place = false;
  bool gaps = false;          // between the blocks of a buffer
  bool local_counts = false;  // ranks know the counts of their own blocks only
};

class Trial {
 public:
  Trial(const schedule::Shape& shape, const Material& of, const Manner& manner)
      : shape_(shape), of_(of), manner_(manner) {
    for (int rank = 0; rank < shape.ranks; ++rank) ranks_.push_back(prepare(rank));
  }

  // Fails the test where it does not complete, a result is wrong, or something else was written.
  void run(World& world) {
    ASSERT_NO_FATAL_FAILURE(complete(world));
    compare();
  }

  // Into how many parts rank 0 cuts the vector; 0 without a plan.
  std::int64_t segments(World& world) {
    const auto plan = world.at(0).plan(ranks_[0].call);
    return plan.ok() ? (*plan)->segments : 0;
  }

  // Only this rank's part of it.
  void start(World& world, int rank, comm::Pending& pending) {
    Rank& here = ranks_[static_cast<std::size_t>(rank)];
    auto plan = world.at(rank).plan(here.call);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    const auto status = world.at(rank).start(**plan, here.input_at(), here.output_at(), pending);
    ASSERT_TRUE(status.ok()) << status.error().message;
  }

  // The result is right, and the rest of the buffers is as it was.
  void compare() {
    // Kept from trial to trial: for long vectors, pages from the kernel would take most of the
    // time.
    static Bytes wanted;
    Bytes expected;
    for (int rank = 0; rank < shape_.ranks; ++rank) {
      const Rank& here = ranks_[static_cast<std::size_t>(rank)];
      if (here.takes_result && (expected.empty() || !is_one_result())) {
        expected = expected_output(shape_, of_, rank, [this](int r) -> std::span<const std::byte> {
          return ranks_[static_cast<std::size_t>(r)].input_before;
        });
      }
      const Bytes& result = here.takes_result ? expected : no_bytes();
      wanted.assign(here.memory.size(), kUntouchedByte);
      put(wanted.data() + here.input_offset, here.input, here.input_before);
      put(wanted.data() + here.output_offset, here.output, result);
      if (same_bytes(here.memory, wanted)) continue;
      ASSERT_TRUE(are_equal(output(rank), result))
          << "the result, " << describe() << ", rank " << rank;
      ASSERT_TRUE(are_equal(here.memory, wanted))
          << "beside the result, " << describe() << ", rank " << rank;
    }
  }

  // The outputs by rank, whatever they are; fails the test where it does not complete.
  std::vector<Bytes> outputs(World& world) {
    complete(world);
    std::vector<Bytes> all;
    for (int rank = 0; rank < shape_.ranks; ++rank) all.push_back(output(rank));
    return all;
  }

  Bytes output(int rank) const {
    const Rank& here = ranks_[static_cast<std::size_t>(rank)];
    Bytes bytes;
    for (const Piece& piece : here.output) {
      const auto from = here.memory.begin() +
                        static_cast<std::ptrdiff_t>(here.output_offset + piece.place * of_.size);
      bytes.insert(bytes.end(), from, from + static_cast<std::ptrdiff_t>(piece.count * of_.size));
    }
    return bytes;
  }

  std::string describe() const {
    std::string text = std::string(schedule::collective_name(shape_.collective)) + ", P " +
                       std::to_string(shape_.ranks) + ", root " + std::to_string(shape_.root) +
                       ", count " + std::to_string(shape_.count) + ", " + of_.name;
    if (manner_.in_place) text += ", in place";
    if (manner_.gaps) text += ", gaps";
    if (manner_.local_counts) text += ", local counts";
    if (!shape_.blocks.given()) return text;
    text += ", blocks";
    for (int r = 0; r < shape_.ranks; ++r) {
      if (!shape_.blocks.are_pairs()) {
        text += " " + std::to_string(shape_.blocks.of(r).count);
        if (!shape_.blocks.receives(r)) text += "(no receiver)";
        continue;
      }
      for (int to = 0; to < shape_.ranks; ++to) {
        text += (to == 0 ? " / " : " ") + std::to_string(shape_.blocks.sent(r, to).count);
      }
    }
    return text;
  }

 private:
  // A block of a buffer, in elements from the buffer's start.
  struct Piece {
    std::size_t place = 0, count = 0;
  };
  using Pieces = std::vector<Piece>;

  // Both buffers in one memory, the output behind the input or over it.
  struct Rank {
    plan::Call call;
    Pieces input, output;
    std::size_t input_offset = 0, output_offset = 0;  // bytes
    bool takes_result = false;
    Bytes memory, input_before;

    const void* input_at() const { return memory.data() + input_offset; }
    void* output_at() { return memory.data() + output_offset; }
  };

  testing::AssertionResult are_equal(const Bytes& found, const Bytes& wanted) const {
    if (same_bytes(found, wanted)) return testing::AssertionSuccess();
    const auto [at, other] = std::ranges::mismatch(found, wanted);
    const std::ptrdiff_t first = at - found.begin();
    std::ptrdiff_t differing = 0, last = first;
    for (std::ptrdiff_t i = first; i < std::min(std::ssize(found), std::ssize(wanted)); ++i) {
      if (found[static_cast<std::size_t>(i)] == wanted[static_cast<std::size_t>(i)]) continue;
      ++differing;
      last = i;
    }
    return testing::AssertionFailure()
           << differing << " of " << found.size() << " bytes differ (" << wanted.size()
           << " wanted), from byte " << first << " to " << last << ", element "
           << first / static_cast<std::ptrdiff_t>(of_.size) << ": ";
  }

  void complete(World& world) {
    std::vector<plan::Call> calls;
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    for (Rank& rank : ranks_) {
      calls.push_back(rank.call);
      inputs.push_back(rank.input_at());
      outputs.push_back(rank.output_at());
    }
    ASSERT_TRUE(world.run(calls, inputs, outputs)) << "did not complete: " << describe();
  }

  static const Bytes& no_bytes() {
    static const Bytes none;
    return none;
  }
  // Do all ranks that take a result take the same?
  bool is_one_result() const {
    using enum schedule::Collective;
    return shape_.collective == broadcast || shape_.collective == reduce ||
           shape_.collective == allreduce || shape_.collective == gather ||
           shape_.collective == allgather || shape_.collective == many_to_many;
  }
  bool input_has_blocks() const {
    using enum schedule::Collective;
    return shape_.collective == scatter || shape_.collective == alltoall ||
           shape_.collective == reduce_scatter;
  }
  bool output_has_blocks() const {
    return schedule::has_pairs(shape_.collective) ||
           (schedule::has_blocks(shape_.collective) && !input_has_blocks());
  }
  // reduce_scatter's blocks always lie next to each other.
  std::size_t gap() const {
    return manner_.gaps && shape_.collective != schedule::Collective::reduce_scatter ? 2 : 0;
  }

  Pieces pieces(int rank, bool input) const {
    const std::int64_t whole =
        input ? schedule::input_count(shape_, rank) : schedule::output_count(shape_, rank);
    if (!(input ? input_has_blocks() : output_has_blocks())) {
      return {{0, static_cast<std::size_t>(whole)}};
    }
    // A rank without such a buffer has no blocks either.
    const bool any = whole > 0;
    Pieces all;
    std::size_t end = gap();
    for (int r = 0; r < shape_.ranks; ++r) {
      schedule::Block block = schedule::has_pairs(shape_.collective)
                                  ? (input ? schedule::sent_block(shape_, rank, r)
                                           : schedule::received_block(shape_, r, rank))
                                  : schedule::block(shape_, r);
      all.push_back({end, any ? static_cast<std::size_t>(block.count) : 0});
      end += all.back().count + gap();
    }
    return all;
  }

  std::size_t bytes(const Pieces& all) const {
    return (all.back().place + all.back().count + gap()) * of_.size;
  }

  void put(std::byte* buffer, const Pieces& all, const Bytes& logical) const {
    std::size_t done = 0;
    for (const Piece& piece : all) {
      if (piece.count == 0) continue;  // there may be no buffer
      std::memcpy(buffer + piece.place * of_.size, logical.data() + done, piece.count * of_.size);
      done += piece.count * of_.size;
    }
  }

  Rank prepare(int r) const {
    Rank rank;
    rank.input = pieces(r, true);
    rank.output = pieces(r, false);
    const bool over = manner_.in_place && schedule::in_place(shape_, r).has_value();
    const auto own = static_cast<std::size_t>(r);
    if (!over) {
      rank.output_offset = bytes(rank.input);
    } else if (shape_.collective == schedule::Collective::scatter) {
      rank.output_offset = rank.input[own].place * of_.size;
    } else if (output_has_blocks() && !schedule::has_pairs(shape_.collective)) {
      rank.input_offset = rank.output[own].place * of_.size;
    }
    rank.memory.assign(
        std::max(rank.input_offset + bytes(rank.input), rank.output_offset + bytes(rank.output)),
        kUntouchedByte);
    rank.takes_result = schedule::output_count(shape_, r) > 0;
    rank.input_before = of_.input(r, schedule::input_count(shape_, r));
    put(rank.memory.data() + rank.input_offset, rank.input, rank.input_before);
    rank.call = call(r, rank, over);
    return rank;
  }

  plan::Call call(int r, const Rank& rank, bool over) const {
    plan::Call call;
    call.collective = shape_.collective;
    call.count = shape_.count;
    call.type = of_.type;
    call.root = shape_.root;
    call.element_bytes = static_cast<std::int64_t>(of_.size);
    if (schedule::is_reduction(shape_.collective)) {
      call.op = of_.op;
      call.ordered = of_.ordered;
      call.user = {of_.user, nullptr, of_.type};
    }
    if (!shape_.blocks.given()) return call;
    call.purpose = plan::Purpose::user_blocks;
    call.blocks = shape_.blocks;
    if (gap() > 0 && input_has_blocks()) call.input_places = places(rank.input);
    if (gap() > 0 && output_has_blocks()) call.output_places = places(rank.output);
    if (manner_.local_counts) {
      call.local_counts = true;
      call.in_place = over;
      call.blocks = known_by(r);
    } else if (!shape_.blocks.are_pairs()) {
      call.count = shape_.blocks.total();
    }
    return call;
  }

  static plan::Displacements places(const Pieces& all) {
    std::vector<std::int64_t> places;
    for (const Piece& piece : all) places.push_back(static_cast<std::int64_t>(piece.place));
    return std::make_shared<const std::vector<std::int64_t>>(std::move(places));
  }

  schedule::Blocks known_by(int r) const {
    std::vector<std::int64_t> sent, received;
    for (int peer = 0; peer < shape_.ranks; ++peer) {
      if (shape_.blocks.are_pairs()) {
        sent.push_back(shape_.blocks.sent(r, peer).count);
        received.push_back(shape_.blocks.sent(peer, r).count);
      } else {
        sent.push_back(r == shape_.root || r == peer ? shape_.blocks.of(peer).count : 0);
      }
    }
    return shape_.blocks.are_pairs() ? *schedule::Blocks::of_pairs_of(r, sent, received)
                                     : *schedule::Blocks::of_ranks(sent);
  }

  schedule::Shape shape_;
  Material of_;
  Manner manner_;
  std::vector<Rank> ranks_;
};

}  // namespace unisono::test
