// SPDX-License-Identifier: BSD-3-Clause
// LastCall: the last blocking call of a collective on a communicator, if Unisono did it with the
// program's buffers where they lie. One like it needs no look at types and operators: it goes
// straight to Unisono. Only predefined types and operators are kept, as others may end and their
// handles come again. One thread at a time.
#pragma once

#include <array>
#include <cstdint>
#include <type_traits>

#include "host/functions.hpp"
#include "unisono/unisono.h"

namespace unisono::mpi {

class LastCall {
 public:
  // The bytes of the buffers as Unisono gets them; 0: this rank has no such buffer.
  struct Buffers {
    std::int64_t input_bytes = 0, output_bytes = 0;
    std::int64_t alignment = 1;
  };
  // The further arguments that Unisono gets.
  struct Elements {
    std::int64_t count = 0;
    unisono_type_t type = UNISONO_BYTE;
    unisono_op_t op = -1;
  };

  // The blocks of two ranks, if a buffer of the call has one for each: bytes from its begin on.
  struct Blocks {
    std::int64_t other_at = 0;
    std::int64_t own_at = 0, own_bytes = 0;
  };
  // The part of a call that may be kept.
  struct Kept {
    Buffers buffers;
    Elements elements;
    Blocks blocks = {};
    bool has_lists = false;  // of counts and displacements, two numbers each
  };

  // With all arguments of the call.
  template <class... Arguments>
  void keep(Handle handle_mask, const Kept& kept, Arguments... arguments) {
    kept_ = kept;
    std::size_t at = 0;
    (keep_number(at, handle_mask, arguments), ...);
    is_kept_ = true;
  }

  // Whether a call with these arguments is like it. `output`: null without a second buffer.
  template <class... Arguments>
  [[gnu::always_inline]] bool is_like(Handle handle_mask, const void* input, const void* output,
                                      Arguments... arguments) const {
    std::size_t at = 0;
    return is_kept_ && (is_same_number(at, handle_mask, arguments) && ...) &&
           accepts(input, output);
  }

  const Elements& elements() const { return kept_.elements; }
  const Blocks& blocks() const { return kept_.blocks; }
  // As Unisono gets them.
  const void* input(const void* given) const { return has_input() ? given : nullptr; }
  void* output(void* given) const { return has_output() ? given : nullptr; }

 private:
  static constexpr std::size_t kMost = 9;  // of gatherv and scatterv, with lists

  bool has_input() const { return kept_.buffers.input_bytes != 0; }
  bool has_output() const { return kept_.buffers.output_bytes != 0; }

  static std::uint64_t number(Handle handle_mask, Handle handle) { return handle & handle_mask; }
  template <class Count>
  static std::uint64_t number(Handle, Count count) {
    static_assert(std::is_same_v<Count, int> || std::is_same_v<Count, std::int64_t>);
    return static_cast<std::uint64_t>(count);
  }
  template <class Argument>
  static constexpr bool kIsList =
      std::is_same_v<Argument, const int*> || std::is_same_v<Argument, const std::int64_t*>;
  // Buffers are not numbers, and lists may mean nothing at this rank.
  template <class Argument>
  void keep_number(std::size_t& at, Handle handle_mask, Argument argument) {
    if constexpr (kIsList<Argument>) {
      for (int i = 0; kept_.has_lists && i < 2; ++i) {
        numbers_[at++] = number(handle_mask, argument[i]);
      }
    } else if constexpr (!std::is_pointer_v<Argument>) {
      numbers_[at++] = number(handle_mask, argument);
    }
  }
  template <class Argument>
  [[gnu::always_inline]] bool is_same_number(std::size_t& at, Handle handle_mask,
                                             Argument argument) const {
    if constexpr (kIsList<Argument>) {
      if (!kept_.has_lists) return true;
      if (argument == nullptr) return false;
      at += 2;
      return numbers_[at - 2] == number(handle_mask, argument[0]) &&
             numbers_[at - 1] == number(handle_mask, argument[1]);
    } else if constexpr (!std::is_pointer_v<Argument>) {
      return numbers_[at++] == number(handle_mask, argument);
    }
    return true;
  }

  // Null and MPI_IN_PLACE are in the first page, or above all.
  bool is_place(const void* buffer) const {
    constexpr std::uintptr_t kLowest = 4096, kHighest = UINTPTR_MAX >> 1;
    const auto address = reinterpret_cast<std::uintptr_t>(buffer);
    return address - kLowest < kHighest - kLowest &&
           (address & static_cast<std::uintptr_t>(kept_.buffers.alignment - 1)) == 0;
  }
  [[gnu::always_inline]] bool accepts(const void* input, const void* output) const {
    if ((has_input() && !is_place(input)) || (has_output() && !is_place(output))) return false;
    if (!has_input() || !has_output()) return true;
    const auto in = reinterpret_cast<std::intptr_t>(input);
    const auto out = reinterpret_cast<std::intptr_t>(output);
    return in + kept_.buffers.input_bytes <= out || out + kept_.buffers.output_bytes <= in;
  }

  bool is_kept_ = false;
  Kept kept_;
  std::array<std::uint64_t, kMost> numbers_{};
};

}  // namespace unisono::mpi
