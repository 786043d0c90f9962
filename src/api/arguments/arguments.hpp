// SPDX-License-Identifier: BSD-3-Clause
// The arguments of a collective, as they came through the C API, and their check. What is wrong is
// said once, with the function, the value and what is accepted; the caller tells the other ranks,
// if they would wait for this one (launch.hpp).
#pragma once

#include "api/objects.hpp"
#include "base/result.hpp"
#include "group/call.hpp"

namespace unisono::api {

// A call that may be made.
struct Checked {
  group::Call call;
  const void* input = nullptr;
  void* output = nullptr;
  BufferRule rule;  // which other buffers would do
};

base::Result<Checked> check(const Arguments& arguments, Comm& comm);

}  // namespace unisono::api
