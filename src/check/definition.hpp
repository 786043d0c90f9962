// SPDX-License-Identifier: BSD-3-Clause
// The definitions of the collectives, element by element: what a rank's output has to hold.
#pragma once

#include <cstdint>

#include "schedule/shape.hpp"

namespace unisono::check {

// From an output element on, up to element `end`, each one has to hold the input elements of ranks
// `first` to `last`, joined in this order if there are several; those of the first are `element`.
struct Definition {
  std::int32_t first = 0, last = 0;
  std::int64_t element = 0;
  std::int64_t end = 0;
};

// For 0 <= element < output_count(shape, rank) of a shape that check_form accepts.
Definition definition(const schedule::Shape& shape, int rank, std::int64_t element);

}  // namespace unisono::check
