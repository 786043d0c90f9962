// SPDX-License-Identifier: BSD-3-Clause
#include "bench/measure/subject.hpp"

#include <array>

namespace unisono::tools::bench {
namespace {

using schedule::Collective;

const std::array<Subject, 16> kSubjects = {{
    Collective::barrier,
    Collective::broadcast,
    Collective::reduce,
    Collective::allreduce,
    Collective::allgather,
    Collective::gather,
    Collective::scatter,
    Collective::alltoall,
    Collective::reduce_scatter,
    Collective::scan,
    Collective::exscan,
    {Collective::allgather, true},
    {Collective::gather, true},
    {Collective::scatter, true},
    {Collective::alltoall, true},
    {Collective::reduce_scatter, true},
}};

}  // namespace

std::string_view Subject::name() const {
  if (!unequal) return schedule::collective_name(collective);
  if (collective == Collective::allgather) return "allgatherv";
  if (collective == Collective::gather) return "gatherv";
  if (collective == Collective::scatter) return "scatterv";
  if (collective == Collective::alltoall) return "alltoallv";
  return "reduce_scatterv";
}

std::span<const Subject> subjects() { return kSubjects; }

std::int64_t block_count(const Subject& subject, int number, std::int64_t count) {
  if (!subject.unequal) return count;
  return number % 2 == 0 ? count / 2 : 2 * count - count / 2;
}

}  // namespace unisono::tools::bench
