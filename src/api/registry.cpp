// SPDX-License-Identifier: BSD-3-Clause
#include "api/registry.hpp"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <mutex>

#include "api/error.hpp"
#include "arith/type.hpp"
#include "plan/operator_failure.hpp"
#include "unisono/unisono.h"

namespace unisono::api {
namespace {

using base::Code;

constexpr int kMostUserEntries = 1000;
constexpr std::size_t kMostAlignment = 64;

static_assert(UNISONO_BYTE == static_cast<int>(arith::Type::byte));
static_assert(UNISONO_UINT8 == static_cast<int>(arith::Type::uint8));
static_assert(UNISONO_FLOAT16 == static_cast<int>(arith::Type::float16));
static_assert(UNISONO_COMPLEX128 == static_cast<int>(arith::Type::complex128));
static_assert(UNISONO_FLOAT64_INT32 == static_cast<int>(arith::Type::float64_int32));
static_assert(UNISONO_FLOAT64_INT32 + 1 == arith::kTypeCount);
static_assert(UNISONO_MAX == static_cast<int>(arith::Operator::max));
static_assert(UNISONO_BITWISE_AND == static_cast<int>(arith::Operator::bitwise_and));
static_assert(UNISONO_MAXLOC == static_cast<int>(arith::Operator::maxloc));
static_assert(UNISONO_MAXLOC + 1 == arith::kOperatorCount);

// Entries below `count` are complete and never change.
template <class Entry>
struct UserTable {
  std::mutex mutex;
  std::atomic<int> count{0};
  std::array<Entry, kMostUserEntries> entries{};

  // Equal entries share a number, so making one again and again does not fill the table.
  template <class Equal>
  std::optional<std::int32_t> add(const Entry& entry, Equal equal) {
    const std::lock_guard lock(mutex);
    const int used = count.load(std::memory_order_relaxed);
    for (int i = 0; i < used; ++i) {
      if (equal(entries[static_cast<std::size_t>(i)], entry)) return plan::kFirstUserNumber + i;
    }
    if (used == kMostUserEntries) return std::nullopt;
    entries[static_cast<std::size_t>(used)] = entry;
    count.store(used + 1, std::memory_order_release);
    return plan::kFirstUserNumber + used;
  }

  std::optional<Entry> find(std::int32_t number) const {
    const int index = number - plan::kFirstUserNumber;
    if (index < 0 || index >= count.load(std::memory_order_acquire)) return std::nullopt;
    return entries[static_cast<std::size_t>(index)];
  }
};

UserTable<TypeEntry> user_types;
UserTable<OperatorEntry> user_operators;

}  // namespace

std::optional<TypeEntry> find_type(std::int32_t type) {
  if (type >= 0 && type < arith::kTypeCount) {
    const auto known = static_cast<arith::Type>(type);
    return TypeEntry{static_cast<std::int64_t>(arith::type_size(known)),
                     static_cast<std::int64_t>(arith::type_alignment(known))};
  }
  return type < plan::kFirstUserNumber ? std::nullopt : user_types.find(type);
}

std::optional<OperatorEntry> find_operator(std::int32_t op) {
  if (op >= 0 && op < arith::kOperatorCount) return OperatorEntry{};
  return op < plan::kFirstUserNumber ? std::nullopt : user_operators.find(op);
}

}  // namespace unisono::api

extern "C" {

using unisono::api::fail;
using unisono::base::Code;

size_t unisono_type_size(unisono_type_t type) {
  const auto entry = unisono::api::find_type(type);
  return entry ? static_cast<size_t>(entry->bytes) : 0;
}

int unisono_type_create(size_t size, size_t alignment, unisono_type_t* type) try {
  using namespace unisono::api;
  if (type == nullptr) return fail(Code::argument, "unisono_type_create: type is NULL");
  if (size == 0 || size > (size_t{1} << 30)) {
    return fail(Code::argument,
                fmt::format("unisono_type_create: size {} is not in 1 .. 1 GiB", size));
  }
  if (alignment == 0 || alignment > kMostAlignment || (alignment & (alignment - 1)) != 0) {
    return fail(Code::argument,
                fmt::format("unisono_type_create: alignment {} is not a power of two up to {}",
                            alignment, kMostAlignment));
  }
  if (size % alignment != 0) {
    return fail(Code::argument,
                fmt::format("unisono_type_create: size {} is no multiple of alignment {}, so the "
                            "second element of an array would be misaligned. Pass the size with "
                            "its padding (sizeof), or a smaller alignment",
                            size, alignment));
  }
  const TypeEntry entry{static_cast<std::int64_t>(size), static_cast<std::int64_t>(alignment)};
  const auto number = user_types.add(entry, [](const TypeEntry& a, const TypeEntry& b) {
    return a.bytes == b.bytes && a.alignment == b.alignment;
  });
  if (!number) {
    return fail(Code::resources, fmt::format("unisono_type_create: there are {} types already; "
                                             "create each once and keep it",
                                             kMostUserEntries));
  }
  *type = *number;
  return UNISONO_OK;
} catch (const std::exception& thrown) {
  return fail("unisono_type_create", thrown);
}

int unisono_op_create(unisono_function_t function, int commutative, void* user,
                      unisono_op_t* op) try {
  using namespace unisono::api;
  if (function == nullptr) return fail(Code::argument, "unisono_op_create: function is NULL");
  if (op == nullptr) return fail(Code::argument, "unisono_op_create: op is NULL");
  const OperatorEntry entry{commutative != 0, {function, user, 0}};
  const auto number = user_operators.add(entry, [](const OperatorEntry& a, const OperatorEntry& b) {
    return a.user.function == b.user.function && a.user.user == b.user.user &&
           a.commutative == b.commutative;
  });
  if (!number) {
    return fail(Code::resources, fmt::format("unisono_op_create: there are {} operators already; "
                                             "create each once and keep it",
                                             kMostUserEntries));
  }
  *op = *number;
  return UNISONO_OK;
} catch (const std::exception& thrown) {
  return fail("unisono_op_create", thrown);
}

int unisono_op_fail(const char* why) try {
  using namespace unisono::api;
  unisono::plan::FunctionRun* const run = unisono::plan::running_function;
  if (run == nullptr) {
    return fail(Code::state, "unisono_op_fail: no function of an operator runs on this thread");
  }
  run->fail(why == nullptr ? "" : why);
  return UNISONO_OK;
} catch (const std::exception& thrown) {
  return fail("unisono_op_fail", thrown);
}

}  // extern "C"
