// SPDX-License-Identifier: BSD-3-Clause
// The definitions of the collectives, element by element: the required contents of a rank's output.
#pragma once

#include <cstdint>

#include "schedule/shape.hpp"

namespace unisono::check {

// The required contents of the output elements up to `end`. Each one holds the input elements of
// ranks `first` to `last`, combined in this order. The first output element holds input element
// `element` of each.
struct Definition {
  std::int32_t first = 0, last = 0;
  std::int64_t element = 0;
  std::int64_t end = 0;
};

// For 0 <= element < output_count(shape, rank) of a shape that check_form accepts.
Definition definition(const schedule::Shape& shape, int rank, std::int64_t element);

}  // namespace unisono::check
