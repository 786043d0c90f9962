// SPDX-License-Identifier: BSD-3-Clause
// unisono paper: the figures of papers beside those that the simulator finds with their parameters,
// and beside stored measurements.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "commands.hpp"
#include "paper/claim.hpp"
#include "paper/report.hpp"
#include "text_file.hpp"

namespace unisono::tools {
namespace {

struct PaperOptions {
  std::string paper, machines = "machines", numbers = "paper/numbers.json", write;
  std::string measurements = "bench/results";
  bool json = false;
};

struct Source {
  const char* name;
  base::Result<PaperReport> (*report)(Inputs& inputs);
  base::Result<MeasuredPart> (*measured)(Inputs& inputs);
};
constexpr Source kSources[] = {{"nic-reduce", report_nic_reduce, measured_nic_reduce},
                               {"fat-tree", report_fat_tree, measured_fat_tree},
                               {"nic-allgather", report_nic_allgather, measured_nic_allgather},
                               {"asci-q", report_asci_q, measured_asci_q},
                               {"rdma-mcast", report_rdma_mcast, measured_rdma_mcast}};

base::Status write_page(const std::string& folder, const std::vector<PaperReport>& reports,
                        const Published& published) {
  for (const PaperReport& report : reports) {
    UNISONO_TRY(
        write_text_file(fmt::format("{}/{}.svg", folder, report.paper), deviation_picture(report)));
  }
  const std::vector<std::string> unused = published.unused();
  for (const std::string& place : unused) {
    if (!why_without_claim(place).empty()) continue;
    return base::Error{base::Code::argument,
                       fmt::format("the published number {} has neither a claim nor a reason for "
                                   "having none; state one in tools/paper/published.cpp",
                                   place)};
  }
  return write_text_file(folder + "/REPORT.md", report_page(reports, unused));
}

// Whether all claims hold.
base::Result<bool> report_papers(const PaperOptions& options) {
  UNISONO_ASSIGN(Published published, Published::read(options.numbers));
  Inputs inputs(options.machines, std::move(published), Measurements(options.measurements));
  std::vector<PaperReport> reports;
  for (const Source& source : kSources) {
    if (options.paper != "all" && options.paper != source.name) continue;
    UNISONO_ASSIGN(PaperReport report, source.report(inputs));
    UNISONO_ASSIGN(report.measured, source.measured(inputs));
    reports.push_back(std::move(report));
  }
  if (!inputs.published().fault().empty()) {
    return base::Error{
        base::Code::argument,
        fmt::format("{}: expected a number at {}", options.numbers, inputs.published().fault())};
  }
  bool all_hold = true;
  for (const PaperReport& report : reports) {
    fmt::print("{}", options.json ? report_json(report).dump(1) + "\n" : report_table(report));
    for (const Claim& claim : report.claims) all_hold &= claim.holds();
  }
  if (!options.write.empty()) {
    UNISONO_TRY(write_page(options.write, reports, inputs.published()));
  }
  return all_hold;
}

}  // namespace

void add_paper(CLI::App& app, int& exit_status) {
  auto options = std::make_shared<PaperOptions>();
  CLI::App* command =
      app.add_subcommand("paper", "Compare papers' figures with simulated and measured ones");
  std::vector<std::string> names{"all"};
  for (const Source& source : kSources) names.emplace_back(source.name);
  command->add_option("paper", options->paper, "The paper, or all")
      ->required()
      ->check(CLI::IsMember(names));
  command->add_option("--machines", options->machines, "Folder of the machine files")
      ->default_str("machines");
  command->add_option("--numbers", options->numbers, "File of the published numbers")
      ->default_str("paper/numbers.json");
  command->add_option("--measurements", options->measurements, "Folder of the stored measurements")
      ->default_str("bench/results");
  command->add_flag("--json", options->json, "JSON instead of tables");
  command->add_option("--write", options->write,
                      "Write REPORT.md and its pictures into this folder; all papers only");
  command->footer("Example:\n  unisono paper all --write paper");
  command->callback([options, &exit_status] {
    if (!options->write.empty() && options->paper != "all") {
      fmt::print(stderr, "unisono paper: --write is for all papers\n");
      exit_status = kExitUsage;
      return;
    }
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
