// SPDX-License-Identifier: BSD-3-Clause
// Objects that no exit destroys. A program may call the library from destructors of its static
// objects and in functions of atexit(). Static objects of ours that are younger would be destroyed
// before: those in functions, and all of a libunisono that was loaded late. Any thread.
#pragma once

#include <type_traits>
#include <utility>

namespace unisono::base {

// For a static reference: static const Table& table = lasting(make_table());
template <class Value>
std::remove_cvref_t<Value>& lasting(Value&& value) {
  return *new std::remove_cvref_t<Value>(std::forward<Value>(value));
}

}  // namespace unisono::base
