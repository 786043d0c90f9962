// SPDX-License-Identifier: BSD-3-Clause
// The head of every result of the benchmark: the machine, the settings and the command; and the
// format of times. Rank 0 only; one thread.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bench/options.hpp"
#include "machine.hpp"
#include "statistics.hpp"

namespace unisono::tools::bench {

struct Job {
  Options options;
  int ranks = 1;
  Machine machine;
  std::vector<std::string> settings;  // NAME=value, those that the user set
};

// Includes this process's machine and settings.
Job describe_job(const Options& options, int ranks);

// One line to stdout, at once.
void print_line(const std::string& line);
// The lines that begin a table.
void print_head(const Job& job);
// The members that begin a document.
nlohmann::ordered_json json_head(const Job& job);
// Times in microseconds.
nlohmann::ordered_json summary_json(const Summary& summary);

// "float32, sum, root 0": the options that apply to the subject.
std::string type_and_operator(const Options& options, const Subject& subject);

}  // namespace unisono::tools::bench
