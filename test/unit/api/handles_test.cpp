// SPDX-License-Identifier: BSD-3-Clause
// Handles that are NULL, garbage, ended or used twice, missing places for results, and the results
// of the small functions. Always an error on the calling rank, never a crash, and no effect on the
// rest.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "harness/outcome.hpp"
#include "harness/threads.hpp"
#include "unisono/unisono.h"

namespace unisono::harness::handles_test {
namespace {

struct NamedCall {
  const char* function;
  std::function<int(unisono_comm_t)> call;
};

// Memory that invalid calls may name; nothing must ever be written to it.
struct Scratch {
  std::int32_t in = 7;
  std::int32_t out[8] = {};
};

// Every function that takes a communicator, with arguments that are right otherwise.
std::vector<NamedCall> calls_on_a_communicator(Scratch& s) {
  const auto request = [] {
    static thread_local unisono_request_t place;
    return &place;
  };
  const auto plan = [] {
    static thread_local unisono_plan_t place;
    return &place;
  };
  const auto comm = [] {
    static thread_local unisono_comm_t place;
    return &place;
  };
  constexpr unisono_type_t kType = UNISONO_INT32;
  return {
      {"unisono_finalize", [](unisono_comm_t c) { return unisono_finalize(c); }},
      {"unisono_comm_rank", [&s](unisono_comm_t c) { return unisono_comm_rank(c, s.out); }},
      {"unisono_comm_size", [&s](unisono_comm_t c) { return unisono_comm_size(c, s.out); }},
      {"unisono_comm_dup", [=](unisono_comm_t c) { return unisono_comm_dup(c, comm()); }},
      {"unisono_comm_split", [=](unisono_comm_t c) { return unisono_comm_split(c, 0, 0, comm()); }},
      {"unisono_comm_from_list",
       [=](unisono_comm_t c) {
         const int zero = 0;
         return unisono_comm_from_list(c, &zero, 1, comm());
       }},
      {"unisono_shrink", [=](unisono_comm_t c) { return unisono_shrink(c, comm()); }},
      {"unisono_publish", [](unisono_comm_t c) { return unisono_publish(c, 1); }},
      {"unisono_query",
       [&s](unisono_comm_t c) { return unisono_query(c, UNISONO_EQUAL, 0, s.out); }},
      {"unisono_comm_rank_state",
       [](unisono_comm_t c) {
         unisono_rank_state_t state{};
         state.size = sizeof state;
         return unisono_comm_rank_state(c, 0, &state);
       }},
      {"unisono_comm_free", [](unisono_comm_t c) { return unisono_comm_free(c); }},
      {"unisono_comm_info",
       [](unisono_comm_t c) {
         unisono_comm_info_t info{};
         info.size = sizeof info;
         return unisono_comm_info(c, &info);
       }},
      {"unisono_barrier", [](unisono_comm_t c) { return unisono_barrier(c); }},
      {"unisono_broadcast",
       [&s](unisono_comm_t c) { return unisono_broadcast(s.out, 1, kType, 0, c); }},
      {"unisono_reduce",
       [&s](unisono_comm_t c) {
         return unisono_reduce(&s.in, s.out, 1, kType, UNISONO_SUM, 0, c);
       }},
      {"unisono_allreduce",
       [&s](unisono_comm_t c) {
         return unisono_allreduce(&s.in, s.out, 1, kType, UNISONO_SUM, c);
       }},
      {"unisono_allgather",
       [&s](unisono_comm_t c) { return unisono_allgather(&s.in, s.out, 1, kType, c); }},
      {"unisono_barrier_start",
       [=](unisono_comm_t c) { return unisono_barrier_start(c, request()); }},
      {"unisono_broadcast_start",
       [=, &s](unisono_comm_t c) {
         return unisono_broadcast_start(s.out, 1, kType, 0, c, request());
       }},
      {"unisono_reduce_start",
       [=, &s](unisono_comm_t c) {
         return unisono_reduce_start(&s.in, s.out, 1, kType, UNISONO_SUM, 0, c, request());
       }},
      {"unisono_allreduce_start",
       [=, &s](unisono_comm_t c) {
         return unisono_allreduce_start(&s.in, s.out, 1, kType, UNISONO_SUM, c, request());
       }},
      {"unisono_allgather_start",
       [=, &s](unisono_comm_t c) {
         return unisono_allgather_start(&s.in, s.out, 1, kType, c, request());
       }},
      {"unisono_barrier_plan", [=](unisono_comm_t c) { return unisono_barrier_plan(c, plan()); }},
      {"unisono_broadcast_plan",
       [=, &s](unisono_comm_t c) { return unisono_broadcast_plan(s.out, 1, kType, 0, c, plan()); }},
      {"unisono_reduce_plan",
       [=, &s](unisono_comm_t c) {
         return unisono_reduce_plan(&s.in, s.out, 1, kType, UNISONO_SUM, 0, c, plan());
       }},
      {"unisono_allreduce_plan",
       [=, &s](unisono_comm_t c) {
         return unisono_allreduce_plan(&s.in, s.out, 1, kType, UNISONO_SUM, c, plan());
       }},
      {"unisono_allgather_plan",
       [=, &s](unisono_comm_t c) {
         return unisono_allgather_plan(&s.in, s.out, 1, kType, c, plan());
       }},
  };
}

void expect_all_refuse(unisono_comm_t comm, const std::vector<int>& allowed) {
  Scratch scratch;
  for (const NamedCall& one : calls_on_a_communicator(scratch)) {
    SCOPED_TRACE(one.function);
    EXPECT_TRUE(failed_with_any(one.call(comm), allowed, {one.function}));
  }
  for (const std::int32_t value : scratch.out) EXPECT_EQ(value, 0);
}

const std::vector<int> kStateOrArgument = {UNISONO_ERROR_STATE, UNISONO_ERROR_ARGUMENT};

template <class Handle>
std::vector<Handle> garbage() {
  alignas(64) static std::array<unsigned char, 1024> noise = [] {
    std::array<unsigned char, 1024> bytes{};
    bytes.fill(0x5a);
    return bytes;
  }();
  return {reinterpret_cast<Handle>(std::uintptr_t{1}),
          reinterpret_cast<Handle>(std::uintptr_t{64}),
          reinterpret_cast<Handle>(std::uintptr_t{0x00007fffdeadbee0}),
          reinterpret_cast<Handle>(~std::uintptr_t{0}),
          reinterpret_cast<Handle>(std::uintptr_t{1} << 63),
          reinterpret_cast<Handle>(noise.data())};
}

TEST(Handles, NoCommunicatorBeforeInit) { expect_all_refuse(nullptr, kStateOrArgument); }

TEST(Handles, GarbageIsNoCommunicator) {
  for (const unisono_comm_t comm : garbage<unisono_comm_t>()) {
    expect_all_refuse(comm, kStateOrArgument);
  }
}

TEST(Handles, GarbageIsNoCommunicatorWhileOthersLive) {
  run_threads(2, [](ThreadRank& self) {
    expect_all_refuse(nullptr, kStateOrArgument);
    for (const unisono_comm_t comm : garbage<unisono_comm_t>()) {
      expect_all_refuse(comm, kStateOrArgument);
    }
    EXPECT_TRUE(succeeded(unisono_barrier(self.world)));
  });
}

TEST(Handles, AFreedCommunicatorIsRefusedByEverything) {
  run_threads(3, [](ThreadRank& self) {
    unisono_comm_t copy = nullptr;
    ASSERT_TRUE(succeeded(unisono_comm_dup(self.world, &copy)));
    ASSERT_TRUE(succeeded(unisono_comm_free(copy)));
    expect_all_refuse(copy, {UNISONO_ERROR_STATE});
    // A new communicator in its place does not bring the old handle back.
    unisono_comm_t next = nullptr;
    ASSERT_TRUE(succeeded(unisono_comm_dup(self.world, &next)));
    EXPECT_NE(next, copy);
    expect_all_refuse(copy, {UNISONO_ERROR_STATE});
    ASSERT_TRUE(succeeded(unisono_barrier(next)));
    EXPECT_TRUE(succeeded(unisono_comm_free(next)));
  });
}

TEST(Handles, AfterFinalizeEverythingIsRefused) {
  run_threads(3, [](ThreadRank& self) {
    unisono_comm_t copy = nullptr;
    unisono_plan_t plan = nullptr;
    ASSERT_TRUE(succeeded(unisono_comm_dup(self.world, &copy)));
    ASSERT_TRUE(succeeded(unisono_barrier_plan(copy, &plan)));
    ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
    ASSERT_TRUE(succeeded(self.finalize()));
    expect_all_refuse(self.world, {UNISONO_ERROR_STATE});
    expect_all_refuse(copy, {UNISONO_ERROR_STATE});
    EXPECT_TRUE(failed(unisono_plan_start(plan), UNISONO_ERROR_STATE, {"unisono_plan_start"}));
    EXPECT_TRUE(succeeded(unisono_plan_free(plan))) << "a plan can always be given back";
    EXPECT_TRUE(failed(unisono_plan_free(plan), UNISONO_ERROR_STATE, {"unisono_plan_free"}));
  });
}

TEST(Handles, TheWorldIsFinalizedAndOthersAreFreed) {
  run_threads(2, [](ThreadRank& self) {
    unisono_comm_t copy = nullptr;
    ASSERT_TRUE(succeeded(unisono_comm_dup(self.world, &copy)));
    EXPECT_TRUE(failed_with_any(unisono_comm_free(self.world), kStateOrArgument,
                                {"unisono_comm_free", "unisono_finalize"}));
    EXPECT_TRUE(failed_with_any(unisono_finalize(copy), kStateOrArgument,
                                {"unisono_finalize", "unisono_comm_free"}));
    EXPECT_TRUE(succeeded(unisono_barrier(copy)));
    EXPECT_TRUE(succeeded(unisono_barrier(self.world)));
    EXPECT_TRUE(succeeded(unisono_comm_free(copy)));
  });
}

TEST(Handles, LocalCallsWithoutAPlaceForTheResult) {
  run_threads(2, [](ThreadRank& self) {
    const auto expect = [](int error, const char* function) {
      EXPECT_TRUE(failed_with_any(error, kStateOrArgument, {function, "NULL"}));
    };
    expect(unisono_comm_rank(self.world, nullptr), "unisono_comm_rank");
    expect(unisono_comm_size(self.world, nullptr), "unisono_comm_size");
    expect(unisono_comm_info(self.world, nullptr), "unisono_comm_info");
    expect(unisono_query(self.world, UNISONO_EQUAL, 0, nullptr), "unisono_query");
    expect(unisono_comm_rank_state(self.world, 0, nullptr), "unisono_comm_rank_state");
    expect(unisono_shrink(self.world, nullptr), "unisono_shrink");
    expect(unisono_barrier_plan(self.world, nullptr), "unisono_barrier_plan");
    expect(unisono_test(nullptr, nullptr), "unisono_test");
    expect(unisono_wait(nullptr), "unisono_wait");
    expect(unisono_wait_all(nullptr, 2), "unisono_wait_all");
    expect(unisono_cancel(nullptr), "unisono_cancel");
    int index = 0;
    expect(unisono_wait_any(nullptr, 2, &index), "unisono_wait_any");
    unisono_request_t none = nullptr;
    expect(unisono_wait_any(&none, 1, nullptr), "unisono_wait_any");
    EXPECT_TRUE(failed(unisono_wait_any(&none, -1, &index), UNISONO_ERROR_ARGUMENT, {"-1"}));
    EXPECT_TRUE(failed(unisono_wait_all(&none, -1), UNISONO_ERROR_ARGUMENT, {"-1"}));
    unisono_comm_info_t info{};
    info.size = 0;
    EXPECT_TRUE(failed(unisono_comm_info(self.world, &info), UNISONO_ERROR_ARGUMENT, {"size"}));
    EXPECT_TRUE(succeeded(unisono_barrier(self.world))) << "local errors stay local";
  });
}

// ---- requests and plans ----

TEST(Handles, ARequestIsUsedOnce) {
  run_threads(2, [](ThreadRank& self) {
    unisono_request_t request = nullptr;
    ASSERT_TRUE(succeeded(unisono_barrier_start(self.world, &request)));
    unisono_request_t copy = request;
    unisono_request_t both[2] = {request, nullptr};
    ASSERT_TRUE(succeeded(unisono_wait(&request)));
    int done = 0;
    int index = 0;
    EXPECT_TRUE(failed(unisono_wait(&copy), UNISONO_ERROR_STATE, {"unisono_wait"}));
    EXPECT_TRUE(failed(unisono_test(&copy, &done), UNISONO_ERROR_STATE, {"unisono_test"}));
    EXPECT_TRUE(failed(unisono_cancel(&copy), UNISONO_ERROR_STATE, {"unisono_cancel"}));
    EXPECT_TRUE(failed(unisono_wait_any(both, 2, &index), UNISONO_ERROR_STATE));
    EXPECT_TRUE(failed(unisono_wait_all(both, 2), UNISONO_ERROR_STATE));
    // A new request in its place does not bring the copy back.
    ASSERT_TRUE(succeeded(unisono_barrier_start(self.world, &request)));
    EXPECT_TRUE(failed(unisono_wait(&copy), UNISONO_ERROR_STATE));
    ASSERT_TRUE(succeeded(unisono_wait(&request)));
    EXPECT_TRUE(succeeded(unisono_barrier(self.world)));
  });
}

TEST(Handles, GarbageIsNoRequestAndNoPlan) {
  run_threads(2, [](ThreadRank& self) {
    int done = 0;
    int index = 0;
    for (unisono_request_t request : garbage<unisono_request_t>()) {
      EXPECT_TRUE(failed_with_any(unisono_wait(&request), kStateOrArgument));
      EXPECT_TRUE(failed_with_any(unisono_test(&request, &done), kStateOrArgument));
      EXPECT_TRUE(failed_with_any(unisono_cancel(&request), kStateOrArgument));
      EXPECT_TRUE(failed_with_any(unisono_wait_any(&request, 1, &index), kStateOrArgument));
      EXPECT_TRUE(failed_with_any(unisono_wait_all(&request, 1), kStateOrArgument));
    }
    std::vector<unisono_plan_t> plans = garbage<unisono_plan_t>();
    plans.push_back(nullptr);
    for (const unisono_plan_t plan : plans) {
      EXPECT_TRUE(failed_with_any(unisono_plan_start(plan), kStateOrArgument));
      EXPECT_TRUE(failed_with_any(unisono_plan_test(plan, &done), kStateOrArgument));
      EXPECT_TRUE(failed_with_any(unisono_plan_wait(plan), kStateOrArgument));
      EXPECT_TRUE(failed_with_any(unisono_plan_free(plan), kStateOrArgument));
    }
    EXPECT_TRUE(succeeded(unisono_barrier(self.world)));
  });
}

// ---- jobs of threads ----

TEST(ThreadJobs, RefuseWhatMakesNoSense) {
  unisono_threads_t threads = nullptr;
  EXPECT_TRUE(failed(unisono_threads_create(0, &threads), UNISONO_ERROR_ARGUMENT, {"ranks"}));
  EXPECT_TRUE(failed(unisono_threads_create(-3, &threads), UNISONO_ERROR_ARGUMENT, {"-3"}));
  EXPECT_TRUE(failed(unisono_threads_create(2, nullptr), UNISONO_ERROR_ARGUMENT));
  EXPECT_TRUE(failed_with_any(unisono_threads_free(nullptr), kStateOrArgument));
  unisono_comm_t world = nullptr;
  EXPECT_TRUE(failed_with_any(unisono_init_thread(nullptr, 0, &world), kStateOrArgument));
  ASSERT_TRUE(succeeded(unisono_threads_create(1, &threads)));
  EXPECT_TRUE(failed(unisono_init_thread(threads, -1, &world), UNISONO_ERROR_ARGUMENT, {"rank"}));
  EXPECT_TRUE(failed(unisono_init_thread(threads, 1, &world), UNISONO_ERROR_ARGUMENT, {"rank"}));
  EXPECT_TRUE(failed(unisono_init_thread(threads, 0, nullptr), UNISONO_ERROR_ARGUMENT));
  ASSERT_TRUE(succeeded(unisono_init_thread(threads, 0, &world)));
  unisono_comm_t again = nullptr;
  EXPECT_TRUE(failed(unisono_init_thread(threads, 0, &again), UNISONO_ERROR_STATE,
                     {"unisono_init_thread", "taken"}));
  ASSERT_TRUE(succeeded(unisono_barrier(world)));
  ASSERT_TRUE(succeeded(unisono_finalize(world)));
  ASSERT_TRUE(succeeded(unisono_threads_free(threads)));
}

TEST(ThreadJobs, AHandleThatHasEndedIsAnError) {
  unisono_threads_t ended = nullptr;
  ASSERT_TRUE(succeeded(unisono_threads_create(1, &ended)));
  ASSERT_TRUE(succeeded(unisono_threads_free(ended)));
  unisono_threads_t living = nullptr;  // it may have the ended one's place
  ASSERT_TRUE(succeeded(unisono_threads_create(1, &living)));
  unisono_comm_t world = nullptr;
  EXPECT_TRUE(failed(unisono_threads_free(ended), UNISONO_ERROR_STATE,
                     {"unisono_threads_free", "has ended"}));
  EXPECT_TRUE(failed(unisono_init_thread(ended, 0, &world), UNISONO_ERROR_STATE,
                     {"unisono_init_thread", "has ended"}));
  EXPECT_EQ(world, nullptr);
  for (const unisono_threads_t threads : garbage<unisono_threads_t>()) {
    EXPECT_TRUE(failed(unisono_threads_free(threads), UNISONO_ERROR_STATE));
    EXPECT_TRUE(failed(unisono_init_thread(threads, 0, &world), UNISONO_ERROR_STATE));
  }
  ASSERT_TRUE(succeeded(unisono_init_thread(living, 0, &world)));
  ASSERT_TRUE(succeeded(unisono_finalize(world)));
  ASSERT_TRUE(succeeded(unisono_threads_free(living)));
}

// ---- the small functions ----

TEST(LastError, IsOfTheCallingThread) {
  EXPECT_TRUE(failed_with_any(unisono_barrier(nullptr), kStateOrArgument));
  EXPECT_STRNE(unisono_last_error(), "");
  std::thread([] { EXPECT_STREQ(unisono_last_error(), ""); }).join();
}

TEST(Names, OfErrorsAndVersion) {
  EXPECT_STREQ(unisono_error_name(UNISONO_OK), "ok");
  EXPECT_STREQ(unisono_error_name(UNISONO_ERROR_MISMATCH), "mismatch");
  EXPECT_STREQ(unisono_error_name(UNISONO_ERROR_RANK_LOST), "rank_lost");
  EXPECT_STREQ(unisono_error_name(UNISONO_ERROR_CANCELLED), "cancelled");
  EXPECT_STREQ(unisono_error_name(-1), "unknown");
  EXPECT_STREQ(unisono_error_name(12), "unknown");
  const std::string version = std::to_string(UNISONO_VERSION_MAJOR) + "." +
                              std::to_string(UNISONO_VERSION_MINOR) + "." +
                              std::to_string(UNISONO_VERSION_PATCH);
  EXPECT_EQ(unisono_version(), version);
}

void do_nothing(void*, const void*, const void*, std::int64_t, unisono_type_t, void*) {}

TEST(Types, SizesAndRefusals) {
  constexpr std::size_t kSizes[] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16, 8, 8, 16, 8, 16};
  for (unisono_type_t type = 0; type < 20; ++type) {
    EXPECT_EQ(unisono_type_size(type), kSizes[type]) << type;
  }
  EXPECT_EQ(unisono_type_size(-1), 0U);
  EXPECT_EQ(unisono_type_size(1 << 30), 0U);
  unisono_type_t type = 0;
  EXPECT_TRUE(failed(unisono_type_create(0, 1, &type), UNISONO_ERROR_ARGUMENT, {"size"}));
  EXPECT_TRUE(failed(unisono_type_create(SIZE_MAX, 1, &type), UNISONO_ERROR_ARGUMENT, {"size"}));
  EXPECT_TRUE(failed(unisono_type_create(8, 0, &type), UNISONO_ERROR_ARGUMENT, {"alignment"}));
  EXPECT_TRUE(failed(unisono_type_create(9, 3, &type), UNISONO_ERROR_ARGUMENT, {"alignment"}));
  EXPECT_TRUE(failed(unisono_type_create(128, 128, &type), UNISONO_ERROR_ARGUMENT, {"alignment"}));
  EXPECT_TRUE(failed(unisono_type_create(12, 8, &type), UNISONO_ERROR_ARGUMENT,
                     {"unisono_type_create", "size 12", "alignment 8"}));
  EXPECT_TRUE(failed(unisono_type_create(4, 8, &type), UNISONO_ERROR_ARGUMENT, {"alignment 8"}));
  EXPECT_TRUE(succeeded(unisono_type_create(12, 4, &type)));
  EXPECT_TRUE(failed(unisono_type_create(8, 8, nullptr), UNISONO_ERROR_ARGUMENT));
  unisono_op_t op = 0;
  EXPECT_TRUE(
      failed(unisono_op_create(nullptr, 1, nullptr, &op), UNISONO_ERROR_ARGUMENT, {"function"}));
  EXPECT_TRUE(failed(unisono_op_create(do_nothing, 1, nullptr, nullptr), UNISONO_ERROR_ARGUMENT));
}

TEST(Types, BuiltInOperatorsDoNotFitOpaqueTypes) {
  unisono_type_t type = 0;
  ASSERT_TRUE(succeeded(unisono_type_create(8, 8, &type)));
  run_threads(1, [&](ThreadRank& self) {
    std::int64_t in = 0;
    std::int64_t out = 0;
    EXPECT_TRUE(failed(unisono_allreduce(&in, &out, 1, type, UNISONO_SUM, self.world),
                       UNISONO_ERROR_TYPE, {"unisono_allreduce", "sum"}));
    self.finalize();
  });
}

}  // namespace
}  // namespace unisono::harness::handles_test
