// SPDX-License-Identifier: BSD-3-Clause
// UNISONO_HETEROGENEOUS in real jobs. The operators here give other bits at each rank, as
// processors with different arithmetic do, and count where they are applied. One rank applies them
// to each element: the root of a reduce, otherwise rank 0.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "harness/outcome.hpp"
#include "harness/scale.hpp"
#include "process/ranks.hpp"

namespace unisono::harness::by_one_test {
namespace {

int own_rank = 0;
std::int64_t applied = 0;  // elements, at this rank

double combined(double left, double right, int by) { return left * 0.75 + right * (1.0 + by); }

void combine(void* target, const void* left, const void* right, std::int64_t count, unisono_type_t,
             void*) {
  applied += count;
  for (std::int64_t i = 0; i < count; ++i) {
    static_cast<double*>(target)[i] = combined(static_cast<const double*>(left)[i],
                                               static_cast<const double*>(right)[i], own_rank);
  }
}

double contribution(int rank, std::int64_t i) {
  return 1.0 / (3.0 * rank + 7) + static_cast<double>(i % 1000) / 11;
}

// One rank combines the contributions of `ranks` ranks, from rank 0 on.
double expected(int ranks, std::int64_t i, int by) {
  double value = contribution(0, i);
  for (int rank = 1; rank < ranks; ++rank) value = combined(value, contribution(rank, i), by);
  return value;
}

enum class Form { blocking, started, persistent };

// A call in one of its forms. The functions take `args` and the communicator.
template <class Blocking, class Started, class Planned, class... Args>
void call(Form form, unisono_comm_t world, Blocking blocking, Started started, Planned planned,
          Args... args) {
  if (form == Form::blocking) {
    ASSERT_TRUE(succeeded(blocking(args..., world)));
  } else if (form == Form::started) {
    unisono_request_t request = nullptr;
    ASSERT_TRUE(succeeded(started(args..., world, &request)));
    ASSERT_TRUE(succeeded(unisono_wait(&request)));
  } else {
    unisono_plan_t plan = nullptr;
    ASSERT_TRUE(succeeded(planned(args..., world, &plan)));
    ASSERT_TRUE(succeeded(unisono_plan_start(plan)));
    ASSERT_TRUE(succeeded(unisono_plan_wait(plan)));
    ASSERT_TRUE(succeeded(unisono_plan_free(plan)));
  }
}
#define CALL(form, world, name, ...) call(form, world, name, name##_start, name##_plan, __VA_ARGS__)

class Caller {
 public:
  // `input` has `count` elements for each rank at least.
  Caller(const ProcessRank& self, Form form, unisono_op_t op, const std::vector<double>& input,
         std::int64_t count)
      : self_(self), form_(form), op_(op), count_(count), input_(input) {}

  void reduce(int root) {
    begin();
    void* const output = self_.rank == root ? output_.data() : nullptr;
    CALL(form_, self_.world, unisono_reduce, in(), output, count_, kType, op_, root);
    if (self_.rank == root) expect_output(self_.ranks, 0, root);
    expect_applied(root, (self_.ranks - 1) * count_);
  }
  void allreduce() {
    begin();
    CALL(form_, self_.world, unisono_allreduce, in(), out(), count_, kType, op_);
    expect_output(self_.ranks, 0, 0);
    expect_applied(0, (self_.ranks - 1) * count_);
  }
  void reduce_scatter() {
    begin();
    CALL(form_, self_.world, unisono_reduce_scatter_block, in(), out(), count_, kType, op_);
    expect_output(self_.ranks, count_ * self_.rank, 0);
    expect_applied(0, (self_.ranks - 1) * count_ * self_.ranks);
  }
  void scan() {
    begin();
    CALL(form_, self_.world, unisono_scan, in(), out(), count_, kType, op_);
    expect_output(self_.rank + 1, 0, 0);
    expect_applied(0, (self_.ranks - 1) * count_);
  }
  void exscan() {
    begin();
    CALL(form_, self_.world, unisono_exscan, in(), out(), count_, kType, op_);
    if (self_.rank > 0) expect_output(self_.rank, 0, 0);
    expect_applied(0, std::max(0, self_.ranks - 2) * count_);
  }

 private:
  static constexpr unisono_type_t kType = UNISONO_FLOAT64;

  const void* in() const { return input_.data(); }
  void* out() { return output_.data(); }
  void begin() {
    output_.assign(static_cast<std::size_t>(count_), -1);
    applied = 0;
  }

  // The first element is that number `first` of the whole vector.
  void expect_output(int ranks, std::int64_t first, int by) const {
    for (std::int64_t i = 0; i < count_; ++i) {
      ASSERT_EQ(output_[static_cast<std::size_t>(i)], expected(ranks, first + i, by))
          << "element " << i << " at rank " << self_.rank;
    }
  }
  // Each element so often, all of them at rank `by`.
  void expect_applied(int by, std::int64_t elements) const {
    EXPECT_EQ(applied, self_.rank == by ? elements : 0) << "at rank " << self_.rank;
  }

