// SPDX-License-Identifier: BSD-3-Clause
//
// Split phase and persistent: an iteration that starts a sum, works on something else while the sum
// is under way, and uses it afterwards. docs/tutorial/02-overlap.md goes through it.
//
// Each rank approaches the square root of 2 by Newton's method from a start of its own; all stop
// when the sum of their residuals is small, which is added up while they prepare the next step.
#include <array>
#include <cmath>
#include <cstdio>
#include <exception>
#include <span>
#include <unisono/unisono.hpp>

namespace {

constexpr int kTurns = 20;

// One Newton step towards the square root of 2.
double improve(double x) { return 0.5 * (x + 2.0 / x); }

}  // namespace

int main() try {
  unisono::job job;
  unisono::communicator& world = job.world();

  std::array<double, 1> residual{}, total{};
  // Checked and prepared once; each turn starts it on the same two buffers.
  unisono::plan sum = world.plan().allreduce(residual, total, unisono::op::sum);

  double x = 1.0 + world.rank();
  int turns = 0;
  for (; turns < kTurns; ++turns) {
    residual[0] = std::abs(x * x - 2.0);
    sum.start();
    const double next = improve(x);  // needs no result of the others
    sum.wait();
    if (total[0] < 1e-12) break;  // the same number on every rank, so all leave together
    x = next;
  }

  unisono::request farewell = world.start().barrier();
  const bool found = std::abs(x - std::sqrt(2.0)) < 1e-9;
  farewell.wait();
  const int agreed = world.allreduce(found ? 1 : 0, unisono::op::min);
  if (world.rank() == 0) {
    std::printf("%d ranks %s after %d turns\n", world.size(),
                agreed == 1 ? "agree on 1.414214" : "disagree", turns);
  }
  return agreed == 1 ? 0 : 1;
} catch (const std::exception& failure) {
  std::fprintf(stderr, "%s\n", failure.what());
  return 1;
}
