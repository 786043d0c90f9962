// SPDX-License-Identifier: BSD-3-Clause
//
// hello.c in C++: the handles end by themselves, errors are exceptions.
#include <cstdint>
#include <cstdio>
#include <exception>
#include <unisono/unisono.hpp>

int main() try {
  unisono::job job;
  unisono::communicator& world = job.world();

  const std::int64_t mine = world.rank() + 1;
  const std::int64_t sum = world.allreduce(mine, unisono::op::sum);
  if (world.rank() == 0) {
    std::printf("%d ranks, the sum of 1 to %d is %lld\n", world.size(), world.size(),
                static_cast<long long>(sum));
  }
  return 0;
} catch (const std::exception& failure) {
  std::fprintf(stderr, "%s\n", failure.what());
  return 1;
}
