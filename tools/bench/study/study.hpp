// SPDX-License-Identifier: BSD-3-Clause
// Study: a measurement other than the time of a call, made of each collective at each size. It
// defines its columns and measures one cell; the loop over the cells and the report need no more.
// Values; one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "bench/measure/cell.hpp"
#include "bench/measure/place.hpp"
#include "bench/options.hpp"
#include "bench/study/histogram.hpp"

namespace unisono::tools::bench {

struct Column {
  std::string_view heading;  // in the table
  std::string_view key;      // in JSON
  int decimals = 2;
};

// The result at rank 0 for the ranks of `place`; unspecified at the others.
struct Finding {
  std::vector<double> values;  // as the columns
  std::int64_t wrong = 0;      // elements, of all ranks
  std::optional<Histogram> histogram;
};

struct Study {
  std::string_view name;                // also in JSON
  std::vector<std::string_view> notes;  // above the table: what the columns mean
  std::vector<Column> columns;
  base::Result<Finding> (*measure)(const Place& place, Cell& cell, const Options& options,
                                   const CellShape& shape);
};

// The study that the options ask for.
const Study& study_of(const Options& options);

}  // namespace unisono::tools::bench
