// SPDX-License-Identifier: BSD-3-Clause
#include "bench/report.hpp"

#include <fmt/format.h>
#include <unisono/unisono.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "bench/text_file.hpp"

namespace unisono::tools::bench {
namespace {

using schedule::Collective;

const char* method_name(Method method) {
  switch (method) {
    case Method::loop:
      return "loop";
    case Method::single:
      return "single";
    case Method::both:
      return "both";
  }
  return "";
}

// Bytes in a microsecond are as many MB in a second.
double megabytes_per_second(std::int64_t bytes, const Summary& times) {
  return static_cast<double>(bytes) / times.median;
}

class TableReport final : public Report {
 public:
  void begin(const Job& job) override {
    options_ = job.options;
    print_head(job);
    print_line(
        "# times in us; cpu: processor time of the calling thread for one call, mean of the ranks;"
        " wrong: elements that were not right");
    if (has_loop(options_.method)) {
      print_line("# loop: back to back, the slowest rank's time for one call, median of the loops");
      print_line("# MB/s: size by loop, 10^6 bytes; of a broadcast, the bandwidth at its source");
    }
    if (has_single(options_.method)) {
      print_line(
          "# median, p99, min: calls timed one by one, a barrier before each, averaged over"
          " the ranks");
    }
  }

  void subject(const Subject& subject) override {
    subject_ = subject;
    if (subject.collective == Collective::barrier) {
      print_line("\n# barrier");
    } else {
      print_line(fmt::format("\n# {} ({})", subject.name(), type_and_operator(options_, subject)));
    }
    std::string line = subject.collective == Collective::barrier
                           ? std::string("#                  ")
                           : fmt::format("#{:>9}{:>9}", "size", "count");
    if (has_loop(options_.method)) {
      line += fmt::format("{:>11}{:>11}{:>11}", "loop", moves_bytes() ? "MB/s" : "", "cpu");
    }
    if (has_single(options_.method)) {
      line += fmt::format("{:>11}{:>11}{:>11}{:>11}", "median", "p99", "min", "cpu");
    }
    print_line(line + fmt::format("{:>7}  {}", "wrong", "algorithm"));
  }

  void cell(std::int64_t bytes, std::int64_t count, const Measurement& m) override {
    std::string line = subject_.collective == Collective::barrier
                           ? std::string(19, ' ')
                           : fmt::format("{:>10}{:>9}", bytes, count);
    if (has_loop(options_.method)) {
      const std::string rate =
          moves_bytes() ? fmt::format("{:.1f}", megabytes_per_second(bytes, m.loop)) : "";
      line += fmt::format("{:11.2f}{:>11}{:11.2f}", m.loop.median, rate, m.cpu_us);
    }
    if (has_single(options_.method)) {
      line += fmt::format("{:11.2f}{:11.2f}{:11.2f}{:11.2f}", m.single.median, m.single.p99,
                          m.single.minimum, m.single_cpu_us);
    }
    print_line(line + fmt::format("{:>7}  {} {}", m.wrong, m.algorithm, m.engine));
  }

  base::Status end() override { return base::success(); }

 private:
  bool moves_bytes() const { return subject_.collective != Collective::barrier; }

  Options options_;
  Subject subject_;
};

// As `osu_allreduce -f -c` prints it: size left in 10 columns, values right in 20 with 2 decimals.
// The caller's processor time, which OSU does not have, is the last column, so that no other moves.
class OsuReport final : public Report {
 public:
  void begin(const Job& job) override { options_ = job.options; }

  void subject(const Subject& subject) override {
    subject_ = subject;
    print_line(fmt::format("\n# Unisono {} Latency Test v{}", subject.name(), unisono_version()));
    if (subject.collective != Collective::barrier) {
      print_line(fmt::format("# Datatype: {}.", type_and_operator(options_, subject)));
    }
    const bool sizes = subject.collective != Collective::barrier;
    print_line(fmt::format("{}{:>20}{:>20}{:>20}{:>20}{:>20}{:>20}", sizes ? "# Size    " : "# ",
                           "Avg Latency(us)", "Min Latency(us)", "Max Latency(us)", "Iterations",
                           "Validation", "Caller CPU(us)"));
  }

