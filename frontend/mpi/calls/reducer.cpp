// SPDX-License-Identifier: BSD-3-Clause
#include "calls/reducer.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <vector>

#include "calls/buffers.hpp"
#include "host/host.hpp"
#include "library.hpp"

namespace unisono::mpi {

// An operator of Unisono whose function lets the host apply an MPI operator. Unisono keeps
// operators until the end of the process, so calls borrow them: there are as many as calls at once.
struct HostOperator {
  unisono_op_t id = 0;
  bool commutative = false;
  Handle type = 0, op = 0;  // of the call that borrows it
  std::int64_t size = 0;
};

namespace {

// One Unisono type for each size up to this: fewer than Unisono has room for.
constexpr std::int64_t kMostSize = 512;
constexpr std::int64_t kGreatestAlignment = 16;

struct Pool {
  std::mutex mutex;
  std::vector<HostOperator*> unused;
  std::size_t made = 0;
  std::array<unisono_type_t, kMostSize + 1> types{};  // by size; 0: not yet made
};

Pool& pool() {
  static Pool* const kept = new Pool;  // never destroyed: MPI may end after static objects
  return *kept;
}

// The largest power of two that divides the size: at least what the type's parts need.
std::int64_t alignment_of(std::int64_t size) { return std::min(size & -size, kGreatestAlignment); }

// target = left op right, where MPI has: second = first op second. Returns MPI's code.
int apply_part(const HostOperator& by, std::byte* target, const std::byte* left,
               const std::byte* right, int count) {
  const auto reduce = [&by, count](const void* first, void* second) {
    return host().Reduce_local(first, second, count, by.type, by.op);
  };
  const std::size_t bytes = static_cast<std::size_t>(count * by.size);
  if (target == right) return reduce(left, target);
  if (target == left && by.commutative) return reduce(right, target);
  if (target != left) {
    std::memcpy(target, right, bytes);
    return reduce(left, target);
  }
  Scratch scratch;
  std::byte* const result = scratch.allocate(static_cast<std::int64_t>(bytes));
  std::memcpy(result, right, bytes);
  const int error = reduce(left, result);
  std::memcpy(target, result, bytes);
  return error;
}

// The program's function may throw. Unisono catches that, not the drop-in: it has a C++ library of
// its own, which would not tell the program's that the exception is caught.
void apply(void* target, const void* left, const void* right, std::int64_t count, unisono_type_t,
           void* user) {
  constexpr std::int64_t kMostCount = 1 << 14;  // MPI counts in an int; and a bounded copy
  const auto& by = *static_cast<const HostOperator*>(user);
  for (std::int64_t done = 0; done < count; done += kMostCount) {
    const std::int64_t offset = done * by.size;
    const int error = apply_part(by, static_cast<std::byte*>(target) + offset,
                                 static_cast<const std::byte*>(left) + offset,
                                 static_cast<const std::byte*>(right) + offset,
                                 static_cast<int>(std::min(kMostCount, count - done)));
    if (error == 0) continue;
    library().op_fail("MPI_Reduce_local of the host MPI gives an error");
    return;
  }
}

// This rank's Unisono has no room, and the other ranks' may have: they wait for this one.
[[noreturn]] void report_no_room() { throw std::runtime_error(library().last_error()); }

// Under the pool's mutex.
HostOperator* borrow(Pool& from, bool commutative) {
  const auto fits = [commutative](const HostOperator* each) {
    return each->commutative == commutative;
  };
  const auto found = std::find_if(from.unused.begin(), from.unused.end(), fits);
  if (found != from.unused.end()) {
    HostOperator* const kept = *found;
    from.unused.erase(found);
    return kept;
  }
  from.unused.reserve(from.made + 1);  // release() cannot fail
  auto made = std::make_unique<HostOperator>();
  made->commutative = commutative;
  if (library().op_create(apply, commutative ? 1 : 0, made.get(), &made->id) != UNISONO_OK) {
    report_no_room();
  }
  ++from.made;
  return made.release();
}

// Under the pool's mutex.
unisono_type_t type_of(Pool& from, std::int64_t size) {
  unisono_type_t& type = from.types[static_cast<std::size_t>(size)];
  if (type == 0 &&
      library().type_create(static_cast<std::size_t>(size),
                            static_cast<std::size_t>(alignment_of(size)), &type) != UNISONO_OK) {
    type = 0;
    report_no_room();
  }
  return type;
}

}  // namespace

Reducer::Reducer(Handle type, Handle op, Handle comm) : type_(type), comm_(comm) {
  if (const auto own = find_reduction(type, op)) [[likely]] {
    reduction_ = *own;
    alignment_ = own->alignment;
    has_gaps_ = own->is_pair && type_info(type).size != own->size;
    found_ = true;
  } else if (is_reduced_by_host(type, op)) {
    by_host(op);
  }
}

void Reducer::by_host(Handle op) {
  const TypeInfo info = type_info(type_);
  const bool fits = info.valid && info.lower == 0 && info.true_lower >= 0 && info.size > 0 &&
                    info.true_lower + info.true_extent <= info.extent && info.extent <= kMostSize;
  int commutative = 0;
  if (!fits || !library().loaded || host().Op_commutative(op, &commutative) != 0) return;
  Pool& from = pool();
  const std::lock_guard lock(from.mutex);
  reduction_.type = type_of(from, info.extent);
  by_host_ = borrow(from, commutative != 0);
  by_host_->type = type_;
  by_host_->op = op;
  by_host_->size = info.extent;
  reduction_.op = by_host_->id;
  reduction_.size = info.extent;
  alignment_ = alignment_of(info.extent);
  has_gaps_ = info.size != info.extent;
  found_ = true;
}

int Reducer::copy_elements(const void* from, void* to, std::int64_t count) const {
  Elements source(from, count, type_, comm_);
  Elements target(to, count, type_, comm_);
  if (const int error = source.load(); error != 0) return error;
  target.reserve();
  std::memcpy(target.data(), source.data(), static_cast<std::size_t>(source.bytes()));
  return target.store();
}

void Reducer::release() {
  Pool& to = pool();
  const std::lock_guard lock(to.mutex);
  to.unused.push_back(by_host_);
}

}  // namespace unisono::mpi
