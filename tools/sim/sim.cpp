// SPDX-License-Identifier: BSD-3-Clause
// unisono sim: a collective on a machine that need not be here. It picks the quickest tier that can
// do what the options ask for, and prints a table or JSON; it writes pictures, timelines, and
// schedules for other simulators.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arguments/algorithm_lookup.hpp"
#include "arguments/host_list.hpp"
#include "arguments/not_nan.hpp"
#include "arguments/seed.hpp"
#include "arguments/tree_place.hpp"
#include "base/file/read_file.hpp"
#include "base/text.hpp"
#include "commands.hpp"
#include "model/machine_file.hpp"
#include "progress.hpp"
#include "sim/chakra/chakra.hpp"
#include "sim/collapse.hpp"
#include "sim/events.hpp"
#include "sim/export.hpp"
#include "sim/goal/goal_binary.hpp"
#include "sim/goal/goal_file.hpp"
#include "sim/picture.hpp"
#include "sim/sweep.hpp"
#include "text_file.hpp"

namespace unisono::tools {
namespace {

using topology::fat_tree::Placement;

struct SimOptions {
  std::string algorithm, machine, ranks, hosts;
  std::string count = "1", type = "byte", op = "sum", tier = "auto";
  std::vector<std::string> parameters;
  int root = 0;
  TreePlace place;
  std::string contention = "none", ascent = "adaptive";
  std::string noise, skew = "0", repair = "0", barrier;
  double loss = 0;
  int barrier_after = 0;
  std::uint64_t seed = 1;
  bool json = false;
  std::string picture, timeline, goal, goal_binary, chakra, from_goal;

