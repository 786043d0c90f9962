// SPDX-License-Identifier: BSD-3-Clause
// unisono topology: a fat tree with holes, and the loads that each step of a schedule puts on its
// links; as text, JSON and an SVG heat map.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "arguments/algorithm_lookup.hpp"
#include "arguments/element_count.hpp"
#include "arguments/number_list.hpp"
#include "arguments/seed.hpp"
#include "commands.hpp"
#include "sim/step_loads.hpp"
#include "sim/topology_file.hpp"
#include "text_file.hpp"
#include "topology/heat_map.hpp"

namespace unisono::tools {
namespace {

using topology::fat_tree::Ascent;
using topology::fat_tree::Placement;
using topology::fat_tree::Tree;

struct TopologyOptions {
  std::string tree, topology, holes, schedule, ascent = "adaptive", svg;
  std::vector<std::string> parameters;
  int ranks = 0;
  int root = 0;
  std::int64_t count = 1;
  std::uint64_t seed = 1;
  bool json = false;
};

base::Result<Placement> find_placement(const TopologyOptions& options) {
  if (!options.topology.empty()) return sim::read_topology_file(options.topology);
  UNISONO_ASSIGN(const Tree tree, Tree::parse(options.tree));
  std::vector<int> holes;
  if (!options.holes.empty()) {
    const auto list = parse_number_list(options.holes, Step::one, 0, tree.nodes() - 1);
    if (!list) return base::argument_error("--holes: " + list.error().message);
    holes.assign(list->begin(), list->end());
  }
  return place_around(tree, holes, options.ranks);
}

struct Loads {
  std::string name;  // name of the schedule
  sim::ScheduleLoads of;
};

// A strategy of all-to-all multicast has the same name as its allgather row.
base::Result<const algorithm::Algorithm*> find_schedule(const std::string& name) {
  if (name.find('/') == std::string::npos) {
    const auto* row = algorithm::find(schedule::Collective::allgather, name);
    if (row != nullptr) return row;
  }
  return find_row(name);
}

base::Result<Loads> find_loads(const TopologyOptions& options, const Placement& placement) {
  // All schedules of the set are in memory at once, and a direct one has P^2 messages.
  if (placement.ranks() > kMostRanks) {
    return base::Error{base::Code::resources,
                       fmt::format("--schedule is for at most {} ranks, here "
                                   "are {}",
                                   kMostRanks, placement.ranks())};
  }
  UNISONO_ASSIGN(const algorithm::Algorithm* const row, find_schedule(options.schedule));
  const schedule::Shape shape{row->collective, placement.ranks(), options.root,
                              row->collective == schedule::Collective::barrier ? 0 : options.count};
  UNISONO_ASSIGN(const algorithm::Parameters parameters,
                 parse_parameters(*row, shape, options.parameters));
  std::vector<schedule::Schedule> set;
  for (int rank = 0; rank < shape.ranks; ++rank) {
    UNISONO_ASSIGN(schedule::Schedule one, algorithm::build(*row, shape, parameters, rank));
    set.push_back(std::move(one));
  }
  const auto ascent = topology::fat_tree::ascent_from_name(options.ascent);
  return Loads{fmt::format("{}/{}", schedule::collective_name(row->collective),
                           algorithm::describe(*row, parameters)),
               sim::schedule_loads(schedule::messages(set), placement, *ascent, options.seed)};
}

std::string describe(const Placement& placement) {
  const Tree& tree = placement.tree;
  std::string text =
      fmt::format("{}-ary {}-tree: {} nodes, {} switches; {} ranks", tree.arity(), tree.levels(),
                  tree.nodes(), tree.levels() * tree.switches_of_level(), placement.ranks());
  const std::vector<int> holes = placement.holes();
  constexpr std::size_t kMostListed = 16;
  if (!holes.empty() && holes.size() <= kMostListed) {
    text += fmt::format(", holes {}", fmt::join(holes, ","));
  } else if (!holes.empty()) {
    text += fmt::format(", {} holes", holes.size());
  }
  return text;
}

// "a link into nodes 8-11: 3 -> 8 and 4 -> 9"
std::string describe(const topology::fat_tree::Congestion& met, const Tree& tree) {
  const int size = tree.power(met.height);
  const int first = met.subtree * size;
  const std::string into = size == 1 ? fmt::format("node {}", first)
                                     : fmt::format("nodes {}-{}", first, first + size - 1);
  return fmt::format("into {}: {} -> {} and {} -> {}", into, met.first.source, met.first.target,
                     met.second.source, met.second.target);
}

void print_text(const TopologyOptions& options, const Placement& placement, const Loads& loads) {
  fmt::print("{}, ways up by {}\n", loads.name, options.ascent);
  fmt::print("Messages on the most loaded link of each level, from the nodes up:\n");
  fmt::print("{:>5} {:>9}  {:<{width}} {:<{width}} {}\n", "step", "messages", "up", "down",
             "can meet (nodes)", fmt::arg("width", 4 * placement.tree.levels()));
  std::size_t congested = 0;
  int greatest = 0;
  for (const sim::StepLoads& step : loads.of.steps) {
    std::string up, down;
    for (const int load : step.up) up += fmt::format("{:<4}", load);
    for (const int load : step.down) down += fmt::format("{:<4}", load);
    fmt::print("{:>5} {:>9}  {} {} {}\n", step.step, step.messages, up, down,
               step.congestion ? describe(*step.congestion, placement.tree) : "no");
    congested += step.congestion ? 1 : 0;
  }
  for (const int load : loads.of.peak) greatest = std::max(greatest, load);
  fmt::print("{} of {} steps can contend; most messages on a link in a step: {}\n", congested,
             loads.of.steps.size(), greatest);
}

nlohmann::ordered_json as_json(const TopologyOptions& options, const Placement& placement,
                               const Loads& loads) {
  nlohmann::ordered_json result{
      {"topology", nlohmann::ordered_json::parse(sim::topology_text(placement))},
      {"schedule", loads.name},
      {"ascent", options.ascent}};
  for (const sim::StepLoads& step : loads.of.steps) {
    result["steps"].push_back({{"step", step.step},
                               {"messages", step.messages},
                               {"up", step.up},
                               {"down", step.down},
                               {"can_meet", step.congestion.has_value()}});
  }
  return result;
}

base::Status show_topology(const TopologyOptions& options) {
  UNISONO_ASSIGN(const Placement placement, find_placement(options));
  if (options.schedule.empty()) {
    if (options.json) {
      fmt::print("{}", sim::topology_text(placement));
    } else {
      fmt::print("{}\n", describe(placement));
    }
    return base::success();
  }
  UNISONO_ASSIGN(const Loads loads, find_loads(options, placement));
  if (options.json) {
    fmt::print("{}\n", as_json(options, placement, loads).dump(1));
  } else {
    fmt::print("{}\n", describe(placement));
    print_text(options, placement, loads);
  }
  if (options.svg.empty()) return base::success();
  return write_text_file(
      options.svg, heat_map(placement, loads.of.peak,
                            fmt::format("{}: most messages on each link in a step", loads.name)));
}

}  // namespace

void add_topology(CLI::App& app, int& exit_status) {
  auto options = std::make_shared<TopologyOptions>();
  CLI::App* command =
      app.add_subcommand("topology", "Show a schedule's loads on a fat tree's links");
  auto* tree = command->add_option("--tree", options->tree,
                                   "ARITYxLEVELS: 4x3 is a 4-ary 3-tree of 64 nodes");
  auto* file = command
                   ->add_option("--topology", options->topology,
                                "The nodes of the ranks: a topology file or Slurm's")
                   ->excludes(tree);
  command->add_option("--holes", options->holes, "Nodes without a rank, e.g. 7,20 [none]")
      ->needs(tree);
  command->add_option("-n", options->ranks, "Number of ranks [all nodes but the holes]")
      ->needs(tree)
      ->check(CLI::Range(1, std::numeric_limits<int>::max()));
  auto* schedule = command->add_option(
      "--schedule", options->schedule,
      "Algorithm, or COLLECTIVE/NAME; without a collective an allgather is preferred");
  command
      ->add_option("-p,--parameter", options->parameters,
                   "NAME=VALUE: a parameter, e.g. k=8; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--root", options->root, "Root of a broadcast, reduce, gather or scatter")
      ->default_str("0");
  command->add_option("--count", options->count, "Elements of the vector or of each block")
      ->transform(element_count())
      ->default_str("1");
  command
      ->add_option("--ascent", options->ascent,
                   "How switches choose the way up: by the source's or the target's digits, or the "
                   "least loaded port")
      ->check(CLI::IsMember({"source", "target", "adaptive"}))
      ->default_str("adaptive");
  command->add_option("--seed", options->seed, "Seed of the choice among equal ports")
      ->check(seed_range())
      ->default_str("1");
  command->add_option("--svg", options->svg, "Write a heat map of the links to this file")
      ->needs(schedule);
  command->add_flag("--json", options->json, "JSON instead of text");
  command->footer(
      "Example:\n"
      "  unisono topology --tree 4x3 --holes 7,20 --schedule kshift --svg kshift.svg");
  command->callback([options, &exit_status, tree, file] {
    if (tree->empty() && file->empty()) {
      fmt::print(stderr, "unisono topology: give --tree or --topology\n");
      exit_status = kExitUsage;
      return;
    }
    const auto shown = show_topology(*options);
    if (shown.ok()) return;
    fmt::print(stderr, "unisono topology: {}\n", shown.error().message);
    exit_status = kExitUsage;
  });
}

}  // namespace unisono::tools
