// SPDX-License-Identifier: BSD-3-Clause
// Nothing in a receive buffer overlaps anything else, for every algorithm and way of binding.
#include "plan/bind/receive_layout.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "algorithm/algorithm.hpp"

namespace unisono::plan::receive_layout_test {
namespace {

// Bytes of the receive buffers that are taken, by first byte.
class Taken {
 public:
  void take(std::int64_t offset, std::int64_t bytes, const std::string& what) {
    if (bytes == 0) return;
    const auto next = spans_.lower_bound(offset);
    if (next != spans_.end()) {
      EXPECT_LE(offset + bytes, next->first) << what;
    }
    if (next != spans_.begin()) {
      const auto before = std::prev(next);
      EXPECT_LE(before->first + before->second, offset) << what;
    }
    spans_[offset] = bytes;
  }
  std::size_t size() const { return spans_.size(); }

 private:
  std::map<std::int64_t, std::int64_t> spans_;
};

void check_disjoint(const std::vector<schedule::Schedule>& set, const BindOptions& options) {
  const ReceiveLayout layout(set, options);
  Taken taken;
  const std::int64_t e = options.element_bytes;
  for (std::size_t r = 0; r < set.size(); ++r) {
    const int rank = static_cast<int>(r);
    for (std::size_t i = 0; options.staged_multicast && i < set[r].ops.size(); ++i) {
      if (set[r].ops[i].kind != schedule::OpKind::multicast) continue;
      const auto op = static_cast<schedule::OpId>(i);
      const MessagePlace& place = layout.outbox(rank, op);
      const std::int64_t bytes = layout.pulls().sent(rank, op) ? 8 : set[r].ops[i].left.count * e;
      taken.take(place.flag, 8, "outbox flag");
      taken.take(place.payload, bytes, "outbox");
      for (const auto& target : set[r].targets_of(set[r].ops[i])) {
        EXPECT_EQ(layout.slot(target.peer, target.slot).flag, place.flag);
        EXPECT_EQ(layout.slot(target.peer, target.slot).payload, place.payload);
      }
    }
    for (const schedule::Op& op : set[r].ops) {
      const bool outbox = op.kind == schedule::OpKind::multicast && options.staged_multicast;
      for (const auto& target : set[r].targets_of(op)) {
        const MessagePlace& place = layout.slot(target.peer, target.slot);
        const bool pulled = layout.pulls().received(target.peer, target.slot);
        if (pulled) taken.take(place.taken, 8, "taken");
        if (outbox) continue;
        taken.take(place.flag, 8, "slot flag");
        taken.take(place.payload, pulled ? 8 : op.left.count * e, "slot");
      }
    }
    taken.take(layout.scratch(rank), set[r].scratch_count * e, "scratch");
    if (layout.helpable(rank).stages_input) {
      taken.take(layout.staged_input(rank), schedule::input_count(set[r].shape, rank) * e, "input");
    }
    if (layout.helpable(rank).stages_output) {
      taken.take(layout.staged_output(rank), schedule::output_count(set[r].shape, rank) * e,
                 "output");
    }
  }
}

TEST(ReceiveLayout, KeepsEverythingApart) {
  for (const algorithm::Algorithm& row : algorithm::table()) {
    for (const int ranks : {2, 5, 8}) {
      schedule::Shape shape;
      shape.collective = row.collective;
      shape.ranks = ranks;
      shape.count = 24;
      const auto parameters = algorithm::default_parameters(row, shape);
      if (!algorithm::why_illegal(row, shape, parameters).empty()) continue;
      std::vector<schedule::Schedule> set;
      for (int r = 0; r < ranks; ++r) {
        set.push_back(*algorithm::build(row, shape, parameters, r));
      }
      for (const int way : {0, 1, 2, 3, 4}) {
        SCOPED_TRACE(std::string(row.name) + " on " + std::to_string(ranks) + " ranks, way " +
                     std::to_string(way));
        BindOptions options{.element_bytes = 8, .input = {}, .output = {}, .geometry = {}};
        options.geometry = {.ranks = ranks, .slot_indexes = 2, .lines = 256, .data_bytes = 1 << 20};
        options.staged_multicast = way % 2 == 1;
        options.helping = way == 2 || way == 3;
        options.pull_from = way == 4 ? 8 : 0;
        check_disjoint(set, options);
      }
    }
  }
}

// Otherwise the root's buffer would hold all blocks, and the others would be empty.
TEST(ReceiveLayout, HasLongBlocksOfAGatherInTheBuffersOfTheirSenders) {
  constexpr int kRanks = 8;
  const algorithm::Algorithm& row = *algorithm::find(schedule::Collective::gather, "linear");
  for (const std::int64_t count : {7, 8}) {
    const schedule::Shape shape{
        .collective = schedule::Collective::gather, .ranks = kRanks, .count = count};
    std::vector<schedule::Schedule> set;
    for (int r = 0; r < kRanks; ++r) set.push_back(*algorithm::build(row, shape, {}, r));
    BindOptions options{.element_bytes = 8, .input = {}, .output = {}, .geometry = {}};
    options.geometry = {.ranks = kRanks, .slot_indexes = 2, .lines = 16, .data_bytes = 1 << 10};
    for (const bool one_memory : {false, true}) {
      options.staged_multicast = one_memory;
      const ReceiveLayout layout(set, options);
      const bool fits_line = count * 8 <= kLinePayload;
      const bool at_senders = one_memory && !fits_line;
      EXPECT_EQ(layout.need().data_bytes, fits_line ? 0 : at_senders ? 64 : 7 * 64);
      for (int source = 1; source < kRanks; ++source) {
        const std::int64_t place = layout.slot(0, source - 1).payload;
        EXPECT_EQ(place / options.geometry.rank_stride(), at_senders ? source : 0) << source;
      }
    }
  }
}

void expect_equal(const std::vector<schedule::Schedule>& set, const ReceiveLayout& a,
                  const ReceiveLayout& b) {
  for (std::size_t r = 0; r < set.size(); ++r) {
    const int rank = static_cast<int>(r);
    for (schedule::SlotId slot = 0; slot < std::ssize(set[r].slots); ++slot) {
      EXPECT_EQ(a.slot(rank, slot).payload, b.slot(rank, slot).payload);
      EXPECT_EQ(a.slot(rank, slot).flag, b.slot(rank, slot).flag);
      EXPECT_EQ(a.slot(rank, slot).taken, b.slot(rank, slot).taken);
    }
    EXPECT_EQ(a.scratch(rank), b.scratch(rank));
    EXPECT_EQ(a.staged_input(rank), b.staged_input(rank));
    EXPECT_EQ(a.staged_output(rank), b.staged_output(rank));
  }
}

TEST(ReceiveLayout, InBuffersOfAnotherSizeIsThatOfThisSize) {
  for (const algorithm::Algorithm& row : algorithm::table()) {
    const schedule::Shape shape{.collective = row.collective, .ranks = 5, .count = 24};
    const auto parameters = algorithm::default_parameters(row, shape);
    if (!algorithm::is_legal(row, shape, parameters)) continue;
    std::vector<schedule::Schedule> set;
    for (int r = 0; r < shape.ranks; ++r) {
      set.push_back(*algorithm::build(row, shape, parameters, r));
    }
    for (const bool helping : {false, true}) {
      SCOPED_TRACE(std::string(row.name) + (helping ? ", helping" : ""));
      BindOptions options{.element_bytes = 8, .input = {}, .output = {}, .geometry = {}};
      options.geometry = {.ranks = 5, .slot_indexes = 8, .lines = 16, .data_bytes = 1 << 10};
      options.staged_multicast = true;
      options.helping = helping;
      options.pull_from = helping ? 0 : 8;
      ReceiveLayout moved(set, options);
      const ReceiveNeed need = moved.need();
      options.geometry = {.ranks = 5, .slot_indexes = 2, .lines = 256, .data_bytes = 1 << 20};
      const ReceiveLayout fresh(set, options);
      moved.place_in(options.geometry);
      EXPECT_EQ(moved.need().lines, need.lines);
      EXPECT_EQ(moved.need().data_bytes, need.data_bytes);
      expect_equal(set, moved, fresh);
    }
  }
}

}  // namespace
}  // namespace unisono::plan::receive_layout_test
