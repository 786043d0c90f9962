// SPDX-License-Identifier: BSD-3-Clause
// Ranks that wait for one communicator while another has operations under way: the last rank comes
// later and is done with these before it comes to the communicator for which the others wait. So
// they have to go on there. For the bodies of tests, with any struct that has rank, ranks, world.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <vector>

#include "harness/outcome.hpp"
#include "unisono/unisono.h"

namespace unisono::harness {

// As UNISONO_SUM of INT64, by the program.
inline void add_int64(void* target, const void* left, const void* right, std::int64_t count,
                      unisono_type_t, void*) {
  for (std::int64_t i = 0; i < count; ++i) {
    static_cast<std::int64_t*>(target)[i] =
        static_cast<const std::int64_t*>(left)[i] + static_cast<const std::int64_t*>(right)[i];
  }
}

// Short sums, more than may be in flight in any engine, or long ones, which take several rounds of
// messages. The others wait in a blocking call, or for a request.
template <class Self>
void check_wait_elsewhere(const Self& self, unisono_comm_t other, unisono_op_t op,
                          std::int64_t count, bool blocks) {
  const std::size_t sums = count > 10'000 ? 3 : 12;
  const bool is_late = self.rank == self.ranks - 1;
  const auto length = static_cast<std::size_t>(count);
  std::vector<std::vector<std::int64_t>> in(sums), out(sums);
  std::vector<unisono_request_t> requests(sums);
  if (is_late) usleep(30'000);  // the others sleep by then
  for (std::size_t i = 0; i < sums; ++i) {
    in[i].assign(length, self.rank + static_cast<std::int64_t>(i));
    out[i].assign(length, -1);
    ASSERT_TRUE(succeeded(unisono_allreduce_start(in[i].data(), out[i].data(), count, UNISONO_INT64,
                                                  op, self.world, &requests[i])));
  }
  const auto collect = [&] {
    for (unisono_request_t& request : requests) ASSERT_TRUE(succeeded(unisono_wait(&request)));
  };
  const auto come_to_the_other = [&] {
    unisono_request_t request = nullptr;
    if (blocks) {
      ASSERT_TRUE(succeeded(unisono_barrier(other)));
    } else {
      ASSERT_TRUE(succeeded(unisono_barrier_start(other, &request)));
      ASSERT_TRUE(succeeded(unisono_wait(&request)));
    }
  };
  if (is_late) {
    ASSERT_NO_FATAL_FAILURE(collect());
  }
  ASSERT_NO_FATAL_FAILURE(come_to_the_other());
  if (!is_late) {
    ASSERT_NO_FATAL_FAILURE(collect());
  }
  for (std::size_t i = 0; i < sums; ++i) {
    const auto ranks = static_cast<std::int64_t>(self.ranks);
    const std::int64_t sum = ranks * (ranks - 1) / 2 + ranks * static_cast<std::int64_t>(i);
    ASSERT_EQ(out[i], std::vector<std::int64_t>(length, sum)) << i;
  }
}

// With an operator of the library and one of the program, which only its own threads call.
template <class Self>
void check_waits_elsewhere(const Self& self) {
  unisono_comm_t other = nullptr;
  ASSERT_TRUE(succeeded(unisono_comm_dup(self.world, &other)));
  unisono_op_t own_op = 0;
  ASSERT_TRUE(succeeded(unisono_op_create(add_int64, 1, nullptr, &own_op)));
  for (const unisono_op_t op : {UNISONO_SUM + 0, own_op}) {
    for (const std::int64_t count : {1, 1000, 60'000}) {
      for (const bool blocks : {true, false}) {
        SCOPED_TRACE(testing::Message() << (op == own_op ? "own operator" : "sum") << ", count "
                                        << count << ", blocks " << blocks);
        ASSERT_NO_FATAL_FAILURE(check_wait_elsewhere(self, other, op, count, blocks));
      }
    }
  }
  ASSERT_TRUE(succeeded(unisono_comm_free(other)));
}

}  // namespace unisono::harness
