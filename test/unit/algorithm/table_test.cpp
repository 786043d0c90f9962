// SPDX-License-Identifier: BSD-3-Clause
// The table as data: names, parameters, refusals and what they say, and whether the formulas of
// steps and bytes are true of the schedules.
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <map>
#include <set>

#include "unit/algorithm/expression.hpp"
#include "unit/algorithm/schedule_set.hpp"

namespace unisono::algorithm::test {
namespace {

const Algorithm& row(Collective collective, std::string_view name) {
  const Algorithm* found = find(collective, name);
  UNISONO_CHECK(found != nullptr, "the test names a row that does not exist");
  return *found;
}

TEST(Table, RowsAreCompleteAndNamesUnique) {
  std::set<std::pair<Collective, std::string_view>> names;
  std::set<Collective> collectives;
  for (const Algorithm& entry : table()) {
    EXPECT_TRUE(names.emplace(entry.collective, entry.name).second) << entry.name;
    EXPECT_EQ(find(entry.collective, entry.name), &entry);
    collectives.insert(entry.collective);
    for (const std::string_view text :
         {entry.name, entry.idea, entry.source, entry.steps, entry.bytes, entry.wins}) {
      EXPECT_FALSE(text.empty()) << entry.name;
    }
    EXPECT_NE(entry.build, nullptr);
    EXPECT_LE(entry.parameters.size(), static_cast<std::size_t>(kMaxParameters));
    for (const ParameterSpec& spec : entry.parameters) {
      EXPECT_GE(spec.fallback, spec.low);
      EXPECT_FALSE(spec.name.empty() || spec.help.empty());
    }
  }
  EXPECT_EQ(static_cast<int>(collectives.size()), schedule::kCollectiveCount);
}

TEST(Table, UnknownNamesAreAnsweredWithTheNearestFirst) {
  EXPECT_EQ(find(Collective::barrier, "ring"), nullptr);
  EXPECT_EQ(explain_unknown(Collective::allreduce, "pairwize"),
            "allreduce has no algorithm 'pairwize'; choose one of: pairwise, reduce-broadcast, "
            "gather-release, ring, reduce-scatter-allgather");
  EXPECT_EQ(explain_unknown(Collective::allgather, "dirct"),
            "allgather has no algorithm 'dirct'; choose one of: direct, ring, recursive-doubling, "
            "gather-release");
}

TEST(Table, DefaultsFitTheGroup) {
  const Shape shape{.collective = Collective::allreduce, .ranks = 5};
  EXPECT_EQ(default_parameters(row(Collective::allreduce, "gather-release"), shape).values[0], 5);
  for (const Algorithm& entry : table()) {
    for (int ranks = 1; ranks <= 70; ++ranks) {
      const Shape any{.collective = entry.collective, .ranks = ranks, .count = 1};
      EXPECT_EQ(why_illegal(entry, any, default_parameters(entry, any)), "");
    }
  }
}

TEST(Table, DescribesARowWithItsParameters) {
  EXPECT_EQ(describe(row(Collective::reduce, "fnomial"), {{4, 0}}), "fnomial(4)");
  EXPECT_EQ(describe(row(Collective::allgather, "ring"), {}), "ring");
}

TEST(Table, RefusalsSayWhatToChoose) {
  const Algorithm& ring = row(Collective::allreduce, "ring");
  const Algorithm& tree = row(Collective::reduce, "fnomial");
  const Shape reduce{Collective::reduce, 5, 1, 3, false};
  const auto allreduce = Collective::allreduce;
  EXPECT_EQ(why_illegal(ring, {allreduce, 5, 0, 3, false}, {}), "");
  EXPECT_EQ(
      why_illegal(ring, {allreduce, 5, 0, 3, true}, {}),
      "allreduce ring does not combine in the order of ranks, which an operator that does not "
      "commute needs; choose one of: pairwise, reduce-broadcast, gather-release, "
      "reduce-scatter-allgather");
  EXPECT_EQ(
      why_illegal(ring, reduce, {}),
      "allreduce ring cannot do reduce; reduce has no algorithm 'ring'; choose one of: serial, "
      "fnomial");
  EXPECT_EQ(why_illegal(tree, reduce, {{1, 0}}),
            "reduce fnomial: degree is 1; at 5 ranks choose 2 to 5");
  EXPECT_EQ(why_illegal(tree, reduce, {{6, 0}}),
            "reduce fnomial: degree is 6; at 5 ranks choose 2 to 5");
  EXPECT_EQ(why_illegal(ring, {allreduce, 0, 0, 3, false}, {}),
            "allreduce ring: a shape of 0 ranks: there has to be one");
  EXPECT_EQ(why_illegal(ring, {allreduce, 5, 3, 3, false}, {}),
            "allreduce ring: root 3 for allreduce, which has none: leave it at 0");
  EXPECT_EQ(why_illegal(tree, {Collective::reduce, 5, 5, 3, false}, {{2, 0}}),
            "reduce fnomial: root 5 of 5 ranks: choose 0 to 4");
  EXPECT_EQ(why_illegal(ring, {allreduce, 5, 0, -1, false}, {}),
            "allreduce ring: -1 elements on 5 ranks: choose 0 to 1844674407370955161");
}

TEST(Table, BuildRefusesRanksThatDoNotExist) {
  const Algorithm& ring = row(Collective::allgather, "ring");
  for (const int rank : {-1, 5, std::numeric_limits<int>::max()}) {
    const auto result = build(ring, {Collective::allgather, 5, 0, 1, false}, {}, rank);
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code, base::Code::argument);
    EXPECT_NE(result.error().message.find("allgather ring: rank "), std::string::npos);
  }
}

TEST(Table, BuildIsPure) {
  for (const Algorithm& entry : table()) {
    const Shape shape{.collective = entry.collective, .ranks = 11, .count = 13};
    const Parameters parameters = default_parameters(entry, shape);
    EXPECT_EQ(build_set(entry, shape, parameters), build_set(entry, shape, parameters));
  }
}

// The columns `steps` and `bytes` again, as arithmetic. k is the parameter, bytes in elements of a
// vector or block of n.
struct Formula {
  std::function<int(int ranks, int k)> steps;
  std::function<std::int64_t(std::int64_t ranks, int k, std::int64_t n)> bytes;
};

int ceil_log(int base, std::int64_t value) {
  int log = 0;
  for (std::int64_t power = 1; power < value; power *= base) ++log;
  return log;
}
int floor_log2(std::int64_t value) { return ceil_log(2, value / 2 + 1); }
bool folds(std::int64_t ranks) { return (std::int64_t{1} << floor_log2(ranks)) != ranks; }

int cube_steps(int ranks, int) { return floor_log2(ranks) + (folds(ranks) ? 2 : 0); }
int tree_steps(int ranks, int degree) { return ceil_log(degree, ranks); }
int release_steps(int ranks, int fan_in) {
  return ranks == 1 ? 0 : ceil_log(fan_in + 1, ranks) + 1;
}
int one_step(int ranks, int) { return ranks == 1 ? 0 : 1; }
int ring_steps(int ranks, int) { return ranks - 1; }
int log2_steps(int ranks, int) { return ceil_log(2, ranks); }
std::int64_t no_bytes(std::int64_t, int, std::int64_t) { return 0; }
std::int64_t vector_once(std::int64_t ranks, int, std::int64_t n) { return ranks == 1 ? 0 : n; }
std::int64_t vector_each_step(std::int64_t ranks, int, std::int64_t n) {
  return n * ceil_log(2, ranks);
}
std::int64_t largest_subtree(std::int64_t ranks, int degree, std::int64_t n) {
  if (ranks == 1) return 0;
  std::int64_t subtree = 1;
  while (subtree * degree < ranks) subtree *= degree;
  return subtree * n;
}
std::int64_t tree_bytes(std::int64_t ranks, int degree, std::int64_t n) {
  return (degree - 1) * ceil_log(degree, ranks) * n;
}
std::int64_t blocks_of_others(std::int64_t ranks, int, std::int64_t n) { return (ranks - 1) * n; }

std::int64_t halving_bytes(std::int64_t ranks, int, std::int64_t n) {
  const std::int64_t cube = std::int64_t{1} << floor_log2(ranks);
  return 2 * n * (cube - 1) / cube + (folds(ranks) ? n : 0);
}
std::int64_t doubling_bytes(std::int64_t ranks, int, std::int64_t n) {
  const std::int64_t cube = std::int64_t{1} << floor_log2(ranks);
  return folds(ranks) ? 2 * (cube - 1) * n + ranks * n : (ranks - 1) * n;
}

std::map<std::pair<Collective, std::string_view>, Formula> formulas() {
  using enum Collective;
  return {
      {{barrier, "dissemination"}, {[](int p, int) { return ceil_log(2, p); }, no_bytes}},
      {{barrier, "pairwise"}, {cube_steps, no_bytes}},
      {{barrier, "gather-release"}, {release_steps, no_bytes}},
      {{broadcast, "fnomial"}, {tree_steps, tree_bytes}},
      {{broadcast, "flat"}, {one_step, vector_once}},
      {{reduce, "serial"}, {one_step, vector_once}},
      {{reduce, "fnomial"}, {tree_steps, vector_once}},
      {{allreduce, "pairwise"},
       {cube_steps, [](std::int64_t p, int,
                       std::int64_t n) { return n * (floor_log2(p) + (folds(p) ? 1 : 0)); }}},
      {{allreduce, "reduce-broadcast"},
       {[](int p, int degree) { return 2 * ceil_log(degree, p); }, tree_bytes}},
      {{allreduce, "gather-release"}, {release_steps, vector_once}},
      {{allreduce, "ring"},
       {[](int p, int) { return 2 * (p - 1); },
        [](std::int64_t p, int, std::int64_t n) { return 2 * n * (p - 1) / p; }}},
      {{allreduce, "reduce-scatter-allgather"},
       {[](int p, int) { return 2 * floor_log2(p) + (folds(p) ? 2 : 0); }, halving_bytes}},
      {{allgather, "ring"}, {[](int p, int) { return p - 1; }, blocks_of_others}},
      {{allgather, "recursive-doubling"}, {cube_steps, doubling_bytes}},
      {{allgather, "direct"}, {one_step, vector_once}},
      {{allgather, "gather-release"},
       {[](int p, int) { return p == 1 ? 0 : 2; },
        [](std::int64_t p, int, std::int64_t n) { return p == 1 ? 0 : p * n; }}},
      {{gather, "linear"}, {one_step, vector_once}},
      {{gather, "fnomial"}, {tree_steps, largest_subtree}},
      {{scatter, "linear"}, {one_step, blocks_of_others}},
      {{scatter, "fnomial"}, {tree_steps, blocks_of_others}},
      {{alltoall, "linear"}, {one_step, blocks_of_others}},
      {{alltoall, "pairwise"}, {ring_steps, blocks_of_others}},
      {{alltoall, "bruck"},
       {log2_steps,
        [](std::int64_t p, int, std::int64_t n) { return n * p / 2 * ceil_log(2, p); }}},
      {{reduce_scatter, "pairwise"}, {one_step, blocks_of_others}},
      {{reduce_scatter, "recursive-halving"},
       {cube_steps,
        [](std::int64_t p, int, std::int64_t n) { return (folds(p) ? p : p - 1) * n; }}},
      {{reduce_scatter, "reduce-scatter"},
       {[](int p, int degree) { return 2 * ceil_log(degree, p); },
        [](std::int64_t p, int degree, std::int64_t n) {
          return p == 1 ? 0 : (p - 1) * n + largest_subtree(p, degree, n);
        }}},
      {{reduce_scatter, "ring"}, {ring_steps, blocks_of_others}},
      {{scan, "linear"}, {ring_steps, vector_once}},
      {{scan, "recursive-doubling"}, {log2_steps, vector_each_step}},
      {{exscan, "linear"}, {ring_steps, vector_once}},
      {{exscan, "recursive-doubling"}, {log2_steps, vector_each_step}},
      {{many_to_many, "direct"}, {one_step, vector_once}},
      {{many_to_many, "ring"}, {ring_steps, blocks_of_others}},
      {{many_to_many, "concurrent-broadcast"}, {tree_steps, blocks_of_others}},
  };
}

std::int64_t most_sent(const std::vector<Schedule>& set) {
  std::int64_t most = 0;
  for (const Schedule& schedule : set) {
    std::int64_t sent = 0;
    for (const schedule::Op& op : schedule.ops) {
      const bool sends =
          op.kind == schedule::OpKind::send || op.kind == schedule::OpKind::multicast;
      sent += sends ? op.left.count : 0;
    }
    most = std::max(most, sent);
  }
  return most;
}

// Whether the cube or tree has no gaps: then the formulas are exact, and not only bounds.
bool is_full(const Algorithm& entry, int ranks, int k) {
  int base = 2;
  if (!entry.parameters.empty()) base = entry.parameters[0].name == "fanin" ? k + 1 : k;
  std::int64_t power = 1;
  while (power < ranks) power *= base;
  return power == ranks;
}

TEST(Table, FormulasHold) {
  const auto all = formulas();
  for (const Algorithm& entry : table()) {
    const auto found = all.find({entry.collective, entry.name});
    ASSERT_NE(found, all.end()) << "write down the formulas of " << entry.name;
    for (const int ranks : {1, 2, 3, 4, 5, 7, 8, 9, 12, 16}) {
      Shape shape{.collective = entry.collective, .ranks = ranks, .count = 8 * ranks};
      if (entry.collective == Collective::barrier) shape.count = 0;
      for (const Parameters& parameters : parameter_choices(entry, shape)) {
        SCOPED_TRACE(name_of(entry, shape, parameters));
        const int k = parameters.values[0];
        const int steps = found->second.steps(ranks, k);
        const std::int64_t bytes = found->second.bytes(ranks, k, shape.count);
        const auto set = build_set(entry, shape, parameters);
        const int longest = Executor(set, 1, false).run().longest_path;
        EXPECT_LE(longest, steps);
        EXPECT_LE(most_sent(set), bytes);
        if (is_full(entry, ranks, k)) {
          EXPECT_EQ(longest, steps);
          EXPECT_EQ(most_sent(set), bytes);
        }
      }
    }
  }
}

}  // namespace
}  // namespace unisono::algorithm::test
