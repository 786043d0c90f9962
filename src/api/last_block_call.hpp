// SPDX-License-Identifier: BSD-3-Clause
// LastBlockCall: the last blocking call with block arrays, checked and planned. A call with equal
// arrays needs neither again; comparing arrays is much cheaper than checking them. One thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "api/objects.hpp"

namespace unisono::api {

// A copy of an array of the caller's; if it was not looked at, any other will do.
template <class Number>
class KeptArray {
 public:
  void keep(const Number* array, int ranks) {
    used_ = true;
    if (array != nullptr) numbers_.assign(array, array + ranks);
  }
  bool equals(const Number* array) const {
    if (!used_) return true;
    if (array == nullptr) return numbers_.empty();
    return !numbers_.empty() && std::equal(numbers_.begin(), numbers_.end(), array);
  }

 private:
  bool used_ = false;
  std::vector<Number> numbers_;
};

class LastBlockCall {
 public:
  // A call that was right, of this rank; not one with types.
  LastBlockCall(const LastCall& checked, const Arguments& call, int rank, int ranks);

  const LastCall& checked() const { return checked_; }
  // Arrays that the call does not use are not read: they may be no arrays at all.
  bool fits(const Arguments& call) const {
    if (!checked_.fits(call)) return false;
    const BlockArrays& blocks = *call.blocks;
    return blocks.scope == scope_ && receives_.equals(blocks.receives) &&
           input_.equals(blocks.input) && output_.equals(blocks.output);
  }

 private:
  struct KeptBlocks {
    KeptArray<std::int64_t> counts, displacements;

    void keep(const BlockArray& arrays, int ranks) {
      counts.keep(arrays.counts, ranks);
      displacements.keep(arrays.displacements, ranks);
    }
    bool equals(const BlockArray& arrays) const {
      return counts.equals(arrays.counts) && displacements.equals(arrays.displacements);
    }
  };

  LastCall checked_;
  CountScope scope_;
  KeptArray<int> receives_;
  KeptBlocks input_, output_;
};

}  // namespace unisono::api
