// SPDX-License-Identifier: BSD-3-Clause
// unisono tune: measures this machine and writes its machine file into the user's cache folder.
#include <fmt/format.h>
#include <unisono/unisono.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/settings/settings.hpp"
#include "commands.hpp"
#include "model/constants.hpp"
#include "model/machine_file.hpp"
#include "model/own_machine.hpp"
#include "text_file.hpp"
#include "tune/picture.hpp"
#include "tune/probes/job_probes.hpp"
#include "tune/tuning.hpp"

namespace unisono::tools {
namespace {

struct TuneArguments {
  bool quick = false;
  bool busy = false;
  std::string output;
  std::string picture;
};

void print_comparisons(const std::string& title, const std::vector<tune::Comparison>& all,
                       const char* beside = "predicted, ns") {
  fmt::print("\n{}:\n  {:<28} {:>13} {:>12} {:>13} {:>8}\n", title, "", "measured, ns", "+-",
             beside, "ratio");
  for (const tune::Comparison& each : all) {
    fmt::print("  {:<28} {:>13.0f} {:>12.0f} {:>13.0f} {:>8.2f}\n", each.what, each.measured_ns,
               each.plus_minus, each.predicted_ns, each.predicted_ns / each.measured_ns);
  }
}

void print_degrees(const std::vector<tune::Comparison>& degrees) {
  if (degrees.empty()) return;
  print_comparisons(
      fmt::format("reduce of {} bytes, {} ranks, over the degree of the f-nomial tree",
                  degrees.front().bytes, degrees.front().ranks),
      degrees);
  const tune::BestDegrees best = tune::best_degrees(degrees);
  fmt::print("best degree: measured {}, predicted {}\n", best.measured, best.predicted);
}

void print_copies(const std::vector<tune::CopyTimes>& copies, const model::Machine& machine) {
  if (copies.empty()) return;
  std::vector<tune::Comparison> rows;
  for (const tune::CopyTimes& each : copies) {
    rows.push_back({.what = fmt::format("{} ranks, {} bytes", each.ranks, each.bytes),
                    .measured_ns = each.one_ns,
                    .plus_minus = each.one_plus_minus,
                    .predicted_ns = each.two_ns});
  }
  print_comparisons("broadcasts with one copy by the kernel", rows, "two copies");
  const auto& from = machine.constants[static_cast<std::size_t>(model::Constant::single_copy_from)];
  fmt::print("{}\n", from ? fmt::format("one copy is faster from {:.0f} bytes on", from->number)
                          : "one copy is not found faster");
}

void print(const tune::Tuning& tuning) {
  fmt::print("fits (95 % intervals):\n  {:<44} {:>22} {:>24} {:>9}\n", "", "each, ns",
             "per byte, ns", "residual");
  for (const tune::FitLine& fit : tuning.fits) {
    fmt::print("  {:<44} {:>10.1f} +- {:>8.1f} {:>11.4f} +- {:>9.4f} {:>7.1f} %\n", fit.what,
               fit.each_ns, fit.each_plus_minus, fit.per_byte_ns, fit.per_byte_plus_minus,
               100 * fit.deviation);
  }
  for (const tune::FittedSerial& each : tuning.serial) {
    print_comparisons(each.what + ": T = C + L + (P - 1) (r + c)", each.times, "fitted, ns");
  }
  print_copies(tuning.copies, tuning.machine);
  print_comparisons("measured and predicted", tuning.comparisons);
  if (tuning.machine.price_error) {
    fmt::print("prices deviate by {:.0f} %\n", 100 * tuning.machine.price_error->number);
  }
  print_degrees(tuning.degrees);
  for (const std::string& each : tuning.left_out) fmt::print("left out: {}\n", each);
  for (const std::string& each : tuning.disturbed) fmt::print("low confidence: {}\n", each);
}

// Better known before the machine is measured than after it.
base::Status check_output(std::string_view option, const std::string& path) {
  if (path.empty()) return base::success();
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return base::argument_error(
        fmt::format("{}: cannot write '{}': {}", option, path, std::strerror(EISDIR)));
  }
  // The file is written beside its place and then gets its name.
  const std::string folder = std::filesystem::path(path).parent_path().string();
  if (access(folder.empty() ? "." : folder.c_str(), W_OK | X_OK) == 0) return base::success();
  return base::argument_error(
      fmt::format("{}: cannot write '{}': {}", option, path, std::strerror(errno)));
}

// The folder of the user's machine file, with which write() ends if there is no --output.
base::Status check_folder(const std::string& folder) {
  if (folder.empty()) {
    return base::argument_error(
        "neither XDG_CACHE_HOME nor HOME says where to write: give --output");
  }
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!error && access(folder.c_str(), W_OK | X_OK) == 0) return base::success();
  const std::string why = error ? error.message() : std::strerror(errno);
  return base::Error{base::Code::system,
                     fmt::format("cannot write into '{}': {}; give --output", folder, why)};
}