  void cell(std::int64_t bytes, std::int64_t, const Measurement& m) override {
    const bool single = has_single(options_.method);
    const Summary& times = single ? m.single : m.loop;
    const auto calls = single ? static_cast<std::int64_t>(times.samples)
                              : static_cast<std::int64_t>(times.samples) * m.loop_calls;
    const std::string size =
        subject_.collective == Collective::barrier ? "  " : fmt::format("{:<10}", bytes);
    print_line(fmt::format("{}{:20.2f}{:20.2f}{:20.2f}{:20}{:>20}{:20.2f}", size, times.mean,
                           times.minimum, times.maximum, calls, m.wrong == 0 ? "Pass" : "Fail",
                           single ? m.single_cpu_us : m.cpu_us));
  }

  base::Status end() override { return base::success(); }

 private:
  Options options_;
  Subject subject_;
};

class JsonReport final : public Report {
 public:
  // Empty: to stdout.
  explicit JsonReport(std::string path) : path_(std::move(path)) {}

  void begin(const Job& job) override {
    method_ = job.options.method;
    document_ = json_head(job);
    document_["method"] = method_name(method_);
    document_["results"] = nlohmann::ordered_json::array();
  }

  void subject(const Subject& subject) override { subject_ = subject; }

  void cell(std::int64_t bytes, std::int64_t count, const Measurement& m) override {
    nlohmann::ordered_json row = {
        {"collective", subject_.name()}, {"size", bytes}, {"count", count}};
    if (has_loop(method_)) {
      row["loop"] = summary_json(m.loop);
      row["loop"]["calls"] = m.loop_calls;
      if (subject_.collective != Collective::barrier) {
        row["loop"]["MBps"] = megabytes_per_second(bytes, m.loop);
      }
      row["loop"]["cpu_us"] = m.cpu_us;
      row["loop"]["agent_us"] = m.agent_us;
    }
    if (has_single(method_)) {
      row["single"] = summary_json(m.single);
      row["single"]["cpu_us"] = m.single_cpu_us;
    }
    row["wrong"] = m.wrong;
    row["algorithm"] = m.algorithm;
    row["engine"] = m.engine;
    document_["results"].push_back(std::move(row));
  }

  base::Status end() override {
    const std::string text = document_.dump(1) + "\n";
    if (!path_.empty()) return write_text_file("--json", path_, text);
    fmt::print("{}", text);
    std::fflush(stdout);
    return base::success();
  }

 private:
  std::string path_;
  nlohmann::ordered_json document_;
  Method method_ = Method::both;
  Subject subject_;
};

class AllReports final : public Report {
 public:
  void add(std::unique_ptr<Report> report) { reports_.push_back(std::move(report)); }

  void begin(const Job& job) override {
    for (const auto& each : reports_) each->begin(job);
  }
  void subject(const Subject& subject) override {
    for (const auto& each : reports_) each->subject(subject);
  }
  void cell(std::int64_t bytes, std::int64_t count, const Measurement& measurement) override {
    for (const auto& each : reports_) each->cell(bytes, count, measurement);
  }
  base::Status end() override {
    for (const auto& each : reports_) UNISONO_TRY(each->end());
    return base::success();
  }

 private:
  std::vector<std::unique_ptr<Report>> reports_;
};

}  // namespace

base::Result<std::unique_ptr<Report>> make_report(Format format, const std::string& json_path) {
  auto all = std::make_unique<AllReports>();
  switch (format) {
    case Format::table:
      all->add(std::make_unique<TableReport>());
      break;
    case Format::osu:
      all->add(std::make_unique<OsuReport>());
      break;
    case Format::json:
      all->add(std::make_unique<JsonReport>(""));
      break;
  }
  if (!json_path.empty()) {
    UNISONO_TRY(write_text_file("--json", json_path, ""));
    all->add(std::make_unique<JsonReport>(json_path));
  }
  return std::unique_ptr<Report>(std::move(all));
}

}  // namespace unisono::tools::bench
