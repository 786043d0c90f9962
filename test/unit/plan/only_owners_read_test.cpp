// SPDX-License-Identifier: BSD-3-Clause
// Program::only_owners_read and receivers_here, by the steps of every algorithm's programs: a rank
// reads its own receive buffers only, and writes to those of its receivers.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "algorithm/algorithm.hpp"
#include "plan/bind/bind.hpp"

namespace unisono::plan::only_owners_read_test {
namespace {

using schedule::Collective;
using schedule::Schedule;
using schedule::Shape;

// The ranks whose receive buffers the steps of a program read and write.
class Touched {
 public:
  Touched(const Program& program, const ReceiveGeometry& geometry) : geometry_(geometry) {
    for (const Step& step : program.steps) {
      switch (step.kind) {
        case StepKind::wait:
          read({Space::receive_buffers, step.flag});
          break;
        case StepKind::put:
        case StepKind::put_or_refer:
        case StepKind::advertise:
          if (step.bytes > 0) read(step.left);
          if (step.bytes > 0) write(step.target);
          if (step.flag >= 0) write({Space::receive_buffers, step.flag});
          break;
        case StepKind::reduce:
        case StepKind::reduce_referred:
          read(step.right);
          [[fallthrough]];
        case StepKind::copy:
        case StepKind::copy_referred:
        case StepKind::pull:
        case StepKind::get:
        case StepKind::stage:
          read(step.left);
          write(step.target);
          break;
        case StepKind::sum:
          for (std::int32_t i = 0; i < step.operand_count; ++i) {
            read(program.operands[static_cast<std::size_t>(step.first_operand + i)]);
          }
          write(step.target);
          break;
        case StepKind::release:
          write({Space::receive_buffers, step.flag});
          break;
        case StepKind::await_release:
          read({Space::receive_buffers, step.flag});
          break;
      }
    }
  }
  const std::set<int>& reads() const { return reads_; }
  const std::set<int>& writes() const { return writes_; }

 private:
  void read(const Place& place) { note(place, reads_); }
  void write(const Place& place) { note(place, writes_); }
  void note(const Place& place, std::set<int>& ranks) const {
    if (place.space != Space::receive_buffers && place.space != Space::data) return;
    ranks.insert(static_cast<int>(place.offset / geometry_.rank_stride()));
  }

  ReceiveGeometry geometry_;
  std::set<int> reads_, writes_;
};

constexpr int kThreeHosts[] = {0, 1, 0, 1, 0, 2, 2, 2};

struct Counts {
  int owners = 0, shared = 0, apart = 0;
};

// The programs of all ranks, each as its own rank and the helpers have it.
void check(const std::vector<Schedule>& set, const BindOptions& options, Counts& counts) {
  const int ranks = static_cast<int>(set.size());
  std::vector<std::vector<Program>> of(set.size());
  for (int r = 0; r < ranks; ++r) {
    of[static_cast<std::size_t>(r)] = bind_schedules(set, r, options);
  }
  bool only_owners_read = true;
  for (int r = 0; r < ranks; ++r) {
    const Program& own = of[static_cast<std::size_t>(r)][static_cast<std::size_t>(r)];
    EXPECT_EQ(own.only_owners_read, of[0][0].only_owners_read) << "all ranks find the same";
    std::set<int> receivers(own.receivers_here.begin(), own.receivers_here.end());
    EXPECT_EQ(receivers.size(), own.receivers_here.size());
    for (const std::vector<Program>& programs : of) {
      const Touched touched(programs[static_cast<std::size_t>(r)], options.geometry);
      std::set<int> reads = touched.reads(), writes = touched.writes();
      reads.erase(r);
      writes.erase(r);
      only_owners_read = only_owners_read && reads.empty();
      if (!own.only_owners_read) continue;
      EXPECT_TRUE(reads.empty()) << "rank " << r << " reads others' buffers";
      const auto is_remote = [&](int to) { return !options.hosts.share(r, to); };
      std::erase_if(writes, is_remote);
      EXPECT_TRUE(std::ranges::includes(receivers, writes)) << "rank " << r;
      if (&programs == &of[static_cast<std::size_t>(r)]) {
        EXPECT_EQ(receivers, writes) << r;
      }
    }
    counts.apart += own.only_owners_read && std::ssize(receivers) < ranks - 1 ? 1 : 0;
  }
  if (of[0][0].only_owners_read) {
    ++counts.owners;
  } else {
    ++counts.shared;
    const bool refers = options.refer_from > 0 || options.pull_from > 0;
    EXPECT_TRUE(refers || !only_owners_read) << "they wait for more ranks than they need";
  }
}

TEST(OnlyOwnersRead, IsSaidOfProgramsThatReadNoOtherBuffers) {
  Counts counts;
  for (const algorithm::Algorithm& row : algorithm::table()) {
    for (const int ranks : {2, 5, 8}) {
      for (const std::int64_t count : {1, 40}) {
        const Shape shape{row.collective, ranks, schedule::is_rooted(row.collective) ? 1 : 0,
                          row.collective == Collective::barrier ? 0 : count, false};
        const auto parameters = algorithm::default_parameters(row, shape);
        if (!algorithm::why_illegal(row, shape, parameters).empty()) continue;
        std::vector<Schedule> set;
        for (int r = 0; r < ranks; ++r) {
          set.push_back(*algorithm::build(row, shape, parameters, r));
        }
        BindOptions options;
        options.element_bytes = 8;
        options.geometry = {
            .ranks = ranks, .slot_indexes = 4, .lines = 1024, .data_bytes = 256 * 1024};
        for (const bool staged : {false, true}) {
          options.staged_multicast = staged;
          for (const bool helping : {false, true}) {
            options.helping = helping;
            SCOPED_TRACE(std::string(row.name) + ", ranks " + std::to_string(ranks) + ", count " +
                         std::to_string(count) + (staged ? ", staged" : "") +
                         (helping ? ", helping" : ""));
            check(set, options, counts);
          }
          options.helping = false;
          SCOPED_TRACE(std::string(row.name) + (staged ? ", staged" : ""));
          BindOptions pulls = options;
          pulls.pull_from = 64;
          check(set, pulls, counts);
          BindOptions refers = options;
          refers.refer_from = 64;
          check(set, refers, counts);
          BindOptions hosts = options;
          hosts.hosts = ranks == 8 ? topology::HostMap::of_labels(kThreeHosts)
                                   : topology::HostMap::apart(ranks);
          check(set, hosts, counts);
        }
      }
    }
  }
  EXPECT_GT(counts.owners, 500);
  EXPECT_GT(counts.shared, 500);
  EXPECT_GT(counts.apart, 500) << "ranks that write to some others only";
}

}  // namespace
}  // namespace unisono::plan::only_owners_read_test
