// SPDX-License-Identifier: BSD-3-Clause
// unisono info: the features of this build and machine, as indented "key: value" lines or as the
// Markdown of the reference pages. `info --config` is valid input for a shell.
#include <fmt/format.h>
#include <unisono/unisono.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "algorithm/algorithm.hpp"
#include "arith/kernel.hpp"
#include "base/settings/settings.hpp"
#include "cache_line.hpp"
#include "commands.hpp"
#include "info/network_info.hpp"
#include "machine.hpp"
#include "select/override.hpp"
#include "transport/table.hpp"

namespace unisono::tools {
namespace {

struct InfoOptions {
  bool algorithms = false;
  bool config = false;
  bool transports = false;
  bool state = false;
  std::string network;  // an address
  std::string format = "text";
};

std::string parameter_range(const algorithm::ParameterSpec& spec) {
  if (!spec.names.empty()) {
    return fmt::format("{}; default {}", algorithm::print_choices(spec),
                       algorithm::print_value(spec, spec.fallback));
  }
  const std::string high = spec.high == 0 ? "ranks" : std::to_string(spec.high);
  return fmt::format("{} ... {}, default {}", spec.low, high, spec.fallback);
}

std::string algorithms_text() {
  std::string out;
  for (const algorithm::Algorithm& row : algorithm::table()) {
    out += fmt::format("{}:\n", row.name);
    out += fmt::format("  collective: {}\n", schedule::collective_name(row.collective));
    out += fmt::format("  idea: {}\n", row.idea);
    out += fmt::format("  steps: {}\n", row.steps);
    out += fmt::format("  bytes: {}\n", row.bytes);
    out += fmt::format("  good where: {}\n", row.wins);
    if (!row.only.empty()) out += fmt::format("  only: {}\n", row.only);
    out += fmt::format("  keeps the order of ranks: {}\n", row.keeps_order ? "yes" : "no");
    if (schedule::has_blocks(row.collective)) {
      out += fmt::format("  blocks of unequal lengths: {}\n", row.unequal_blocks ? "yes" : "no");
      out += fmt::format("  a rank needs to know: {}\n",
                         row.local_counts ? "the counts of its own blocks" : "all counts");
    }
    for (const algorithm::ParameterSpec& spec : row.parameters) {
      out += fmt::format("  parameter {}: {} ({})\n", spec.name, spec.help, parameter_range(spec));
    }
    out += fmt::format("  source: {}\n", row.source);
  }
  return out;
}

struct NamedCapability {
  std::string_view name;
  std::string value;
  std::string_view meaning;
};

std::vector<NamedCapability> capability_list(const transport::Capabilities& has) {
  const auto yes_no = [](bool value) { return std::string(value ? "yes" : "no"); };
  return {{"one-sided", yes_no(has.one_sided), "the target's processor takes no part in a put"},
          {"reliable", yes_no(has.reliable), "nothing is lost or doubled"},
          {"ordered", yes_no(has.ordered),
           "puts between two ranks arrive in the order in which they were made"},
          {"multicast", yes_no(has.multicast),
           "a message to many is stored once, in the sender's memory"},
          {"shared receive buffers", yes_no(has.shared_receive_buffers),
           "each rank can write to all ranks' receive buffers, so a rank that waits helps others"},
          {"direct", yes_no(has.direct), "a put is a store, without a call of the transport"},
          {"registration", yes_no(has.registration),
           "a user's memory has to be registered before it is sent from"},
          {"largest message",
           has.max_message == 0 ? "no limit" : fmt::format("{} bytes", has.max_message),
           "bytes of one put"}};
}

constexpr std::string_view kDatagramsCarry = "datagrams, to one rank or by multicast to many";
constexpr std::string_view kRemoteMemoryCarries = "long messages";

std::string transports_text() {
  std::string out;
  for (const transport::LocalRow& row : transport::local_rows()) {
    const transport::Capabilities has = row.capabilities();
    out += fmt::format("{}:\n", has.name);
    for (const NamedCapability& each : capability_list(has)) {
      out += fmt::format("  {}: {}\n", each.name, each.value);
    }
  }
  for (const transport::DatagramsRow& row : transport::datagrams_rows()) {
    out += fmt::format("{}:\n  between hosts: {}\n  multicast by verbs: {}\n", row.name,
                       kDatagramsCarry, row.other_multicast());
  }
  for (const transport::RemoteMemoryRow& row : transport::remote_memory_rows()) {
    out += fmt::format("{}:\n  between hosts: {}\n  here: {}\n", row.name, kRemoteMemoryCarries,
                       row.availability());
  }
  return out;
}

// Explains the lines of transports_text().
std::string meanings() {
  std::string out =
      "\n`unisono info --transports` prints these values as lines below the name. For a transport "
      "between\nhosts it prints what that carries, and what this machine has of it:\n\n"
      "| line | meaning |\n| --- | --- |\n";
  for (const NamedCapability& each : capability_list(transport::Capabilities())) {
    out += fmt::format("| {} | {} |\n", each.name, each.meaning);
  }
  out += fmt::format("| between hosts | what it carries: {}; or {} |\n", kDatagramsCarry,
                     kRemoteMemoryCarries);
  return out +
         "| multicast by verbs | the device that could carry multicasts instead of IP multicast, "
         "or why there is none |\n"
         "| here | the library or the device that would be used, or why there is none |\n"
         "\n`shm` carries all messages within a host. `virtual` is a network for tests; no job "
         "uses "
         "it.\n";
}

// Jobs of several hosts open these transports when they start, so there is no object to ask.
std::string between_hosts() {
  std::string out = "\n## Between hosts\n";
  for (const transport::DatagramsRow& row : transport::datagrams_rows()) {
    out += fmt::format("\n{}", row.reference);
  }
  for (const transport::RemoteMemoryRow& row : transport::remote_memory_rows()) {
    out += fmt::format("\n{}", row.reference);
  }
  return out;
}

std::string remote_memory_text() {
  std::string out;
  for (const transport::RemoteMemoryRow& row : transport::remote_memory_rows()) {
    out += fmt::format("{}{}", out.empty() ? "" : "; ", row.availability());
  }
  return out;
}

std::string transports_markdown() {
  std::string out =
      "# Transports\n\nThis page lists the transports and their capabilities. It is generated by\n"
      "`unisono info --transports --format markdown`.\n\n";
  std::string heads = "| name |";
  std::string rule = "| --- |";
  std::string rows;
  for (const transport::LocalRow& row : transport::local_rows()) {
    const transport::Capabilities has = row.capabilities();
    rows += fmt::format("| {} |", has.name);
    for (const NamedCapability& each : capability_list(has)) {
      if (rows.find('\n') == std::string::npos) {
        heads += fmt::format(" {} |", each.name);
        rule += " --- |";
      }
      rows += fmt::format(" {} |", each.value);
    }
    rows += '\n';
  }
  return out + heads + "\n" + rule + "\n" + rows + meanings() + between_hosts();
}

std::string build_text() {
  const Machine machine = describe_machine();
  return fmt::format(
      "unisono:\n"
      "  version: {}\n"
      "  compiler: {}\n"
      "  algorithms: {}\n"
      "  remote memory: {}\n"
      "machine:\n"
      "  processor: {}\n"
      "  cores: {}\n"
      "  usable cores: {}\n"
      "  kernel: {}\n"
      "  arithmetic: {}\n",
      unisono_version(), machine.compiler, algorithm::table().size(), remote_memory_text(),
      machine.processor, machine.cores, machine.usable_cores, machine.kernel,
      arith::kernel_target());
}

std::string state_text() {
  const std::optional<CacheLine> line = measure_cache_line();
  if (!line) return "cache line:\n  not measured: this process may use one core only\n";
  return fmt::format("cache line:\n  round trip: {:.0f} ns\n  between cores: {} and {}\n",
                     line->round_trip_ns, line->first_core, line->second_core);
}

int info(const InfoOptions& options) {
  const bool markdown = options.format == "markdown";
  std::string out;
  if (options.config && markdown) {
    out = base::settings_markdown();
  } else if (options.config) {
    const auto& settings = base::process_settings();
    if (!settings) {
      fmt::print(stderr, "unisono info: {}\n", settings.error().message);
      return kExitFailure;
    }
    base::log_warnings(*settings);
    if (const auto overrides = select::overrides_of(*settings); !overrides) {
      fmt::print(stderr, "unisono info: {}\n", overrides.error().message);
      return kExitFailure;
    }
    out = base::settings_dump(*settings);
  } else if (options.algorithms) {
    out = markdown ? algorithm::markdown() : algorithms_text();
  } else if (options.transports) {
    out = markdown ? transports_markdown() : transports_text();
  } else if (!options.network.empty() && !markdown) {
    const auto& settings = base::process_settings();
    if (settings.ok()) base::log_warnings(*settings);
    const auto text = settings.ok() ? network_text(options.network, *settings) : settings.error();
    if (!text.ok()) {
      fmt::print(stderr, "unisono info: {}\n", text.error().message);
      return kExitFailure;
    }
    out = *text;
  } else if (markdown) {
    fmt::print(stderr,
               "unisono info: --format markdown goes with --algorithms, --config or "
               "--transports\n");
    return kExitUsage;
  } else if (options.state) {
    out = state_text();
  } else {
    out = build_text();
  }
  std::fwrite(out.data(), 1, out.size(), stdout);
  return kExitSuccess;
}

}  // namespace

void add_info(CLI::App& app, int& exit_status) {
  auto options = std::make_shared<InfoOptions>();
  CLI::App* command = app.add_subcommand(
      "info", "Print version, machine, settings, algorithms and transports of this build");
  auto* algorithms =
      command->add_flag("--algorithms", options->algorithms, "The table of algorithms");
  auto* config = command->add_flag("--config", options->config,
                                   "All settings with their values, as valid input for a shell");
  auto* transports = command->add_flag("--transports", options->transports,
                                       "The transports and their capabilities");
  auto* network = command->add_option(
      "--network", options->network,
      "Address and multicast group that this host would use towards another (its address)");
  auto* state = command->add_flag(
      "--state", options->state,
      "State of the machine: how long a cache line takes from one core to another and back");
  algorithms->excludes(config)->excludes(transports)->excludes(network)->excludes(state);
  config->excludes(transports)->excludes(network)->excludes(state);
  transports->excludes(network)->excludes(state);
  network->excludes(state);
  command->add_option("--format", options->format, "text or markdown")
      ->capture_default_str()
      ->check(CLI::IsMember({"text", "markdown"}));
  command->footer("Example:\n  unisono info --config > unisono.env");
  command->callback([options, &exit_status] { exit_status = info(*options); });
}

}  // namespace unisono::tools
