// SPDX-License-Identifier: BSD-3-Clause
// The arguments of a collective, as they came through the C API, and their check. What is wrong is
// said once, with the function, the rank, the value and what is accepted; the other ranks of the
// communicator are told as well, because they would wait for this one.
#pragma once

#include "api/objects.hpp"
#include "base/result.hpp"
#include "group/call.hpp"

namespace unisono::api {

// A call that may be made.
struct Checked {
  Comm* comm = nullptr;
  group::Call call;
  const void* input = nullptr;
  void* output = nullptr;
  BufferRule rule;  // which other buffers would do
};

// Others tells whether they are to be told of an error: not when the call is only planned.
enum class Others : std::uint8_t { wait_for_us, not_concerned };
base::Result<Checked> check(const Arguments& arguments, Others others);

}  // namespace unisono::api
