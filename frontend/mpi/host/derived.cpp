// SPDX-License-Identifier: BSD-3-Clause
#include "host/derived.hpp"

#include <atomic>
#include <cstddef>
#include <mutex>
#include <vector>

#include "host/alone.hpp"
#include "host/host.hpp"

namespace unisono::mpi {
namespace {

// The attribute's value.
struct Kept {
  TypeInfo info;  // without `direct`
  std::atomic<bool> direct{false};
  std::atomic<bool> is_tested{false};  // whether `direct` is known
};

// A duplicate has no attribute at first.
int copy_nothing(Handle, int, void*, void*, void*, int* flag) {
  *flag = 0;
  return 0;
}

int delete_kept(Handle, int, void* value, void*) {
  delete static_cast<Kept*>(value);
  return 0;
}

struct Key {
  int value = 0;
  bool exists = host().Type_create_keyval(copy_nothing, delete_kept, &value, nullptr) == 0;
};

const Key& key() {
  static const Key made;
  return made;
}

std::mutex& mutex() {
  static auto* const kept = new std::mutex;  // never destroyed: MPI may end after static objects
  return *kept;
}

// MPI_Pack checks that, also for no elements.
bool is_committed(Handle type) {
  Handle comm = 0;
  std::byte from{}, to{};
  int position = 0;
  if (!find_alone(&comm)) return true;
  return host().Pack(&from, 0, type, &to, 1, &position, comm) == 0;
}

TypeInfo ask(Handle type) {
  const Host& mpi = host();
  TypeInfo info;
  if (mpi.Type_size_x(type, &info.size) != 0 || info.size < 0) return info;
  if (mpi.Type_get_extent_x(type, &info.lower, &info.extent) != 0) return info;
  if (mpi.Type_get_true_extent_x(type, &info.true_lower, &info.true_extent) != 0) return info;
  info.valid = is_committed(type);
  return info;
}

// Whether MPI_Pack leaves an element as it is. Each pass packs another byte of each byte's number,
// so all passes together show where each byte of the result came from.
bool is_in_order(Handle type, const TypeInfo& info) {
  constexpr std::int64_t kGreatest = 1 << 20;  // a greater element takes too long
  constexpr int kBitsOfByte = 8;
  Handle comm = 0;
  if (info.size == 0 || info.size > kGreatest || info.lower != 0 || info.true_lower != 0 ||
      info.extent != info.size || info.true_extent != info.size || !find_alone(&comm)) {
    return false;
  }
  const auto bytes = static_cast<std::size_t>(info.size);
  std::vector<unsigned char> numbers(bytes), packed(bytes);
  for (int shift = 0; (bytes - 1) >> shift != 0 || shift == 0; shift += kBitsOfByte) {
    for (std::size_t i = 0; i < bytes; ++i) numbers[i] = static_cast<unsigned char>(i >> shift);
    int position = 0;
    const int room = static_cast<int>(bytes);
    if (host().Pack(numbers.data(), 1, type, packed.data(), room, &position, comm) != 0) {
      return false;
    }
    if (position != room || packed != numbers) return false;
  }
  return true;
}

// At the second use of a type: many types have only one.
void test_order(Handle type, Kept& kept) {
  const std::lock_guard lock(mutex());
  if (kept.is_tested) return;
  kept.direct = is_in_order(type, kept.info);
  kept.is_tested = true;
}

}  // namespace

TypeInfo derived_type_info(Handle type) {
  const Host& mpi = host();
  if (mpi.handle(type) == mpi.constants.no_type) return {};
  if (!key().exists) return ask(type);
  void* value = nullptr;
  int flag = 0;
  if (mpi.Type_get_attr(type, key().value, &value, &flag) != 0) return {};
  if (flag == 0) {
    const std::lock_guard lock(mutex());  // another thread may set it
    if (mpi.Type_get_attr(type, key().value, &value, &flag) != 0) return {};
    if (flag == 0) {
      const TypeInfo info = ask(type);
      auto* const made = info.valid ? new Kept{.info = info} : nullptr;
      if (made != nullptr && mpi.Type_set_attr(type, key().value, made) != 0) delete made;
      return info;
    }
  }
  auto& kept = *static_cast<Kept*>(value);
  if (!kept.is_tested.load(std::memory_order_acquire)) test_order(type, kept);
  TypeInfo info = kept.info;
  info.direct = kept.direct.load(std::memory_order_relaxed);
  return info;
}

}  // namespace unisono::mpi
