// SPDX-License-Identifier: BSD-3-Clause
#include "model/closed_form/fat_tree.hpp"

#include <bit>
#include <cmath>

namespace unisono::model::fat_tree {
namespace {

// Equations 9 and 10 are one: P/k blocks are staged.
double rounds_of_k(const Parameters& p, int ranks, int k, double m) {
  return (ranks - 1) * (p.alpha + m * p.beta_em) + ranks / static_cast<double>(k) * m * p.delta +
         p.latency;
}

}  // namespace

Parameters parameters_of(const PathParameters& path) {
  Parameters p;
  p.alpha = path.overhead.ns();
  p.beta = path.overhead_per_byte.ns() + path.gap_per_byte.ns();
  p.beta_em = path.staged_per_byte ? path.staged_per_byte->ns() : p.beta;
  p.gamma = path.copy_per_byte.ns();
  p.delta = path.staging_per_byte ? path.staging_per_byte->ns() : 0;
  p.latency = path.latency.ns();
  return p;
}

double point_to_point(const Parameters& p, std::int64_t bytes) {
  return p.alpha + static_cast<double>(bytes) * (p.beta + p.contention) + p.latency;
}

double direct(const Parameters& p, int ranks, std::int64_t bytes) {
  const double m = static_cast<double>(bytes);
  return (ranks - 1) * (p.alpha + m * (p.beta + p.contention)) + p.latency;
}

double mesh(const Parameters& p, int ranks, std::int64_t bytes) {
  const double m = static_cast<double>(bytes), side = std::sqrt(ranks);
  return 2 * side * p.alpha + ranks * m * (p.beta_em + p.gamma + p.contention) + side * m * p.delta;
}

double hypercube(const Parameters& p, int ranks, std::int64_t bytes) {
  const double m = static_cast<double>(bytes);
  return std::log2(ranks) * p.alpha + (ranks - 1) * m * (p.beta + p.gamma + p.contention);
}

double hypercube_with_holes(const Parameters& p, int ranks, std::int64_t bytes) {
  const double m = static_cast<double>(bytes);
  const double holes = std::has_single_bit(static_cast<unsigned>(ranks)) ? 0 : 1;  // lambda
  return (std::log2(ranks) + holes) * p.alpha +
         (1 + holes) * (ranks - 1) * m * (p.beta + p.contention);
}

double hybrid(const Parameters& p, int ranks, int zeta, std::int64_t bytes) {
  const double m = static_cast<double>(bytes);
  const double subcubes = ranks / std::exp2(zeta);  // P'
  return std::log2(ranks) * p.alpha + subcubes * m * (p.beta + p.gamma + p.delta) +
         (ranks - subcubes) * m * p.beta_em;
}

double ring(const Parameters& p, int ranks, std::int64_t bytes) {
  return (ranks - 1) * (p.alpha + static_cast<double>(bytes) * p.beta) + p.latency;
}

double prefix_send(const Parameters& p, int ranks, std::int64_t bytes) {
  const double m = static_cast<double>(bytes);
  return (ranks - 1) * (p.alpha + m * p.beta_em) + m * p.delta + p.latency;
}

double kprefix(const Parameters& p, int ranks, int k, std::int64_t bytes) {
  return rounds_of_k(p, ranks, k, static_cast<double>(bytes));
}

double kshift(const Parameters& p, int ranks, int k, std::int64_t bytes) {
  return rounds_of_k(p, ranks, k, static_cast<double>(bytes));
}

}  // namespace unisono::model::fat_tree
