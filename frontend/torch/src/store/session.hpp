// SPDX-License-Identifier: BSD-3-Clause
// A session is one start of a group, by ranks that live. An elastic agent starts its ranks again
// with the same store, in which the ranks before them may have left values. So the ranks agree on a
// name that no earlier start has had, and all later keys of the group begin with it. Rank 0
// proposes: a name, and the number that each rank has drawn. It repeats that until every rank has
// answered to a proposal that has its number. A few values stay in the store, for the next start to
// replace. One thread uses it.
#pragma once

#include <chrono>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace unisono::pytorch {

// All ranks of a group call it. A prefix of keys for which there are no values yet, in whatever
// part of the store they lie. Throws DistBackendError, or the store's error.
std::string open_session(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                         std::chrono::milliseconds timeout);
// The store without the prefixes that torch has given it.
c10::intrusive_ptr<c10d::Store> without_prefixes(const c10::intrusive_ptr<c10d::Store>& store);

}  // namespace unisono::pytorch
