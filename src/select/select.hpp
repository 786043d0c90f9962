// SPDX-License-Identifier: BSD-3-Clause
// Choice of algorithm and parameters for a shape, from a table of rules that were measured on
// shared memory (bench/peers); those of gather, scatter, alltoall, reduce_scatter, scan, exscan and
// many_to_many follow from steps and bytes and are not measured yet. Pure: all ranks choose alike
// from what they all know. Any thread.
#pragma once

#include <cstdint>

#include "algorithm/algorithm.hpp"

namespace unisono::select {

// What all ranks know alike, beside the shape.
struct Circumstances {
  std::int64_t element_bytes = 1;
  bool oversubscribed = false;  // more ranks than cores
  bool multicast = false;       // a message to many is staged once
  bool pull = false;            // ranks can read each other's memory
  // Bytes from which that is preferred to buffers; negative: as measured.
  std::int64_t single_copy_from = -1;
};

struct Choice {
  const algorithm::Algorithm* algorithm = nullptr;
  algorithm::Parameters parameters;
};

// Always finds a legal one.
Choice choose(const schedule::Shape& shape, const Circumstances& circumstances);

// Whether long messages should be read from their senders' memory, in one copy, instead of passing
// through buffers in parts.
bool prefers_single_copy(const schedule::Shape& shape, const Circumstances& circumstances);

}  // namespace unisono::select
