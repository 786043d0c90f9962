// SPDX-License-Identifier: BSD-3-Clause
// The collectives that move blocks. All go to Unisono as bytes, whatever their types: ranks may
// give different types of the same signature, so the type cannot decide.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <optional>

#include "calls/buffers.hpp"
#include "calls/call.hpp"
#include "library.hpp"

namespace unisono::mpi {

// The bytes of so many elements; Call::kUnknown if the type is invalid.
std::int64_t bytes_to_move(LargeCount count, Handle type);

// The other one of two ranks; -1 if there are more. A message between two ranks has the same length
// at both, so both know it, also where each rank has counts of its own.
inline int other_of_two(const Ranks& own) {
  return own.size == 2 && own.rank >= 0 ? 1 - own.rank : -1;
}

// The base of calls that move: elements go out, elements come in, or both.
class Move : public Call {
 public:
  int keep(Uses uses) override;
  int load() override;
  int finish() override { return output_ ? output_->store() : 0; }

 protected:
  // False: the type is invalid, or MPI_IN_PLACE stands where MPI does not allow it.
  template <class... Arguments>
  bool set_input(const void* buffer, const Arguments&... arguments) {
    return !is_in_place(buffer) && input_.emplace(buffer, arguments...).valid();
  }
  template <class... Arguments>
  bool set_output(const void* buffer, const Arguments&... arguments) {
    if (is_in_place(buffer) || !output_.emplace(buffer, arguments...).valid()) return false;
    output_->separate_blocks();
    return true;
  }
  // For `count` bytes in each block.
  std::optional<LastCall::Kept> kept_with(std::int64_t count) const {
    if (in_place_ || (input_ && !input_->is_plain()) || (output_ && !output_->is_plain())) {
      return std::nullopt;
    }
    const LastCall::Buffers buffers{input_ ? input_->bytes() : 0, output_ ? output_->bytes() : 0};
    // An empty buffer may lie anywhere, also where MPI_IN_PLACE does.
    if (count == 0) return std::nullopt;
    return LastCall::Kept{buffers, {.count = count}};
  }
  // Without elements of its own: the other buffer has them, or this rank has none.
  const void* from() const { return input_ ? input_->data() : without(); }
  void* to() const { return output_ ? output_->data() : without(); }

  std::optional<Elements> input_, output_;
  // The output holds this rank's input, or the input its output.
  bool in_place_ = false;

 private:
  void* without() const { return in_place_ ? UNISONO_IN_PLACE : nullptr; }
};

class BcastCall final : public Move {
 public:
  bool take(const Communicator& own, void* buffer, LargeCount count, Handle type, int root,
            Handle comm);
  static std::int64_t block_bytes(const Ranks&, void*, LargeCount count, Handle type, int, Handle) {
    return bytes_to_move(count, type);
  }
  int call(const Communicator& own, unisono_request_t* request) override;
  static constexpr bool kRepeats = true;
  std::optional<LastCall::Kept> kept() const;
  static int again(const Communicator& own, const LastCall& last, const void* buffer, void*,
                   int root) {
    return library().broadcast(const_cast<void*>(buffer), last.elements().count, UNISONO_BYTE, root,
                               own.unisono.get());
  }

 private:
  int root_ = 0;
};

// Equal blocks: allgather, gather, scatter, alltoall.
class BlockMove : public Move {
 public:
  static constexpr bool kRepeats = true;
  std::optional<LastCall::Kept> kept() const { return kept_with(block_); }

