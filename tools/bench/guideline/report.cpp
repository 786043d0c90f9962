// SPDX-License-Identifier: BSD-3-Clause
#include "bench/guideline/report.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "bench/text_file.hpp"

namespace unisono::tools::bench {
namespace {

using schedule::Collective;

nlohmann::ordered_json side_json(const Side& side, const Summary& times) {
  auto acts = nlohmann::ordered_json::array();
  for (const Act& act : side.acts) {
    acts.push_back(
        {{"collective", schedule::collective_name(act.collective)}, {"size", act.bytes}});
  }
  nlohmann::ordered_json json = {{"ranks", side.ranks}, {"calls", std::move(acts)}};
  json.update(summary_json(times));
  return json;
}

nlohmann::ordered_json result_json(const GuidelineResult& result) {
  const auto& [comparison, contest, at_most] = result;
  return {{"guideline", comparison.text},
          {"collective", schedule::collective_name(comparison.left.acts.front().collective)},
          {"size", comparison.left.acts.front().bytes},
          {"left", side_json(comparison.left, contest.left)},
          {"right", side_json(comparison.right, contest.right)},
          {"ratio", contest.ratio()},
          {"at_most", at_most},
          {"holds", result.holds()},
          {"wrong", contest.wrong}};
}

}  // namespace

GuidelineReport::GuidelineReport(const Job& job)
    : table_(job.options.format == Format::table),
      json_path_(job.options.json_path),
      options_(job.options),
      document_(std::make_unique<nlohmann::ordered_json>(json_head(job))) {
  (*document_)["factor"] = options_.factor;
  (*document_)["guidelines"] = nlohmann::ordered_json::array();
  if (!table_) return;
  print_head(job);
  print_line("# times in us: a call after a barrier, the slowest rank's, median; sides by turns");
  print_line(
      fmt::format("# ratio: left / right; at most: what the guideline says, times the factor {:g}",
                  options_.factor));
}

GuidelineReport::~GuidelineReport() = default;

void GuidelineReport::add(const GuidelineResult& result) {
  ++guidelines_;
  failures_ += result.holds() ? 0 : 1;
  (*document_)["guidelines"].push_back(result_json(result));
  if (!table_) return;
  const Act& left = result.comparison.left.acts.front();
  std::string heading(schedule::collective_name(left.collective));
  if (left.collective != Collective::barrier) {
    heading += fmt::format(" ({})", type_and_operator(options_, left.collective));
  }
  if (heading != heading_) {
    heading_ = heading;
    print_line(fmt::format("\n# {}\n#{:>9}{:>12}{:>12}{:>8}{:>9}         guideline", heading,
                           "size", "left", "right", "ratio", "at most"));
  }
  const std::string size =
      left.collective == Collective::barrier ? std::string() : std::to_string(left.bytes);
  const Contest& contest = result.contest;
  print_line(fmt::format("{:>10}{:12.2f}{:12.2f}{:8.2f}{:9.2f}  {:<5}  {}", size,
                         contest.left.median, contest.right.median, contest.ratio(), result.at_most,
                         result.holds() ? "ok" : "FAILS", result.comparison.text));
}

base::Status GuidelineReport::end() {
  const std::string text = document_->dump(1) + "\n";
  if (table_) {
    print_line(fmt::format("\n# guidelines: {}, missed: {}", guidelines_, failures_));
  } else {
    fmt::print("{}", text);
    std::fflush(stdout);
  }
  return json_path_.empty() ? base::success() : write_text_file("--json", json_path_, text);
}

}  // namespace unisono::tools::bench