  bool wants_events() const {
    return contention != "none" || !noise.empty() || skew != "0" || loss > 0 || barrier_after > 0 ||
           !timeline.empty() || tier == "events";
  }
};

base::Error usage(std::string what) { return {base::Code::argument, std::move(what)}; }

base::Result<sim::Time> parse_time(std::string_view name, std::string_view text) {
  const auto ns = base::parse_time_ns(text);
  if (!ns || *ns < 0) return usage(fmt::format("{}: '{}' is no time: write 10us", name, text));
  return sim::to_time(static_cast<double>(*ns));
}

// "fixed:PERIOD:LENGTH", "random:PERIOD:LENGTH" or a file.
base::Result<sim::Noise> parse_noise(const SimOptions& options) {
  const std::string_view text = options.noise;
  if (text.empty()) return sim::Noise();
  for (const bool random : {false, true}) {
    const std::string_view prefix = random ? "random:" : "fixed:";
    if (!text.starts_with(prefix)) continue;
    const std::string_view times = text.substr(prefix.size());
    const std::size_t colon = std::min(times.find(':'), times.size());
    UNISONO_ASSIGN(const sim::Time period, parse_time("--noise", times.substr(0, colon)));
    UNISONO_ASSIGN(const sim::Time length,
                   parse_time("--noise", times.substr(std::min(colon + 1, times.size()))));
    return random ? sim::Noise::random(period, length, options.seed)
                  : sim::Noise::fixed(period, length);
  }
  UNISONO_ASSIGN(const std::string trace, base::read_file(options.noise));
  return sim::Noise::parse(trace, options.noise);
}

struct Case {
  const algorithm::Algorithm* row = nullptr;
  schedule::Shape shape;
  algorithm::Parameters parameters;
  model::Machine machine;
  model::Work work;
};

base::Result<Case> find_case(const SimOptions& options) {
  Case result;
  if (options.from_goal.empty() == (options.algorithm.empty() || options.ranks.empty())) {
    return usage("give COLLECTIVE/NAME and -n, or --from-goal");
  }
  if (!options.from_goal.empty()) {
    UNISONO_ASSIGN(result.machine, model::read_machine_file(options.machine));
    return result;
  }
  UNISONO_ASSIGN(result.row, find_row(options.algorithm));
  UNISONO_ASSIGN(result.machine, model::read_machine_file(options.machine));
  constexpr std::int64_t kMostSimulated = 1 << 24;  // a gigabyte of ranks
  const auto ranks = base::parse_size(options.ranks);
  if (!ranks || *ranks < 1 || *ranks > kMostSimulated) {
    return usage(fmt::format("-n: '{}' is not a number of ranks from 1 to 16M", options.ranks));
  }
  constexpr std::int64_t kMostCount = std::int64_t{1} << 40;
  const auto count = base::parse_size(options.count);
  if (!count || *count < 0 || *count > kMostCount) {
    return usage(fmt::format("-c: '{}' is not a number of elements from 0 to 1T", options.count));
  }
  const auto type = arith::type_from_name(options.type);
  const auto op = arith::operator_from_name(options.op);
  if (!type) return usage(fmt::format("-t: '{}' is no type", options.type));
  if (!op) return usage(fmt::format("-o: '{}' is no operator", options.op));
  result.work.type = *type;
  if (schedule::is_reduction(result.row->collective)) result.work.op = *op;
  result.work.apart = true;
  const bool barrier = result.row->collective == schedule::Collective::barrier;
  result.shape = {result.row->collective, static_cast<int>(*ranks), options.root,
                  barrier ? 0 : *count};
  if (!options.hosts.empty()) {
    UNISONO_ASSIGN(result.shape.hosts, parse_hosts(result.shape.ranks, options.hosts));
    result.work.apart = false;  // of one host there is no map
  }
  UNISONO_ASSIGN(result.parameters,
                 parse_parameters(*result.row, result.shape, options.parameters));
  const std::string illegal = algorithm::why_illegal(*result.row, result.shape, result.parameters);
  if (!illegal.empty()) return usage(illegal);
  return result;
}

// Whether one rank's schedule is enough: nothing makes ranks differ, and nobody asks for each of
// them.
bool alike(const SimOptions& options, const Case& which) {
  return which.row != nullptr && algorithm::ranks_are_alike(*which.row, which.shape) &&
         !which.shape.hosts.given() && !options.wants_events() && options.goal.empty() &&
         options.goal_binary.empty() && options.chakra.empty();
}

base::Result<sim::ProgramSet> compile(const SimOptions& options, const Case& which) {
  if (!options.from_goal.empty()) {
    UNISONO_ASSIGN(const std::string text, base::read_file(options.from_goal));
    UNISONO_ASSIGN(const auto traces, sim::is_goal_binary(text)
                                          ? sim::parse_goal_binary(text, options.from_goal)
                                          : sim::parse_goal(text, options.from_goal));
    return sim::ProgramSet::compile_traces(traces, which.machine);
  }
  Progress progress;
  const auto schedule_of = [&](int rank) -> base::Result<schedule::Schedule> {
    constexpr int kBetweenLooks = 4096;
    if (rank % kBetweenLooks == 0) {
      progress.show(fmt::format("schedules of {} of {} ranks", rank, which.shape.ranks));
    }
    return which.row->build(which.shape, which.parameters, rank);
  };
  return alike(options, which)
             ? sim::ProgramSet::compile_alike(which.shape.ranks, schedule_of, which.machine,
                                              which.work)
             : sim::ProgramSet::compile(which.shape.ranks, schedule_of, which.machine, which.work);
}

struct Report {
  std::string tier;
  sim::EventOutcome result;
  std::vector<sim::Activity> activities;
};

base::Result<Report> simulate_events(const SimOptions& options, const Case& which,
                                     const sim::ProgramSet& programs) {
  Report report{"events", {}, {}};
  sim::EventOptions events;
  UNISONO_ASSIGN(events.noise, parse_noise(options));
  UNISONO_ASSIGN(events.skew, parse_time("--skew", options.skew));
  UNISONO_ASSIGN(events.repair, parse_time("--repair", options.repair));
  events.loss = options.loss;
  events.barrier_after = options.barrier_after;
  events.seed = options.seed;
  if (!options.barrier.empty()) {
    UNISONO_ASSIGN(events.barrier, parse_time("--barrier", options.barrier));
  } else if (which.machine.hardware_barrier) {
    events.barrier = sim::to_time(which.machine.hardware_barrier->ns());
  }
  std::optional<Placement> placement;
  if (options.contention != "none") {
    UNISONO_ASSIGN(placement,
                   find_placement(options.place, which.machine, which.shape.ranks, "--contention"));
    if (!which.machine.tree) {
      return usage("--contention: the machine file does not say how fast a link is (tree)");
    }
    events.placement = &*placement;
    events.network.contention =
        options.contention == "wormhole" ? sim::Contention::wormhole : sim::Contention::sharing;
    events.network.ascent = *topology::fat_tree::ascent_from_name(options.ascent);
    events.network.link_ns_per_byte = which.machine.tree->link_per_byte.ns();
  }
  if (!options.timeline.empty()) {
    constexpr std::size_t kMostActivities = 10'000'000;  // a gigabyte of text
    if (programs.step_count() > static_cast<std::int64_t>(kMostActivities)) {
      return usage(fmt::format("--timeline is for at most {} steps, here are {}", kMostActivities,
                               programs.step_count()));
    }
    events.observe = [&](const sim::Activity& each) { report.activities.push_back(each); };
  }
  UNISONO_ASSIGN(report.result, sim::simulate_events(programs, events));
  return report;
}

base::Result<Report> simulate(const SimOptions& options, const Case& which,
                              const sim::ProgramSet& programs) {
  if (options.wants_events()) {
    if (options.tier == "classes" || options.tier == "sweep") {
      return usage(
          fmt::format("--tier {} knows neither contention nor noise, skew, loss, barriers "
                      "and timelines; take events",
                      options.tier));
    }
    return simulate_events(options, which, programs);
  }
  Report report{"sweep", {}, {}};
  if (options.tier == "classes" || (options.tier == "auto" && programs.alike())) {
    report.tier = "classes";
    report.result.outcome =
        programs.alike() ? sim::collapse_alike(programs) : sim::collapse(programs);
  } else {
    if (alike(options, which) && !programs.uniform()) {
      return usage("--tier sweep: the ranks' peers follow no rule; take classes");
    }
    report.result.outcome = sim::sweep(programs);
  }
  return report;
}

struct Ends {
  double first_us = 0, mean_us = 0, last_us = 0;
};
Ends ends_of(const sim::SimulationResult& outcome) {
  const double last = sim::to_ns(outcome.finish) / 1e3;
  if (outcome.by_rank.empty()) return {last, last, last};
  const double sum = std::accumulate(outcome.by_rank.begin(), outcome.by_rank.end(), 0.0);
  return {sim::to_ns(*std::ranges::min_element(outcome.by_rank)) / 1e3,
          sim::to_ns(sum) / 1e3 / static_cast<double>(outcome.by_rank.size()), last};
}

int hosts_of(const Case& which) {
  if (which.row == nullptr) return which.shape.ranks;  // those of a trace
  if (which.shape.hosts.given()) return which.shape.hosts.hosts();
  return which.work.apart ? which.shape.ranks : 1;
}

std::string name_of(const SimOptions& options, const Case& which) {
  if (which.row == nullptr) return options.from_goal;
  return fmt::format("{}/{}", schedule::collective_name(which.row->collective),
                     algorithm::describe(*which.row, which.parameters));
}

std::string title_of(const SimOptions& options, const Case& which) {
  const schedule::Shape& shape = which.shape;
  const std::string hosts =
      options.hosts.empty() ? "" : fmt::format(" of {} hosts", hosts_of(which));
  return fmt::format("{}, {} ranks{}, {} x {} on {}", name_of(options, which), shape.ranks, hosts,
                     shape.count, options.type, which.machine.name);
}

void print(const SimOptions& options, const Case& which, const sim::ProgramSet& programs,
           const Report& report) {
  const Ends ends = ends_of(report.result.outcome);
  const sim::EventOutcome& result = report.result;
  if (options.json) {
    const nlohmann::ordered_json json{{"schedule", name_of(options, which)},
                                      {"ranks", which.shape.ranks},
                                      {"hosts", hosts_of(which)},
                                      {"count", which.shape.count},
                                      {"type", options.type},
                                      {"machine", which.machine.name},
                                      {"tier", report.tier},
                                      {"steps", programs.step_count()},
                                      {"simulated_steps", result.outcome.steps},
                                      {"messages", result.outcome.messages},
                                      {"events", result.events},
                                      {"lost", result.lost},
                                      {"held_up", result.held_up},
                                      {"barriers", result.barriers},
                                      {"first_us", ends.first_us},
                                      {"mean_us", ends.mean_us},
                                      {"last_us", ends.last_us}};
    fmt::print("{}\n", json.dump(1));
    return;
  }
  fmt::print("{}\n", title_of(options, which));
  fmt::print("{:<22} {}\n", "tier", report.tier);
  fmt::print("{:<22} {}\n", "steps of all ranks", programs.step_count());
  fmt::print("{:<22} {}\n", "steps simulated", result.outcome.steps);
  fmt::print("{:<22} {}\n", "messages", result.outcome.messages);
  if (options.loss > 0) fmt::print("{:<22} {}\n", "messages lost", result.lost);
  if (options.contention != "none") fmt::print("{:<22} {}\n", "messages held up", result.held_up);
  if (options.barrier_after > 0) fmt::print("{:<22} {}\n", "barriers", result.barriers);
  fmt::print("{:<22} {:.3f} us\n", "first rank ends", ends.first_us);
  fmt::print("{:<22} {:.3f} us\n", "ranks end on average", ends.mean_us);
  fmt::print("{:<22} {:.3f} us\n", "last rank ends", ends.last_us);
}

// A file for each rank, with the names that ASTRA-sim looks for.
base::Status write_chakra(const std::string& prefix, const sim::ProgramSet& programs) {
  constexpr int kMostFiles = 65536;
  if (programs.ranks() > kMostFiles) {
    return usage(fmt::format("--chakra writes a file for each rank, at most {}; here are {} ranks",
                             kMostFiles, programs.ranks()));
  }
  for (int rank = 0; rank < programs.ranks(); ++rank) {
    UNISONO_TRY(
        write_text_file(fmt::format("{}.{}.et", prefix, rank), sim::chakra_trace(programs, rank)));
  }
  return base::success();
}

base::Status run_sim(const SimOptions& options) {
  UNISONO_ASSIGN(Case which, find_case(options));
  UNISONO_ASSIGN(const sim::ProgramSet programs, compile(options, which));
  which.shape.ranks = programs.ranks();
  UNISONO_ASSIGN(Report report, simulate(options, which, programs));
  print(options, which, programs, report);
  if (!options.picture.empty()) {
    const sim::SimulationResult& result = report.result.outcome;
    UNISONO_TRY(write_text_file(options.picture,
                                ends_picture(title_of(options, which), result, which.shape.ranks)));
  }
  if (!options.goal.empty()) UNISONO_TRY(write_text_file(options.goal, goal_text(programs)));
  if (!options.goal_binary.empty()) {
    UNISONO_TRY(write_text_file(options.goal_binary, sim::goal_binary(programs)));
  }
  if (!options.chakra.empty()) UNISONO_TRY(write_chakra(options.chakra, programs));
  if (options.timeline.empty()) return base::success();
  return write_text_file(options.timeline, sim::timeline_json(std::move(report.activities)));
}

void add_disturbances(CLI::App& command, SimOptions& options) {
  auto* contention =
      command
          .add_option(
              "--contention", options.contention,
              "Messages meet on the links of a fat tree: they wait for a link (wormhole) or "
              "share it (sharing)")
          ->check(CLI::IsMember({"none", "wormhole", "sharing"}))
          ->default_str("none");
  auto* topology = command
                       .add_option("--topology", options.place.topology,
                                   "The nodes of the ranks: a topology file or Slurm's")
                       ->needs(contention);
  contention->excludes("--hosts");
  command.add_option("--tree", options.place.tree, "ARITYxLEVELS [the machine's]")
      ->needs(contention)
      ->excludes(topology);
  command.add_option("--holes", options.place.holes, "Nodes without a rank, e.g. 7,20 [none]")
      ->needs(contention)
      ->excludes(topology);
  command.add_option("--ascent", options.ascent, "How switches choose the way up")
      ->check(CLI::IsMember({"source", "target", "adaptive"}))
      ->needs(contention)
      ->default_str("adaptive");
  command.add_option(
      "--noise", options.noise,
      "Noise that takes cores away: fixed:PERIOD:LENGTH, random:PERIOD:LENGTH, or a file "
      "with lines START LENGTH in nanoseconds");
  command.add_option("--skew", options.skew, "Ranks start at random times up to this")
      ->default_str("0");
  auto* loss = command.add_option("--loss", options.loss, "Share of messages that are lost")
                   ->check(CLI::Range(0.0, 0.99))
                   ->check(not_nan())
                   ->default_str("0");
  command.add_option("--repair", options.repair, "From a loss until the message is sent again")
      ->needs(loss)
      ->default_str("0");
  auto* after = command
                    .add_option("--barrier-after", options.barrier_after,
                                "A barrier of all ranks after so many messages received")
                    ->check(CLI::Range(0, std::numeric_limits<int>::max()));
  command
      .add_option("--barrier", options.barrier,
                  "Time of a barrier [the machine's hardware barrier]")
      ->needs(after);
  command.add_option("--seed", options.seed, "Seed of all random choices")
      ->check(seed_range())
      ->default_str("1");
}

}  // namespace

void add_sim(CLI::App& app, int& exit_status) {
  auto options = std::make_shared<SimOptions>();
  CLI::App* command = app.add_subcommand("sim", "Simulate a collective on a machine");
  command->add_option("algorithm", options->algorithm, "COLLECTIVE/NAME");
  command->add_option("-n", options->ranks, "Number of ranks, e.g. 1M");
  auto* hosts = command->add_option(
      "--hosts", options->hosts,
      "Several ranks on a host: 4x2 is four hosts of two, 3,1,2 hosts of so many. With :cyclic, "
      "ranks are dealt out in turn [a host for each rank]");
  command->add_option("-m,--machine", options->machine, "Machine file")->required();
  command
      ->add_option("-c,--count", options->count,
                   "Elements of the vector or of each block, e.g. 64K")
      ->default_str("1");
  command->add_option("-t,--type", options->type, "Datatype")->default_str("byte");
  command->add_option("-o,--op", options->op, "Operator of reductions")->default_str("sum");
  command->add_option("--root", options->root, "Root of a broadcast, reduce, gather or scatter")
      ->default_str("0");
  command
      ->add_option("-p,--parameter", options->parameters,
                   "NAME=VALUE: a parameter, e.g. degree=4; may be repeated")
      ->allow_extra_args(false);
  command
      ->add_option("--tier", options->tier,
                   "classes: one rank of each class; sweep: no contention; events: everything")
      ->check(CLI::IsMember({"auto", "classes", "sweep", "events"}))
      ->default_str("auto");
  add_disturbances(*command, *options);
  command->add_flag("--json", options->json, "JSON instead of a table");
  command->add_option("--picture", options->picture, "Write when the ranks end as an SVG picture");
  command->add_option("--timeline", options->timeline,
                      "Write what each rank does, for Perfetto or chrome://tracing");
  // Other simulators know no hosts.
  command->add_option("--goal", options->goal, "Write the schedule as GOAL text, for LogGOPSim")
      ->excludes(hosts);
  command
      ->add_option("--goal-binary", options->goal_binary,
                   "Write the schedule as GOAL binary, which LogGOPSim loads")
      ->excludes(hosts);
  command
      ->add_option("--chakra", options->chakra,
                   "Write the schedule as Chakra execution traces: PREFIX.RANK.et")
      ->excludes(hosts);
  command
      ->add_option("--from-goal", options->from_goal,
                   "Simulate a schedule in GOAL text or binary in place of an algorithm")
      ->excludes(hosts);
  command->footer(
      "Example:\n"
      "  unisono sim allreduce/pairwise -n 1M -m machines/alc.json -t float64");
  command->callback([options, &exit_status] {
    const auto done = run_sim(*options);
    if (done.ok()) return;
    fmt::print(stderr, "unisono sim: {}\n", done.error().message);
    exit_status = kExitUsage;
  });
}

}  // namespace unisono::tools
