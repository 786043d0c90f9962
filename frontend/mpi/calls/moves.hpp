// SPDX-License-Identifier: BSD-3-Clause
// The collectives that move blocks. All go to Unisono as bytes, whatever their types: ranks may
// give different types of the same signature, so the type cannot decide.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include "calls/buffers.hpp"
#include "calls/call.hpp"

namespace unisono::mpi {

// Of so many elements; Call::kUnknown if the type is invalid.
std::int64_t bytes_to_move(LargeCount count, Handle type);

// The other one of two ranks; -1 if there are more. A message between two ranks has the same length
// at both, so both know it, also where each rank has counts of its own.
inline int other_of_two(const Ranks& own) {
  return own.size == 2 && own.rank >= 0 ? 1 - own.rank : -1;
}

// What they have in common: elements that go out, elements that come in, or both.
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
    return !is_in_place(buffer) && output_.emplace(buffer, arguments...).valid();
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

 private:
  int root_ = 0;
};

// Equal blocks: allgather, gather, scatter, alltoall.
class BlockMove : public Move {
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

 private:
  // Whether two ranks move one long block, as a broadcast; then the root's own block is copied.
  bool copies_own(const Communicator& own) const;

  int root_ = 0;
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

 private:
  bool copies_own(const Communicator& own) const;  // as of GathervCall

  int root_ = 0;
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
