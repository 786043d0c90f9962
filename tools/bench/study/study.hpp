// SPDX-License-Identifier: BSD-3-Clause
// Study: something other than how long a call takes that is measured of each collective at each
// size. It says what its columns are and measures one cell; who goes through the cells and writes
// the report need not know more. Values; one thread.
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

// What came out at rank 0 for the ranks of `place`; elsewhere unspecified.
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

// Of the options, which ask for one.
const Study& study_of(const Options& options);

}  // namespace unisono::tools::bench
