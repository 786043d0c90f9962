// SPDX-License-Identifier: BSD-3-Clause
// unisono show: the schedule of an algorithm, as text (which `unisono check --file` reads back) or
// as a Graphviz picture, of all steps or of the messages only.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "arguments/algorithm_lookup.hpp"
#include "arguments/block_list.hpp"
#include "arguments/element_count.hpp"
#include "arguments/host_list.hpp"
#include "commands.hpp"
#include "schedule/text.hpp"

namespace unisono::tools {
namespace {

struct ShowOptions {
  std::string algorithm;
  std::string collective;
  int ranks = 0;
  int rank = -1;  // -1: all
  int root = 0;
  std::int64_t count = -1;  // -1: a small count that shows the pattern
  std::string blocks, receivers, hosts;
  bool ordered = false;
  std::vector<std::string> parameters;
  bool dot = false;
  bool messages = false;
};

// One element a rank, so that algorithms which cut the vector into pieces have some to cut.
std::int64_t telling_count(schedule::Collective collective, int ranks) {
  switch (collective) {
    case schedule::Collective::barrier:
      return 0;
    case schedule::Collective::allgather:
    case schedule::Collective::gather:
    case schedule::Collective::scatter:
    case schedule::Collective::alltoall:
    case schedule::Collective::reduce_scatter:
    case schedule::Collective::many_to_many:
      return 1;
    case schedule::Collective::broadcast:
    case schedule::Collective::reduce:
    case schedule::Collective::allreduce:
    case schedule::Collective::scan:
    case schedule::Collective::exscan:
      return ranks;
  }
  return 0;
}

base::Result<std::vector<schedule::Schedule>> build_set(const ShowOptions& options) {
  const std::string name =
      options.collective.empty() ? options.algorithm : options.collective + "/" + options.algorithm;
  UNISONO_ASSIGN(const algorithm::Algorithm* const row, find_row(name));
  const std::int64_t count =
      options.count >= 0 ? options.count : telling_count(row->collective, options.ranks);
  schedule::Shape shape{row->collective, options.ranks, options.root, count, options.ordered};
  if (!options.blocks.empty()) {
    UNISONO_ASSIGN(shape.blocks,
                   parse_blocks(row->collective, options.ranks, options.blocks, options.receivers));
    shape.count = 0;
  }
  if (!options.hosts.empty()) {
    UNISONO_ASSIGN(shape.hosts, parse_hosts(options.ranks, options.hosts));
  }
  UNISONO_ASSIGN(const algorithm::Parameters parameters,
                 parse_parameters(*row, shape, options.parameters));
  std::vector<schedule::Schedule> set;
  for (int rank = 0; rank < options.ranks; ++rank) {
    if (options.rank >= 0 && rank != options.rank) continue;
    UNISONO_ASSIGN(schedule::Schedule one, algorithm::build(*row, shape, parameters, rank));
    set.push_back(std::move(one));
  }
  return set;
}

int show(const ShowOptions& options) {
  if (options.rank >= options.ranks) {
    fmt::print(stderr, "unisono show: rank {} does not exist: the ranks are 0 to {}\n",
               options.rank, options.ranks - 1);
    return kExitUsage;
  }
  const auto set = build_set(options);
  if (!set) {
    fmt::print(stderr, "unisono show: {}\n", set.error().message);
    return kExitUsage;
  }
  const std::string text = options.messages    ? schedule::graphviz_messages(*set)
                           : options.dot       ? schedule::graphviz(*set)
                           : options.rank >= 0 ? schedule::print(set->front())
                                               : schedule::print(*set);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return kExitSuccess;
}

}  // namespace

void add_show(CLI::App& app, int& exit_status) {
  auto options = std::make_shared<ShowOptions>();
  CLI::App* command = app.add_subcommand("show", "Print an algorithm's schedule");
  command
      ->add_option("algorithm", options->algorithm,
                   "Name, or COLLECTIVE/NAME where several collectives have one of that name")
      ->required();
  command->add_option("-n", options->ranks, "Number of ranks")
      ->required()
      ->check(CLI::Range(1, kMostRanks));
  auto* rank = command->add_option("--rank", options->rank, "This rank's schedule only")
                   ->check(CLI::Range(0, kMostRanks - 1));
  command->add_option("--collective", options->collective, "The same as COLLECTIVE/NAME");
  command->add_option("--root", options->root, "Root of a broadcast, reduce, gather or scatter")
      ->default_str("0");
  auto* count = command
                    ->add_option("--count", options->count,
                                 "Elements of the vector or, where it consists of blocks, of each "
                                 "[as many as ranks; 1]")
                    ->transform(element_count());
  auto* blocks = command
                     ->add_option("--blocks", options->blocks,
                                  "Elements of the block of each rank, e.g. 3,0,2; for alltoall a "
                                  "list for each sender, e.g. 1,2/3,4")
                     ->excludes(count);
  command
      ->add_option("--receivers", options->receivers,
                   "many_to_many: the ranks that get the blocks [all]")
      ->needs(blocks);
  command->add_option("--hosts", options->hosts,
                      "Ranks on hosts: 4x2 is four hosts of two, 3,1,2 hosts of so many; with "
                      ":cyclic behind it, dealt out in turn [one host]");
  command->add_flag("--ordered", options->ordered,
                    "For an operator that does not commute (reductions and scans)");
  command
      ->add_option("-p,--parameter", options->parameters,
                   "NAME=VALUE: a parameter, e.g. degree=4; may be repeated")
      ->allow_extra_args(false);
  command->add_flag("--dot", options->dot, "Graphviz instead of text")->excludes(rank);
  command
      ->add_flag("--messages", options->messages,
                 "Graphviz of the messages: a node for each rank, an arrow for each message, with "
                 "its step")
      ->excludes(rank);
  command->footer(
      "Example:\n"
      "  unisono show broadcast/fnomial -n 8 -p degree=4 --messages | dot -Tsvg -o tree.svg");
  command->callback([options, &exit_status] { exit_status = show(*options); });
}

}  // namespace unisono::tools
