// SPDX-License-Identifier: BSD-3-Clause
// unisono paper: what papers have published beside what the simulator finds with their parameters.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "commands.hpp"
#include "model/machine_file.hpp"
#include "paper/claim.hpp"

namespace unisono::tools {
namespace {

struct PaperOptions {
  std::string paper, machines = "machines";
  bool json = false;
};

struct Source {
  const char* name;
  const char* machine;
  base::Result<PaperReport> (*report)(const model::Machine& machine);
};
constexpr Source kSources[] = {{"fat-tree", "lemieux.json", report_fat_tree},
                               {"nic-reduce", "alc.json", report_nic_reduce}};

void print(const PaperReport& report) {
  fmt::print("{}: {}\n", report.paper, report.title);
  for (const std::string& parameter : report.parameters) fmt::print("  {}\n", parameter);
  fmt::print("{:<34} {:>9} {:>9} {:>9} {:>9}  {}\n", "claim", "published", "simulated", "deviation",
             "tolerance", "verdict");
  for (const Claim& claim : report.claims) {
    fmt::print("{:<34} {:>4.0f} {:>4} {:>9.1f} {:>+8.1f}% {:>8.0f}%  {}\n", claim.what,
               claim.published, claim.unit, claim.simulated, claim.deviation_percent(),
               claim.tolerance_percent, claim.holds() ? "holds" : "deviates: " + claim.why);
  }
  for (const OrderClaim& order : report.orders) {
    fmt::print("{:<54} {:>5.1f}% apart  {}\n", order.what, order.published_gap_percent,
               order.holds ? "holds" : "the other way");
  }
}

nlohmann::ordered_json as_json(const PaperReport& report) {
  nlohmann::ordered_json result{{"paper", report.paper}, {"parameters", report.parameters}};
  for (const Claim& claim : report.claims) {
    result["claims"].push_back({{"what", claim.what},
                                {"unit", claim.unit},
                                {"published", claim.published},
                                {"simulated", claim.simulated},
                                {"tolerance_percent", claim.tolerance_percent},
                                {"holds", claim.holds()}});
  }
  for (const OrderClaim& order : report.orders) {
    result["orders"].push_back({{"what", order.what},
                                {"published_gap_percent", order.published_gap_percent},
                                {"holds", order.holds}});
  }
  return result;
}

// Whether all claims hold.
base::Result<bool> report_papers(const PaperOptions& options) {
  bool all_hold = true;
  for (const Source& source : kSources) {
    if (options.paper != "all" && options.paper != source.name) continue;
    UNISONO_ASSIGN(const model::Machine machine,
                   model::read_machine_file(options.machines + "/" + source.machine));
    UNISONO_ASSIGN(const PaperReport report, source.report(machine));
    if (options.json) {
      fmt::print("{}\n", as_json(report).dump(1));
    } else {
      print(report);
    }
    for (const Claim& claim : report.claims) all_hold &= claim.holds();
  }
  return all_hold;
}

}  // namespace

void add_paper(CLI::App& app, int& exit_status) {
  auto options = std::make_shared<PaperOptions>();
  CLI::App* command = app.add_subcommand("paper", "Compare papers' figures with simulated ones");
  command->add_option("paper", options->paper, "fat-tree, nic-reduce or all")
      ->required()
      ->check(CLI::IsMember({"fat-tree", "nic-reduce", "all"}));
  command->add_option("--machines", options->machines, "Folder of the machine files")
      ->default_str("machines");
  command->add_flag("--json", options->json, "JSON instead of tables");
  command->footer("Example:\n  unisono paper fat-tree --machines machines");
  command->callback([options, &exit_status] {
    const auto all_hold = report_papers(*options);
    if (!all_hold.ok()) {
      fmt::print(stderr, "unisono paper: {}\n", all_hold.error().message);
      exit_status = kExitUsage;
    } else if (!*all_hold) {
      exit_status = kExitFailure;
    }
  });
}

}  // namespace unisono::tools
