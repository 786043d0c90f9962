// SPDX-License-Identifier: BSD-3-Clause
// unisono bench: measures the collectives. Started by a user it runs N processes of itself with
// --as-rank, as `unisono run` would; started with --as-rank (by that, or by mpirun and the like) it
// is one rank of the job. This file is the command line; bench/ is the measuring.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "arguments/not_nan.hpp"
#include "arguments/number_list.hpp"
#include "base/clock.hpp"
#include "bench/measure/subject.hpp"
#include "bench/options.hpp"
#include "bench/peers.hpp"
#include "bench/session.hpp"
#include "commands.hpp"
#include "machine.hpp"
#include "run/job.hpp"

namespace unisono::tools {
namespace {

// Time for the other ranks to report after one has failed.
constexpr std::int64_t kGrace = 2 * base::kSecond;
constexpr std::string_view kSizes = "8:1M";
constexpr std::string_view kHotSpot = "hot-spot";
constexpr std::string_view kHotSpotSizes = "1K,64K";

// The options as written; `options` has the parsed ones.
struct BenchArguments {
  std::vector<std::string> collectives;
  int ranks = 0;
  bool as_rank = false;
  std::string sizes;  // empty: not given
  std::string type = "float32";
  std::string op = "sum";
  std::string format = "table";
  std::string method = "both";
  bool guidelines = false;
  bool overlap = false;
  bool consistency = false;
  bool cpu = false;
  bool peers = false;
  std::string team_sizes;  // empty: not given
  bench::Options options;
};

std::string measured_names() {
  std::vector<std::string_view> names;
  for (const bench::Subject& each : bench::subjects()) names.push_back(each.name());
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string_view name_of(bench::Aim aim) {
  switch (aim) {
    case bench::Aim::times:
      return "times";
    case bench::Aim::guidelines:
      return "--guidelines";
    case bench::Aim::overlap:
      return "--overlap";
    case bench::Aim::consistency:
      return "--consistency";
    case bench::Aim::cpu:
      return "--cpu";
    case bench::Aim::hot_spot:
      return kHotSpot;
  }
  return "";
}

base::Status read_aim(const BenchArguments& arguments, bench::Options& options) {
  if (arguments.guidelines) options.aim = bench::Aim::guidelines;
  if (arguments.overlap) options.aim = bench::Aim::overlap;
  if (arguments.consistency) options.aim = bench::Aim::consistency;
  if (arguments.cpu) options.aim = bench::Aim::cpu;
  if (std::ranges::find(arguments.collectives, kHotSpot) != arguments.collectives.end()) {
    if (arguments.collectives.size() > 1 || options.aim != bench::Aim::times) {
      return base::argument_error(
          "hot-spot is measured alone: leave other names, --guidelines, "
          "--overlap, --consistency and --cpu away");
    }
    options.aim = bench::Aim::hot_spot;
  }
  if (!options.picture_path.empty() && !arguments.peers && options.aim != bench::Aim::consistency) {
    return base::argument_error("--picture is for --consistency and --peers");
  }
  if (options.aim != bench::Aim::times && arguments.format == "osu") {
    return base::argument_error(fmt::format(
        "--format osu has no form for {}; there are table and json", name_of(options.aim)));
  }
  if (options.aim != bench::Aim::cpu && options.aim != bench::Aim::hot_spot &&
      !arguments.team_sizes.empty()) {
    return base::argument_error(
        "--ranks is for hot-spot and --cpu; -n says how many ranks to start");
  }
  return base::success();
}

base::Status read_team_sizes(const BenchArguments& arguments, bench::Options& options) {
  if (arguments.team_sizes.empty()) return base::success();
  const std::int64_t fewest = options.aim == bench::Aim::hot_spot ? 2 : 1;
  auto sizes = parse_number_list(arguments.team_sizes, Step::doubling, fewest, kMostRanks);
  if (!sizes) return base::argument_error("--ranks: " + sizes.error().message);
  options.team_sizes = std::move(sizes).value();
  return base::success();
}

base::Status read_subjects(const BenchArguments& arguments, bench::Options& options) {
  if (options.aim == bench::Aim::hot_spot) {
    options.subjects = {schedule::Collective::gather};
    return base::success();
  }
  const auto known = bench::subjects();
  for (const std::string& name : arguments.collectives) {
    const auto subject = std::ranges::find(known, name, &bench::Subject::name);
    if (subject == known.end()) {
      return base::argument_error(fmt::format(
          "no collective to measure is named '{}': there are {}", name, measured_names()));
    }
    if (subject->unequal && arguments.guidelines) {
      return base::argument_error(
          fmt::format("--guidelines: there is none for {}, with its unequal blocks", name));
    }
    options.subjects.push_back(*subject);
  }
  if (options.subjects.empty()) options.subjects.assign(known.begin(), known.end());
  return base::success();
}

bool reduces(const bench::Options& options) {
  return std::ranges::any_of(options.subjects, [](const bench::Subject& subject) {
    return schedule::is_reduction(subject.collective);
  });
}

base::Status read_type_and_operator(const BenchArguments& arguments, bench::Options& options) {
  const auto type = arith::type_from_name(arguments.type);
  if (!type || *type >= arith::Type::int16_int32) {
    std::vector<std::string_view> names;
    names.reserve(arith::kTypeCount);
    for (int i = 0; i < static_cast<int>(arith::Type::int16_int32); ++i) {
      names.push_back(arith::type_name(static_cast<arith::Type>(i)));
    }
    return base::argument_error(fmt::format("--type {} cannot be measured: there are {}",
                                            arguments.type, fmt::join(names, ", ")));
  }
  const auto op = arith::operator_from_name(arguments.op);
  if (!op)
    return base::argument_error(fmt::format("--op: no operator is named '{}'", arguments.op));
  options.type = *type;
  options.op = *op;
  if (reduces(options) && !arith::fits(*op, *type)) {
    return base::argument_error(
        fmt::format("the operator {} is not defined on {}", arguments.op, arguments.type));
  }
  return base::success();
}

base::Status read_sizes(const BenchArguments& arguments, bench::Options& options) {
  std::string_view text = arguments.sizes;
  if (text.empty()) text = options.aim == bench::Aim::hot_spot ? kHotSpotSizes : kSizes;
  auto sizes = parse_number_list(text, Step::doubling, 0, kMostBytes);
  if (!sizes) return base::argument_error("--sizes: " + sizes.error().message);
  const auto element = static_cast<std::int64_t>(arith::type_size(options.type));
  for (const std::int64_t bytes : *sizes) {
    if (bytes % element == 0) continue;
    return base::argument_error(
        fmt::format("--sizes: {} bytes are no whole number of {} ({} bytes each)", bytes,
                    arguments.type, element));
  }
  options.sizes = std::move(sizes).value();
  return base::success();
}

bench::Method method_from(const std::string& name) {
  if (name == "loop") return bench::Method::loop;
  return name == "single" ? bench::Method::single : bench::Method::both;
}

bench::Format format_from(const std::string& name) {
  if (name == "osu") return bench::Format::osu;
  return name == "json" ? bench::Format::json : bench::Format::table;
}

base::Result<bench::Options> read(const BenchArguments& arguments) {
  bench::Options options = arguments.options;
  UNISONO_TRY(read_aim(arguments, options));
  UNISONO_TRY(read_team_sizes(arguments, options));
  UNISONO_TRY(read_subjects(arguments, options));
  UNISONO_TRY(read_type_and_operator(arguments, options));
  UNISONO_TRY(read_sizes(arguments, options));
  options.method = method_from(arguments.method);
  options.format = format_from(arguments.format);
  return options;
}

// Better known before the ranks start than when they have measured.
base::Status try_to_write(std::string_view option, const std::string& path) {
  if (path.empty()) return base::success();
  std::FILE* file = std::fopen(path.c_str(), "ae");
  if (file == nullptr) {
    return base::argument_error(
        fmt::format("{}: cannot write '{}': {}", option, path, std::strerror(errno)));
  }
  std::fclose(file);
  return base::success();
}

// The arguments of `command`, to be passed on and recorded.
std::vector<std::string> given_arguments(const CLI::App& command) {
  std::vector<std::string> words;
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = option->get_name();
    // Options without a group are launch()'s.
    if (option->count() == 0 || name == "--as-rank" || option->get_group().empty()) continue;
    if (option->get_items_expected_max() == 0) {  // a flag
      words.push_back(name);
      continue;
    }
    for (const std::string& value : option->results()) {
      if (name.starts_with("-")) words.push_back(name);
      words.push_back(value);
    }
  }
  return words;
}

// Runs `ranks` processes like this one, each with --as-rank; the job's exit status.
int launch(int ranks, const std::vector<std::string>& words, bool progress) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) {
    fmt::print(stderr, "unisono bench: cannot find this program: /proc/self/exe: {}\n",
               error.message());
    return kExitFailure;
  }
  JobOptions job;
  job.ranks = ranks;
  job.command = {self.string(), "bench", "--as-rank"};
  // A rank sees its own share only.
  job.command.insert(job.command.end(), {"--usable-cores", std::to_string(usable_cores())});
  if (progress) job.command.emplace_back("--progress");
  job.command.insert(job.command.end(), words.begin(), words.end());
  job.grace_ns = kGrace;
  int exit_status = kExitFailure;
  const base::Result<int> ended = run_job(job, exit_status);
  if (ended.ok()) return *ended;
  fmt::print(stderr, "unisono bench: {}\n", ended.error().message);
  return exit_status;
}

