// SPDX-License-Identifier: BSD-3-Clause
// Barrier and the collectives with an operator.
#pragma once

#include <optional>

#include "calls/buffers.hpp"
#include "calls/call.hpp"
#include "calls/reducer.hpp"
#include "library.hpp"

namespace unisono::mpi {

class BarrierCall final : public Call {
 public:
  bool take(const Communicator&, Handle) { return true; }
  static std::int64_t block_bytes(const Ranks&, Handle) { return 0; }
  int call(const Communicator& own, unisono_request_t* request) override;
  int finish() override { return 0; }
};

// The bytes of a vector that Unisono reduces by a kernel of its own; Call::kUnknown of others.
std::int64_t bytes_to_reduce(LargeCount count, Handle type, Handle op);

class ReductionCall : public Call {
 public:
  std::optional<LastCall::Kept> kept() const;
  // Operators of the program are applied in calls of the program only.
  bool may_start() const override { return !reducer_->is_by_host(); }
  int load() override {
    buffers_->load();
    return 0;
  }
  int finish() override {
    buffers_->finish();
    return 0;
  }

 protected:
  // False: the operator on this type is not for Unisono.
  bool set_reducer(Handle type, Handle op, Handle comm) {
    return static_cast<bool>(reducer_.emplace(type, op, comm));
  }
  // In elements. False: there are elements and no buffer.
  bool set_buffers(const void* send, void* receive, bool in_place, std::int64_t input,
                   std::int64_t output);

  std::optional<Reducer> reducer_;
  std::optional<ReductionBuffers> buffers_;
  std::int64_t count_ = 0;
};

// Allreduce, scan and exscan.
class ReduceAllCall : public ReductionCall {
 public:
  bool take(const Communicator& own, const void* send, void* receive, LargeCount count, Handle type,
            Handle op, Handle comm);
  static std::int64_t block_bytes(const Ranks&, const void*, void*, LargeCount count, Handle type,
                                  Handle op, Handle) {
    return bytes_to_reduce(count, type, op);
  }

 protected:
  template <class Blocking, class Starting>
  int call_with(Blocking blocking, Starting start, const Communicator& own,
                unisono_request_t* request) {
    return invoke(request, blocking, start, buffers_->input(), buffers_->output(), count_,
                  reducer_->type(), reducer_->op(), own.unisono.get());
  }
};

class AllreduceCall final : public ReduceAllCall {
 public:
  int call(const Communicator& own, unisono_request_t* request) override;
  static constexpr bool kRepeats = true;
  static int again(const Communicator& own, const LastCall& last, const void* send, void* receive,
                   int) {
    const auto& [count, type, op] = last.elements();
    return library().allreduce(send, receive, count, type, op, own.unisono.get());
  }
};

class ScanCall final : public ReduceAllCall {
 public:
  int call(const Communicator& own, unisono_request_t* request) override;
  static constexpr bool kRepeats = true;
  static int again(const Communicator& own, const LastCall& last, const void* send, void* receive,
                   int) {
    const auto& [count, type, op] = last.elements();
    return library().scan(send, receive, count, type, op, own.unisono.get());
  }
};

class ExscanCall final : public ReduceAllCall {
 public:
  // The output means nothing at rank 0, and may lead anywhere.
  bool take(const Communicator& own, const void* send, void* receive, LargeCount count, Handle type,
            Handle op, Handle comm);
  int call(const Communicator& own, unisono_request_t* request) override;
  static constexpr bool kRepeats = true;
  static int again(const Communicator& own, const LastCall& last, const void* send, void* receive,
                   int) {
    const auto& [count, type, op] = last.elements();
    return library().exscan(send, receive, count, type, op, own.unisono.get());
  }

 private:
  Scratch nowhere_;
};

class ReduceCall final : public ReductionCall {
 public:
  bool take(const Communicator& own, const void* send, void* receive, LargeCount count, Handle type,
            Handle op, int root, Handle comm);
  static std::int64_t block_bytes(const Ranks&, const void*, void*, LargeCount count, Handle type,
                                  Handle op, int, Handle) {
    return bytes_to_reduce(count, type, op);
  }
  int call(const Communicator& own, unisono_request_t* request) override;
  static constexpr bool kRepeats = true;
  static int again(const Communicator& own, const LastCall& last, const void* send, void* receive,
                   int root) {
    const auto& [count, type, op] = last.elements();
    return library().reduce(send, last.output(receive), count, type, op, root, own.unisono.get());
  }

 private:
  int root_ = 0;
};

class Reduce_scatter_blockCall final : public ReductionCall {  // NOLINT: MPI's name
 public:
  bool take(const Communicator& own, const void* send, void* receive, LargeCount count, Handle type,
            Handle op, Handle comm);
  static std::int64_t block_bytes(const Ranks&, const void*, void*, LargeCount count, Handle type,
                                  Handle op, Handle) {
    return bytes_to_reduce(count, type, op);
  }
  int call(const Communicator& own, unisono_request_t* request) override;
  static constexpr bool kRepeats = true;
  static int again(const Communicator& own, const LastCall& last, const void* send, void* receive,
                   int) {
    const auto& [count, type, op] = last.elements();
    return library().reduce_scatter_block(send, receive, count, type, op, own.unisono.get());
  }
};

class Reduce_scatterCall final : public ReductionCall {  // NOLINT: MPI's name
 public:
  bool take(const Communicator& own, const void* send, void* receive, Integers counts, Handle type,
            Handle op, Handle comm);
  // The average.
  static std::int64_t block_bytes(const Ranks& own, const void* send, void* receive,
                                  Integers counts, Handle type, Handle op, Handle comm);
  int call(const Communicator& own, unisono_request_t* request) override;

 private:
  BlockNumbers counts_;
};

}  // namespace unisono::mpi
