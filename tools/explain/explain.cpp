// SPDX-License-Identifier: BSD-3-Clause
// unisono explain: the algorithm of a call and the reason for it, and the costs and predicted times
// of the other algorithms.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "arguments/host_list.hpp"
#include "arguments/tree_place.hpp"
#include "arith/type.hpp"
#include "base/text.hpp"
#include "commands.hpp"
#include "explain/explanation.hpp"
#include "explain/measured.hpp"
#include "machine.hpp"
#include "model/machine_file.hpp"
#include "model/own_machine.hpp"

namespace unisono::tools {
namespace {

// So many candidates on a tree are printed as text.
constexpr std::size_t kMostOnTree = 10;

struct ExplainOptions {
  std::string collective;
  int ranks = 0;
  std::string count;
  std::string type = "float32";
  std::string op = "sum";
  int root = 0;
  bool ordered = false;
  bool oversubscribed = false;
  int cores = 0;  // 0: those that this process may use
  std::string hosts;
  bool multicast = false;  // between them
  int shared_cores = 0;    // of the machine that they are on
  TreePlace tree;
  std::string machine;
  std::vector<std::string> profile;
  std::string format = "text";
};

base::Result<std::int64_t> read_count(const ExplainOptions& options,
                                      schedule::Collective collective, std::int64_t element_bytes) {
  if (collective == schedule::Collective::barrier) {
    if (options.count.empty()) return std::int64_t{0};
    return base::argument_error("a barrier has no elements: leave -c out");
  }
  if (options.count.empty()) {
    return base::argument_error("-c is missing: say how many elements, as in -c 1024");
  }
  const auto count = base::parse_size(options.count);
  if (!count) {
    return base::argument_error(fmt::format(
        "-c: '{}' is no number: write 1000 or 4K (K, M, G are 1024 each)", options.count));
  }
  if (*count > kMostBytes / element_bytes) {
    return base::argument_error(fmt::format("-c: {} elements of {} bytes are more than {}", *count,
                                            element_bytes, base::format_size(kMostBytes)));
  }
  return *count;
}

base::Status read_operator(const ExplainOptions& options, arith::Type type, plan::Call& call) {
  if (!schedule::is_reduction(call.collective)) {
    if (!options.ordered) return base::success();
    return base::argument_error(
        fmt::format("--ordered: {} combines nothing", schedule::collective_name(call.collective)));
  }
  const auto op = arith::operator_from_name(options.op);
  if (!op) return base::argument_error(fmt::format("-o: no operator is named '{}'", options.op));
  if (!arith::fits(*op, type)) {
    return base::argument_error(
        fmt::format("the operator {} is not defined on {}", options.op, options.type));
  }
  call.op = static_cast<std::int32_t>(*op);
  call.ordered = options.ordered;
  return base::success();
}

base::Status read_root(const ExplainOptions& options, plan::Call& call) {
  if (options.root < 0 || options.root >= options.ranks) {
    return base::argument_error(fmt::format("--root {} does not exist: the ranks are 0 to {}",
                                            options.root, options.ranks - 1));
  }
  if (options.root != 0 && !schedule::is_rooted(call.collective)) {
    return base::argument_error(
        fmt::format("--root: {} has no root", schedule::collective_name(call.collective)));
  }
  call.root = options.root;
  return base::success();
}

base::Result<plan::Call> read_call(const ExplainOptions& options) {
  const auto collective = schedule::collective_from_name(options.collective);
  if (!collective) {
    return base::argument_error(select::explain_unknown_collective(options.collective));
  }
  const auto type = arith::type_from_name(options.type);
  if (!type) return base::argument_error(fmt::format("-t: no type is named '{}'", options.type));
  plan::Call call;
  call.collective = *collective;
  call.type = static_cast<std::int32_t>(*type);
  call.element_bytes = static_cast<std::int64_t>(arith::type_size(*type));
  UNISONO_ASSIGN(call.count, read_count(options, *collective, call.element_bytes));
  UNISONO_TRY(read_operator(options, *type, call));
  UNISONO_TRY(read_root(options, call));
  return call;
}

std::string_view name_of(const Explanation::Way& way) {
  if (way.single_copy) return "single copy";
  switch (way.size) {
    case plan::SizeClass::small:
      return "small buffers";
    case plan::SizeClass::middle:
      return "middle buffers";
    case plan::SizeClass::bulk:
      return "bulk buffers";
  }
  return "";
}

// The buffers' size decides whether long messages can be pulled, after the choice.
std::string_view engine_reason(const Explanation& explanation) {
  if (explanation.way && explanation.way->single_copy)
    return "ranks read long messages from their sender's memory";
  return explanation.choice.engine_reason;
}

std::string_view origin_name(select::Origin origin) {
  switch (origin) {
    case select::Origin::rule:
      return "rule";
    case select::Origin::price:
      return "price";
    case select::Origin::override_:
      return "override";
    case select::Origin::learned:
      return "learned";
  }
  return "";
}

// Without the usual choice.
std::vector<std::string> names_of_others(const std::vector<select::Priced>& to_try) {
  std::vector<std::string> names;
  for (std::size_t i = 1; i < to_try.size(); ++i) {
    names.push_back(algorithm::describe(*to_try[i].row, to_try[i].parameters));
  }
  return names;
}

std::string remark(const Candidate& candidate) {
  if (!candidate.why_not.empty()) return "  not legal: " + candidate.why_not;
  if (!candidate.excluded_by.empty()) return "  excluded by " + candidate.excluded_by;
  if (candidate.is_for_exact) return "  for reproducible sums only";
  if (candidate.is_for_by_one) return "  for heterogeneous jobs only";
  return {};
}

// Two more columns for several hosts: packets on the longest path, and all of them.
std::string between_hosts(const Candidate& candidate, const RanksPlace& place) {
  if (!place.hosts.given()) return {};
  if (!candidate.between_hosts) return fmt::format(" {:>8} {:>8}", "-", "-");
  return fmt::format(" {:>8} {:>8}", candidate.between_hosts->steps,
                     candidate.between_hosts->messages);
}

std::string microseconds(double ns) { return fmt::format("{:.2f} us", ns / 1000); }

// The times of a call alone and of one in a row.
std::string predicted(const std::optional<model::Price>& price) {
  if (!price) return fmt::format(" {:>14} {:>14}", "-", "-");
  return fmt::format(" {:>14} {:>14}", microseconds(price->ns), microseconds(price->in_row_ns));
}

std::string describe(const model::Price& price) {
  const auto us = [](double ns) { return fmt::format("{:.2f}", ns / 1000); };
  return fmt::format("{}, {} in a row: latency {}, bytes {}, reduction {}, hand-overs {}",
                     microseconds(price.ns), microseconds(price.in_row_ns), us(price.parts.latency),
                     us(price.parts.bytes), us(price.parts.reduction), us(price.parts.hand_over));
}

// A line for each algorithm that such calls have had in a profile.
std::string describe(const std::vector<MeasuredCalls>& measured) {
  if (measured.empty()) return "  measured: no such call in the profile\n";
  std::string out;
  for (const MeasuredCalls& each : measured) {
    out += fmt::format("  measured: {}, {}: {} on average of {} calls\n", each.algorithm,
                       each.engine, microseconds(each.mean_ns), each.calls);
  }
  return out;
}

// The fastest candidates on the tree.
std::string describe(const std::vector<SimulatedCandidate>& on_tree) {
  std::string out = "simulated on the tree, links shared:\n";
  for (std::size_t i = 0; i < std::min(on_tree.size(), kMostOnTree); ++i) {
    const SimulatedCandidate& each = on_tree[i];
    out += fmt::format("  {:<30} {:>14}  {} messages held up\n", each.algorithm,
                       microseconds(each.ns), each.held_up);
  }
  if (on_tree.size() > kMostOnTree) {
    out += fmt::format("  and {} slower ones (--format json)\n", on_tree.size() - kMostOnTree);
  }
  return out;
}

std::string describe_place(const RanksPlace& place) {
  if (place.hosts.given() && place.shared_cores > 0) {
    return fmt::format("{} hosts on {} cores", place.hosts.hosts(), place.shared_cores);
  }
  if (place.hosts.given()) return fmt::format("{} hosts", place.hosts.hosts());
  return place.oversubscribed ? "more than cores" : "a core each";
}

std::string text_of(const Explanation& explanation, const plan::Call& call, const RanksPlace& place,
                    const model::Machine& machine) {
  std::string out =
      fmt::format("{}{} on {} ranks, {}:\n",
                  plan::describe_call(plan::call_code(call.collective, call.purpose), call.count,
                                      call.type, call.op, call.root),
                  call.ordered ? " in the order of ranks" : "", place.ranks, describe_place(place));
  out += fmt::format("  {:<30} {:>6} {:>14}{} {:>14} {:>14}\n", "algorithm", "steps", "bytes",
                     place.hosts.given() ? fmt::format(" {:>8} {:>8}", "of hosts", "messages") : "",
                     "predicted", "in a row");
  for (const Candidate& candidate : explanation.candidates) {
    const bool chosen = candidate.row == explanation.choice.algorithm;
    const std::string steps = candidate.cost ? fmt::format("{}", candidate.cost->steps) : "-";
    const std::string bytes =
        candidate.cost ? fmt::format("{}", candidate.cost->elements * call.element_bytes) : "-";
    out +=
        fmt::format("{} {:<30} {:>6} {:>14}{}{}{}\n", chosen ? '*' : ' ',
                    algorithm::describe(*candidate.row, candidate.parameters), steps, bytes,
                    between_hosts(candidate, place), predicted(candidate.price), remark(candidate));
  }
  const select::Choice& choice = explanation.choice;
  out += fmt::format("chosen: {}\n", algorithm::describe(*choice.algorithm, choice.parameters));
  out += fmt::format("  by {}: {}\n", origin_name(choice.origin), choice.reason);
  for (const std::string& text : choice.passed_over) {
    out += fmt::format("  passed over: {}\n", text);
  }
  if (explanation.price) {
    out += fmt::format("  predicted on \"{}\": {}\n", machine.name, describe(*explanation.price));
  }
  if (!explanation.priced.empty()) {
    const select::Priced& cheapest = explanation.priced.front();
    out += fmt::format("  cheapest there: {}, {}\n",
                       algorithm::describe(*cheapest.row, cheapest.parameters),
                       describe(cheapest.price));
  }
  if (explanation.measured) out += describe(*explanation.measured);
  if (!explanation.to_try.empty()) {
    const std::vector<std::string> names = names_of_others(explanation.to_try);
    out += fmt::format("  calls try (UNISONO_LEARN): {}\n",
                       names.empty() ? "no other" : fmt::format("{}", fmt::join(names, ", ")));
  }
  out += fmt::format("  engine: {}, because {}\n", select::engine_name(explanation.engine),
                     engine_reason(explanation));
  if (explanation.way) {
    out += fmt::format("  through: {}, {} part{}\n", name_of(*explanation.way),
                       explanation.way->segments, explanation.way->segments == 1 ? "" : "s");
  }
  if (place.hosts.given()) {
    out += fmt::format("  NIC path: {} {}\n", explanation.by_nic ? "yes," : "no, because",
                       explanation.why_nic);
  }
  if (explanation.nic_barrier) {
    out += fmt::format(
        "  a barrier there: {}; {:.2f} us if ranks tell the root, {:.2f} us if it asks "
        "({})\n",
        explanation.nic_asks ? "the root asks" : "ranks tell the root",
        explanation.nic_barrier->telling_ns / 1000, explanation.nic_barrier->asking_ns / 1000,
        select::kAskingBarrier);
  }
  if (explanation.on_tree) out += describe(*explanation.on_tree);
  return out;
}

nlohmann::ordered_json json_of(const Candidate& candidate, std::int64_t element_bytes) {
  nlohmann::ordered_json json;
  json["algorithm"] = algorithm::describe(*candidate.row, candidate.parameters);
  json["legal"] = candidate.why_not.empty();
  if (!candidate.why_not.empty()) json["why_not"] = candidate.why_not;
  if (!candidate.excluded_by.empty()) json["excluded_by"] = candidate.excluded_by;
  if (candidate.is_for_exact) json["for_reproducible_sums_only"] = true;
  if (candidate.is_for_by_one) json["for_heterogeneous_jobs_only"] = true;
  if (candidate.cost) {
    json["steps"] = candidate.cost->steps;
    json["bytes"] = candidate.cost->elements * element_bytes;
  }
  if (candidate.between_hosts) {
    json["steps_between_hosts"] = candidate.between_hosts->steps;
    json["messages_between_hosts"] = candidate.between_hosts->messages;
  }
  if (candidate.price) {
    json["predicted_ns"] = candidate.price->ns;
    json["predicted_in_row_ns"] = candidate.price->in_row_ns;
  }
  return json;
}

nlohmann::ordered_json json_of(const model::Price& price) {
  return {{"ns", price.ns},
          {"in_row_ns", price.in_row_ns},
          {"latency_ns", price.parts.latency},
          {"bytes_ns", price.parts.bytes},
          {"reduction_ns", price.parts.reduction},
          {"hand_over_ns", price.parts.hand_over}};
}

std::string json_of(const Explanation& explanation, const plan::Call& call,
                    const ExplainOptions& options, const RanksPlace& place,
                    const model::Machine& machine) {
  nlohmann::ordered_json json;
  json["collective"] = schedule::collective_name(call.collective);
  json["ranks"] = options.ranks;
  json["root"] = call.root;
  json["count"] = call.count;
  json["type"] = options.type;
  if (call.op >= 0) json["operator"] = options.op;
  json["ordered"] = call.ordered;
  json["oversubscribed"] = place.oversubscribed;
  if (place.hosts.given()) json["hosts"] = place.hosts.hosts();
  if (place.shared_cores > 0) json["shared_cores"] = place.shared_cores;
  json["candidates"] = nlohmann::ordered_json::array();
  for (const Candidate& candidate : explanation.candidates) {
    json["candidates"].push_back(json_of(candidate, call.element_bytes));
  }
  const select::Choice& choice = explanation.choice;
  json["algorithm"] = algorithm::describe(*choice.algorithm, choice.parameters);
  json["origin"] = origin_name(choice.origin);
  json["reason"] = choice.reason;
  json["passed_over"] = choice.passed_over;
  const auto name = [](const select::Choice& by) {
    return algorithm::describe(*by.algorithm, by.parameters);
  };
  json["by_rule"] = name(explanation.by_rule);
  if (!explanation.to_try.empty()) json["calls_try"] = names_of_others(explanation.to_try);
  if (explanation.by_price) json["by_price"] = name(*explanation.by_price);
  json["machine"] = machine.name;
  if (explanation.price) json["predicted"] = json_of(*explanation.price);
  json["priced"] = nlohmann::ordered_json::array();
  const auto name_of_priced = [&](std::size_t i) {
    const select::Priced& each = explanation.priced[i];
    return algorithm::describe(*each.row, each.parameters);
  };
  for (std::size_t i = 0; i < explanation.priced.size(); ++i) {
    nlohmann::ordered_json one = json_of(explanation.priced[i].price);
    one["algorithm"] = name_of_priced(i);
    const auto& first = explanation.first_of_equals;
    if (i < first.size() && first[i] != i) one["same_as"] = name_of_priced(first[i]);
    json["priced"].push_back(std::move(one));
  }
  if (explanation.measured) {
    json["measured"] = nlohmann::ordered_json::array();
    for (const MeasuredCalls& each : *explanation.measured) {
      json["measured"].push_back({{"algorithm", each.algorithm},
                                  {"engine", each.engine},
                                  {"calls", each.calls},
                                  {"mean_ns", each.mean_ns}});
    }
  }
  json["engine"] = select::engine_name(explanation.engine);
  json["engine_reason"] = engine_reason(explanation);
  if (explanation.way) {
    json["through"] = name_of(*explanation.way);
    json["parts"] = explanation.way->segments;
  }
  json["nic_path"] = explanation.by_nic;
  json["nic_path_reason"] = explanation.why_nic;
  if (explanation.nic_barrier) {
    json["nic_barrier"] = {{"asks", explanation.nic_asks},
                           {"telling_ns", explanation.nic_barrier->telling_ns},
                           {"asking_ns", explanation.nic_barrier->asking_ns}};
  }
  if (explanation.on_tree) {
    json["on_tree"] = nlohmann::ordered_json::array();
    for (const SimulatedCandidate& each : *explanation.on_tree) {
      json["on_tree"].push_back(
          {{"algorithm", each.algorithm}, {"ns", each.ns}, {"held_up", each.held_up}});
    }
  }
  return json.dump(2) + "\n";
}

// --machine counts before UNISONO_MACHINE.
base::Result<model::FoundMachine> find_priced_machine(const ExplainOptions& options,
                                                      const base::Settings& settings) {
  if (options.machine.empty()) return model::find_machine(settings);
  model::FoundMachine found{.machine = {}, .path = options.machine, .note = {}};
  UNISONO_ASSIGN(found.machine, model::read_machine_file(options.machine));
  return found;
}

int explain_call(const ExplainOptions& options) {
  const auto call = read_call(options);
  if (!call) {
    fmt::print(stderr, "unisono explain: {}\n", call.error().message);
    return kExitUsage;
  }
  const int cores = options.cores > 0 ? options.cores : usable_cores();
  RanksPlace place{.ranks = options.ranks,
                   .cores = cores,
                   .oversubscribed = options.oversubscribed || options.ranks > cores};
  const bool on_tree = !options.tree.tree.empty() || !options.tree.topology.empty();
  if (!options.hosts.empty() || on_tree) {
    // A node of a tree is a host with one rank.
    auto hosts =
        parse_hosts(options.ranks, on_tree ? fmt::format("{}x1", options.ranks) : options.hosts);
    if (!hosts) {
      fmt::print(stderr, "unisono explain: {}\n", hosts.error().message);
      return kExitUsage;
    }
    place.hosts = std::move(*hosts);
    place.multicast = options.multicast;
    place.shared_cores = options.shared_cores;
    place.oversubscribed = place.oversubscribed && !place.hosts.given();
  }
  const auto& settings = base::process_settings();
  if (!settings) {
    fmt::print(stderr, "unisono explain: {}\n", settings.error().message);
    return kExitFailure;
  }
  base::log_warnings(*settings);
  const auto priced = find_priced_machine(options, *settings);
  if (!priced) {
    fmt::print(stderr, "unisono explain: {}\n", priced.error().message);
    return kExitUsage;
  }
  if (!priced->note.empty()) fmt::print(stderr, "unisono explain: note: {}\n", priced->note);
  const model::Machine& machine = priced->machine;
  auto explanation = explain(*call, place, *settings, machine);
  if (!explanation) {
    fmt::print(stderr, "unisono explain: {}\n", explanation.error().message);
    return kExitFailure;
  }
  if (on_tree) {
    auto simulated = explain_on_tree(*call, place, *settings, machine, options.tree);
    if (!simulated) {
      fmt::print(stderr, "unisono explain: {}\n", simulated.error().message);
      return kExitUsage;
    }
    explanation->on_tree = std::move(*simulated);
  }
  if (!options.profile.empty()) {
    auto measured = find_measured(options.profile, *call, place.ranks,
                                  place.hosts.given() ? place.hosts.hosts() : 1);
    if (!measured) {
      fmt::print(stderr, "unisono explain: {}\n", measured.error().message);
      return kExitUsage;
    }
    explanation->measured = std::move(*measured);
  }
  const std::string text = options.format == "json"
                               ? json_of(*explanation, *call, options, place, machine)
                               : text_of(*explanation, *call, place, machine);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return kExitSuccess;
}

}  // namespace

void add_explain(CLI::App& app, int& exit_status) {
  auto options = std::make_shared<ExplainOptions>();
  CLI::App* command = app.add_subcommand(
      "explain", "Explain which algorithm the library chooses for a call, and why");
  command->add_option("collective", options->collective, "Name, e.g. allreduce")->required();
  command->add_option("-n", options->ranks, "Number of ranks")
      ->required()
      ->check(CLI::Range(1, kMostRanks));
  command->add_option("-c,--count", options->count,
                      "Elements of the vector, or of a block; K, M, G are 1024 each");
  command->add_option("-t,--type", options->type, "Type of the elements")->capture_default_str();
  command->add_option("-o,--op", options->op, "Operator of a reduction")->capture_default_str();
  command->add_option("--root", options->root, "Root")->capture_default_str();
  command->add_flag("--ordered", options->ordered, "For an operator that does not commute");
  auto* oversubscribed = command->add_flag("--oversubscribed", options->oversubscribed,
                                           "As if there were fewer cores than ranks");
  command->add_option("--cores", options->cores, "As if there were so many cores [the usable ones]")
      ->check(CLI::Range(1, 1 << 20))
      ->excludes(oversubscribed);
  auto* hosts = command->add_option(
      "--hosts", options->hosts,
      "As if the ranks were on several hosts: 4x2 is four hosts of two, 3,1,2 hosts of so many. "
      "With :cyclic behind it, ranks are dealt out in turn");
  command
      ->add_flag("--multicast", options->multicast,
                 "As if the network between the hosts carried multicast")
      ->needs(hosts);
  command
      ->add_option("--shared-cores", options->shared_cores,
                   "As if all hosts were containers of one machine with so many cores")
      ->check(CLI::Range(1, 1 << 20))
      ->needs(hosts);
  auto* tree = command
                   ->add_option("--tree", options->tree.tree,
                                "As if each rank were on a node of a fat tree, ARITYxLEVELS: also "
                                "simulate all candidates, whose messages share links")
                   ->excludes(hosts);
  auto* topology = command
                       ->add_option("--topology", options->tree.topology,
                                    "The same by a topology file or Slurm's")
                       ->excludes(hosts)
                       ->excludes(tree);
  command->add_option("--holes", options->tree.holes, "Nodes without a rank, e.g. 7,20 [none]")
      ->needs(tree)
      ->excludes(topology);
  command->add_option(
      "-m,--machine", options->machine,
      "Machine file for predicted times [that of unisono tune, or the default one]");
  command
      ->add_option("--profile", options->profile,
                   "Also say what such calls took in a job, by its ranks' profiles")
      ->type_name("FILE");
  command->add_option("--format", options->format, "text or json")
      ->capture_default_str()
      ->check(CLI::IsMember({"text", "json"}));
  command->footer("Example:\n  unisono explain allreduce -n 8 -c 64K -t float64 --cores 8");
  command->callback([options, &exit_status] { exit_status = explain_call(*options); });
}

}  // namespace unisono::tools