// Lines of the table are progress enough; without them on the screen, a word on stderr is wanted.
bool wants_progress(const bench::Options& options) {
  return isatty(STDERR_FILENO) == 1 &&
         (isatty(STDOUT_FILENO) != 1 || options.format == bench::Format::json);
}

// Checks that only the process that starts the ranks can make.
base::Status check_job(const BenchArguments& arguments, const bench::Options& options) {
  if (arguments.ranks == 0) {
    return base::argument_error("-n is missing: say how many ranks, as in -n 2");
  }
  if (arguments.options.root >= arguments.ranks) {
    return base::argument_error(fmt::format("--root {} does not exist: the ranks are 0 to {}",
                                            arguments.options.root, arguments.ranks - 1));
  }
  if (arguments.options.workers > arguments.ranks) {
    return base::argument_error(fmt::format("--workers {}: only {} are started",
                                            arguments.options.workers, arguments.ranks));
  }
  if (arguments.ranks < 2 && arguments.collectives == std::vector{std::string(kHotSpot)}) {
    return base::argument_error("hot-spot needs at least 2 ranks: -n 2");
  }
  for (const std::int64_t size : options.team_sizes) {
    if (size <= arguments.ranks) continue;
    return base::argument_error(
        fmt::format("--ranks {}: only {} are started", size, arguments.ranks));
  }
  UNISONO_TRY(try_to_write("--json", arguments.options.json_path));
  return try_to_write("--picture", arguments.options.picture_path);
}

