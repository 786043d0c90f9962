// SPDX-License-Identifier: BSD-3-Clause
// The arguments of a collective, as they came through the C API, and their check. An error is
// reported once, with the function, the value and the accepted values. The caller informs the other
// ranks if they would wait for this one (launch.hpp).
#pragma once

#include "api/objects.hpp"
#include "base/result.hpp"
#include "plan/call.hpp"

namespace unisono::api {

// A call whose arguments are right.
struct Checked {
  plan::Call call;
  const void* input = nullptr;
  void* output = nullptr;
  BufferRule rule;  // accepts other buffers that fit as well
};

base::Result<Checked> check(const Arguments& arguments, Comm& comm);

}  // namespace unisono::api