 protected:
  std::int64_t block_ = 0;  // bytes
  int root_ = 0;
};

class AllgatherCall final : public BlockMove {
 public:
  bool take(const Communicator& own, const void* send, LargeCount send_count, Handle send_type,
            void* receive, LargeCount receive_count, Handle receive_type, Handle comm);
  static std::int64_t block_bytes(const Ranks&, const void*, LargeCount, Handle, void*,
                                  LargeCount receive_count, Handle receive_type, Handle) {
    return bytes_to_move(receive_count, receive_type);
  }
  int call(const Communicator& own, unisono_request_t* request) override;
  static int again(const Communicator& own, const LastCall& last, const void* send, void* receive,
                   int) {
    return library().allgather(send, receive, last.elements().count, UNISONO_BYTE,
                               own.unisono.get());
  }
};

class GatherCall final : public BlockMove {
 public:
  bool take(const Communicator& own, const void* send, LargeCount send_count, Handle send_type,
            void* receive, LargeCount receive_count, Handle receive_type, int root, Handle comm);
  // The other pair of count and type may mean nothing at this rank.
  static std::int64_t block_bytes(const Ranks& own, const void*, LargeCount send_count,
                                  Handle send_type, void*, LargeCount receive_count,
                                  Handle receive_type, int root, Handle) {
    return own.rank == root ? bytes_to_move(receive_count, receive_type)
                            : bytes_to_move(send_count, send_type);
  }
  int call(const Communicator& own, unisono_request_t* request) override;
  static int again(const Communicator& own, const LastCall& last, const void* send, void* receive,
                   int root) {
    return library().gather(last.input(send), last.output(receive), last.elements().count,
                            UNISONO_BYTE, root, own.unisono.get());
  }
};

class ScatterCall final : public BlockMove {
 public:
  bool take(const Communicator& own, const void* send, LargeCount send_count, Handle send_type,
            void* receive, LargeCount receive_count, Handle receive_type, int root, Handle comm);
  // The other pair of count and type may mean nothing at this rank.
  static std::int64_t block_bytes(const Ranks& own, const void*, LargeCount send_count,
                                  Handle send_type, void*, LargeCount receive_count,
                                  Handle receive_type, int root, Handle) {
    return own.rank == root ? bytes_to_move(send_count, send_type)
                            : bytes_to_move(receive_count, receive_type);
  }
  int call(const Communicator& own, unisono_request_t* request) override;
  static int again(const Communicator& own, const LastCall& last, const void* send, void* receive,
                   int root) {
    return library().scatter(last.input(send), last.output(receive), last.elements().count,
                             UNISONO_BYTE, root, own.unisono.get());
  }
};

class AlltoallCall final : public BlockMove {
 public:
  bool take(const Communicator& own, const void* send, LargeCount send_count, Handle send_type,
            void* receive, LargeCount receive_count, Handle receive_type, Handle comm);
  static std::int64_t block_bytes(const Ranks&, const void*, LargeCount, Handle, void*,
                                  LargeCount receive_count, Handle receive_type, Handle) {
    return bytes_to_move(receive_count, receive_type);
  }
  int call(const Communicator& own, unisono_request_t* request) override;
  static int again(const Communicator& own, const LastCall& last, const void* send, void* receive,
                   int) {
    return library().alltoall(send, receive, last.elements().count, UNISONO_BYTE,
                              own.unisono.get());
  }
};

class AllgathervCall final : public Move {
 public:
  bool take(const Communicator& own, const void* send, LargeCount send_count, Handle send_type,
            void* receive, Integers counts, Integers displacements, Handle receive_type,
            Handle comm);
  // The average.
  static std::int64_t block_bytes(const Ranks& own, const void*, LargeCount, Handle, void*,
                                  Integers counts, Integers, Handle receive_type, Handle);
  int call(const Communicator& own, unisono_request_t* request) override;
};

class GathervCall final : public Move {
 public:
  bool take(const Communicator& own, const void* send, LargeCount send_count, Handle send_type,
            void* receive, Integers counts, Integers displacements, Handle receive_type, int root,
            Handle comm);
  // With two ranks: what one sends the other.
  static std::int64_t block_bytes(const Ranks& own, const void*, LargeCount send_count,
                                  Handle send_type, void*, Integers counts, Integers,
                                  Handle receive_type, int root, Handle);
  int call(const Communicator& own, unisono_request_t* request) override;

