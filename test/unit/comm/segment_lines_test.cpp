// SPDX-License-Identifier: BSD-3-Clause
// The receive buffers of long messages have a line for each message of every algorithm, whatever
// its parameters. Otherwise a long call would be cut into thousands of parts.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "algorithm/algorithm.hpp"
#include "base/settings/settings.hpp"
#include "comm/segment.hpp"
#include "harness/host_maps.hpp"
#include "plan/bind/bind.hpp"

namespace unisono::comm::segment_lines_test {
namespace {

// The least, the usual and the greatest value of each parameter.
std::vector<algorithm::Parameters> extremes(const algorithm::Algorithm& row,
                                            const schedule::Shape& shape) {
  std::vector<algorithm::Parameters> all = {algorithm::default_parameters(row, shape)};
  for (std::size_t i = 0; i < row.parameters.size(); ++i) {
    const algorithm::ParameterSpec& spec = row.parameters[i];
    const std::vector<algorithm::Parameters> before = all;
    for (const int value : {spec.low, spec.high == 0 ? shape.ranks : spec.high}) {
      for (algorithm::Parameters parameters : before) {
        parameters.values[i] = value;
        if (algorithm::why_illegal(row, shape, parameters).empty()) all.push_back(parameters);
      }
    }
  }
  return all;
}

std::int64_t lines_needed(const algorithm::Algorithm& row, const schedule::Shape& shape,
                          const algorithm::Parameters& parameters) {
  std::vector<schedule::Schedule> set;
  for (int rank = 0; rank < shape.ranks; ++rank) {
    set.push_back(*algorithm::build(row, shape, parameters, rank));
  }
  plan::BindOptions options{.element_bytes = 64, .input = {}, .output = {}, .geometry = {}};
  options.hosts = shape.hosts;
  return plan::receive_need(set, options).lines;
}

void check_row(const algorithm::Algorithm& row, const schedule::Shape& shape) {
  const std::int64_t lines =
      plan_segment(shape.ranks, base::Settings()).receive_buffers[plan::SizeClass::bulk].lines;
  if (!algorithm::why_illegal(row, shape, algorithm::default_parameters(row, shape)).empty()) {
    return;
  }
  for (const algorithm::Parameters& parameters : extremes(row, shape)) {
    EXPECT_LE(lines_needed(row, shape, parameters), lines)
        << algorithm::describe(row, parameters) << " on " << shape.ranks << " ranks, root "
        << shape.root << ", on " << (shape.hosts.given() ? "several hosts" : "one host");
  }
}

TEST(SegmentLines, SufficeForEveryAlgorithmWithAnyParameters) {
  for (const algorithm::Algorithm& row : algorithm::table()) {
    for (const int ranks : {2, 3, 4, 5, 8, 13, 16}) {
      schedule::Shape shape{.collective = row.collective, .ranks = ranks, .count = 4096};
      check_row(row, shape);
      if (schedule::is_rooted(row.collective)) {
        shape.root = ranks / 2;
        check_row(row, shape);
      }
      if (!row.uses_hosts) continue;
      for (const topology::HostMap& hosts : test::host_maps(ranks)) {
        shape.hosts = hosts;
        check_row(row, shape);
      }
    }
  }
}

// Credit: between hosts a rank informs the others after each half of the slot indexes.
TEST(SegmentSlots, LongCallsOfSomeHostsAreNotEachFollowedByCredit) {
  const base::Settings settings;
  for (int ranks = 2; ranks <= 8; ++ranks) {
    SCOPED_TRACE(ranks);
    const SegmentLayout layout = plan_segment(ranks, settings, Links::streams);
    std::int64_t bytes = 0;
    for (const plan::SizeClass size : plan::kSizeClasses) {
      bytes += layout.receive_buffers[size].total_bytes();
    }
    const plan::ReceiveGeometry& bulk = layout.receive_buffers[plan::SizeClass::bulk];
    EXPECT_GE(bulk.slot_indexes, 4);
    EXPECT_EQ(bulk.data_bytes, 1024 * 1024);
    EXPECT_LE(bytes, settings.bytes(base::Setting::buffers));
  }
}

std::int64_t bulk_window(const char* buffers, int ranks, Links links) {
  const auto settings = base::Settings::from({{"UNISONO_BUFFERS", buffers}});
  EXPECT_TRUE(settings.ok());
  return plan_segment(ranks, *settings, links).receive_buffers[plan::SizeClass::bulk].data_bytes;
}

TEST(SegmentWindows, GrowWithTheMemoryOfOneHost) {
  constexpr std::int64_t kKiB = 1024;
  for (const int ranks : {2, 4, 8}) {
    SCOPED_TRACE(ranks);
    EXPECT_EQ(bulk_window("64M", ranks, Links::none), 128 * kKiB);
    EXPECT_EQ(bulk_window("127M", ranks, Links::none), 128 * kKiB);
    EXPECT_EQ(bulk_window("256M", ranks, Links::none), 512 * kKiB);
    EXPECT_EQ(bulk_window("2G", ranks, Links::none), 4096 * kKiB);
    EXPECT_EQ(bulk_window("1T", ranks, Links::none), 4096 * kKiB);
    EXPECT_EQ(bulk_window("2G", ranks, Links::datagrams), 128 * kKiB);
    EXPECT_EQ(bulk_window("2G", ranks, Links::streams), 1024 * kKiB);
  }
}

constexpr std::int64_t kMiB = 1024 * 1024;
constexpr std::int64_t kMuchRoom = 4096 * kMiB;

TEST(SegmentWindows, OfStreamsHaveRoomForAPieceOfEachOtherMember) {
  const base::Settings settings;
  const auto buffer_bytes = [&settings](int ranks, const Spread& spread) {
    return plan_segment(ranks, settings, Links::streams, spread)
        .receive_buffers[plan::SizeClass::bulk]
        .data_bytes;
  };
  const Spread alone{.on_a_host = 1, .room = kMuchRoom};
  EXPECT_EQ(buffer_bytes(2, alone), 1 * kMiB);
  EXPECT_EQ(buffer_bytes(3, alone), 2 * kMiB);
  EXPECT_EQ(buffer_bytes(4, alone), 4 * kMiB);
  EXPECT_EQ(buffer_bytes(8, alone), 8 * kMiB);
  EXPECT_EQ(buffer_bytes(8, {.on_a_host = 2, .room = kMuchRoom}), 4 * kMiB);
  EXPECT_EQ(buffer_bytes(8, {.on_a_host = 1, .room = 256 * kMiB}), 4 * kMiB);
  EXPECT_EQ(buffer_bytes(8, {.on_a_host = 1, .room = 0}), 1 * kMiB);
  EXPECT_EQ(buffer_bytes(8, {.on_a_host = 0, .room = kMuchRoom}), 1 * kMiB);
}

TEST(SegmentWindows, OfStreamsStayWithinTheMemoryOfAHostAndTheRoomOfAll) {
  for (const char* const buffers : {"1M", "8M", "64M", "1G"}) {
    const auto settings = base::Settings::from({{"UNISONO_BUFFERS", buffers}});
    ASSERT_TRUE(settings.ok());
    for (const int ranks : {3, 8, 16, 64, 256}) {
      const SegmentLayout usual = plan_segment(ranks, *settings, Links::streams);
      for (const int on_a_host : {1, 2, 8}) {
        for (const std::int64_t room : {64 * kMiB, 512 * kMiB, kMuchRoom}) {
          SCOPED_TRACE(testing::Message() << buffers << ", " << ranks << " ranks, " << on_a_host
                                          << " on a host, room " << room);
          const plan::ReceiveGeometry bulk =
              plan_segment(ranks, *settings, Links::streams, {.on_a_host = on_a_host, .room = room})
                  .receive_buffers[plan::SizeClass::bulk];
          if (bulk == usual.receive_buffers[plan::SizeClass::bulk]) continue;
          EXPECT_GT(bulk.data_bytes, usual.receive_buffers[plan::SizeClass::bulk].data_bytes);
          EXPECT_GE(bulk.slot_indexes, 4);
          EXPECT_LE(bulk.rank_stride() * on_a_host, settings->bytes(base::Setting::buffers));
          EXPECT_LE(bulk.total_bytes(), room);
        }
      }
    }
  }
}

// Multicasts lie in the buffers of their senders, on every host.
TEST(Spread, CountsTheMembersOfAHostOrAll) {
  const auto hosts = topology::HostMap::of_labels(std::vector<int>{0, 1, 1, 2, 1});
  EXPECT_EQ(spread_over(hosts, false, 2, 800).on_a_host, 3);
  EXPECT_EQ(spread_over(hosts, true, 3, 800).on_a_host, 3);
  EXPECT_EQ(spread_over(hosts, true, 2, 800).on_a_host, 0);
  EXPECT_EQ(spread_over(topology::HostMap::apart(4), false, 2, 800).on_a_host, 1);
  EXPECT_EQ(spread_over(hosts, true, 2, 800).room, 100);
  EXPECT_EQ(spread_over(topology::HostMap::together(4), false, 2, 800).room, 0);
}

// Ranks whose settings differ divide their memory differently, perhaps between hosts only.
TEST(MemoryLayout, TellsEveryDifferenceOfBuffers) {
  const auto layout = [](const char* buffers) {
    return memory_layout(*base::Settings::from({{"UNISONO_BUFFERS", buffers}}));
  };
  EXPECT_EQ(layout("80M"), layout("80M"));
  EXPECT_NE(layout("80M"), layout("96M"));
}

// Longer buffers leave many ranks all the slot indexes that the usual ones have there.
TEST(SegmentWindows, DoNotGrowAtTheExpenseOfSlotIndexes) {
  for (const char* const buffers : {"512M", "1G", "2G", "4G"}) {
    const auto settings = base::Settings::from({{"UNISONO_BUFFERS", buffers}});
    ASSERT_TRUE(settings.ok());
    for (const int ranks : {2, 8, 16, 32, 48, 64, 128}) {
      const SegmentLayout layout = plan_segment(ranks, *settings);
      EXPECT_EQ(layout.receive_buffers[plan::SizeClass::bulk].slot_indexes, 8)
          << ranks << ", " << buffers;
    }
  }
}

// Longer buffers never take more than the setting allows, of all ranks together.
TEST(SegmentWindows, StayWithinTheSetting) {
  for (const std::int64_t megabytes : {64, 128, 256, 512, 1024, 2048, 4096}) {
    const auto settings =
        base::Settings::from({{"UNISONO_BUFFERS", std::to_string(megabytes) + "M"}});
    ASSERT_TRUE(settings.ok());
    for (const int ranks : {2, 3, 8, 32, 64}) {
      const SegmentLayout layout = plan_segment(ranks, *settings);
      std::int64_t bytes = 0;
      for (const plan::SizeClass size : plan::kSizeClasses) {
        bytes +=
            layout.receive_buffers[size].given() ? layout.receive_buffers[size].total_bytes() : 0;
      }
      EXPECT_LE(bytes, megabytes << 20) << ranks << " ranks, " << megabytes << " MiB";
    }
  }
}

}  // namespace
}  // namespace unisono::comm::segment_lines_test
