// SPDX-License-Identifier: BSD-3-Clause
// Jobs for tests of the NIC path: one collective, many times, with inputs that any process can make
// anew, and the results that the host engine has for them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "arith/type.hpp"
#include "nic/harness/frames.hpp"
#include "nic/loader/device.hpp"
#include "nic/port/port.hpp"
#include "schedule/schedule.hpp"

namespace unisono::nic::test {

using arith::Operator;
using arith::Type;
using schedule::Collective;

// One collective with one algorithm, by all hosts, many times.
struct Job {
  Collective collective = Collective::allreduce;
  const char* algorithm = "gather-release";
  int parameter = 2;
  int root = 0;
  int giver = -1;  // of a broadcast: all others give zeros, which bitwise_or leaves out
  Type type = Type::int64;
  Operator op = Operator::sum;
  std::int64_t count = 1;
  int operations = 50;
  std::uint32_t depth = 2;
  double loss = 0;  // share of the packets that come in; only on devices that lose
};

// Rank's vector of an operation, in whole words. Any bits for integers, numbers of very different
// sizes for the others, so that each order of summation has another result.
Words vector_of(const Job& job, int rank, int operation);

// The host engine's results of the same operations, by operation.
std::vector<Words> host_results(const Job& job, int ranks);

// The data that a job needs from a rank.
struct Rank {
  std::uint32_t row = 0;
  std::unique_ptr<Port> port;
  bool forwards = false;  // sends results on to others
};

// On the rank's host.
base::Result<Rank> start_rank(Device& device, const Job& job, int rank, int ranks,
                              std::uint32_t communicator);

}  // namespace unisono::nic::test
