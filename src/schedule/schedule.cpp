// SPDX-License-Identifier: BSD-3-Clause
#include "schedule/schedule.hpp"

#include <algorithm>

namespace unisono::schedule {

bool operator==(const Schedule& a, const Schedule& b) {
  if (!(a.shape == b.shape && a.rank == b.rank && a.scratch_count == b.scratch_count &&
        a.slots == b.slots && a.ops.size() == b.ops.size())) {
    return false;
  }
  for (std::size_t i = 0; i < a.ops.size(); ++i) {
    const Op& x = a.ops[i];
    const Op& y = b.ops[i];
    if (!(x.kind == y.kind && x.target == y.target && x.left == y.left && x.right == y.right &&
          x.slot == y.slot && std::ranges::equal(a.after_of(x), b.after_of(y)) &&
          std::ranges::equal(a.targets_of(x), b.targets_of(y)) &&
          std::ranges::equal(a.operands_of(x), b.operands_of(y)))) {
      return false;
    }
  }
  return true;
}

}  // namespace unisono::schedule
