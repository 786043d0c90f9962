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
  if (narrow.empty()) narrow.push_back(0);  // Open MPI refuses a null list
  return kept(std::move(narrow));
}

NeighbourNarrowing neighbour_narrowing_of(Handle comm) {
  // Open MPI's values. MPICH has large counts since it has persistent collectives.
  constexpr int kGrid = 1, kGraph = 2, kDistributedGraph = 3;
  const Host& mpi = host();
  int kind = 0, sources = 0, targets = 0, is_weighted = 0;
  mpi.Topo_test(comm, &kind);
  if (kind == kGrid) {
    mpi.Cartdim_get(comm, &targets);
    targets *= 2;
    sources = targets;
  } else if (kind == kGraph) {
    int rank = 0;
    mpi.Comm_rank(comm, &rank);
    mpi.Graph_neighbors_count(comm, rank, &targets);
    sources = targets;
  } else if (kind == kDistributedGraph) {
    mpi.Dist_graph_neighbors_count(comm, &sources, &targets, &is_weighted);
  }
  return {targets, sources};
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
