// SPDX-License-Identifier: BSD-3-Clause
// SharedAllocator: memory for tensors that the other ranks of this host can read, so that long
// reductions copy once less. Where there is none, tensors get ordinary memory. Some freed blocks
// are kept for requests of the same size, because new ones are made by system calls. A block may
// outlive the allocator and its group. Any thread.
#pragma once

#include <c10/core/Allocator.h>

#include <memory>

#include "group.hpp"

namespace unisono::pytorch {

class SharedAllocator final : public c10::Allocator {
 public:
  // The group outlives it.
  explicit SharedAllocator(Group& group);

  c10::DataPtr allocate(std::size_t bytes) override;
  void copy_data(void* target, const void* source, std::size_t bytes) const override;

 private:
  class Blocks;

  Group& group_;
  std::shared_ptr<Blocks> blocks_;
};

}  // namespace unisono::pytorch
