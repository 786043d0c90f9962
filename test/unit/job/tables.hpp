// SPDX-License-Identifier: BSD-3-Clause
// The tables of a job of one host in this process's memory, and a rank's view of them: for tests of
// the parts of a job without the others.
#pragma once

#include <unistd.h>

#include <memory>
#include <vector>

#include "job/events.hpp"
#include "job/loss/losses.hpp"
#include "job/ranks.hpp"

namespace unisono::job::test {

class Tables {
 public:
  explicit Tables(int ranks)
      : entries_(new RankHeader[static_cast<std::size_t>(ranks)]()),
        doorbell_of_(new wait::Doorbell[static_cast<std::size_t>(ranks)]()),
        ranks_(ranks) {}

  JobHeader& header() { return *header_; }
  RankHeader* entries() { return entries_.get(); }
  wait::Doorbell* doorbells() { return doorbell_of_.get(); }
  // All ranks are this process.
  bootstrap::JobInfo info(int rank) const {
    bootstrap::JobInfo info;
    info.rank = rank;
    info.ranks = ranks_;
    info.job = "parts";
    info.members.assign(static_cast<std::size_t>(ranks_), bootstrap::RankLocation{getpid()});
    return info;
  }

 private:
  std::unique_ptr<JobHeader> header_ = std::make_unique<JobHeader>();
  std::unique_ptr<RankHeader[]> entries_;
  std::unique_ptr<wait::Doorbell[]> doorbell_of_;
  int ranks_;
};

// The parts of one rank.
struct Parts {
  Parts(Tables& tables, int rank)
      : ranks(tables.info(rank)),
        doorbells(tables.header().sleepers, tables.doorbells()),
        events(tables.header(), doorbells, ranks.count()),
        losses(ranks, tables.header(), events, nullptr) {
    ranks.attach(tables.entries());
  }

  Ranks ranks;
  wait::Doorbells doorbells;
  Events events;
  Losses losses;
};

}  // namespace unisono::job::test
