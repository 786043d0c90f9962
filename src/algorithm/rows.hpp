// SPDX-License-Identifier: BSD-3-Clause
// The rows of the table, a function a collective, each defined in the folder of that collective:
// `rows.cpp` there declares the build functions and describes them. Parameters that several
// collectives share stand here, so that they read alike everywhere. In the formulas, P is the
// number of ranks, n the vector, m one rank's block, f the degree of a tree, l its fan-in and M the
// largest power of two <= P; a test computes both columns from the schedules. Pure; any thread.
#pragma once

#include "algorithm/algorithm.hpp"

namespace unisono::algorithm {

using Build = Schedule(const Shape& shape, const Parameters& parameters, int rank);

namespace barrier {
std::span<const Algorithm> rows();
}
namespace broadcast {
std::span<const Algorithm> rows();
}
namespace reduce {
std::span<const Algorithm> rows();
}
namespace allreduce {
std::span<const Algorithm> rows();
}
namespace allgather {
std::span<const Algorithm> rows();
}
namespace gather {
std::span<const Algorithm> rows();
}
namespace scatter {
std::span<const Algorithm> rows();
}
namespace alltoall {
std::span<const Algorithm> rows();
}
namespace reduce_scatter {
std::span<const Algorithm> rows();
}
namespace scan {
std::span<const Algorithm> rows();
}
namespace exscan {
std::span<const Algorithm> rows();
}
namespace many_to_many {
std::span<const Algorithm> rows();
}
// Mock-ups of several collectives.
namespace mock {
std::span<const Algorithm> rows();
}

// Algorithm::by_one: the root or rank 0 combines all.
inline bool always_by_one(const Shape&, const Parameters&) { return true; }

inline constexpr ParameterSpec kDegree[] = {
    {.name = "degree",
     .low = 2,
     .high = 0,
     .fallback = 4,
     .help = "degree f of the f-nomial tree: f-1 children in a phase; 2 is binomial, P is flat"}};
inline constexpr ParameterSpec kFanIn[] = {
    {.name = "fanin",
     .low = 1,
     .high = 0,
     .fallback = 7,
     .help = "messages l that a parent receives in a level; 1 is binomial, P-1 or more is flat"}};
inline constexpr ParameterSpec kSegments[] = {
    {.name = "segments",
     .low = 1,
     .high = kMostPieces,
     .fallback = 8,
     .help = "parts of the vector that follow one another, none of them empty",
     .counted = Counted::pieces}};
inline constexpr ParameterSpec kTurningSegments[] = {
    {.name = "segments",
     .low = 1,
     .high = kMostPieces,
     .fallback = 8,
     .help = "parts of the vector that follow one another, none of them empty",
     .counted = Counted::turning_pieces}};

// Parameters of the rows `two-level`: the algorithm among the leaders of hosts, by default the
// first, and the trees or the algorithm within hosts.
consteval ParameterSpec inner_choice(std::span<const std::string_view> names) {
  return {.name = "inner",
          .low = 0,
          .high = static_cast<int>(names.size()) - 1,
          .fallback = 0,
          .help = "the algorithm among the leaders of hosts, with its usual parameters",
          .names = names};
}
inline constexpr ParameterSpec kFanInOfHost = {
    .name = "fanin",
    .low = 1,
    .high = 0,
    .fallback = 7,
    .help = "messages l that a parent receives in a level within a host; P-1 or more is flat",
    .counted = Counted::children_in_host};
consteval ParameterSpec within_choice(std::span<const std::string_view> names) {
  return {.name = "within",
          .low = 0,
          .high = static_cast<int>(names.size()) - 1,
          .fallback = 0,
          .help = "the algorithm among the ranks of a host",
          .names = names};
}

}  // namespace unisono::algorithm