int usage_error(const base::Error& error) {
  fmt::print(stderr, "unisono bench: {}\n", error.message);
  return kExitUsage;
}

// Hands the arguments over to the comparison, sizes as numbers.
int compare_with_peers(const bench::Options& options, const CLI::App& command) {
  for (const char* name :
       {"-n", "--type", "--op", "--format", "--method", "--iterations", "--warmup", "--guidelines",
        "--overlap", "--consistency", "--cpu", "--ranks", "--as-rank"}) {
    if (command.get_option(name)->count() == 0) continue;
    return usage_error(base::argument_error(
        fmt::format("{} does not go with --peers, which compares the times of sums of float32; "
                    "--shapes says how many ranks",
                    name)));
  }
  std::vector<std::string> words;
  const std::vector<std::string> given = given_arguments(command);
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (given[i] == "--peers") continue;
    words.push_back(given[i]);
    if (given[i] == "--sizes") {
      words.push_back(fmt::format("{}", fmt::join(options.sizes, ",")));
      ++i;
    }
  }
  return bench::compare_with_peers(words);
}

int run_bench(const BenchArguments& arguments, const CLI::App& command) {
  auto options = read(arguments);
  if (!options) return usage_error(options.error());
  if (arguments.peers) return compare_with_peers(*options, command);
  if (!arguments.as_rank) {
    if (const base::Status job = check_job(arguments, *options); !job)
      return usage_error(job.error());
  }
  const std::vector<std::string> words = given_arguments(command);
  if (!arguments.as_rank) return launch(arguments.ranks, words, wants_progress(*options));
  options->command = fmt::format("unisono bench {}", fmt::join(words, " "));
  return bench::run_session(*options);
}

