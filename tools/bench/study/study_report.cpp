// SPDX-License-Identifier: BSD-3-Clause
#include "bench/study/study_report.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "bench/text_file.hpp"

namespace unisono::tools::bench {
namespace {

using schedule::Collective;

constexpr int kColumnWidth = 11;  // of a column

bool is_barrier(const Subject& subject) { return subject.collective == Collective::barrier; }

}  // namespace

StudyReport::StudyReport(const Job& job, const Study& study)
    : study_(study),
      options_(job.options),
      document_(std::make_unique<nlohmann::ordered_json>(json_head(job))) {
  (*document_)["study"] = study.name;
  (*document_)["results"] = nlohmann::ordered_json::array();
  if (options_.format != Format::table) return;
  print_head(job);
  for (const std::string_view note : study.notes) print_line(fmt::format("# {}", note));
}

StudyReport::~StudyReport() = default;

void StudyReport::add(const StudyLine& line, const Finding& finding) {
  nlohmann::ordered_json row = {{"collective", line.subject.name()},
                                {"ranks", line.ranks},
                                {"size", line.bytes},
                                {"count", line.count}};
  for (std::size_t i = 0; i < study_.columns.size(); ++i) {
    row[std::string(study_.columns[i].key)] = finding.values[i];
  }
  if (finding.histogram) {
    const Histogram& histogram = *finding.histogram;
    row["histogram"] = {
        {"from_us", histogram.from}, {"bin_us", histogram.bin}, {"counts", histogram.counts}};
    panels_.push_back(
        {fmt::format("{}, {} bytes, {} ranks: {:.0f} calls, mean {:.2f} us, deviation "
                     "{:.2f} us",
                     line.subject.name(), line.bytes, line.ranks, finding.values[0],
                     finding.values[1], finding.values[2]),
         histogram});
  }
  row["wrong"] = finding.wrong;
  row["algorithm"] = line.algorithm;
  row["engine"] = line.engine;
  (*document_)["results"].push_back(std::move(row));
  if (options_.format == Format::table) print_finding(line, finding);
}

void StudyReport::print_heading(const Subject& subject) {
  std::string heading(subject.name());
  if (!is_barrier(subject)) heading += fmt::format(" ({})", type_and_operator(options_, subject));
  if (heading == heading_) return;
  heading_ = heading;
  std::string line =
      fmt::format("\n# {}\n# {:>5}{:>10}", heading, "ranks", is_barrier(subject) ? "" : "size");
  for (const Column& column : study_.columns) {
    line += fmt::format("{:>{}}", column.heading, kColumnWidth);
  }
  print_line(line + fmt::format("{:>7}  {}", "wrong", "algorithm"));
}

void StudyReport::print_finding(const StudyLine& line, const Finding& finding) {
  print_heading(line.subject);
  std::string text = fmt::format("{:>7}{:>10}", line.ranks,
                                 is_barrier(line.subject) ? "" : std::to_string(line.bytes));
  for (std::size_t i = 0; i < study_.columns.size(); ++i) {
    text += fmt::format("{:{}.{}f}", finding.values[i], kColumnWidth, study_.columns[i].decimals);
  }
  print_line(text + fmt::format("{:>7}  {} {}", finding.wrong, line.algorithm, line.engine));
}

base::Status StudyReport::end() {
  const std::string text = document_->dump(1) + "\n";
  if (options_.format == Format::json) {
    fmt::print("{}", text);
    std::fflush(stdout);
  }
  if (!options_.json_path.empty()) UNISONO_TRY(write_text_file("--json", options_.json_path, text));
  if (options_.picture_path.empty()) return base::success();
  return write_text_file("--picture", options_.picture_path, histogram_picture(panels_));
}

}  // namespace unisono::tools::bench
