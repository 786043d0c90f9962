// SPDX-License-Identifier: BSD-3-Clause
// The closed forms of Kumar and Kale, "Scaling All-to-All Multicast on Fat-tree Networks", ICPADS
// 2004: equations 1 to 10, for an allgather of m bytes by P ranks. Times in nanoseconds. Pure; any
// thread.
#pragma once

#include <cstdint>

#include "model/machine.hpp"

namespace unisono::model::fat_tree {

// Section 2. `latency` stands for L and for every L of a strategy, `contention` for every C.
struct Parameters {
  double alpha = 0;       // software overhead of a message
  double beta = 0;        // per byte from main memory
  double beta_em = 0;     // per byte from the NIC's memory
  double gamma = 0;       // per byte, combining messages
  double delta = 0;       // per byte, copying to the NIC's memory
  double latency = 0;     // L
  double contention = 0;  // C, per byte
};

// beta_em and delta are those of main memory and 0 on a path that stages nothing.
Parameters parameters_of(const PathParameters& path);

double point_to_point(const Parameters& p, std::int64_t bytes);        // (1)
double direct(const Parameters& p, int ranks, std::int64_t bytes);     // (2)
double mesh(const Parameters& p, int ranks, std::int64_t bytes);       // (3), approximate
double hypercube(const Parameters& p, int ranks, std::int64_t bytes);  // (4)
// (5): `ranks` need not be a power of two.
double hypercube_with_holes(const Parameters& p, int ranks, std::int64_t bytes);
// (6): the last zeta dimensions directly. It leaves out the messages these add, 2^zeta - 1 - zeta.
double hybrid(const Parameters& p, int ranks, int zeta, std::int64_t bytes);
double ring(const Parameters& p, int ranks, std::int64_t bytes);            // (7)
double prefix_send(const Parameters& p, int ranks, std::int64_t bytes);     // (8)
double kprefix(const Parameters& p, int ranks, int k, std::int64_t bytes);  // (9)
double kshift(const Parameters& p, int ranks, int k, std::int64_t bytes);   // (10)

}  // namespace unisono::model::fat_tree
