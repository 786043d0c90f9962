// SPDX-License-Identifier: BSD-3-Clause
#include "bench/session.hpp"

#include <fmt/format.h>
#include <unisono/unisono.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "bench/guideline/comparison.hpp"
#include "bench/guideline/contest.hpp"
#include "bench/guideline/report.hpp"
#include "bench/measure/cell.hpp"
#include "bench/measure/measure.hpp"
#include "bench/measure/pattern.hpp"
#include "bench/measure/place.hpp"
#include "bench/report.hpp"
#include "bench/study/study_run.hpp"
#include "commands.hpp"
#include "machine.hpp"
#include "progress.hpp"

namespace unisono::tools::bench {
namespace {

// A guideline is missed if it is missed so often, one time after another: noise seldom is.
constexpr int kTries = 3;

class Session {
 public:
  explicit Session(const Options& options)
      : options_(options),
        progress_(options.progress ? Progress::Where::terminal : Progress::Where::nowhere) {}

  base::Status join();
  base::Status measure_all();
  base::Status compare_all();
  base::Status study_all();
  base::Status leave() const;
  int rank() const { return place_.rank; }
  std::int64_t wrong() const { return wrong_; }
  int missed() const { return missed_; }

 private:
  base::Result<GuidelineResult> compare(Arena& arena, const Comparison& comparison);
  base::Status measure_cell(const Pattern& pattern, const Subject& subject, std::int64_t bytes);

  const Options& options_;
  Place place_;
  std::unique_ptr<Report> report_;  // rank 0 only
  Progress progress_;
  std::int64_t wrong_ = 0;
  int missed_ = 0;
};

base::Status Session::join() {
  UNISONO_TRY(to_status(unisono_init(&place_.measured)));
  UNISONO_TRY(to_status(unisono_comm_rank(place_.measured, &place_.rank)));
  UNISONO_TRY(to_status(unisono_comm_size(place_.measured, &place_.ranks)));
  if (options_.root >= place_.ranks) {
    return base::Error{base::Code::argument,
                       fmt::format("--root {} does not exist: the ranks are 0 to {}", options_.root,
                                   place_.ranks - 1)};
  }
  return to_status(unisono_comm_dup(place_.measured, &place_.control));
}

base::Status Session::measure_all() {
  if (place_.rank == 0) {
    UNISONO_ASSIGN(report_, make_report(options_.format, options_.json_path));
    report_->begin(describe_job(options_, place_.ranks));
  }
  const Pattern pattern(options_.type, options_.op, place_.ranks, place_.rank);
  for (const Subject& subject : options_.subjects) {
    if (report_) report_->subject(subject);
    const bool sizes = subject.collective != schedule::Collective::barrier;
    for (const std::int64_t bytes : sizes ? options_.sizes : std::vector<std::int64_t>{0}) {
      UNISONO_TRY(measure_cell(pattern, subject, bytes));
    }
  }
  return report_ ? report_->end() : base::success();
}

base::Status Session::measure_cell(const Pattern& pattern, const Subject& subject,
                                   std::int64_t bytes) {
  if (report_) {
    progress_.show(fmt::format("unisono bench: {} {}", subject.name(), base::format_size(bytes)));
  }
  const std::int64_t count = bytes / static_cast<std::int64_t>(arith::type_size(options_.type));
  UNISONO_ASSIGN(Cell cell, Cell::make({subject, count, options_.root, place_.rank, place_.ranks,
                                        options_.uneven},
                                       options_, pattern, place_.measured));
  UNISONO_ASSIGN(const Measurement measurement, measure(place_, cell, options_, subject));
  wrong_ += measurement.wrong;
  progress_.clear();
  if (report_) report_->cell(bytes, count, measurement);
  return base::success();
}

base::Status Session::compare_all() {
  std::optional<GuidelineReport> report;
  if (place_.rank == 0) report.emplace(describe_job(options_, place_.ranks));
  Options options = options_;
  const int cores = options.usable_cores > 0 ? options.usable_cores : usable_cores();
  UNISONO_ASSIGN(const std::int64_t agreed, agree(place_, cores));
  options.usable_cores = static_cast<int>(agreed);
  Arena arena(place_, options_);
  for (const Comparison& comparison : comparisons(options, place_.ranks)) {
    if (report) progress_.show("unisono bench: " + comparison.text);
    UNISONO_ASSIGN(const GuidelineResult result, compare(arena, comparison));
    progress_.clear();
    missed_ += result.holds() ? 0 : 1;
    if (report) report->add(result);
  }
  UNISONO_TRY(arena.close());
  return report ? report->end() : base::success();
}

// All ranks have the same figures, so they agree without a word.
base::Result<GuidelineResult> Session::compare(Arena& arena, const Comparison& comparison) {
  std::optional<GuidelineResult> best;
  for (int i = 0; i < kTries && !(best && best->holds()); ++i) {
    UNISONO_ASSIGN(const Contest contest, arena.hold(comparison));
    wrong_ += contest.wrong;
    if (best && best->contest.ratio() <= contest.ratio()) continue;
    best = GuidelineResult{comparison, contest, comparison.limit * options_.factor};
  }
  return *best;
}

base::Status Session::study_all() {
  UNISONO_ASSIGN(wrong_, run_study(place_, options_, progress_));
  return base::success();
}

base::Status Session::leave() const {
  UNISONO_TRY(to_status(unisono_comm_free(place_.control)));
  return to_status(unisono_finalize(place_.measured));
}

base::Status run_aim(Session& session, Aim aim) {
  switch (aim) {
    case Aim::times:
      return session.measure_all();
    case Aim::guidelines:
      return session.compare_all();
    case Aim::overlap:
    case Aim::consistency:
    case Aim::cpu:
    case Aim::hot_spot:
      break;
  }
  return session.study_all();
}

base::Status run(Session& session, const Options& options) {
  UNISONO_TRY(session.join());
  UNISONO_TRY(run_aim(session, options.aim));
  return session.leave();
}

}  // namespace

int run_session(const Options& options) {
  Session session(options);
  if (const base::Status status = run(session, options); !status) {
    fmt::print(stderr, "unisono bench: {}\n", status.error().message);
    return kExitFailure;
  }
  if (session.rank() != 0) return kExitSuccess;
  if (session.wrong() != 0) {
    fmt::print(stderr, "unisono bench: {} elements of the results were wrong\n", session.wrong());
    return kExitFailure;
  }
  if (session.missed() == 0 || options.tolerate) return kExitSuccess;
  fmt::print(stderr, "unisono bench: guidelines that were missed: {} (--tolerate: no failure)\n",
             session.missed());
  return kExitFailure;
}

}  // namespace unisono::tools::bench
