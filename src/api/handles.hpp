// SPDX-License-Identifier: BSD-3-Clause
// HandleTable: turns objects into the opaque pointers of the C API and back. A handle is an index
// and a generation, never an address, so a stale or made-up one is found out and not followed.
// get() takes no lock; any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

namespace unisono::api {

// Most: a power of two up to 64K.
template <class Object, class Handle, std::uint32_t Most = 1 << 16>
class HandleTable {
 public:
  static constexpr std::uint32_t kMost = Most;

  // Null if the table is full.
  Handle insert(std::unique_ptr<Object> object) {
    const std::lock_guard lock(mutex_);
    std::uint32_t index = first_free_;
    if (index != kNone) {
      first_free_ = entries_[index].next_free;
    } else if (used_ < kMost) {
      index = used_++;
    } else {
      return nullptr;
    }
    Entry& entry = entries_[index];
    const std::uint32_t generation = entry.generation.load(std::memory_order_relaxed) + 1;
    entry.object.store(object.release(), std::memory_order_relaxed);
    entry.generation.store(generation, std::memory_order_release);
    return encode(index, generation);
  }

  // Null for anything that is not a living handle of this table.
  Object* get(Handle handle) const {
    const auto value = reinterpret_cast<std::uintptr_t>(handle);
    const auto index = static_cast<std::uint32_t>(value & (kMost - 1));
    const Entry& entry = entries_[index];
    const std::uint32_t generation = entry.generation.load(std::memory_order_acquire);
    if (encode(index, generation) != handle || generation % 2 == 0) return nullptr;
    return entry.object.load(std::memory_order_relaxed);
  }

  // Ends all handles and leaves their objects alone. For a child of fork(), which has one thread.
  void disown_all() {
    for (std::uint32_t index = 0; index < used_; ++index) {
      std::atomic<std::uint32_t>& generation = entries_[index].generation;
      const std::uint32_t now = generation.load(std::memory_order_relaxed);
      if (now % 2 != 0) generation.store(now + 1, std::memory_order_relaxed);
    }
  }

  // Ends the handle. Needs no memory, so it never fails on a living one.
  std::unique_ptr<Object> remove(Handle handle) {
    const std::lock_guard lock(mutex_);
    Object* object = get(handle);
    if (object == nullptr) return nullptr;
    const auto index =
        static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(handle) & (kMost - 1));
    Entry& entry = entries_[index];
    entry.generation.store(entry.generation.load(std::memory_order_relaxed) + 1,
                           std::memory_order_release);
    entry.object.store(nullptr, std::memory_order_relaxed);
    entry.next_free = first_free_;
    first_free_ = index;
    return std::unique_ptr<Object>(object);
  }

 private:
  static constexpr std::uint32_t kNone = kMost;
  struct Entry {
    std::atomic<Object*> object{nullptr};
    std::atomic<std::uint32_t> generation{0};  // odd while the entry is in use
    std::uint32_t next_free = kNone;           // while it is not in use
  };
  static Handle encode(std::uint32_t index, std::uint32_t generation) {
    return reinterpret_cast<Handle>((static_cast<std::uintptr_t>(generation) << 16) | index);
  }

  std::mutex mutex_;
  std::uint32_t first_free_ = kNone;  // a list through the entries
  std::uint32_t used_ = 0;
  std::array<Entry, kMost> entries_;
};

// Ends a handle at the end of the scope, with its object, unless the scope keeps it.
template <class Table, class Handle>
class HandleGuard {
 public:
  HandleGuard(Table& table, Handle handle) : table_(table), handle_(handle) {}
  ~HandleGuard() {
    if (handle_ != nullptr) table_.remove(handle_);
  }
  HandleGuard(const HandleGuard&) = delete;
  HandleGuard& operator=(const HandleGuard&) = delete;

  Handle keep() { return std::exchange(handle_, nullptr); }

 private:
  Table& table_;
  Handle handle_;
};

}  // namespace unisono::api
