// SPDX-License-Identifier: BSD-3-Clause
// Interface: c10d::Backend as torch 2.15 has it, whichever torch this is compiled for, from 2.8 on.
// Functions that an older torch lacks, or calls by another name, are added here; no other file asks
// for the version.
#pragma once

#include <torch/version.h>

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Types.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <vector>

#if TORCH_VERSION_MAJOR != 2 || TORCH_VERSION_MINOR < 8
#error "unisono.torch needs torch 2.8 or later, and before 3"
#endif

namespace unisono::pytorch {

#if TORCH_VERSION_MINOR >= 13
using PremultiplyFactor = c10d::PreMulSumSupplement;
#else
using PremultiplyFactor = c10d::NCCLPreMulSumSupplement;
#endif

// Profilers and errors name these operations so.
#if TORCH_VERSION_MINOR >= 14
constexpr auto kAllGatherSingleCoalesced = c10d::OpType::ALLGATHER_INTO_TENSOR_COALESCED;
#else
constexpr auto kAllGatherSingleCoalesced = c10d::OpType::COALESCED;
#endif
#if TORCH_VERSION_MINOR >= 12
constexpr auto kReduceScatterSingleCoalesced = c10d::OpType::REDUCE_SCATTER_TENSOR_COALESCED;
#else
constexpr auto kReduceScatterSingleCoalesced = c10d::OpType::COALESCED;
#endif

class Interface : public c10d::Backend {
 public:
  using c10d::Backend::Backend;

#if TORCH_VERSION_MINOR < 14
  using InterfaceWork = c10::intrusive_ptr<c10d::Work>;
  using InterfaceTensors = std::vector<at::Tensor>;
  using InterfaceCounts = std::vector<std::int64_t>;

  virtual InterfaceWork all_gather_single(at::Tensor& output, at::Tensor& input,
                                          const c10d::AllgatherOptions& options) = 0;
  InterfaceWork _allgather_base(at::Tensor& output, at::Tensor& input,
                                const c10d::AllgatherOptions& options) final {
    return all_gather_single(output, input, options);
  }
  virtual InterfaceWork all_gather_single_coalesced(InterfaceTensors& outputs,
                                                    InterfaceTensors& inputs,
                                                    const c10d::AllgatherOptions& options) = 0;
  InterfaceWork allgather_into_tensor_coalesced(InterfaceTensors& outputs, InterfaceTensors& inputs,
                                                const c10d::AllgatherOptions& options) final {
    return all_gather_single_coalesced(outputs, inputs, options);
  }
  virtual InterfaceWork reduce_scatter_single(at::Tensor& output, at::Tensor& input,
                                              const c10d::ReduceScatterOptions& options) = 0;
  InterfaceWork _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                     const c10d::ReduceScatterOptions& options) final {
    return reduce_scatter_single(output, input, options);
  }
  virtual InterfaceWork reduce_scatter_single_coalesced(
      InterfaceTensors& outputs, InterfaceTensors& inputs,
      const c10d::ReduceScatterOptions& options) = 0;
  InterfaceWork reduce_scatter_tensor_coalesced(InterfaceTensors& outputs, InterfaceTensors& inputs,
                                                const c10d::ReduceScatterOptions& options) final {
    return reduce_scatter_single_coalesced(outputs, inputs, options);
  }
  virtual InterfaceWork all_to_all_single(at::Tensor& output, at::Tensor& input,
                                          InterfaceCounts& output_rows, InterfaceCounts& input_rows,
                                          const c10d::AllToAllOptions& options) = 0;
  InterfaceWork alltoall_base(at::Tensor& output, at::Tensor& input, InterfaceCounts& output_rows,
                              InterfaceCounts& input_rows,
                              const c10d::AllToAllOptions& options) final {
    return all_to_all_single(output, input, output_rows, input_rows, options);
  }
  // This torch does not call the following.
  virtual InterfaceWork gather_single(at::Tensor& output, at::Tensor& input,
                                      const c10d::GatherOptions& options) = 0;
#endif
#if TORCH_VERSION_MINOR < 10
  virtual bool supportsShrinking() const = 0;
  virtual c10::intrusive_ptr<c10d::Backend> shrink(const std::vector<std::int64_t>& excluded,
                                                   int flags,
                                                   const c10::intrusive_ptr<Options>& options) = 0;
#endif
#if TORCH_VERSION_MINOR < 9
  virtual c10::intrusive_ptr<Options> getBackendOptions() = 0;
  virtual void setTimeout(std::chrono::milliseconds timeout) = 0;
  virtual c10::intrusive_ptr<c10d::Backend> split(const c10::intrusive_ptr<c10d::Store>& store,
                                                  const std::vector<int>& ranks,
                                                  const c10::intrusive_ptr<Options>& options) = 0;
#endif
};

}  // namespace unisono::pytorch
