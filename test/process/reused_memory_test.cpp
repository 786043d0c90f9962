// SPDX-License-Identifier: BSD-3-Clause
// Memory that is used again once its rank's call has failed, while another rank has yet to read it:
// that rank gets the failure, too, and never what the memory holds by then. Rank 0 sends, and rank
// 1 makes its call after rank 0 has reused the memory.
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "harness/outcome.hpp"
#include "process/ranks.hpp"

namespace unisono::harness::reused_memory_test {
namespace {

// The vectors of collectives whose blocks are alike, and a block of the others: shorter ones are
// copied at once.
constexpr std::int64_t kCount = 4000, kBlock = 300'000;

using Numbers = std::int64_t;
using Start = std::function<int(const Numbers*, Numbers*, unisono_comm_t, unisono_request_t*)>;
struct Collective {
  const char* name;
  Start start;  // rank 0 sends
  bool is_referred = false;
};

const std::vector<Collective> kCollectives{
    {"broadcast",
     [](const Numbers* input, Numbers* output, unisono_comm_t comm, unisono_request_t* request) {
       int rank = 0;
       unisono_comm_rank(comm, &rank);
       Numbers* data = rank == 0 ? const_cast<Numbers*>(input) : output;
       return unisono_broadcast_start(data, kCount, UNISONO_INT64, 0, comm, request);
     }},
    {"scatter",
     [](const Numbers* input, Numbers* output, unisono_comm_t comm, unisono_request_t* request) {
       return unisono_scatter_start(input, output, kCount / 2, UNISONO_INT64, 0, comm, request);
     }},
    {"gather",
     [](const Numbers* input, Numbers* output, unisono_comm_t comm, unisono_request_t* request) {
       return unisono_gather_start(input, output, kCount / 2, UNISONO_INT64, 1, comm, request);
     }},
    {"reduce",
     [](const Numbers* input, Numbers* output, unisono_comm_t comm, unisono_request_t* request) {
       return unisono_reduce_start(input, output, kCount, UNISONO_INT64, UNISONO_SUM, 1, comm,
                                   request);
     },
     true},
    {"scan",
     [](const Numbers* input, Numbers* output, unisono_comm_t comm, unisono_request_t* request) {
       return unisono_scan_start(input, output, kCount, UNISONO_INT64, UNISONO_SUM, comm, request);
     },
     true},
    {"exscan",
     [](const Numbers* input, Numbers* output, unisono_comm_t comm, unisono_request_t* request) {
       return unisono_exscan_start(input, output, kCount, UNISONO_INT64, UNISONO_SUM, comm,
                                   request);
     },
     true},
    {"scatterv",
     [](const Numbers* input, Numbers* output, unisono_comm_t comm, unisono_request_t* request) {
       const std::int64_t counts[] = {0, kBlock};
       int rank = 0;
       unisono_comm_rank(comm, &rank);
       return unisono_scatterv_start(input, counts, nullptr, output, counts[rank], UNISONO_INT64, 0,
                                     comm, request);
     }},
    {"gatherv",
     [](const Numbers* input, Numbers* output, unisono_comm_t comm, unisono_request_t* request) {
       const std::int64_t counts[] = {kBlock, 0};
       int rank = 0;
       unisono_comm_rank(comm, &rank);
       return unisono_gatherv_start(input, rank == 0 ? kBlock : 0, output, counts, nullptr,
                                    UNISONO_INT64, 1, comm, request);
     }},
    {"alltoallv",
     [](const Numbers* input, Numbers* output, unisono_comm_t comm, unisono_request_t* request) {
       int rank = 0;
       unisono_comm_rank(comm, &rank);
       const std::int64_t to_last[] = {0, kBlock};
       const std::int64_t from_first[] = {kBlock, 0};
       const std::int64_t none[] = {0, 0};
       return unisono_alltoallv_start(input, rank == 0 ? to_last : none, nullptr, output,
                                      rank == 0 ? none : from_first, nullptr, UNISONO_INT64, comm,
                                      request);
     }},
};

// How rank 0's call ends, and what rank 1's ends with.
struct Cause {
  const char* name;
  int code;
  std::function<void(unisono_comm_t, unisono_request_t&)> end;
};
const std::array<Cause, 3> kCauses{{
    {"timeout", UNISONO_ERROR_TIMEOUT,
     [](unisono_comm_t, unisono_request_t& request) {
       EXPECT_EQ(unisono_wait(&request), UNISONO_ERROR_TIMEOUT);
     }},
    {"cancel", UNISONO_ERROR_CANCELLED,
     [](unisono_comm_t, unisono_request_t& request) {
       EXPECT_TRUE(succeeded(unisono_cancel(&request)));
     }},
    {"finalize", UNISONO_ERROR_RANK_LOST,
     [](unisono_comm_t world, unisono_request_t&) {
       EXPECT_TRUE(succeeded(unisono_finalize(world)));
     }},
}};

// Single copies from memory of the caller's or the job's, and references to the latter.
enum class Memory : std::uint8_t { callers, shared, referred };

class ReusedMemory : public testing::TestWithParam<std::tuple<Collective, Cause, Memory>> {};

TEST_P(ReusedMemory, IsNotReadByARankThatComesLate) {
  const auto& [collective, cause, memory] = GetParam();
  ProcessJob::Options options;
  options.joins = false;
  const bool is_referred = memory == Memory::referred;
  options.environment["UNISONO_SINGLE_COPY"] = is_referred ? "off" : "on";
  if (!is_referred) options.environment["UNISONO_SINGLE_COPY_FROM"] = "64";
  options.environment["UNISONO_ENGINE"] = "inline";
  if (std::string(cause.name) == "timeout") options.environment["UNISONO_TIMEOUT"] = "100ms";
  std::array<int, 2> reused{};
  ASSERT_EQ(pipe(reused.data()), 0);
  ProcessJob job(
      2,
      [&](ProcessRank& self) {
        unisono_comm_t world = nullptr;
        ASSERT_TRUE(succeeded(unisono_init(&world)));
        std::vector<Numbers> own(kBlock), output(kBlock);
        void* shared = nullptr;
        ASSERT_TRUE(succeeded(unisono_memory_alloc(world, kBlock * 8, &shared)));
        Numbers* const input =
            memory == Memory::callers ? own.data() : static_cast<Numbers*>(shared);
        std::fill_n(input, kBlock, self.rank + 1);
        unisono_request_t request = nullptr;
        char byte = 0;
        if (self.rank == 0) {
          ASSERT_TRUE(succeeded(collective.start(input, output.data(), world, &request)));
          cause.end(world, request);
          std::fill_n(input, kBlock, -1);
          ASSERT_EQ(write(reused[1], &byte, 1), 1);
          if (std::string(cause.name) != "finalize") unisono_finalize(world);
        } else {
          close(reused[1]);  // so that the end of rank 0 is the end of the pipe
          ASSERT_EQ(read(reused[0], &byte, 1), 1);
          int code = collective.start(input, output.data(), world, &request);
          if (code == UNISONO_OK) code = unisono_wait(&request);
          EXPECT_TRUE(failed(code, cause.code, {"rank 1"}));
          unisono_finalize(world);
        }
        unisono_memory_free(shared);
      },
      options);
  close(reused[0]);
  close(reused[1]);
  job.expect_all_clean();
}

std::vector<ReusedMemory::ParamType> cases() {
  std::vector<ReusedMemory::ParamType> all;
  for (const Collective& collective : kCollectives) {
    for (const Cause& cause : kCauses) {
      all.emplace_back(collective, cause, Memory::callers);
      all.emplace_back(collective, cause, Memory::shared);
      if (collective.is_referred) all.emplace_back(collective, cause, Memory::referred);
    }
  }
  return all;
}

std::string name_of(const testing::TestParamInfo<ReusedMemory::ParamType>& test) {
  const auto& [collective, cause, memory] = test.param;
  const char* const kinds[] = {"callers", "shared", "referred"};
  return std::string(collective.name) + "_" + cause.name + "_" + kinds[static_cast<int>(memory)];
}
INSTANTIATE_TEST_SUITE_P(, ReusedMemory, testing::ValuesIn(cases()), name_of);

}  // namespace
}  // namespace unisono::harness::reused_memory_test
