// SPDX-License-Identifier: BSD-3-Clause
// Guidelines in the predictions (Träff, Gropp and Thakur, "Self-consistent MPI performance
// guidelines"): by price, no collective is dearer than others that would do the same one after the
// other. The mock-ups of the table guarantee it, whatever the machine is. Two costs of a mock-up do
// not count. One is the copy of a rank's own block, which the guidelines take as free. The other is
// the staging of input and output where ranks help each other, which parts alone may not need.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "model/costs.hpp"
#include "model/default_machine.hpp"
#include "select/candidates.hpp"

namespace unisono::select::predicted_guidelines_test {
namespace {

using enum schedule::Collective;
using schedule::Collective;
using schedule::Shape;

// How long the vector or block of a part is, beside that of the left side.
enum class Length { same, all_blocks, share };

struct Term {
  Collective collective;
  Length length = Length::same;
};

struct Guideline {
  Collective left;
  std::vector<Term> right;
};

const std::vector<Guideline>& guidelines() {
  static const std::vector<Guideline> kGuidelines = {
      {barrier, {{allreduce}}},
      {broadcast, {{scatter, Length::share}, {allgather, Length::share}}},
      {reduce, {{allreduce}}},
      {reduce, {{reduce_scatter, Length::share}, {gather, Length::share}}},
      {allreduce, {{reduce}, {broadcast}}},
      {allreduce, {{reduce_scatter, Length::share}, {allgather, Length::share}}},
      {allgather, {{allreduce, Length::all_blocks}}},
      {allgather, {{gather}, {broadcast, Length::all_blocks}}},
      {allgather, {{alltoall}}},
      {gather, {{allgather}}},
      {gather, {{alltoall}}},
      {scatter, {{broadcast, Length::all_blocks}}},
      {scatter, {{alltoall}}},
      {reduce_scatter, {{reduce, Length::all_blocks}, {scatter}}},
      {reduce_scatter, {{allreduce, Length::all_blocks}}},
  };
  return kGuidelines;
}

// The cheapest candidates, each found once.
class Predictions {
 public:
  Predictions(int ranks, const model::Work& work) : ranks_(ranks) {
    pricing_.machine = &model::default_machine();
    pricing_.work = work;
    pricing_.work.type = arith::Type::float64;
    pricing_.work.op = arith::Operator::sum;
  }

  const Priced& cheapest(Collective collective, std::int64_t count) {
    if (collective == barrier) count = 0;
    const auto [found, is_new] = known_.try_emplace({collective, count});
    if (!is_new) return found->second;
    const auto priced = price_candidates(
        Shape{.collective = collective, .ranks = ranks_, .count = count}, pricing_);
    EXPECT_TRUE(priced.ok() && !priced->empty());
    if (priced.ok() && !priced->empty()) found->second = priced->front();
    return found->second;
  }

  // Whether a rank's share, or block, of so many elements violates the guideline.
  void expect_no_violation(const Guideline& guideline, std::int64_t share) {
    const bool has_shares = guideline.right.front().length == Length::share;
    const Priced& left = cheapest(guideline.left, has_shares ? share * ranks_ : share);
    double right_ns = 0;
    std::string right;
    for (const Term& term : guideline.right) {
      const Priced& part =
          cheapest(term.collective, term.length == Length::all_blocks ? share * ranks_ : share);
      right_ns += part.price.ns;
      right += " " + name_of(part);
    }
    const double more_ns = uncounted_ns(guideline.left, has_shares ? share * ranks_ : share);
    // Sums of many terms round.
    EXPECT_LE(left.price.ns, (right_ns + more_ns) * (1 + 1e-9))
        << ranks_ << " ranks, shares or blocks of " << share << " elements: " << name_of(left)
        << " is dearer than" << right;
  }

 private:
  // Each rank's copy and staging. They lengthen the longest path once; and where cores are shared,
  // those of all ranks take their turns.
  double uncounted_ns(Collective collective, std::int64_t count) const {
    if (collective == barrier) return 0;
    const Shape shape{.collective = collective, .ranks = ranks_, .count = count};
    const model::Work& work = pricing_.work;
    model::Costs costs(*pricing_.machine, work, shape);
    double ns = 0;
    if (collective == scatter || collective == reduce_scatter) ns += costs.copy(count).sum();
    if (work.engine == model::Engine::helping) {
      const std::int64_t elements =
          schedule::input_count(shape, 0) + schedule::output_count(shape, 0);
      ns += costs.message(false, elements).occupies.bytes;
    }
    return ns * (1 + (work.cores < ranks_ ? static_cast<double>(ranks_) / work.cores : 0));
  }

  static std::string name_of(const Priced& each) {
    if (each.row == nullptr) return "nothing";
    return std::string(schedule::collective_name(each.row->collective)) + " " +
           algorithm::describe(*each.row, each.parameters);
  }

  int ranks_;
  Pricing pricing_;
  std::map<std::pair<Collective, std::int64_t>, Priced> known_;
};

TEST(PredictedGuidelines, NoneIsViolated) {
  int compared = 0;
  for (const bool is_helped : {false, true}) {
    for (const int ranks : {2, 3, 4, 5, 8, 16}) {
      Predictions of(ranks, {.engine = is_helped ? model::Engine::helping : model::Engine::inline_,
                             .cores = is_helped ? 2 : ranks});
      for (const std::int64_t share : {1, 64, 1024, 8192, 65536}) {
        for (const Guideline& guideline : guidelines()) {
          of.expect_no_violation(guideline, share);
          ++compared;
        }
      }
    }
  }
  EXPECT_EQ(compared, 900);
}

}  // namespace
}  // namespace unisono::select::predicted_guidelines_test
