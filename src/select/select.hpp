// SPDX-License-Identifier: BSD-3-Clause
// Choice of algorithm and parameters for a shape, from a table of rules that were measured on
// shared memory (bench/peers). Pure: all ranks choose alike from what they all know. Any thread.
#pragma once

#include <cstdint>

#include "algorithm/algorithm.hpp"

namespace unisono::select {

// What all ranks know alike, beside the shape.
struct Circumstances {
  std::int64_t element_bytes = 1;
  bool oversubscribed = false;  // more ranks than cores
  bool multicast = false;       // a message to many is staged once
};

struct Choice {
  const algorithm::Algorithm* algorithm = nullptr;
  algorithm::Parameters parameters;
};

// Always finds a legal one.
Choice choose(const schedule::Shape& shape, const Circumstances& circumstances);

}  // namespace unisono::select
