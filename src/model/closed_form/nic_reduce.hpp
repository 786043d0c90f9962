// SPDX-License-Identifier: BSD-3-Clause
// The closed forms of Moody, Fernandez, Petrini and Panda, "Scalable NIC-based Reduction on
// Large-scale Clusters", SC 2003: the modified LogP model of section 5. Times in nanoseconds. Pure;
// any thread.
#pragma once

#include <cstdint>

#include "arith/type.hpp"
#include "model/machine.hpp"

namespace unisono::model::nic_reduce {

// Table 1, for one message size and operation.
struct Parameters {
  double start_up = 0;   // C
  double latency = 0;    // L
  double reception = 0;  // r
  double reduction = 0;  // c
};

Parameters parameters_of(const PathParameters& path, arith::Operator op, arith::Type type,
                         std::int64_t bytes);

// Section 5.1: P - 1 ranks send to one root, which reduces in order.
double serial(const Parameters& p, int ranks);

// Section 5.2, for a full tree: ranks is a power of the degree. Real arguments, as in appendix B.
double fnomial_full(const Parameters& p, double ranks, double degree);

// Section 5.2, T(P, f) of any number of ranks; ranks >= 1, degree >= 2. It counts L for each phase
// of the root. If the root's last phase brings one small subtree, it waits less than that. So T is
// an upper bound of the schedule's price, by at most L.
double fnomial(const Parameters& p, int ranks, int degree);

// Appendix B: the real f that solves f (ln f - 1) = L / (r + c) - 1; at least 1.
double optimal_degree(const Parameters& p);
// The integer one of lowest T(P, f) from 2 to `highest`; the lower of equals.
int best_degree(const Parameters& p, int ranks, int highest);

}  // namespace unisono::model::nic_reduce