// Adds the comparison with other libraries, which bench/peers/compare.py makes.
void add_peers(CLI::App& command, BenchArguments& arguments) {
  CLI::Option* peers = command.add_flag("--peers", arguments.peers,
                                        "Run the MPIs that are installed, and Gloo, by turns with "
                                        "Unisono; writes JSON and a picture");
  const auto add = [&](const char* name, const char* what, const char* help) {
    // The words are handed over as they were given.
    command
        .add_option_function<std::string>(
            name, [](const std::string&) {}, help)
        ->type_name(what)
        ->needs(peers);
  };
  add("--shapes", "LIST", "With --peers: ranks, or hosts x ranks (as root) [2,8,4x1]");
  add("--only", "LIST", "With --peers: these implementations only");
  add("--repeat", "N", "With --peers: repetitions [3]");
  add("--state", "FACTOR",
      "With --peers: throw away pairs whose cache-line round trips differ by more [1.5]");
  add("--limit", "SECONDS", "With --peers: after which a run is given up [300]");
  add("--rate", "RATE", "With --peers: limit every link between hosts: 200mbit");
  add("--quiet", "SECONDS", "With --peers: wait at most so long for an idle machine");
  add("--output", "FOLDER", "With --peers: for peers.json, peers.svg and the twins [build/bench]");
  add("--environments", "FOLDER", "With --peers: where the wheels of MPIs are [build/venv-mpi]");
  add("--torch-python", "FILE", "With --peers: a Python that has torch, for Gloo");
  const auto add_flag = [&](const char* name, const char* help) {
    command
        .add_flag_callback(
            name, [] {}, help)
        ->needs(peers);
  };
  add_flag("--together", "With --peers: all collectives in one launch, which is quicker");
  add_flag("--install", "With --peers: fetch wheels of MPIs with pip");
  add_flag("--add", "With --peers: add repetitions to those in the JSON file");
}

// Adds the studies of a collective. `others` are aims, or options of aims, that exclude them.
void add_studies(CLI::App& command, BenchArguments& arguments,
                 const std::vector<CLI::Option*>& others) {
  CLI::Option* overlap =
      command.add_flag("--overlap", arguments.overlap,
                       "Share of a split-phase operation that the caller's work hides");
  CLI::Option* consistency = command.add_flag(
      "--consistency", arguments.consistency,
      "Spread of a call's times, over 100000 calls or as many as --iterations says");
  CLI::Option* cpu = command.add_flag("--cpu", arguments.cpu,
                                      "Processor time of a call beside its completion time");
  overlap->excludes(consistency)->excludes(cpu);
  consistency->excludes(cpu);
  for (CLI::Option* study : {overlap, consistency, cpu}) {
    for (CLI::Option* other : others) study->excludes(other);
  }
  command
      .add_option("--polls", arguments.options.polls,
                  "With --overlap: how often the caller asks during its work")
      ->capture_default_str()
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1'000'000}))
      ->needs(overlap);
  command
      .add_option("--workers", arguments.options.workers,
                  "With --overlap: number of ranks that work, from rank 0 on; the others wait (0: "
                  "all work)")
      ->capture_default_str()
      ->check(CLI::Range(0, kMostRanks))
      ->needs(overlap);
  command.add_option(
      "--picture", arguments.options.picture_path,
      "With --consistency: draw the histograms into this SVG file; with --peers: the "
      "heat map");
  command.add_option("--ranks", arguments.team_sizes,
                     "With hot-spot or --cpu: measure with the first so many ranks, doubling: "
                     "FROM:TO, or a list");
}

}  // namespace

