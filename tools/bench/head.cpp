// SPDX-License-Identifier: BSD-3-Clause
#include "bench/head.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unisono/unisono.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/settings/settings.hpp"

namespace unisono::tools::bench {
namespace {

// NAME=value of the user settings that the environment sets.
std::vector<std::string> given_settings() {
  const base::Environment environment = base::process_environment();
  std::vector<std::string> given;
  for (const base::SettingRow& row : base::setting_table()) {
    const auto found = environment.find(row.name);
    if (row.audience != base::SettingAudience::user || found == environment.end()) continue;
    given.push_back(fmt::format("{}={}", row.name, found->second));
  }
  return given;
}

}  // namespace

Job describe_job(const Options& options, int ranks) {
  Machine machine = describe_machine();
  if (options.usable_cores > 0) machine.usable_cores = options.usable_cores;
  return {options, ranks, machine, given_settings()};
}

void print_line(const std::string& line) {
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

void print_head(const Job& job) {
  const Machine& machine = job.machine;
  print_line(fmt::format("# unisono {}: {} ranks", unisono_version(), job.ranks));
  print_line(fmt::format("# machine: {}, {} of {} cores usable, {}", machine.processor,
                         machine.usable_cores, machine.cores, machine.kernel));
  print_line(fmt::format("# compiler: {}", machine.compiler));
  print_line(fmt::format("# settings: {}", job.settings.empty()
                                               ? "defaults"
                                               : fmt::format("{}", fmt::join(job.settings, " "))));
}

nlohmann::ordered_json json_head(const Job& job) {
  return {
      {"tool", "unisono bench"},
      {"version", unisono_version()},
      {"command", job.options.command},
      {"ranks", job.ranks},
      {"type", arith::type_name(job.options.type)},
      {"operator", arith::operator_name(job.options.op)},
      {"root", job.options.root},
      {"uneven", uneven_name(job.options.uneven)},
      {"machine",
       {{"processor", job.machine.processor},
        {"cores", job.machine.cores},
        {"usable_cores", job.machine.usable_cores},
        {"kernel", job.machine.kernel},
        {"compiler", job.machine.compiler}}},
      {"settings", job.settings},
  };
}

nlohmann::ordered_json summary_json(const Summary& summary) {
  return {{"median_us", summary.median}, {"p99_us", summary.p99},   {"min_us", summary.minimum},
          {"max_us", summary.maximum},   {"mean_us", summary.mean}, {"samples", summary.samples}};
}

std::string type_and_operator(const Options& options, const Subject& subject) {
  std::string text(arith::type_name(options.type));
  if (schedule::is_reduction(subject.collective)) {
    text += fmt::format(", {}", arith::operator_name(options.op));
  }
  if (schedule::is_rooted(subject.collective)) text += fmt::format(", root {}", options.root);
  if (subject.unequal) text += fmt::format(", {}", uneven_text(options.uneven));
  return text;
}

}  // namespace unisono::tools::bench
