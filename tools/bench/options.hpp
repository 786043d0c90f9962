// SPDX-License-Identifier: BSD-3-Clause
// The options of one run of the benchmark; the same on every rank. Values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "arith/type.hpp"
#include "bench/measure/subject.hpp"

namespace unisono::tools::bench {

enum class Method { loop, single, both };
enum class Format { table, osu, json };
// The aims of a run. All but the first two are studies (study/).
enum class Aim { times, guidelines, overlap, consistency, cpu, hot_spot };

struct Options {
  std::vector<Subject> subjects;
  std::vector<std::int64_t> sizes;  // bytes of the vector, or of a block of it
  arith::Type type = arith::Type::float32;
  arith::Operator op = arith::Operator::sum;
  int root = 0;
  Uneven uneven = Uneven::halves;
  Aim aim = Aim::times;
  Method method = Method::both;
  Format format = Format::table;
  std::int64_t iterations = 0;  // timed calls of each method; 0: as many as fit in `seconds`
  std::int64_t warmup = -1;     // calls before; -1: until the time of a call is known
  double seconds = 0.3;         // time for one line of the table, about
  int usable_cores = 0;         // of the whole job, if the launcher knows; 0: ask
  std::vector<std::int64_t> team_sizes;  // studies: numbers of ranks, the first ones of the job;
                                         // empty: all
  std::int64_t polls = 0;                // overlap: tests of the request during the work
  int workers = 0;                       // overlap: the first so many ranks work; 0: all
  double factor = 1.25;                  // tolerance: the limit of a guideline is multiplied by it
  bool tolerate = false;                 // a missed guideline is no failure
  bool progress = false;                 // report progress on the terminal
  std::string json_path;                 // if not empty: also write JSON to this file
  std::string picture_path;              // likewise: draw the histograms of consistency into it
  std::string command;                   // the command line that asks for this, for the record
};

inline bool has_loop(Method method) { return method != Method::single; }
inline bool has_single(Method method) { return method != Method::loop; }

}  // namespace unisono::tools::bench
