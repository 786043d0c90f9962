// SPDX-License-Identifier: BSD-3-Clause
#include "allocator/shared_allocator.hpp"

#include <c10/core/CPUAllocator.h>
#include <unisono/unisono.h>

#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "own_process.hpp"

namespace unisono::pytorch {

// The blocks that are free, and may be given out again.
class SharedAllocator::Blocks {
 public:
  static constexpr std::size_t kMostKept = 8;

  ~Blocks() {
    for (const auto& [bytes, block] : kept_) unisono_memory_free(block);
  }
  // Null: none of this size.
  void* take(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto found = kept_.find(bytes);
    if (found == kept_.end()) return nullptr;
    void* const block = found->second;
    kept_.erase(found);
    return block;
  }
  void require_own_process() { own_process_.require("unisono: an allocation"); }
  void give_back(void* block, std::size_t bytes) {
    if (!own_process_.is_here()) return;
    {
      const std::lock_guard lock(mutex_);
      if (kept_.size() < kMostKept) {
        kept_.emplace(bytes, block);
        return;
      }
    }
    unisono_memory_free(block);
  }

 private:
  OwnProcess own_process_;
  std::mutex mutex_;
  std::multimap<std::size_t, void*> kept_;
};

SharedAllocator::SharedAllocator(Group& group)
    : group_(group), blocks_(std::make_shared<Blocks>()) {}

c10::DataPtr SharedAllocator::allocate(std::size_t bytes) {
  blocks_->require_own_process();
  void* block = blocks_->take(bytes);
  if (block == nullptr) block = group_.allocate(bytes);
  if (block == nullptr) return c10::GetCPUAllocator()->allocate(bytes);
  struct Owner {
    std::shared_ptr<Blocks> blocks;
    void* block;
    std::size_t bytes;
  };
  std::unique_ptr<Owner> owner(new Owner{blocks_, block, bytes});
  const auto give_back = [](void* context) {
    const std::unique_ptr<Owner> last(static_cast<Owner*>(context));
    last->blocks->give_back(last->block, last->bytes);
  };
  return {block, owner.release(), give_back, at::Device(at::kCPU)};
}

void SharedAllocator::copy_data(void* target, const void* source, std::size_t bytes) const {
  std::memcpy(target, source, bytes);
}

}  // namespace unisono::pytorch
