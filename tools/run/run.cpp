// SPDX-License-Identifier: BSD-3-Clause
// unisono run: starts a program as the ranks of one job on this machine. This file is the command
// line; run/job.hpp does the work.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "arguments/not_nan.hpp"
#include "base/clock.hpp"
#include "base/settings/settings.hpp"
#include "commands.hpp"
#include "run/job.hpp"

namespace unisono::tools {
namespace {

struct RunArguments {
  int ranks = 0;
  bool tag = false;
  bool keep_going = false;
  std::string bind = "share";
  double grace_seconds = 2;
  double timeout_seconds = 0;
  std::string profile;
  std::string unused;
};

constexpr double kMostSeconds = 1e9;

std::int64_t nanoseconds(double seconds) {
  return static_cast<std::int64_t>(seconds * static_cast<double>(base::kSecond));
}

int run(const RunArguments& arguments, std::vector<std::string> command) {
  if (!command.empty() && command.front() == "--") {
    command.erase(command.begin());
  } else if (!command.empty() && command.front().starts_with('-')) {
    fmt::print(stderr, "unisono run: unknown option {} (see 'unisono run --help')\n",
               command.front());
    return kExitUsage;
  }
  if (command.empty()) {
    fmt::print(stderr,
               "unisono run: PROGRAM is missing: say what to run, as in unisono run -n 4 "
               "./program (see 'unisono run --help')\n");
    return kExitUsage;
  }
  JobOptions options;
  options.ranks = arguments.ranks;
  options.command = std::move(command);
  options.tag = arguments.tag;
  options.keep_going = arguments.keep_going;
  options.bind = arguments.bind == "share";
  options.grace_ns = nanoseconds(arguments.grace_seconds);
  options.timeout_ns = nanoseconds(arguments.timeout_seconds);
  options.profile = arguments.profile;
  int exit_status = kExitFailure;
  const base::Result<int> ended = run_job(options, exit_status);
  if (ended.ok()) return *ended;
  fmt::print(stderr, "unisono run: {}\n", ended.error().message);
  return exit_status;
}

}  // namespace

void add_run(CLI::App& app, int& exit_status) {
  CLI::App* command = app.add_subcommand(
      "run",
      "Run a program as the ranks of a job on this machine\n\n"
      "Everything from PROGRAM on belongs to the program. Its output comes line by line, standard\n"
      "input goes to rank 0, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 go to all "
      "ranks.\n"
      "The exit status is 0 if every rank gave 0, else that of the rank that failed first (128 +\n"
      "signal if it was killed); 127 if PROGRAM is not found, 124 after --timeout.");
  auto arguments = std::make_shared<RunArguments>();
  const int most_ranks = static_cast<int>(base::setting_row(base::Setting::size).maximum);
  command->add_option("-n,--ranks", arguments->ranks, "Number of ranks")
      ->required()
      ->check(CLI::Range(1, most_ranks))
      ->type_name("N");
  command->add_flag("--tag", arguments->tag, "Put [rank] before each line of output");
  command
      ->add_option("--bind", arguments->bind,
                   "share: each rank gets an equal share of the usable cores, if there is one for "
                   "each; none: all ranks may use all cores")
      ->check(CLI::IsMember({"share", "none"}))
      ->type_name("HOW")
      ->capture_default_str();
  command
      ->add_option("--grace", arguments->grace_seconds,
                   "Time the other ranks have to end by themselves after one has failed; then they "
                   "get SIGTERM, and 2 s later SIGKILL")
      ->check(CLI::Range(0.0, kMostSeconds))
      ->check(not_nan())
      ->type_name("SECONDS")
      ->capture_default_str();
  command->add_flag("--keep-going", arguments->keep_going,
                    "A rank that fails does not end the others, which may shrink their "
                    "communicators. The exit status is that of the first rank that exited with "
                    "another one than 0. If all were killed, it is that of the first");
  command
      ->add_option("--timeout", arguments->timeout_seconds,
                   "End the job after this time; 0 means never")
      ->check(CLI::Range(0.0, kMostSeconds))
      ->check(not_nan())
      ->type_name("SECONDS")
      ->capture_default_str();
  command->add_flag("--profile{unisono-profile}", arguments->profile,
                    "Count and time the collectives; each rank writes FILE.RANK, which unisono "
                    "profile shows. =FILE names another file than unisono-profile");
  // All words from the first that is no option of ours belong to the program: prefix_command()
  // keeps them. The positional serves the help and "--", which CLI11 would otherwise pass on to the
  // application. It refuses every word, so the words stay together.
  command->prefix_command();
  command->validate_positionals();
  command->add_option("PROGRAM", arguments->unused, "The program, and its arguments")
      ->check([](const std::string&) { return std::string("kept with the arguments"); })
      ->type_name("ARGUMENTS...");
  command->footer("Example:\n  unisono run -n 4 --tag ./program --its-option");
  command->callback(
      [arguments, command, &exit_status] { exit_status = run(*arguments, command->remaining()); });
}

}  // namespace unisono::tools