  const ProcessRank& self_;
  Form form_;
  unisono_op_t op_;
  std::int64_t count_;
  const std::vector<double>& input_;
  std::vector<double> output_;
};

void call_all(const ProcessRank& self) {
  own_rank = self.rank;
  // The longest goes in several segments.
  const std::vector<std::int64_t> counts = {1, 7, 3000, kSanitized ? 20'001 : 70'001};
  std::vector<double> input(static_cast<std::size_t>(counts.back() * self.ranks));
  for (std::size_t i = 0; i < input.size(); ++i) {
    input[i] = contribution(self.rank, static_cast<std::int64_t>(i));
  }
  for (const int commutes : {0, 1}) {
    unisono_op_t op = -1;
    ASSERT_TRUE(succeeded(unisono_op_create(combine, commutes, nullptr, &op)));
    for (const Form form : {Form::blocking, Form::started, Form::persistent}) {
      for (const std::int64_t count : counts) {
        SCOPED_TRACE(count);
        Caller caller(self, form, op, input, count);
        caller.reduce(0);
        caller.reduce(self.ranks - 1);
        caller.allreduce();
        caller.reduce_scatter();
        caller.scan();
        caller.exscan();
      }
    }
  }
}

ProcessJob::Options with(const std::string& setting, const std::string& value) {
  ProcessJob::Options options;
  options.environment["UNISONO_HETEROGENEOUS"] = "on";
  if (!setting.empty()) options.environment[setting] = value;
  return options;
}

class ByOne : public testing::TestWithParam<int> {};

TEST_P(ByOne, OneRankAppliesTheOperatorsOfUsers) {
  ProcessJob job(GetParam(), call_all, with("", ""));
  job.expect_all_clean();
}

// Rules that ask for something else are passed over.
TEST_P(ByOne, WhateverAlgorithmTheUserAsksFor) {
  ProcessJob job(GetParam(), call_all,
                 with("UNISONO_ALGORITHM",
                      "allreduce:pairwise|reduce:fnomial|reduce_scatter:pairwise|scan:linear"));
  job.expect_all_clean();
}

INSTANTIATE_TEST_SUITE_P(Ranks, ByOne, testing::Range(1, 10),
                         [](const auto& suite) { return "P" + std::to_string(suite.param); });

// Helping ranks would execute steps of the one that computes.
TEST(ByOneBuiltIn, NoRankHelpsAndScansEndWithTheAllreduce) {
  for (const char* reproducible : {"0", "1"}) {
    ProcessJob::Options options = with("UNISONO_ENGINE", "helping");
    options.environment["UNISONO_REPRODUCIBLE"] = reproducible;
    ProcessJob job(
        5,
        [](const ProcessRank& self) {
          std::vector<double> input, all(5000), scanned(5000);
          for (std::int64_t i = 0; i < 5000; ++i) input.push_back(contribution(self.rank, i));
          ASSERT_TRUE(succeeded(unisono_allreduce(input.data(), all.data(), 5000, UNISONO_FLOAT64,
                                                  UNISONO_SUM, self.world)));
          unisono_comm_info_t info = {};
          info.size = sizeof info;
          ASSERT_TRUE(succeeded(unisono_comm_info(self.world, &info)));
          EXPECT_STREQ(info.engine, "inline");
          ASSERT_TRUE(succeeded(unisono_scan(input.data(), scanned.data(), 5000, UNISONO_FLOAT64,
                                             UNISONO_SUM, self.world)));
          if (self.rank == self.ranks - 1) {
            EXPECT_EQ(scanned, all);
          }
        },
        options);
    job.expect_all_clean();
  }
}

// The operators above do find it if several ranks apply them.
TEST(ByOneBuiltIn, WithoutTheSettingSeveralRanksApply) {
  ProcessJob::Options options;
  options.environment["UNISONO_ALGORITHM"] = "allreduce:pairwise";
  ProcessJob job(
      4,
      [](const ProcessRank& self) {
        own_rank = self.rank;
        unisono_op_t op = -1;
        ASSERT_TRUE(succeeded(unisono_op_create(combine, 0, nullptr, &op)));
        const double input = contribution(self.rank, 0);
        double output = 0;
        ASSERT_TRUE(
            succeeded(unisono_allreduce(&input, &output, 1, UNISONO_FLOAT64, op, self.world)));
        EXPECT_GT(applied, 0);
        std::vector<double> all(4);
        ASSERT_TRUE(
            succeeded(unisono_allgather(&output, all.data(), 1, UNISONO_FLOAT64, self.world)));
        EXPECT_NE(all.front(), all.back());
      },
      options);
  job.expect_all_clean();
}

}  // namespace
}  // namespace unisono::harness::by_one_test
