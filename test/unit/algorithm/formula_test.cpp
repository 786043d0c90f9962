// SPDX-License-Identifier: BSD-3-Clause
// Whether the formulas of steps and bytes in the table are true of the schedules.
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "schedule/cost.hpp"
#include "unit/algorithm/expression.hpp"
#include "unit/algorithm/schedule_set.hpp"

namespace unisono::algorithm::test::formula_test {
namespace {

// The variables of a formula.
struct Case {
  std::int64_t p = 1;  // ranks
  std::int64_t n = 0;  // elements of the vector or block
  int k = 0, l = 0;    // parameters
};

// The columns `steps` and `bytes` again, as arithmetic, bytes in elements; and when they are exact
// and not only bounds.
struct Formula {
  std::function<std::int64_t(const Case&)> steps, bytes;
  std::function<bool(const Case&)> is_exact;
};

int ceil_log(std::int64_t base, std::int64_t value) {
  int log = 0;
  for (std::int64_t power = 1; power < value; power *= base) ++log;
  return log;
}
int floor_log(std::int64_t base, std::int64_t value) {
  int log = 0;
  for (std::int64_t power = base; power <= value; power *= base) ++log;
  return log;
}
bool is_power(std::int64_t base, std::int64_t value) {
  return floor_log(base, value) == ceil_log(base, value);
}

bool always(const Case&) { return true; }
bool never(const Case&) { return false; }
bool full_cube(const Case& c) { return is_power(2, c.p); }
bool full_tree(const Case& c) { return is_power(c.k, c.p); }
bool full_fan_in(const Case& c) { return is_power(c.k + 1, c.p); }

std::int64_t cube_steps(const Case& c) { return floor_log(2, c.p) + (full_cube(c) ? 0 : 2); }
std::int64_t tree_steps(const Case& c) { return ceil_log(c.k, c.p); }
std::int64_t up_and_down_steps(const Case& c) { return 2 * tree_steps(c); }
std::int64_t release_steps(const Case& c) { return c.p == 1 ? 0 : ceil_log(c.k + 1, c.p) + 1; }
std::int64_t one_step(const Case& c) { return c.p == 1 ? 0 : 1; }
std::int64_t log_steps(const Case& c) { return ceil_log(2, c.p); }
std::int64_t all_others(const Case& c) { return c.p - 1; }

std::int64_t no_bytes(const Case&) { return 0; }
std::int64_t vector_once(const Case& c) { return c.p == 1 ? 0 : c.n; }
std::int64_t tree_bytes(const Case& c) { return (c.k - 1) * ceil_log(c.k, c.p) * c.n; }
std::int64_t all_other_blocks(const Case& c) { return (c.p - 1) * c.n; }
std::int64_t pairwise_bytes(const Case& c) {
  return c.n * (floor_log(2, c.p) + (full_cube(c) ? 0 : 1));
}
std::int64_t halving_bytes(const Case& c) {
  const std::int64_t cube = std::int64_t{1} << floor_log(2, c.p);
  return 2 * c.n * (cube - 1) / cube + (full_cube(c) ? 0 : c.n);
}
std::int64_t halving_gather_bytes(const Case& c) {
  const std::int64_t cube = std::int64_t{1} << floor_log(2, c.p);
  return c.p == 1 ? 0 : c.n * (cube - 1) / cube + c.n / 2;
}
int splits(const Case& c) { return std::min(c.k, floor_log(2, c.p)); }
std::int64_t split_steps(const Case& c) {
  return c.p == 1 ? 0 : splits(c) + ceil_log(c.l, c.p >> splits(c)) + 1;
}
std::int64_t grid_steps(const Case& c) { return floor_log(c.k, c.p) + (full_tree(c) ? 0 : 2); }
std::int64_t grid_bytes(const Case& c) {
  return c.n * (floor_log(c.k, c.p) + (full_tree(c) ? 0 : 1));
}
std::int64_t doubling_bytes(const Case& c) {
  const std::int64_t cube = std::int64_t{1} << floor_log(2, c.p);
  return full_cube(c) ? (c.p - 1) * c.n : 2 * (cube - 1) * c.n + c.p * c.n;
}
int direct_dimensions(const Case& c) { return std::min(c.k, floor_log(2, c.p)); }
std::int64_t hybrid_steps(const Case& c) {
  const int direct = direct_dimensions(c);
  return cube_steps(c) - direct + (direct > 0 ? 1 : 0);
}
std::int64_t hybrid_bytes(const Case& c) {
  const int direct = direct_dimensions(c);
  if (direct == 0) return doubling_bytes(c);
  const std::int64_t subcubes = (std::int64_t{1} << floor_log(2, c.p)) >> direct;
  return full_cube(c) ? (2 * subcubes - 1) * c.n : (4 * subcubes - 2 + c.p) * c.n;
}
std::int64_t side(const Case& c) {
  std::int64_t side = 1;
  while (side * side < c.p) ++side;
  return side;
}
bool square(const Case& c) { return side(c) * side(c) == c.p; }
std::int64_t mesh_steps(const Case& c) { return std::min<std::int64_t>(c.p - 1, 2); }
std::int64_t mesh_bytes(const Case& c) {
  if (c.p == 1) return 0;
  return (side(c) + (square(c) ? 1 : 3)) * c.n;
}
// Rounds of k messages. The last round has one less, or fewer still if k does not divide P.
std::int64_t batches(const Case& c) {
  const std::int64_t k = std::min<std::int64_t>(c.k, c.p);
  const std::int64_t rounds = (c.p + k - 1) / k;
  const std::int64_t in_last = c.p - (rounds - 1) * k - 1;
  return (rounds - 1) * ((k + c.l - 1) / c.l) + (in_last + c.l - 1) / c.l;
}
std::int64_t batch_bytes(const Case& c) { return batches(c) * c.n; }

std::int64_t segments(const Case& c) { return std::clamp<std::int64_t>(c.n, 1, c.k); }
std::int64_t circulant_steps(const Case& c) {
  return c.p == 1 ? 0 : segments(c) - 1 + ceil_log(2, c.p);
}

// Two levels on one host: a tree of fan-in l. two_level_test.cpp checks the messages between hosts.
std::int64_t climb_steps(const Case& c) { return ceil_log(c.l + 1, c.p); }
std::int64_t climb_and_release_steps(const Case& c) { return c.p == 1 ? 0 : climb_steps(c) + 1; }
bool full_climb(const Case& c) { return is_power(c.l + 1, c.p); }
std::int64_t there_and_back_steps(const Case& c) { return c.p == 1 ? 0 : 2; }
std::int64_t all_blocks(const Case& c) { return c.p == 1 ? 0 : c.p * c.n; }

using Formulas = std::map<std::string_view, Formula>;

Formulas barrier_formulas() {
  return {
      {"dissemination", {log_steps, no_bytes, always}},
      {"pairwise", {cube_steps, no_bytes, full_cube}},
      {"gather-release", {release_steps, no_bytes, full_fan_in}},
      {"gather-broadcast", {up_and_down_steps, no_bytes, full_tree}},
      {"kdissemination", {[](const Case& c) { return ceil_log(c.k + 1, c.p); }, no_bytes, always}},
      {"test-and-set",
       {[](const Case& c) { return c.p == 1 ? 0 : release_steps(c) + 1; }, no_bytes, full_fan_in}},
      {"two-level", {climb_and_release_steps, no_bytes, full_climb}}};
}

Formulas broadcast_formulas() {
  return {{"fnomial", {tree_steps, tree_bytes, full_tree}},
          {"flat", {one_step, vector_once, always}},
          {"scatter-allgather",
           {all_others, [](const Case& c) { return 2 * c.n * (c.p - 1) / c.p; }, always}},
          {"chain", {all_others, vector_once, always}},
          {"double-tree",
           {[](const Case& c) { return c.p == 1 ? 0 : floor_log(2, c.p - 1) + 1; }, vector_once,
            always}},
          {"circulant",
           {circulant_steps,
            [](const Case& c) {
              return c.p == 1 ? 0 : circulant_steps(c) * ((c.n + segments(c) - 1) / segments(c));
            },
            [](const Case& c) { return full_cube(c) && segments(c) == 1; }}},
          {"bine", {log_steps, [](const Case& c) { return c.n * log_steps(c); }, full_cube}},
          {"two-level", {one_step, vector_once, always}}};
}

Formulas reduce_formulas() {
  return {
      {"serial", {one_step, vector_once, always}},
      {"fnomial", {tree_steps, vector_once, full_tree}},
      {"fnomial-split",
       {split_steps, vector_once, [](const Case& c) { return is_power(c.l, c.p >> splits(c)); }}},
      {"rabenseifner",
       {[](const Case& c) { return 2 * floor_log(2, c.p); }, halving_gather_bytes, always}},
      {"binary", {[](const Case& c) { return floor_log(2, c.p); }, vector_once, always}},
      {"chain", {all_others, vector_once, always}},
      {"exact-direct", {one_step, vector_once, always}},
      {"exact-scatter", {there_and_back_steps, vector_once, always}},
      {"circulant",
       {circulant_steps, vector_once,
        [](const Case& c) { return full_cube(c) && segments(c) == 1; }}},
      {"bine", {log_steps, vector_once, full_cube}},
      {"two-level", {climb_steps, vector_once, full_climb}}};
}

Formulas allreduce_formulas() {
  return {{"pairwise", {cube_steps, pairwise_bytes, full_cube}},
          {"reduce-broadcast", {up_and_down_steps, tree_bytes, full_tree}},
          {"gather-release", {release_steps, vector_once, full_fan_in}},
          {"split-release",
           {[](const Case& c) { return c.p == 1 ? 0 : ceil_log(c.l + 1, c.p) + 1; }, vector_once,
            [](const Case& c) { return is_power(c.l + 1, c.p); }}},
          {"ring",
           {[](const Case& c) { return 2 * (c.p - 1); },
            [](const Case& c) { return 2 * c.n * (c.p - 1) / c.p; }, always}},
          {"reduce-scatter-allgather",
           {[](const Case& c) { return 2 * floor_log(2, c.p) + (full_cube(c) ? 0 : 2); },
            halving_bytes, full_cube}},
          {"recursive-multiplying", {grid_steps, grid_bytes, full_tree}},
          {"exact-direct", {one_step, vector_once, always}},
          {"exact-release", {there_and_back_steps, vector_once, always}},
          {"exact-scatter", {there_and_back_steps, vector_once, always}},
          {"circulant",
           {[](const Case& c) { return 2 * log_steps(c); },
            [](const Case& c) { return 2 * c.n * (c.p - 1) / c.p; }, always}},
          {"bine",
           {[](const Case& c) { return 2 * floor_log(2, c.p) + (full_cube(c) ? 0 : 2); },
            halving_bytes, full_cube}},
          {"two-level", {climb_and_release_steps, vector_once, full_climb}}};
}

Formulas allgather_formulas() {
  return {
      {"ring", {all_others, all_other_blocks, always}},
      {"recursive-doubling", {cube_steps, doubling_bytes, full_cube}},
      {"hypercube", {hybrid_steps, hybrid_bytes, full_cube}},
      {"direct", {one_step, vector_once, always}},
      {"gather-release", {there_and_back_steps, all_blocks, always}},
      {"gather-broadcast",
       {up_and_down_steps, [](const Case& c) { return c.p * tree_bytes(c); }, full_tree}},
      {"mesh2d", {mesh_steps, mesh_bytes, square}},
      {"bruck",
       {log_steps, all_other_blocks,
        [](const Case& c) { return c.p <= 2 || !is_power(2, c.p - 1); }}},
      {"neighbor-exchange", {[](const Case& c) { return c.p / 2; }, all_other_blocks, always}},
      {"concurrent-broadcast", {log_steps, [](const Case& c) { return c.p / 2 * c.n; }, full_cube}},
      {"prefix-send",
       {[](const Case& c) { return (std::int64_t{1} << ceil_log(2, c.p)) - 1; }, all_other_blocks,
        full_cube}},
      {"kbruck",
       {tree_steps,
        [](const Case& c) { return full_tree(c) ? (c.p - 1) / (c.k - 1) * c.n : (c.p - 1) * c.n; },
        full_tree}},
      {"pat", {log_steps, all_other_blocks, full_cube}},
      {"kprefix", {batches, batch_bytes, always}},
      {"kshift", {batches, batch_bytes, always}},
      {"two-level", {there_and_back_steps, all_blocks, always}}};
}

std::int64_t largest_subtree(const Case& c) {
  if (c.p == 1) return 0;
  std::int64_t subtree = 1;
  while (subtree * c.k < c.p) subtree *= c.k;
  return subtree * c.n;
}
std::int64_t vector_each_step(const Case& c) { return c.n * ceil_log(2, c.p); }

Formulas alltoall_formulas() {
  return {{"linear", {one_step, all_other_blocks, always}},
          {"pairwise", {all_others, all_other_blocks, always}},
          {"bruck",
           {log_steps, [](const Case& c) { return c.n * c.p / 2 * ceil_log(2, c.p); }, full_cube}},
          {"kbruck",
           {tree_steps, [](const Case& c) { return c.n * c.p * (c.k - 1) * tree_steps(c) / c.k; },
            full_tree}},
          {"multi-leader", {one_step, all_other_blocks, always}},
          {"two-level", {one_step, all_other_blocks, always}}};
}

Formulas reduce_scatter_formulas() {
  return {
      {"pairwise", {one_step, all_other_blocks, always}},
      {"recursive-halving",
       {cube_steps, [](const Case& c) { return (full_cube(c) ? c.p - 1 : c.p) * c.n; }, full_cube}},
      {"reduce-scatter",
       {up_and_down_steps,
        [](const Case& c) { return c.p == 1 ? 0 : (c.p - 1) * c.n + largest_subtree(c); }, never}},
      {"ring", {all_others, all_other_blocks, always}},
      {"exact-direct", {one_step, all_other_blocks, always}},
      {"serial", {there_and_back_steps, all_blocks, always}},
      {"exact-serial", {there_and_back_steps, all_blocks, always}},
      {"circulant", {log_steps, all_other_blocks, always}},
      {"pat", {log_steps, all_other_blocks, full_cube}},
      {"two-level", {climb_and_release_steps, all_blocks, full_climb}}};
}

// Two levels on one host: the scan within it, linear or by recursive doubling.
std::int64_t scan_steps(const Case& c) { return c.l == 0 ? all_others(c) : log_steps(c); }
std::int64_t scan_bytes(const Case& c) { return c.l == 0 ? vector_once(c) : vector_each_step(c); }
bool full_scan(const Case& c) { return c.l == 0 || full_cube(c); }

Formulas scan_formulas() {
  return {{"linear", {all_others, vector_once, always}},
          {"recursive-doubling", {log_steps, vector_each_step, full_cube}},
          {"exact-direct", {one_step, vector_once, always}},
          {"serial", {there_and_back_steps, all_other_blocks, never}},
          {"exact-serial", {there_and_back_steps, all_other_blocks, never}},
          {"two-level", {scan_steps, scan_bytes, full_scan}}};
}

std::map<Collective, Formulas> all_formulas() {
  const Formula one_vector = {one_step, vector_once, always};
  return {{Collective::barrier, barrier_formulas()},
          {Collective::broadcast, broadcast_formulas()},
          {Collective::reduce, reduce_formulas()},
          {Collective::allreduce, allreduce_formulas()},
          {Collective::allgather, allgather_formulas()},
          {Collective::gather,
           {{"linear", one_vector},
            {"fnomial", {tree_steps, largest_subtree, full_tree}},
            {"two-level", one_vector}}},
          {Collective::scatter,
           {{"linear", {one_step, all_other_blocks, always}},
            {"fnomial", {tree_steps, all_other_blocks, full_tree}},
            {"two-level", {one_step, all_other_blocks, always}}}},
          {Collective::alltoall, alltoall_formulas()},
          {Collective::reduce_scatter, reduce_scatter_formulas()},
          {Collective::scan, scan_formulas()},
          {Collective::exscan, scan_formulas()},
          {Collective::many_to_many,
           {{"direct", one_vector},
            {"ring", {all_others, all_other_blocks, always}},
            {"concurrent-broadcast", {tree_steps, all_other_blocks, full_tree}}}}};
}

const Formula& formula_of(const Algorithm& row) {
  static const std::map<Collective, Formulas> kAll = all_formulas();
  static const Formula kNone;
  const Formulas& known = kAll.at(row.collective);
  const auto found = known.find(row.name);
  return found == known.end() ? kNone : found->second;
}

void expect_formula(const Algorithm& row, const Formula& formula, const Shape& shape) {
  for (const Parameters& parameters : parameter_choices(row, shape)) {
    SCOPED_TRACE(name_of(row, shape, parameters));
    const Case at{shape.ranks, shape.count, parameters.values[0], parameters.values[1]};
    const auto set = build_set(row, shape, parameters);
    const schedule::Cost cost = schedule::cost(set);
    EXPECT_EQ(cost.steps, Executor(set, 1, false).run().longest_path);
    EXPECT_LE(cost.steps, formula.steps(at));
    EXPECT_LE(cost.elements, formula.bytes(at));
    if (formula.is_exact(at)) {
      EXPECT_EQ(cost.steps, formula.steps(at));
      EXPECT_EQ(cost.elements, formula.bytes(at));
    }
  }
}

// A mock-up has no more steps and bytes than its parts.
void expect_those_of_parts(const Algorithm& row, const Shape& shape) {
  for (const Parameters& parameters : parameter_choices(row, shape)) {
    SCOPED_TRACE(name_of(row, shape, parameters));
    std::int64_t steps = 0, elements = 0;
    for (const Part& part : row.parts) {
      const Shape own = shape_of_part(part, shape);
      const schedule::Cost cost = schedule::cost(
          build_set(row_of_part(part, parameters), own, parameters_of_part(part, parameters, own)));
      steps += cost.steps;
      elements += cost.elements;
    }
    const schedule::Cost cost = schedule::cost(build_set(row, shape, parameters));
    EXPECT_LE(cost.steps, steps);
    EXPECT_LE(cost.elements, elements);
    EXPECT_TRUE(cost.steps > 0 || shape.ranks == 1);
  }
}

TEST(Formula, MockUpsHaveThoseOfTheirParts) {
  int rows = 0;
  for (const Algorithm& row : table()) {
    if (row.parts.empty()) continue;
    ++rows;
    for (const int ranks : {1, 2, 5, 8}) {
      expect_those_of_parts(row,
                            {.collective = row.collective, .ranks = ranks, .count = 8 * ranks + 1});
    }
  }
  EXPECT_EQ(rows, 10);
}

TEST(Formula, HoldsForTheSchedules) {
  for (const Algorithm& row : table()) {
    if (!row.parts.empty()) continue;
    const Formula& formula = formula_of(row);
    ASSERT_NE(formula.steps, nullptr) << "write down the formulas of " << row.name;
    for (const int ranks : {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16}) {
      Shape shape{.collective = row.collective, .ranks = ranks, .count = 8 * ranks};
      if (row.collective == Collective::barrier) shape.count = 0;
      expect_formula(row, formula, shape);
    }
  }
}

}  // namespace
}  // namespace unisono::algorithm::test::formula_test
