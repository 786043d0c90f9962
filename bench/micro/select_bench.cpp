// SPDX-License-Identifier: BSD-3-Clause
// Time of a choice by price, which the first call of a shape pays. The ranks are on one host, with
// a core each; 64 elements of float64.
//
// select/by_price/COLLECTIVE/P   builds and prices the candidates
// select/by_rule/COLLECTIVE/P    goes through the rules instead
// select/helped/COLLECTIVE/P     builds and prices the candidates of 16384 elements, for ranks that
//                                share two cores and help each other
// select/worst/SHAPE             builds and prices the candidates of all collectives, from 8 bytes
//                                to 64 MiB. Its label is the dearest choice, and `worst_us` its
//                                time: the least of the iterations
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/check.hpp"
#include "select/select.hpp"

namespace unisono::select {
namespace {

using schedule::Collective;

schedule::Shape shape_of(Collective collective, int ranks) {
  return {.collective = collective,
          .ranks = ranks,
          .count = collective == Collective::barrier ? 0 : 64};
}

Circumstances circumstances(int ranks) {
  return {.element_bytes = 8,
          .cores = ranks,
          .multicast = true,
          .staged_multicast = true,
          .receive_buffer_bytes = 128 << 10,
          .op = arith::Operator::sum,
          .type = arith::Type::float64,
          .shared_receive_buffers = true};
}

void by_price(benchmark::State& state, Collective collective, int ranks) {
  for (auto _ : state) {
    const auto choice = choose_by_price(shape_of(collective, ranks), circumstances(ranks));
    UNISONO_CHECK(choice.has_value(), "a call without a candidate");
    benchmark::DoNotOptimize(choice->algorithm);
  }
}

void helped(benchmark::State& state, Collective collective, int ranks) {
  schedule::Shape shape = shape_of(collective, ranks);
  shape.count = 16384;
  Circumstances now = circumstances(ranks);
  now.oversubscribed = true;
  now.cores = 2;
  now.receive_buffer_bytes = 1 << 20;
  for (auto _ : state) {
    const auto choice = choose_by_price(shape, now);
    UNISONO_CHECK(choice.has_value(), "a call without a candidate");
    benchmark::DoNotOptimize(choice->algorithm);
  }
}

// Ranks on so many hosts, or on one that has so many cores; or hosts of one machine, that share
// them.
struct Sweep {
  const char* name;
  int hosts, of_host, cores;
  bool shared;
};
constexpr Sweep kSweeps[] = {{"1x16_cores_2", 1, 16, 2, false},
                             {"1x63", 1, 63, 63, false},
                             {"1x64", 1, 64, 64, false},
                             {"1x64_cores_2", 1, 64, 2, false},
                             {"1x64_cores_8", 1, 64, 8, false},
                             {"4x16", 4, 16, 16, false},
                             {"8x8", 8, 8, 8, false},
                             {"16x4", 16, 4, 4, false},
                             {"64x1", 64, 1, 2, false},
                             {"8x8_shared_2", 8, 8, 2, true},
                             {"1x4095", 1, 4095, 4095, false},
                             {"1x4096", 1, 4096, 4096, false},
                             {"1x4096_cores_64", 1, 4096, 64, false}};

struct Cell {
  schedule::Shape shape;
  std::int64_t bytes = 0;
  double least_us = 0;
};

std::vector<Cell> cells_of(const Sweep& sweep) {
  std::vector<int> labels;
  for (int rank = 0; rank < sweep.hosts * sweep.of_host; ++rank) {
    labels.push_back(rank / sweep.of_host);
  }
  std::vector<Cell> cells;
  for (int c = 0; c < schedule::kCollectiveCount; ++c) {
    for (std::int64_t bytes = 8; bytes <= 64 << 20; bytes *= 8) {
      schedule::Shape shape = shape_of(static_cast<Collective>(c), static_cast<int>(labels.size()));
      if (shape.count > 0) shape.count = bytes / 8;
      if (sweep.hosts > 1) shape.hosts = topology::HostMap::of_labels(labels);
      cells.push_back({.shape = shape, .bytes = bytes});
      if (shape.count == 0) break;
    }
  }
  return cells;
}

void worst(benchmark::State& state, const Sweep& sweep) {
  std::vector<Cell> cells = cells_of(sweep);
  Circumstances now = circumstances(sweep.cores);
  now.oversubscribed = sweep.hosts == 1 && sweep.cores < sweep.of_host;
  now.shared_cores = sweep.shared ? sweep.cores : 0;
  now.receive_buffer_bytes = 1 << 20;
  for (auto _ : state) {
    for (Cell& cell : cells) {
      const auto begin = std::chrono::steady_clock::now();
      const auto choice = choose_by_price(cell.shape, now);
      const std::chrono::duration<double, std::micro> took =
          std::chrono::steady_clock::now() - begin;
      UNISONO_CHECK(choice.has_value(), "a call without a candidate");
      if (cell.least_us == 0 || took.count() < cell.least_us) cell.least_us = took.count();
    }
  }
  const Cell& dearest = *std::ranges::max_element(cells, {}, &Cell::least_us);
  state.counters["worst_us"] = dearest.least_us;
  state.SetLabel(std::string(schedule::collective_name(dearest.shape.collective)) + " of " +
                 std::to_string(dearest.bytes) + " bytes");
}

void by_rule(benchmark::State& state, Collective collective, int ranks) {
  for (auto _ : state) {
    const Choice choice = choose_by_rule(shape_of(collective, ranks), circumstances(ranks));
    benchmark::DoNotOptimize(choice.algorithm);
  }
}

const bool kRegistered = [] {
  for (const Sweep& sweep : kSweeps) {
    benchmark::RegisterBenchmark((std::string("select/worst/") + sweep.name).c_str(), worst, sweep);
  }
  for (int c = 0; c < schedule::kCollectiveCount; ++c) {
    const auto collective = static_cast<Collective>(c);
    for (const int ranks : {2, 8, 32, 64, 1024, 4096}) {
      const std::string name =
          std::string(schedule::collective_name(collective)) + "/" + std::to_string(ranks);
      benchmark::RegisterBenchmark(("select/by_price/" + name).c_str(), by_price, collective,
                                   ranks);
      if (ranks > 2 && ranks <= 64 && collective != Collective::barrier) {
        benchmark::RegisterBenchmark(("select/helped/" + name).c_str(), helped, collective, ranks);
      }
      benchmark::RegisterBenchmark(("select/by_rule/" + name).c_str(), by_rule, collective, ranks);
    }
  }
  return true;
}();

}  // namespace
}  // namespace unisono::select