void add_bench(CLI::App& app, int& exit_status) {
  auto arguments = std::make_shared<BenchArguments>();
  CLI::App* command = app.add_subcommand("bench", "Measure the collectives");
  command->add_option("collective", arguments->collectives,
                      measured_names() + " [all]; or hot-spot");
  command->add_option("-n", arguments->ranks, "Number of ranks to start")
      ->check(CLI::Range(1, kMostRanks));
  command
      ->add_option("--sizes", arguments->sizes,
                   "Bytes of the vector, or of a block of it, doubling: FROM:TO, or a list")
      ->default_str(std::string(kSizes));
  command->add_option("--type", arguments->type, "Type of the elements")->capture_default_str();
  command->add_option("--op", arguments->op, "Operator of the reductions")->capture_default_str();
  command->add_option("--root", arguments->options.root, "Root of rooted collectives")
      ->capture_default_str()
      ->check(CLI::Range(0, kMostRanks - 1));
  command
      ->add_option_function<std::string>(
          "--uneven",
          [arguments](const std::string& name) {
            arguments->options.uneven = *bench::uneven_from_name(name);
          },
          "Unequal blocks: halves (1/2 and 3/2 of the size), zeros (nothing and twice the size) or "
          "one (nearly all in one block)")
      ->default_str("halves")
      ->check(CLI::IsMember({"halves", "zeros", "one"}));
  command->add_option("--format", arguments->format, "table, osu or json")
      ->capture_default_str()
      ->check(CLI::IsMember({"table", "osu", "json"}));
  command->add_option("--json", arguments->options.json_path, "Write JSON to this file too");
  CLI::Option* method =
      command
          ->add_option("--method", arguments->method,
                       "loop (back to back), single (a barrier before each call) or both")
          ->capture_default_str()
          ->check(CLI::IsMember({"loop", "single", "both"}));
  command
      ->add_option("--iterations", arguments->options.iterations,
                   "Timed calls of each method [as many as fit in --seconds]")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{100'000'000}));
  command
      ->add_option("--warmup", arguments->options.warmup,
                   "Untimed calls before [until the time of a call is known]")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{100'000'000}));
  command->add_option("--seconds", arguments->options.seconds, "About how long one line may take")
      ->capture_default_str()
      ->check(CLI::Range(0.001, 3600.0))
      ->check(not_nan());
  CLI::Option* guidelines =
      command
          ->add_flag("--guidelines", arguments->guidelines,
                     "Compare times of collectives with each other, by guidelines")
          ->excludes(method);
  add_studies(*command, *arguments, {method, guidelines});
  command
      ->add_option("--factor", arguments->options.factor,
                   "Factor on the allowed ratios; 1 leaves no room for noise")
      ->capture_default_str()
      ->check(CLI::Range(0.001, 1e6))
      ->check(not_nan())
      ->needs(guidelines);
  command->add_flag("--tolerate", arguments->options.tolerate, "A missed guideline is no failure")
      ->needs(guidelines);
  command->add_flag("--as-rank", arguments->as_rank,
                    "Be one rank of a job that was started already, e.g. by mpirun");
  // From launch():
  command->add_flag("--progress", arguments->options.progress)->group("");
  command->add_option("--usable-cores", arguments->options.usable_cores)->group("");
  add_peers(*command, *arguments);
  command->footer("Example:\n  unisono bench allreduce allgather -n 4 --sizes 8:64K");
  command->callback(
      [arguments, command, &exit_status] { exit_status = run_bench(*arguments, *command); });
}

}  // namespace unisono::tools
