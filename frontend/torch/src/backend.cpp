// SPDX-License-Identifier: BSD-3-Clause
#include "backend.hpp"

#include <utility>

#include "errors.hpp"
#include "exit/living_groups.hpp"

namespace unisono::pytorch {
namespace {

using c10d::OpType;

Tensors flattened(const std::vector<Tensors>& lists) {
  Tensors all;
  for (const Tensors& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

}  // namespace

Backend::BackendPtr Backend::make(StorePtr store, int rank, int size, Milliseconds timeout) const {
  auto made = c10::make_intrusive<Backend>(std::move(store), rank, size, timeout);
  remember(made);
  return made;
}

Backend::WorkPtr Backend::broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) {
  const auto root = static_cast<int>(options.rootRank);
  if (tensors.size() != 1 || options.rootTensor != 0) {
    return submit(
        OpType::BROADCAST, "unisono:broadcast", options, tensors,
        [tensors, root, root_tensor = static_cast<int>(options.rootTensor)](const Peers& peers) {
          return pytorch::broadcast(peers, tensors, root, root_tensor);
        });
  }
  return submit(OpType::BROADCAST, "unisono:broadcast", options, tensors,
                [tensor = tensors.front(), root](const Peers& peers) {
                  return pytorch::broadcast(peers, tensor, root);
                });
}

Backend::WorkPtr Backend::allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) {
  const bool is_sparse = !tensors.empty() && tensors.front().layout() == at::kSparse;
  if (is_sparse) return allreduce_sparse(tensors, options);
  if (tensors.size() != 1) {
    return submit(OpType::ALLREDUCE, "unisono:all_reduce", options, tensors,
                  [tensors, op = options.reduceOp](const Peers& peers) {
                    return all_reduce(peers, tensors, op);
                  });
  }
  return submit(OpType::ALLREDUCE, "unisono:all_reduce", options, tensors,
                [tensor = tensors.front(), op = options.reduceOp](const Peers& peers) {
                  return all_reduce(peers, tensor, op);
                });
}

Backend::WorkPtr Backend::allreduce_sparse(Tensors& tensors,
                                           const c10d::AllreduceOptions& options) {
  return submit(OpType::_ALLREDUCE_SPARSE, "unisono:all_reduce_sparse", options, tensors,
                [tensors, op = options.reduceOp](const Peers& peers) {
                  return all_reduce_sparse(peers, tensors, op);
                });
}

Backend::WorkPtr Backend::average_as_bfloat16(const Tensor& tensor) {
  return submit(
      OpType::ALLREDUCE, "unisono:average_as_bfloat16", c10d::AllreduceOptions(), {tensor},
      [tensor](const Peers& peers) { return pytorch::average_as_bfloat16(peers, tensor); });
}

Backend::WorkPtr Backend::allreduce_coalesced(Tensors& tensors,
                                              const c10d::AllreduceCoalescedOptions& options) {
  return submit(OpType::ALLREDUCE_COALESCED, "unisono:all_reduce_coalesced", options, tensors,
                [tensors, op = options.reduceOp](const Peers& peers) {
                  return all_reduce_each(peers, tensors, op);
                });
}

Backend::WorkPtr Backend::reduce(Tensors& tensors, const c10d::ReduceOptions& options) {
  return submit(
      OpType::REDUCE, "unisono:reduce", options, tensors,
      [tensors, op = options.reduceOp, root = static_cast<int>(options.rootRank)](
          const Peers& peers) { return pytorch::reduce(peers, only(tensors), op, root); });
}

Backend::WorkPtr Backend::allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                                    const c10d::AllgatherOptions& options) {
  if (inputs.size() != 1) {
    return submit(
        OpType::ALLGATHER, "unisono:all_gather", options, flattened(outputs),
        [outputs, inputs](const Peers& peers) { return all_gather(peers, outputs, inputs); },
        inputs, outputs.size());
  }
  return submit(
      OpType::ALLGATHER, "unisono:all_gather", options, flattened(outputs),
      [outputs = flattened(outputs), input = inputs.front()](const Peers& peers) {
        return all_gather(peers, outputs, input);
      },
      inputs);
}

Backend::WorkPtr Backend::allgather_coalesced(std::vector<Tensors>& outputs, Tensors& inputs,
                                              const c10d::AllgatherOptions& options) {
  return submit(
      OpType::ALLGATHER_COALESCED, "unisono:all_gather_coalesced", options, flattened(outputs),
      [outputs, inputs](const Peers& peers) { return all_gather_each(peers, outputs, inputs); },
      inputs, outputs.size());
}

