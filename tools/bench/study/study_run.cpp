// SPDX-License-Identifier: BSD-3-Clause
#include "bench/study/study_run.hpp"

#include <fmt/format.h>

#include <optional>
#include <vector>

#include "base/text.hpp"
#include "bench/measure/cell.hpp"
#include "bench/measure/pattern.hpp"
#include "bench/measure/team.hpp"
#include "bench/study/study_report.hpp"

namespace unisono::tools::bench {
namespace {

class StudyRun {
 public:
  StudyRun(const Place& job, const Options& options, Progress& progress)
      : job_(job), options_(options), progress_(progress), study_(study_of(options)) {
    if (job.rank == 0) report_.emplace(describe_job(options, job.ranks), study_);
  }

  base::Status run();
  std::int64_t wrong() const { return wrong_; }

 private:
  std::vector<std::int64_t> team_sizes() const;
  base::Status run_team(const Subject& subject, int ranks);
  base::Status measure_cell(const Place& place, const Pattern& pattern, const CellShape& shape,
                            std::int64_t bytes);

  const Place& job_;
  const Options& options_;
  Progress& progress_;
  const Study& study_;
  std::optional<StudyReport> report_;  // rank 0 only
  std::int64_t wrong_ = 0;
};

// By default all ranks. For the hot spot, which depends on their number, 2, 4, 8 ... and all.
std::vector<std::int64_t> StudyRun::team_sizes() const {
  if (!options_.team_sizes.empty()) return options_.team_sizes;
  std::vector<std::int64_t> sizes;
  if (options_.aim == Aim::hot_spot) {
    for (std::int64_t ranks = 2; ranks < job_.ranks; ranks *= 2) sizes.push_back(ranks);
  }
  sizes.push_back(job_.ranks);
  return sizes;
}

base::Status StudyRun::run() {
  const std::vector<std::int64_t> sizes = team_sizes();
  for (const std::int64_t ranks : sizes) {
    if (ranks <= job_.ranks && options_.root < ranks) continue;
    return base::Error{base::Code::argument,
                       fmt::format("--ranks {}: the job has {} ranks, and the root is rank {}",
                                   ranks, job_.ranks, options_.root)};
  }
  for (const Subject& subject : options_.subjects) {
    for (const std::int64_t ranks : sizes) {
      UNISONO_TRY(run_team(subject, static_cast<int>(ranks)));
    }
  }
  return report_ ? report_->end() : base::success();
}

base::Status StudyRun::run_team(const Subject& subject, int ranks) {
  UNISONO_ASSIGN(Team team, Team::make(job_, ranks));
  if (team.has_me()) {
    const Pattern pattern(options_.type, options_.op, ranks, job_.rank);
    const bool sizes = subject.collective != schedule::Collective::barrier;
    for (const std::int64_t bytes : sizes ? options_.sizes : std::vector<std::int64_t>{0}) {
      const std::int64_t count = bytes / static_cast<std::int64_t>(arith::type_size(options_.type));
      UNISONO_TRY(measure_cell(team.place(), pattern,
                               {subject, count, options_.root, job_.rank, ranks, options_.uneven},
                               bytes));
    }
  }
  return team.end();
}

base::Status StudyRun::measure_cell(const Place& place, const Pattern& pattern,
                                    const CellShape& shape, std::int64_t bytes) {
  if (report_) {
    progress_.show(fmt::format("unisono bench: {}, {} {}, {} ranks", study_.name,
                               shape.subject.name(), base::format_size(bytes), shape.ranks));
  }
  UNISONO_ASSIGN(Cell cell, Cell::make(shape, options_, pattern, place.measured));
  UNISONO_ASSIGN(const Finding finding, study_.measure(place, cell, options_, shape));
  unisono_comm_info_t info{};
  info.size = sizeof info;
  UNISONO_TRY(to_status(unisono_comm_info(place.measured, &info)));
  progress_.clear();
  wrong_ += finding.wrong;
  if (report_) {
    report_->add({shape.subject, bytes, shape.count, shape.ranks, info.algorithm, info.engine},
                 finding);
  }
  return base::success();
}

}  // namespace

base::Result<std::int64_t> run_study(const Place& job, const Options& options, Progress& progress) {
  StudyRun run(job, options, progress);
  UNISONO_TRY(run.run());
  return run.wrong();
}

}  // namespace unisono::tools::bench
