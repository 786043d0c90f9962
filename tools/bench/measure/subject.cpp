// SPDX-License-Identifier: BSD-3-Clause
#include "bench/measure/subject.hpp"

#include <algorithm>
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

constexpr std::array<std::string_view, 3> kUnevenNames = {"halves", "zeros", "one"};  // as Uneven

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

std::optional<Uneven> uneven_from_name(std::string_view name) {
  const auto* const found = std::ranges::find(kUnevenNames, name);
  if (found == kUnevenNames.end()) return std::nullopt;
  return static_cast<Uneven>(found - kUnevenNames.begin());
}

std::string_view uneven_name(Uneven uneven) {
  return kUnevenNames[static_cast<std::size_t>(uneven)];
}

std::string_view uneven_text(Uneven uneven) {
  switch (uneven) {
    case Uneven::halves:
      return "blocks of 1/2 and 3/2 of the size";
    case Uneven::zeros:
      return "blocks of nothing and of twice the size";
    case Uneven::one:
      return "nearly all in one block";
  }
  return "";
}

std::int64_t block_count(const Subject& subject, Uneven uneven, int number, int ranks,
                         std::int64_t count) {
  if (!subject.unequal) return count;
  const bool odd = number % 2 != 0;
  switch (uneven) {
    case Uneven::halves:
      return odd ? 2 * count - count / 2 : count / 2;
    case Uneven::zeros:
      return odd ? 2 * count : 0;
    case Uneven::one:
      break;
  }
  const std::int64_t least = count > 0 ? 1 : 0;
  return number % ranks == 1 % ranks ? ranks * count - (ranks - 1) * least : least;
}

}  // namespace unisono::tools::bench