Backend::WorkPtr Backend::all_gather_single(Tensor& output, Tensor& input,
                                            const c10d::AllgatherOptions& options) {
  return submit(OpType::_ALLGATHER_BASE, "unisono:all_gather_single", options, {output},
                [output, input](const Peers& peers) { return all_gather(peers, output, input); },
                {input});
}

Backend::WorkPtr Backend::all_gather_single_coalesced(Tensors& outputs, Tensors& inputs,
                                                      const c10d::AllgatherOptions& options) {
  return submit(
      kAllGatherSingleCoalesced, "unisono:all_gather_single_coalesced", options, outputs,
      [outputs, inputs](const Peers& peers) { return all_gather_each(peers, outputs, inputs); });
}

Backend::WorkPtr Backend::gather(std::vector<Tensors>& outputs, Tensors& inputs,
                                 const c10d::GatherOptions& options) {
  return submit(
      OpType::GATHER, "unisono:gather", options, flattened(outputs),
      [outputs = flattened(outputs), inputs, root = static_cast<int>(options.rootRank)](
          const Peers& peers) { return pytorch::gather(peers, outputs, only(inputs), root); },
      inputs);
}

Backend::WorkPtr Backend::gather_single(Tensor& output, Tensor& input,
                                        const c10d::GatherOptions& options) {
  return submit(OpType::GATHER, "unisono:gather_single", options,
                output.defined() ? Tensors{output} : Tensors{},
                [output, input, root = static_cast<int>(options.rootRank)](const Peers& peers) {
                  return pytorch::gather(peers, output, input, root);
                },
                {input});
}

Backend::WorkPtr Backend::scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                                  const c10d::ScatterOptions& options) {
  return submit(
      OpType::SCATTER, "unisono:scatter", options, outputs,
      [outputs, inputs = flattened(inputs), root = static_cast<int>(options.rootRank)](
          const Peers& peers) { return pytorch::scatter(peers, only(outputs), inputs, root); },
      flattened(inputs));
}

Backend::WorkPtr Backend::reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                                         const c10d::ReduceScatterOptions& options) {
  return submit(
      OpType::REDUCE_SCATTER, "unisono:reduce_scatter", options, outputs,
      [outputs, inputs = flattened(inputs), op = options.reduceOp](const Peers& peers) {
        return pytorch::reduce_scatter(peers, only(outputs), inputs, op);
      },
      flattened(inputs));
}

Backend::WorkPtr Backend::reduce_scatter_single(Tensor& output, Tensor& input,
                                                const c10d::ReduceScatterOptions& options) {
  return submit(OpType::_REDUCE_SCATTER_BASE, "unisono:reduce_scatter_single", options, {output},
                [output, input, op = options.reduceOp](const Peers& peers) {
                  return pytorch::reduce_scatter(peers, output, input, op);
                },
                {input});
}

Backend::WorkPtr Backend::reduce_scatter_single_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::ReduceScatterOptions& options) {
  return submit(kReduceScatterSingleCoalesced, "unisono:reduce_scatter_single_coalesced", options,
                outputs, [outputs, inputs, op = options.reduceOp](const Peers& peers) {
                  return reduce_scatter_each(peers, outputs, inputs, op);
                });
}

Backend::WorkPtr Backend::all_to_all_single(Tensor& output, Tensor& input, Counts& output_rows,
                                            Counts& input_rows,
                                            const c10d::AllToAllOptions& options) {
  return submit(OpType::ALLTOALL_BASE, "unisono:all_to_all_single", options, {output},
                [output, input, output_rows, input_rows](const Peers& peers) {
                  return all_to_all(peers, output, input, output_rows, input_rows);
                },
                {input});
}

Backend::WorkPtr Backend::alltoall(Tensors& outputs, Tensors& inputs,
                                   const c10d::AllToAllOptions& options) {
  return submit(
      OpType::ALLTOALL, "unisono:all_to_all", options, outputs,
      [outputs, inputs](const Peers& peers) { return all_to_all(peers, outputs, inputs); }, inputs);
}

Backend::WorkPtr Backend::barrier(const c10d::BarrierOptions& options) {
  return submit(OpType::BARRIER, "unisono:barrier", options, {},
                [](const Peers& peers) { return unisono_barrier(peers.comm); });
}

}  // namespace unisono::pytorch
