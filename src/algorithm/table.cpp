// SPDX-License-Identifier: BSD-3-Clause
// The table of all algorithms: the rows of every collective, one after another. It is put together
// at the first use and never changes. A new algorithm is its file and a row in its folder's
// rows.cpp.
#include <array>
#include <vector>

#include "algorithm/rows.hpp"
#include "base/life/lasting.hpp"

namespace unisono::algorithm {

namespace {

std::vector<Algorithm> concatenated() {
  const std::array parts = {barrier::rows(),   broadcast::rows(), reduce::rows(),
                            allreduce::rows(), allgather::rows(), gather::rows(),
                            scatter::rows(),   alltoall::rows(),  reduce_scatter::rows(),
                            scan::rows(),      exscan::rows(),    many_to_many::rows(),
                            mock::rows()};
  std::vector<Algorithm> all;
  for (const std::span<const Algorithm> part : parts) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

}  // namespace

std::span<const Algorithm> table() {
  static const std::vector<Algorithm>& kTable = base::lasting(concatenated());
  return kTable;
}

}  // namespace unisono::algorithm
