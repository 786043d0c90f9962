// SPDX-License-Identifier: BSD-3-Clause
// GroupBackend: what a back end is besides its collectives: the life of a process group, its
// messages, and how an operation runs. A blocking call runs on the calling thread if no operation
// is queued; an asynchronous one is queued and runs on a thread of the group, in the order of
// calls.
#pragma once

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/record_function.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "allocator/shared_allocator.hpp"
#include "caller_stream.hpp"
#include "channel.hpp"
#include "collectives.hpp"
#include "exit/living_groups.hpp"
#include "group.hpp"
#include "interface/interface.hpp"
#include "own_process.hpp"
#include "signals.hpp"
#include "store/monitored_barrier.hpp"
#include "store/store_connection.hpp"
#include "work.hpp"

namespace unisono::pytorch {

class GroupBackend : public Interface {
 public:
  using Milliseconds = std::chrono::milliseconds;
  using WorkPtr = c10::intrusive_ptr<c10d::Work>;
  using StorePtr = c10::intrusive_ptr<c10d::Store>;
  using OptionsPtr = c10::intrusive_ptr<Options>;
  using BackendPtr = c10::intrusive_ptr<c10d::Backend>;

  GroupBackend(const StorePtr& store, int rank, int size, Milliseconds timeout);
  ~GroupBackend() override;

  const std::string getBackendName() const override { return "unisono"; }
  OptionsPtr getBackendOptions() override { return options_; }
  bool supportsSplitting() const override { return true; }
  bool supportsShrinking() const override { return true; }
  void setTimeout(Milliseconds timeout) override { options_->timeout = timeout; }
  uint64_t getSequenceNumberForGroup() override { return sequence_; }
  BackendPtr split(const StorePtr& store, const std::vector<int>& ranks,
                   const OptionsPtr& options) override;
  BackendPtr shrink(const std::vector<int64_t>& excluded, int flags,
                    const OptionsPtr& options) override;
  // For tensors in host memory.
  bool supportsTensorAlloc(c10::DeviceIndex device) override { return device < 0; }
  std::shared_ptr<c10::Allocator> getMemAllocator() override { return allocator_; }
  Tensor allocateTensor(long size, at::TensorOptions options) override;
  void abort() override;
  void shutdown() override;
  void release_resources() override { forget_ended(); }
  // Not in a forked child.
  bool is_own() const { return own_process_.is_here(); }
  // Later operations fail; those under way go on.
  void stop_accepting();
  // No operation is under way, of any thread, but receives.
  bool is_idle() const { return names_under_way().empty(); }
  std::vector<std::string> names_under_way() const;

  void monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) override;
  WorkPtr send(Tensors& tensors, int target, int tag) override;
  WorkPtr recv(Tensors& tensors, int source, int tag) override;
  WorkPtr recvAnysource(Tensors& tensors, int tag) override;

 protected:
  // A back end of the same kind for another group.
  virtual BackendPtr make(StorePtr store, int rank, int size, Milliseconds timeout) const = 0;

  // `operation(peers)` returns the library's code. It also checks all that this rank passes, so
  // that the other ranks hear of a wrong argument. No work for a blocking call that has ended here,
  // as NCCL's back end has it: torch then waits for none. `inputs`: what a profiler shows the
  // shapes of, and what may be on a device if there are no results; none: the results. The future
  // has the results in so many lists of equal length.
  template <class CallOptions, class Operation>
  WorkPtr submit(c10d::OpType type, const char* name, const CallOptions& options, Tensors results,
                 Operation operation, const Tensors& inputs = {}, std::size_t lists = 1) {
    const StayAtEnd stay;
    ++sequence_;
    const Milliseconds timeout = options.timeout.count() > 0 ? options.timeout : options_->timeout;
    auto run = [this, name, timeout, operation = std::move(operation),
                stream = CallerStream(results.empty() ? inputs : results)] {
      const auto on_stream = stream.enter();
      const at::AutoDispatchBelowADInplaceOrView below_autograd;
      group_.run(name, timeout, [&](unisono_comm_t comm) {
        return operation(Peers{comm, getRank(), getSize()});
      });
    };
    const Tensors& shown = inputs.empty() ? results : inputs;
    if (!options.asyncOp && queue_.is_idle()) {
      RECORD_FUNCTION(name, std::vector<c10::IValue>(shown.begin(), shown.end()));
      run();
      return nullptr;
    }
    auto work = c10::make_intrusive<QueuedWork>(getRank(), type, results, name, shown, lists);
    queue_.push(work, std::move(run));
    return work;
  }

 private:
  OwnProcess own_process_;
  StoreConnection store_;  // of this start of the group
  OptionsPtr options_;
  std::atomic<uint64_t> sequence_ = 0;
  Group group_;
  std::shared_ptr<SharedAllocator> allocator_;
  std::mutex monitoring_;
  std::unique_ptr<MonitoredBarrier> monitored_barrier_;  // made by the first one; under the mutex
  Channels channels_;
  WorkQueue queue_;  // the last one: its thread uses the others
};

}  // namespace unisono::pytorch
