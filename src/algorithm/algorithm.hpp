// SPDX-License-Identifier: BSD-3-Clause
// Algorithm: a row of the table. Its build function is pure: the same shape, parameters and rank
// give the same schedule, on any thread. All code that lists, checks, chooses, tests or documents
// algorithms walks table().
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "schedule/schedule.hpp"

namespace unisono::algorithm {

using schedule::Collective;
using schedule::Schedule;
using schedule::Shape;

// The meaning of a parameter's number, as far as a search among its values needs it.
enum class Counted : std::uint8_t {
  other,
  // Parts that follow one another. Each costs its messages, and the more there are, the less a
  // further one saves. So the time has one minimum over their number.
  pieces,
  // The same, but their number also decides which links carry them in which round: the time may
  // have other minima beside the lowest one.
  turning_pieces,
  // Halvings, of which a row does no more than log2 of the ranks.
  halvings,
  // Children in a tree within a host, which are no more than the other ranks of the largest host.
  children_in_host,
};

inline bool counts_pieces(Counted counted) {
  return counted == Counted::pieces || counted == Counted::turning_pieces;
}

// A tunable integer, e.g. the degree of a tree. `high` of 0 means: up to the number of ranks (but
// never below `low`).
struct ParameterSpec {
  std::string_view name;
  int low = 0;
  int high = 0;
  int fallback = 0;  // the value if the caller gives none
  std::string_view help;
  // Where the values 0 to `high` are choices: how people call them.
  std::span<const std::string_view> names = {};
  Counted counted = Counted::other;
};

inline constexpr int kMaxParameters = 6;

// In so many pieces, at most, a row cuts a vector that its ranks pass on piece by piece.
inline constexpr int kMostPieces = 64;

struct Parameters {
  std::array<int, kMaxParameters> values{};

  bool operator==(const Parameters&) const = default;
};

// For which numbers of ranks all ranks' schedules are the same but for peers and places of blocks.
// They have the same ops on as many elements, sent to the same slots: one rank stands for all.
enum class Alike : std::uint8_t { never, always, powers_of_two };

// The value of a parameter whose lowest is negative: the usual one of the row that has it.
inline constexpr int kUsual = -1;
inline constexpr std::string_view kUsualName = "usual";

// How long a part's vector or blocks are: the vector of the whole call, its blocks, or the ranks'
// shares of its vector.
enum class Extent : std::uint8_t { vector, blocks, shares };

// A part of a mock-up (mock/): a collective that does a part of another one's work.
struct Part {
  Collective collective;
  Extent extent;
  std::span<const std::string_view> rows;  // the algorithms that may do it
  // The mock-up's parameter that is an index into `rows`; that row's own parameters follow.
  std::size_t first;
};
inline constexpr std::size_t kParametersOfPart = 2;

struct Algorithm {
  std::string_view name;
  Collective collective;
  std::string_view idea;      // one line for people
  std::string_view source;    // paper and section, or the usual name of the method
  std::string_view steps;     // formula: messages on the longest path
  std::string_view bytes;     // formula of the most that one rank sends; n the vector, m the block
  std::string_view wins;      // where it is good
  bool keeps_order;           // legal for operators that do not commute
  bool sums_exactly = false;  // legal for exact shapes: no partial results, each by one sum step
  // Reductions: whether one rank, the root or else rank 0, applies the operator to all elements.
  // Then it is legal for shapes `by_one`. nullptr: never. The parameters are in range.
  bool (*by_one)(const Shape& shape, const Parameters& parameters) = nullptr;
  bool only_for_by_one = false;  // no choice for other shapes, unless the user asks for it
  // For collectives of blocks: whether blocks may differ in length (Shape::blocks). The schedule of
  // a rank then depends only on the counts of blocks that it sends or receives.
  bool unequal_blocks = true;
  bool local_counts = false;
  bool uses_hosts = false;  // the schedule depends on which ranks share a host (Shape::hosts)
  Alike alike = Alike::never;
  bool alike_in_shares = false;  // ... if the ranks' shares of the vector are equal, too
  // With blocks of equal length, each rank's schedule is that of rank 0 but for places of blocks.
  // Its peers are as many ranks further on, cyclically.
  bool rotates = false;
  // The first parameter counts pieces, of which none waits for another one. A rank does the
  // schedule of one piece for each of them, with slots of its own. There are no multicasts. This
  // holds where the order of ranks does not matter.
  bool repeats = false;
  std::span<const ParameterSpec> parameters;
  std::span<const Part> parts = {};  // of a mock-up, one after the other
  // Both are empty if the algorithm has no limits. `refuse` says in half a sentence why it does not
  // work for these ranks and parameters (each of them in its range), or returns nullptr. Root and
  // count must not matter, because a long vector is processed in parts. `only` is the rule for
  // people.
  std::string_view only = {};
  const char* (*refuse)(const Shape& shape, const Parameters& parameters) = nullptr;
  Schedule (*build)(const Shape& shape, const Parameters& parameters, int rank);
};

std::span<const Algorithm> table();

// nullptr if there is none of that name for the collective.
const Algorithm* find(Collective collective, std::string_view name);

// The message for an unknown name: it lists the known ones, nearest first.
std::string explain_unknown(Collective collective, std::string_view name);

// The row's fallback values, clamped to the range for `shape`. If the row refuses them, the next
// lower value of the first parameter that it accepts. If one rank has to apply the operator, the
// lowest value with which one does, unless that is so by the fallback.
Parameters default_parameters(const Algorithm& algorithm, const Shape& shape);

// Parameters in range, where numbers that do the same are one.
Parameters effective_parameters(const Algorithm& algorithm, const Shape& shape,
                                const Parameters& parameters);

// Why the algorithm cannot do this shape with these parameters; empty if it can.
std::string why_illegal(const Algorithm& algorithm, const Shape& shape,
                        const Parameters& parameters);
// Whether that is empty, without the text for people.
bool is_legal(const Algorithm& algorithm, const Shape& shape, const Parameters& parameters);

// Whether one rank's schedule stands for those of all, by the row's `alike`.
bool ranks_are_alike(const Algorithm& algorithm, const Shape& shape);

// Checks shape, rank and legality, then builds.
base::Result<Schedule> build(const Algorithm& algorithm, const Shape& shape,
                             const Parameters& parameters, int rank);

// A parameter's value as people write it. read_value() returns nullopt for any other text;
// print_choices() names the values.
std::string print_value(const ParameterSpec& spec, int value);
std::optional<int> read_value(const ParameterSpec& spec, std::string_view text);
std::string print_choices(const ParameterSpec& spec);

// "fnomial(4)", "ring": how people write a row with its parameters.
std::string describe(const Algorithm& algorithm, const Parameters& parameters);

// A part of a mock-up, in a call of such a shape, with such parameters of the mock-up.
Shape shape_of_part(const Part& part, const Shape& whole);
const Algorithm& row_of_part(const Part& part, const Parameters& parameters);
Parameters parameters_of_part(const Part& part, const Parameters& parameters, const Shape& shape);
// Makes the part that row, an index, with its own parameters.
void set_part(const Part& part, std::size_t row, const Parameters& own, Parameters& parameters);

// The whole table as Markdown: docs/reference/algorithms.md.
std::string markdown();

}  // namespace unisono::algorithm
