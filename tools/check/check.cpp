// SPDX-License-Identifier: BSD-3-Clause
// unisono check: proves algorithms over many shapes, or one set of schedules from a file. The sweep
// itself is in check_sweep.hpp; this file is options and words.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "arguments/algorithm_lookup.hpp"
#include "arguments/number_list.hpp"
#include "base/file/read_file.hpp"
#include "check/check.hpp"
#include "check/check_sweep.hpp"
#include "commands.hpp"
#include "progress.hpp"
#include "schedule/text.hpp"

namespace unisono::tools {
namespace {

// Enough for any machine that runs this; the work of a proof grows faster than the square of it.
constexpr std::int64_t kMostElements = 1 << 20;

struct CheckOptions {
  std::vector<std::string> names;
  bool all = false;
  std::string ranks = "1:70";
  std::string counts;  // empty: small ones that depend on the number of ranks
  std::string roots = "sampled";
  std::string file;
};

int usage_error(const std::string& message) {
  fmt::print(stderr, "unisono check: {}\n", message);
  return kExitUsage;
}

void print_violation(const check::Violation& violation) {
  fmt::print("  {}: {}\n", check::rule_name(violation.rule), violation.message);
}

int check_file(const std::string& path) {
  const auto text = base::read_file(path);
  if (!text) return usage_error(fmt::format("--file: {}", text.error().message));
  const auto set = schedule::parse(*text);
  if (!set) return usage_error(fmt::format("{}: {}", path, set.error().message));
  if (set->empty()) return usage_error(fmt::format("{}: holds no schedule", path));
  const std::vector<check::Violation> violations = check::prove(*set);
  const schedule::Shape& shape = set->front().shape;
  fmt::print("{}: {}, {} ranks, {}: {}\n", path, schedule::collective_name(shape.collective),
             set->size(), schedule::print_counts(shape) + schedule::print_hosts(shape),
             violations.empty() ? "proved" : "VIOLATED");
  for (const check::Violation& violation : violations) print_violation(violation);
  return violations.empty() ? kExitSuccess : kExitFailure;
}

void print_result(const SweepResult& result) {
  fmt::print("{:<32} {:>9} sets {}  {:8.2f} s\n", row_name(*result.algorithm), result.sets,
             result.violated == 0 ? "proved" : fmt::format("checked, {} VIOLATED", result.violated),
             result.seconds);
  for (const SweepFailure& failure : result.failures) {
    fmt::print("  {}\n", failure.shape);
    for (const check::Violation& violation : failure.violations) {
      fmt::print("  ");
      print_violation(violation);
    }
  }
  std::fflush(stdout);
}

base::Result<Sweep> make_sweep(const CheckOptions& options) {
  Sweep sweep;
  if (options.all) {
    for (const algorithm::Algorithm& row : algorithm::table()) sweep.algorithms.push_back(&row);
  }
  for (const std::string& name : options.names) {
    UNISONO_ASSIGN(const std::vector<const algorithm::Algorithm*> rows, find_rows(name));
    sweep.algorithms.insert(sweep.algorithms.end(), rows.begin(), rows.end());
  }
  auto ranks = parse_number_list(options.ranks, Step::one, 1, kMostRanks);
  if (!ranks) return base::Error{base::Code::argument, "--ranks: " + ranks.error().message};
  sweep.ranks.assign(ranks->begin(), ranks->end());
  if (!options.counts.empty()) {
    auto counts = parse_number_list(options.counts, Step::one, 0, kMostElements);
    if (!counts) return base::Error{base::Code::argument, "--counts: " + counts.error().message};
    sweep.counts = std::move(*counts);
  }
  sweep.every_root = options.roots == "all";
  return sweep;
}

int check(const CheckOptions& options) {
  if (!options.file.empty()) return check_file(options.file);
  if (!options.all && options.names.empty()) {
    return usage_error("nothing to check: name algorithms, or say --all or --file SCHEDULE.txt");
  }
  const auto sweep = make_sweep(options);
  if (!sweep) return usage_error(sweep.error().message);
  Progress progress;
  std::int64_t sets = 0;
  int violated_algorithms = 0;
  const SweepObserver observer{
      .on_progress = [&](const std::string& text) { progress.show("unisono check: " + text); },
      .on_result =
          [&](const SweepResult& result) {
            progress.clear();
            print_result(result);
            sets += result.sets;
            violated_algorithms += result.violated > 0 ? 1 : 0;
          }};
  run_sweep(*sweep, observer);
  progress.clear();
  fmt::print("{} algorithms, {} sets of schedules: {}\n", sweep->algorithms.size(), sets,
             violated_algorithms == 0 ? "all proved"
                                      : fmt::format("{} algorithms VIOLATED", violated_algorithms));
  return violated_algorithms == 0 ? kExitSuccess : kExitFailure;
}

}  // namespace

void add_check(CLI::App& app, int& exit_status) {
  auto options = std::make_shared<CheckOptions>();
  CLI::App* command = app.add_subcommand(
      "check", "Prove that schedules are complete, free of deadlock and free of races");
  auto* names = command->add_option("name", options->names,
                                    "Algorithms (ring), collectives (allreduce) or both "
                                    "(allreduce/ring)");
  auto* all = command->add_flag("--all", options->all, "Every algorithm")->excludes(names);
  command->add_option("--ranks", options->ranks, "Numbers of ranks, e.g. 1:70 or 2,8,64")
      ->capture_default_str();
  command->add_option("--counts", options->counts,
                      "Numbers of elements [0, 1, 2 and those around the ranks; for blocks 0, 1, 2 "
                      "and unequal ones]");
  command
      ->add_option("--roots", options->roots,
                   "all, or sampled: every root up to 16 ranks, some above")
      ->capture_default_str()
      ->check(CLI::IsMember({"all", "sampled"}));
  command->add_option("--file", options->file, "A set of schedules as `unisono show` prints it")
      ->excludes(names)
      ->excludes(all);
  command->footer("Example:\n  unisono check allreduce --ranks 1:16");
  command->callback([options, &exit_status] { exit_status = check(*options); });
}

}  // namespace unisono::tools
