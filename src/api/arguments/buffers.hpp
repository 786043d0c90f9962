// SPDX-License-Identifier: BSD-3-Clause
// The buffers of a call whose other arguments are right. They must be present, aligned, within the
// address space and disjoint, and in place only where that has a meaning. Errors lack the
// function's name, which the caller adds. Pure; any thread.
#pragma once

#include "api/arguments/blocks.hpp"
#include "api/objects.hpp"
#include "api/registry.hpp"
#include "base/result.hpp"
#include "schedule/shape.hpp"

namespace unisono::api {

struct BufferCall {
  const Arguments& arguments;
  const schedule::Shape& shape;
  const CheckedBlocks& blocks;
  TypeEntry type;
  int rank = 0;
};

// The rule that the buffers keep, and that others would have to.
base::Result<BufferRule> check_buffers(const BufferCall& call);

}  // namespace unisono::api