base::Result<std::string> write(const TuneArguments& arguments, const std::string& folder,
                                model::Machine& machine) {
  UNISONO_TRY(model::parse_machine(model::machine_text(machine), "the measured machine"));
  if (!arguments.output.empty()) {
    UNISONO_TRY(model::write_machine_file(machine, arguments.output));
    return arguments.output;
  }
  // Those of `unisono mpirun --tune` stay.
  const auto before = model::read_own_machine(folder, *machine.fingerprint);
  if (before.ok()) machine.host_mpis = before->host_mpis;
  UNISONO_TRY(model::write_own_machine(machine, folder));
  return model::own_machine_path(folder);
}

base::Status run_tune(const TuneArguments& arguments) {
  UNISONO_ASSIGN(const base::Settings settings, base::Settings::from(base::process_environment()));
  if (arguments.output.empty()) UNISONO_TRY(check_folder(settings.cache_folder()));
  const model::Fingerprint fingerprint = model::own_fingerprint(settings);
  // Only schedules whose prices are compared, whatever an older file says; before the library reads
  // its settings.
  ::setenv("UNISONO_ALGORITHM", tune::kProbedAlgorithms, 1);
  ::setenv("UNISONO_MACHINE", "default", 1);
  tune::TuneOptions options{.quick = arguments.quick,
                            .accept_load = arguments.busy,
                            .degrees = !arguments.quick || !arguments.picture.empty()};
  options.progress = [](const std::string& what) {
    fmt::print(stderr, "unisono tune: {}\n", what);
  };
  const std::int64_t begin = base::now_ns();
  tune::Tuning tuning;
  UNISONO_ASSIGN(tuning, tune::tune_machine(options));
  tuning.machine.fingerprint = fingerprint;
  print(tuning);
  std::string path;
  UNISONO_ASSIGN(path, write(arguments, settings.cache_folder(), tuning.machine));
  fmt::print("wrote {} after {:.1f} s\n", path,
             static_cast<double>(base::now_ns() - begin) / base::kSecond);
  if (!arguments.picture.empty()) {
    UNISONO_TRY(write_text_file(arguments.picture, tune::tuning_picture(tuning)));
    fmt::print("drew {}\n", arguments.picture);
  }
  return base::success();
}

}  // namespace

void add_tune(CLI::App& app, int& exit_status) {
  auto arguments = std::make_shared<TuneArguments>();
  CLI::App* command = app.add_subcommand(
      "tune",
      "Measure this machine and write its machine file\n\n"
      "Measures messages, copies, reduction kernels and passing a core on, fits the model's "
      "parameters with 95 % intervals, and compares predictions with serial reductions.");
  command->add_flag("--quick", arguments->quick, "Within about 10 s, with wider intervals");
  command->add_flag("--busy", arguments->busy,
                    "Write a file of low confidence if other programs keep the machine busy");
  command->add_option("--output", arguments->output,
                      "Write this file [machine.json in $XDG_CACHE_HOME/unisono]");
  command->add_option("--picture", arguments->picture,
                      "Draw measured and predicted times into this SVG file: over the degree of "
                      "the f-nomial tree and over sizes");
  command->footer("Example:\n  unisono tune --quick --picture tune.svg");
  command->callback([arguments, &exit_status] {
    for (const auto& [option, path] :
         {std::pair{"--output", arguments->output}, std::pair{"--picture", arguments->picture}}) {
      const base::Status writable = check_output(option, path);
      if (writable.ok()) continue;
      fmt::print(stderr, "unisono tune: {}\n", writable.error().message);
      exit_status = kExitUsage;
      return;
    }
    const base::Status status = run_tune(*arguments);
    if (status.ok()) return;
    fmt::print(stderr, "unisono tune: {}\n", status.error().message);
    exit_status = kExitFailure;
  });
}

}  // namespace unisono::tools