  static constexpr bool kRepeats = true;
  std::optional<LastCall::Kept> kept() const { return kept_; }
  static int again(const Communicator& own, const LastCall& last, const void* send, void* receive,
                   int root) {
    // A root copies its own block, and gets the other one.
    void* buffer = const_cast<void*>(send);
    if (own.rank == root) {
      const auto& [other_at, own_at, own_bytes] = last.blocks();
      std::byte* const blocks = static_cast<std::byte*>(receive);
      if (own_bytes > 0) {
        std::memmove(blocks + own_at, send, static_cast<std::size_t>(own_bytes));
      }
      buffer = blocks + other_at;
    }
    return library().broadcast(buffer, last.elements().count, UNISONO_BYTE, 1 - root,
                               own.unisono.get());
  }

 private:
  // Two ranks move one block, as a broadcast. False: it is empty, or the root's block for itself,
  // which it copies, has two lengths.
  bool is_broadcast(const Communicator& own) const;
  void keep_broadcast(const Communicator& own);

  int root_ = 0;
  std::optional<LastCall::Kept> kept_;
};

class ScattervCall final : public Move {
 public:
  bool take(const Communicator& own, const void* send, Integers counts, Integers displacements,
            Handle send_type, void* receive, LargeCount receive_count, Handle receive_type,
            int root, Handle comm);
  // With two ranks: what one sends the other.
  static std::int64_t block_bytes(const Ranks& own, const void*, Integers counts, Integers,
                                  Handle send_type, void*, LargeCount receive_count,
                                  Handle receive_type, int root, Handle);
  int call(const Communicator& own, unisono_request_t* request) override;

  static constexpr bool kRepeats = true;
  std::optional<LastCall::Kept> kept() const { return kept_; }
  static int again(const Communicator& own, const LastCall& last, const void* send, void* receive,
                   int root) {
    // A root copies its own block, and gives the other one.
    const auto give = [&](void* buffer) {
      return library().broadcast(buffer, last.elements().count, UNISONO_BYTE, root,
                                 own.unisono.get());
    };
    if (own.rank != root) return give(receive);
    const auto& [other_at, own_at, own_bytes] = last.blocks();
    std::byte* const blocks = static_cast<std::byte*>(const_cast<void*>(send));
    // The other one first: some programs receive where it is, which MPI does not allow.
    const int error = give(blocks + other_at);
    if (error == UNISONO_OK && own_bytes > 0) {
      std::memmove(receive, blocks + own_at, static_cast<std::size_t>(own_bytes));
    }
    return error;
  }

 private:
  // Two ranks move one block, as a broadcast. False: it is empty, or the root's block for itself,
  // which it copies, has two lengths.
  bool is_broadcast(const Communicator& own) const;
  void keep_broadcast(const Communicator& own);

  int root_ = 0;
  std::optional<LastCall::Kept> kept_;
};

// Alltoallv and alltoallw, which as bytes are the same.
class PairMove : public Move {
 public:
  int call(const Communicator& own, unisono_request_t* request) override;

 private:
  bool set_exchange(const Communicator& own);

  std::byte* base_ = nullptr;
  std::array<std::int64_t, 2> lengths_{}, places_{};  // of the blocks that two ranks exchange
};

class AlltoallvCall final : public PairMove {
 public:
  bool take(const Communicator& own, const void* send, Integers send_counts,
            Integers send_displacements, Handle send_type, void* receive, Integers receive_counts,
            Integers receive_displacements, Handle receive_type, Handle comm);
  // With two ranks: the average of what they send each other.
  static std::int64_t block_bytes(const Ranks& own, const void* send, Integers send_counts,
                                  Integers, Handle send_type, void*, Integers receive_counts,
                                  Integers, Handle receive_type, Handle);
};

class AlltoallwCall final : public PairMove {
 public:
  // The types are arrays of the program's.
  bool take(const Communicator& own, const void* send, Integers send_counts,
            Integers send_displacements, const void* send_types, void* receive,
            Integers receive_counts, Integers receive_displacements, const void* receive_types,
            Handle comm);
  // With two ranks: the average of what they send each other.
  static std::int64_t block_bytes(const Ranks& own, const void* send, Integers send_counts,
                                  Integers, const void* send_types, void*, Integers receive_counts,
                                  Integers, const void* receive_types, Handle);
};

}  // namespace unisono::mpi
