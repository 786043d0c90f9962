// SPDX-License-Identifier: BSD-3-Clause
// A function of an operator that cannot combine its operands (unisono_op_fail): no rank gets a
// wrong result, all ranks hear of it, and other communicators go on.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/outcome.hpp"
#include "harness/threads.hpp"
#include "unisono/unisono.h"

namespace unisono::harness::operator_failure_test {
namespace {

// Whether the function fails on this thread.
thread_local bool fails_here = false;

void add_or_fail(void* target, const void* left, const void* right, std::int64_t count,
                 unisono_type_t, void* user) {
  if (fails_here) {
    static_cast<std::atomic<bool>*>(user)->store(true);
    EXPECT_EQ(unisono_op_fail("too large"), UNISONO_OK);
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    static_cast<std::int64_t*>(target)[i] =
        static_cast<const std::int64_t*>(left)[i] + static_cast<const std::int64_t*>(right)[i];
  }
}

std::atomic<bool> has_failed{false};

unisono_op_t adding() {
  static const unisono_op_t made = [] {
    unisono_op_t op = -1;
    EXPECT_TRUE(succeeded(unisono_op_create(add_or_fail, 1, &has_failed, &op)));
    return op;
  }();
  return made;
}

enum class Form { blocking, split_phase, persistent };

struct Case {
  Form form;
  unisono_comm_t comm;
  const std::int64_t* input;
  std::int64_t* output;
  std::int64_t count;
};

// The code of an allreduce.
int reduce(const Case& c) {
  const auto [form, comm, input, output, count] = c;
  if (form == Form::blocking) {
    return unisono_allreduce(input, output, count, UNISONO_INT64, adding(), comm);
  }
  if (form == Form::split_phase) {
    unisono_request_t request = nullptr;
    const int code =
        unisono_allreduce_start(input, output, count, UNISONO_INT64, adding(), comm, &request);
    return code == UNISONO_OK ? unisono_wait(&request) : code;
  }
  unisono_plan_t plan = nullptr;
  int code = unisono_allreduce_plan(input, output, count, UNISONO_INT64, adding(), comm, &plan);
  if (code == UNISONO_OK) code = unisono_plan_start(plan);
  if (code == UNISONO_OK) code = unisono_plan_wait(plan);
  const std::string text = unisono_last_error();
  if (plan != nullptr) unisono_plan_free(plan);
  if (code != UNISONO_OK) {
    EXPECT_NE(text.find("too large"), std::string::npos) << text;
  }
  return code;
}

void expect_told(unisono_comm_t comm, int code, int victim) {
  EXPECT_EQ(code, UNISONO_ERROR_PEER_ARGUMENT);
  const std::string text = unisono_last_error();
  const std::string wanted =
      "the operator failed on rank " + std::to_string(victim) + ": too large";
  EXPECT_NE(text.find(wanted), std::string::npos) << text;
  int cause = -1;
  EXPECT_TRUE(succeeded(unisono_comm_failed_rank(comm, &cause)));
  EXPECT_EQ(cause, victim);
}

std::vector<std::int64_t> values(std::int64_t count, std::int64_t value) {
  return std::vector<std::int64_t>(static_cast<std::size_t>(count), value);
}

class FailingOperator : public testing::TestWithParam<Form> {};

TEST_P(FailingOperator, GivesNoRankAWrongResult) {
  std::atomic<int> told = 0;
  for (int ranks = 2; ranks <= 6; ++ranks) {
    for (const std::int64_t count : {1, 100, 5000, 100000}) {
      SCOPED_TRACE(testing::Message() << ranks << " ranks, " << count << " elements");
      const int victim = static_cast<int>(count) % ranks;
      has_failed = false;
      run_threads(ranks, [&](ThreadRank& self) {
        const auto input = values(count, self.rank);
        auto output = values(count, -1);
        fails_here = self.rank == victim;
        const int code = reduce({GetParam(), self.world, input.data(), output.data(), count});
        fails_here = false;
        told += code == UNISONO_OK ? 0 : 1;
        const auto right = values(count, ranks * (ranks - 1) / 2);
        if (code == UNISONO_OK) {
          EXPECT_EQ(output, right);
        }
        if (code != UNISONO_OK && GetParam() != Form::persistent)
          expect_told(self.world, code, victim);
        // All ranks hear of it, and go on together.
        const int later = unisono_barrier(self.world);
        EXPECT_EQ(later == UNISONO_OK, !has_failed);
        if (later != UNISONO_OK) expect_told(self.world, later, victim);
        if (later == UNISONO_OK) return;
        unisono_comm_t next = nullptr;
        ASSERT_TRUE(succeeded(unisono_shrink(self.world, &next)));
        int size = 0;
        ASSERT_TRUE(succeeded(unisono_comm_size(next, &size)));
        EXPECT_EQ(size, ranks);
        EXPECT_EQ(reduce({Form::blocking, next, input.data(), output.data(), count}), UNISONO_OK);
        EXPECT_EQ(output, right);
        EXPECT_TRUE(succeeded(unisono_comm_free(next)));
      });
    }
  }
  EXPECT_GT(told, 0);  // in the call itself
}

std::string name_of(const testing::TestParamInfo<Form>& form) {
  constexpr const char* kNames[] = {"Blocking", "SplitPhase", "Persistent"};
  return kNames[static_cast<int>(form.param)];
}

INSTANTIATE_TEST_SUITE_P(Forms, FailingOperator,
                         testing::Values(Form::blocking, Form::split_phase, Form::persistent),
                         name_of);

TEST(OperatorFailure, IsOfItsCommunicatorOnly) {
  constexpr int kRanks = 3, kVictim = 1;
  constexpr std::int64_t kCount = 1000;
  has_failed = false;
  run_threads(kRanks, [&](ThreadRank& self) {
    unisono_comm_t other = nullptr;
    ASSERT_TRUE(succeeded(unisono_comm_dup(self.world, &other)));
    const auto input = values(kCount, self.rank);
    auto output = values(kCount, -1);
    fails_here = self.rank == kVictim;
    unisono_request_t request = nullptr;
    const int begun = unisono_allreduce_start(input.data(), output.data(), kCount, UNISONO_INT64,
                                              adding(), self.world, &request);
    // The function may run in these waits.
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(succeeded(unisono_barrier(other)));
    const int code = begun == UNISONO_OK ? unisono_wait(&request) : begun;
    fails_here = false;
    if (code == UNISONO_OK) {
      EXPECT_EQ(output, values(kCount, 3));
    } else {
      expect_told(self.world, code, kVictim);
    }
    ASSERT_TRUE(succeeded(unisono_barrier(other)));
    EXPECT_EQ(unisono_barrier(self.world) == UNISONO_OK, !has_failed);
    ASSERT_TRUE(succeeded(unisono_comm_free(other)));
  });
}

void throw_exception(void*, const void*, const void*, std::int64_t, unisono_type_t, void*) {
  throw std::runtime_error("too large");
}
void throw_number(void*, const void*, const void*, std::int64_t, unisono_type_t, void*) { throw 7; }

TEST(OperatorFailure, IsAlsoAnExceptionThatLeavesTheFunction) {
  unisono_op_t by_exception = -1, by_number = -1;
  ASSERT_TRUE(succeeded(unisono_op_create(throw_exception, 1, nullptr, &by_exception)));
  ASSERT_TRUE(succeeded(unisono_op_create(throw_number, 0, nullptr, &by_number)));
  run_threads(3, [&](ThreadRank& self) {
    const auto expect_failure = [&](unisono_op_t op, const char* wanted) {
      unisono_comm_t own = nullptr;
      ASSERT_TRUE(succeeded(unisono_comm_dup(self.world, &own)));
      const std::int64_t input = 1;
      std::int64_t output = -1;
      const int code = unisono_allreduce(&input, &output, 1, UNISONO_INT64, op, own);
      EXPECT_TRUE(failed(code, UNISONO_ERROR_PEER_ARGUMENT, {"the operator failed", wanted}));
      EXPECT_EQ(std::uncaught_exceptions(), 0);
      ASSERT_TRUE(succeeded(unisono_comm_free(own)));
    };
    expect_failure(by_exception, "its function throws: too large");
    expect_failure(by_number, "its function throws");
  });
}

// Calls collectives on the communicator that its user is given, and checks what they return.
void add_and_call(void* target, const void* left, const void* right, std::int64_t, unisono_type_t,
                  void* user) {
  *static_cast<std::int64_t*>(target) =
      *static_cast<const std::int64_t*>(left) + *static_cast<const std::int64_t*>(right);
  const unisono_comm_t comm = *static_cast<unisono_comm_t*>(user);
  const auto refused = [](int code) {
    return failed(code, UNISONO_ERROR_STATE, {"the function of an operator calls it"});
  };
  int size = 0;
  EXPECT_TRUE(succeeded(unisono_comm_size(comm, &size)));
  EXPECT_EQ(size, 3);
  unisono_comm_t other = nullptr;
  unisono_request_t request = nullptr;
  unisono_plan_t plan = nullptr;
  EXPECT_TRUE(refused(unisono_comm_dup(comm, &other)));
  EXPECT_TRUE(refused(unisono_comm_free(comm)));
  EXPECT_TRUE(refused(unisono_barrier_plan(comm, &plan)));
  EXPECT_TRUE(refused(unisono_finalize(comm)));
  EXPECT_TRUE(refused(unisono_wait(&request)));
  EXPECT_TRUE(refused(unisono_plan_start(plan)));
  EXPECT_TRUE(refused(unisono_barrier_start(comm, &request)));
  EXPECT_TRUE(refused(unisono_barrier(comm)));
}

TEST(OperatorFailure, ItsFunctionMakesNoCalls) {
  static unisono_comm_t called = nullptr;  // by the function, on the thread of each rank
  run_threads(3, [&](ThreadRank& self) {
    unisono_op_t op = -1;
    unisono_comm_t own = nullptr;
    ASSERT_TRUE(succeeded(unisono_comm_dup(self.world, &own)));
    if (self.rank == 0) called = own;
    ASSERT_TRUE(succeeded(unisono_barrier(own)));  // a blocking call that could be repeated
    ASSERT_TRUE(succeeded(unisono_op_create(add_and_call, 1, &called, &op)));
    const std::int64_t input = 1;
    std::int64_t output = -1;
    const int code = unisono_allreduce(&input, &output, 1, UNISONO_INT64, op, own);
    EXPECT_TRUE(failed(code, UNISONO_ERROR_PEER_ARGUMENT,
                       {"the operator failed", "the function of an operator calls it"}));
    ASSERT_TRUE(succeeded(unisono_comm_free(own)));
    ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
  });
}

TEST(OperatorFailure, OutsideOfAFunctionIsAnError) {
  EXPECT_TRUE(failed(unisono_op_fail("why"), UNISONO_ERROR_STATE, {"no function"}));
}

}  // namespace
}  // namespace unisono::harness::operator_failure_test
