// SPDX-License-Identifier: BSD-3-Clause
#include "calls/narrowing.hpp"

#include <limits>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "host/host.hpp"

namespace unisono::mpi {
namespace {

static_assert(sizeof(std::ptrdiff_t) == sizeof(std::int64_t), "displacements are counts, too");

const int* kept(std::vector<int> list) {
  static std::mutex mutex;
  static auto* const all = new std::set<std::vector<int>>;  // MPI may end after static objects
  const std::lock_guard lock(mutex);
  return all->insert(std::move(list)).first->data();
}

}  // namespace

int Narrowing::operator()(std::int64_t count) {
  fits_ &= std::numeric_limits<int>::min() <= count && count <= std::numeric_limits<int>::max();
  return static_cast<int>(count);
}

const int* Narrowing::operator()(const std::int64_t* list) {
  const bool means_nothing = ignored_ > 0;
  ignored_ -= means_nothing ? 1 : 0;
  if (means_nothing || list == nullptr) return nullptr;
  std::vector<int> narrow;
  for (int i = 0; i < entries_; ++i) narrow.push_back((*this)(list[i]));
  return kept(std::move(narrow));
}

Narrowing narrowing_of(Collective collective, const void* first, int root, Handle comm) {
  const Host& mpi = host();
  int is_between_groups = 0, entries = 0, rank = 0;
  mpi.Comm_test_inter(comm, &is_between_groups);
  if (is_between_groups != 0 && collective != Collective::Reduce_scatter) {
    mpi.Comm_remote_size(comm, &entries);
  } else {
    mpi.Comm_size(comm, &entries);
  }
  mpi.Comm_rank(comm, &rank);
  const bool is_root = root == (is_between_groups != 0 ? mpi.constants.root : rank);
  const bool is_rooted = collective == Collective::Gatherv || collective == Collective::Scatterv;
  const bool exchanges = collective == Collective::Alltoallv || collective == Collective::Alltoallw;
  const bool is_ignored = (is_rooted && !is_root) || (exchanges && first == mpi.constants.in_place);
  return {entries, is_ignored ? 2 : 0};
}

}  // namespace unisono::mpi
