// SPDX-License-Identifier: BSD-3-Clause
// unisono info: what this build is and has, as indented "key: value" lines or as the Markdown of
// the reference pages. `info --config` is valid input for a shell.
#include <fmt/format.h>
#include <unisono/unisono.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "algorithm/algorithm.hpp"
#include "arith/kernel.hpp"
#include "base/settings/settings.hpp"
#include "commands.hpp"
#include "machine.hpp"
#include "network_info.hpp"
#include "select/override.hpp"
#include "transport/table.hpp"

namespace unisono::tools {
namespace {

struct InfoOptions {
  bool algorithms = false;
  bool config = false;
  bool transports = false;
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

struct Capability {
  std::string_view name;
  std::string value;
};

std::vector<Capability> capability_list(const transport::Capabilities& has) {
  const auto yes_no = [](bool value) { return std::string(value ? "yes" : "no"); };
  return {{"one-sided", yes_no(has.one_sided)},
          {"reliable", yes_no(has.reliable)},
          {"ordered", yes_no(has.ordered)},
          {"multicast", yes_no(has.multicast)},
          {"shared windows", yes_no(has.shared_windows)},
          {"direct", yes_no(has.direct)},
          {"registration", yes_no(has.registration)},
          {"largest message",
           has.max_message == 0 ? "no limit" : fmt::format("{} bytes", has.max_message)}};
}

std::string transports_text() {
  std::string out;
  for (const transport::LocalRow& row : transport::local_rows()) {
    const transport::Capabilities has = row.capabilities();
    out += fmt::format("{}:\n", has.name);
    for (const Capability& each : capability_list(has)) {
      out += fmt::format("  {}: {}\n", each.name, each.value);
    }
  }
  return out;
}

// What jobs of several hosts use is opened when they start, so there is no object to ask.
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
  std::string out = "# Transports\n\nWritten by `unisono info --transports --format markdown`.\n\n";
  std::string heads = "| name |";
  std::string rule = "| --- |";
  std::string rows;
  for (const transport::LocalRow& row : transport::local_rows()) {
    const transport::Capabilities has = row.capabilities();
    rows += fmt::format("| {} |", has.name);
    for (const Capability& each : capability_list(has)) {
      if (rows.find('\n') == std::string::npos) {
        heads += fmt::format(" {} |", each.name);
        rule += " --- |";
      }
      rows += fmt::format(" {} |", each.value);
    }
    rows += '\n';
  }
  return out + heads + "\n" + rule + "\n" + rows + between_hosts();
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
  } else {
    out = build_text();
  }
  std::fwrite(out.data(), 1, out.size(), stdout);
  return kExitSuccess;
}

}  // namespace

void add_info(CLI::App& app, int& exit_status) {
  auto options = std::make_shared<InfoOptions>();
  CLI::App* command = app.add_subcommand("info", "Print what this build is and has");
  auto* algorithms =
      command->add_flag("--algorithms", options->algorithms, "The table of algorithms");
  auto* config = command->add_flag("--config", options->config,
                                   "All settings with their values, as valid input for a shell");
  auto* transports =
      command->add_flag("--transports", options->transports, "The transports and what they can do");
  auto* network = command->add_option(
      "--network", options->network,
      "Which address and multicast group this host would use towards another (its address)");
  algorithms->excludes(config)->excludes(transports)->excludes(network);
  config->excludes(transports)->excludes(network);
  transports->excludes(network);
  command->add_option("--format", options->format, "text or markdown")
      ->capture_default_str()
      ->check(CLI::IsMember({"text", "markdown"}));
  command->footer("Example:\n  unisono info --config > unisono.env");
  command->callback([options, &exit_status] { exit_status = info(*options); });
}

}  // namespace unisono::tools
