// SPDX-License-Identifier: BSD-3-Clause
// Backend: c10d's interface over a Group. A blocking call runs on the calling thread if no
// operation is queued; an asynchronous one is queued and runs on a thread of the group, in the
// order of calls.
#pragma once

#include <atomic>
#include <string>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <utility>
#include <vector>

#include "channel.hpp"
#include "collectives.hpp"
#include "group.hpp"
#include "work.hpp"

namespace unisono::pytorch {

class Backend : public c10d::Backend {
 public:
  using Milliseconds = std::chrono::milliseconds;
  using WorkPtr = c10::intrusive_ptr<c10d::Work>;
  using StorePtr = c10::intrusive_ptr<c10d::Store>;
  using OptionsPtr = c10::intrusive_ptr<Options>;

  Backend(StorePtr store, int rank, int size, Milliseconds timeout);
  ~Backend() override;

  const std::string getBackendName() const override { return "unisono"; }
  OptionsPtr getBackendOptions() override { return options_; }
  bool supportsSplitting() const override { return true; }
  void setTimeout(Milliseconds timeout) override { options_->timeout = timeout; }
  uint64_t getSequenceNumberForGroup() override { return sequence_; }
  c10::intrusive_ptr<c10d::Backend> split(const StorePtr& store, const std::vector<int>& ranks,
                                          const OptionsPtr& options) override;
  void abort() override;
  void shutdown() override;

  WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override;
  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  WorkPtr allreduce_coalesced(Tensors& tensors,
                              const c10d::AllreduceCoalescedOptions& options) override;
  WorkPtr reduce(Tensors& tensors, const c10d::ReduceOptions& options) override;
  WorkPtr allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                    const c10d::AllgatherOptions& options) override;
  WorkPtr all_gather_single(Tensor& output, Tensor& input,
                            const c10d::AllgatherOptions& options) override;
  WorkPtr all_gather_single_coalesced(Tensors& outputs, Tensors& inputs,
                                      const c10d::AllgatherOptions& options) override;
  WorkPtr gather(std::vector<Tensors>& outputs, Tensors& inputs,
                 const c10d::GatherOptions& options) override;
  WorkPtr gather_single(Tensor& output, Tensor& input, const c10d::GatherOptions& options) override;
  WorkPtr scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                  const c10d::ScatterOptions& options) override;
  WorkPtr reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                         const c10d::ReduceScatterOptions& options) override;
  WorkPtr reduce_scatter_single(Tensor& output, Tensor& input,
                                const c10d::ReduceScatterOptions& options) override;
  WorkPtr reduce_scatter_single_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::ReduceScatterOptions& options) override;
  WorkPtr all_to_all_single(Tensor& output, Tensor& input, Counts& output_rows, Counts& input_rows,
                            const c10d::AllToAllOptions& options) override;
  WorkPtr alltoall(Tensors& outputs, Tensors& inputs,
                   const c10d::AllToAllOptions& options) override;
  WorkPtr barrier(const c10d::BarrierOptions& options) override;
  void monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) override;
  WorkPtr send(Tensors& tensors, int target, int tag) override;
  WorkPtr recv(Tensors& tensors, int source, int tag) override;

 private:
  using Operation = std::function<int(const Peers&)>;

  template <class CallOptions>
  WorkPtr submit(c10d::OpType type, const char* name, const CallOptions& options, Tensors results,
                 Operation operation);

  StorePtr store_;
  OptionsPtr options_;
  std::atomic<uint64_t> sequence_ = 0;
  Group group_;
  Channels channels_;
  WorkQueue queue_;  // the last one: its thread uses the others
};

}  // namespace unisono::pytorch
