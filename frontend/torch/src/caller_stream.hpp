// SPDX-License-Identifier: BSD-3-Clause
// CallerStream: the stream that the calling thread uses for the device of some tensors. Another
// thread that enters it copies these tensors after what the caller has queued, and before what it
// queues next. Nothing for tensors in host memory.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <optional>
#include <vector>

namespace unisono::pytorch {

class CallerStream {
 public:
  explicit CallerStream(const std::vector<at::Tensor>& tensors) {
    for (const at::Tensor& tensor : tensors) {
      if (tensor.is_cpu() || tensor.is_meta()) [[likely]]
        continue;
      const at::Device device = tensor.device();
      stream_ = c10::impl::VirtualGuardImpl(device.type()).getStream(device);
      return;
    }
  }

  // For a block of the thread that copies.
  c10::OptionalStreamGuard enter() const { return c10::OptionalStreamGuard(stream_); }

 private:
  std::optional<c10::Stream> stream_;
};

}  // namespace unisono::pytorch
