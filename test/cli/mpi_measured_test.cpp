// SPDX-License-Identifier: BSD-3-Clause
// tools/mpirun/measured: from the drop-in's times to ranges in the machine file. With real MPIs:
// test/frontend/mpi_test.py.
#include "mpirun/measured.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "harness/temporary_folder.hpp"
#include "model/default_machine.hpp"
#include "model/own_machine.hpp"

namespace unisono::tools::mpi_measured_test {
namespace {

constexpr const char* kHead = "library Some MPI v1.2\nranks 4\nhosts 2\n";

// A cell in which the MPI is so many times faster in both ways of calling.
std::string cell(const std::string& collective, int bytes, double speed_up) {
  return fmt::format("{} {} {} 100 {} 200\n", collective, bytes, 100 * speed_up, 200 * speed_up);
}

model::HostMpi ranges(const std::string& cells) {
  const auto measured = parse_measured(kHead + cells, "times");
  EXPECT_TRUE(measured.ok()) << (measured.ok() ? "" : measured.error().message);
  return measured.ok() ? ranges_of(*measured) : model::HostMpi{};
}

using Ranges = std::vector<model::ByteRange>;

TEST(MpiMeasured, ARangeEndsBetweenTheMeasuredSizes) {
  const model::HostMpi found = ranges(cell("gather", 4, 0.5) + cell("gather", 64, 1.2) +
                                      cell("gather", 256, 2) + cell("gather", 1024, 0.9));
  EXPECT_EQ(found.library, "Some MPI v1.2");
  EXPECT_EQ(found.ranks, 4);
  EXPECT_EQ(found.hosts, 2);
  EXPECT_EQ(found.faster, (Ranges{{"gather", 17, 512}}));
}

TEST(MpiMeasured, ARangeGoesOnBeyondTheFirstAndTheLastSize) {
  EXPECT_EQ(ranges(cell("bcast", 4, 2) + cell("bcast", 64, 0.5) + cell("bcast", 1024, 1.1)).faster,
            (Ranges{{"bcast", 0, 16}, {"bcast", 257, 0}}));
  EXPECT_EQ(ranges(cell("barrier", 0, 2)).faster, (Ranges{{"barrier", 0, 0}}));
}

TEST(MpiMeasured, ACollectiveEndsWhereTheNextOneBegins) {
  EXPECT_EQ(ranges(cell("scan", 4, 2) + cell("exscan", 4, 2) + cell("exscan", 16, 1)).faster,
            (Ranges{{"scan", 0, 0}, {"exscan", 0, 8}}));
}

TEST(MpiMeasured, ADifferenceOfNoiseMakesNoRange) {
  EXPECT_EQ(ranges(cell("scan", 4, 1.02)).faster, Ranges{});
  // Much slower in calls in a row, much faster in single ones.
  EXPECT_EQ(ranges("scan 4 300 100 100 300\n").faster, Ranges{});
}

TEST(MpiMeasured, OtherTextIsAnErrorThatNamesTheLine) {
  const auto refusal = [](const std::string& text) {
    const auto measured = parse_measured(text, "times");
    return measured.ok() ? "" : measured.error().message;
  };
  EXPECT_EQ(refusal(std::string(kHead) + "gather 4 1 2 3\n"),
            "times:4: expected a measured time, found \"gather 4 1 2 3\"");
  EXPECT_EQ(refusal(std::string(kHead) + "gather 4 1 2 0 3\n"),
            "times:4: expected a measured time, found \"gather 4 1 2 0 3\"");
  EXPECT_EQ(refusal("ranks many\n"), "times:1: expected a measured time, found \"ranks many\"");
  EXPECT_EQ(refusal(kHead), "times: the measurement is not complete");
}

TEST(MpiMeasured, TheMachineFileKeepsTheRangesOfEachMpi) {
  const unisono::test::TemporaryFolder folder;
  const auto settings = base::Settings::from({{"XDG_CACHE_HOME", folder.path()}});
  ASSERT_TRUE(settings.ok());
  model::HostMpi first{"Some MPI v1.2", 2, 1, {{"gather", 0, 16}}};
  const model::HostMpi other{"Some MPI v1.2", 4, 1, {{"scan", 5, 0}}};
  ASSERT_TRUE(keep_ranges(*settings, first).ok());
  ASSERT_TRUE(keep_ranges(*settings, other).ok());
  first.faster = {{"bcast", 0, 8}, {"gather", 0, 64}};
  ASSERT_TRUE(keep_ranges(*settings, first).ok());
  const auto found = model::find_machine(*settings);
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_EQ(found->note, "");
  ASSERT_EQ(found->machine.host_mpis.size(), 2U);
  const auto* const kept = model::find_host_mpi(found->machine, "Some MPI v1.2", 2, 1);
  ASSERT_NE(kept, nullptr);
  EXPECT_EQ(*kept, first);
  EXPECT_EQ(model::find_host_mpi(found->machine, "Some MPI v1.2", 3, 1), nullptr);
  EXPECT_EQ(model::find_host_mpi(found->machine, "Some MPI v1.2", 2, 2), nullptr);
  EXPECT_EQ(model::find_host_mpi(found->machine, "Some MPI v1.3", 2, 1), nullptr);
  EXPECT_EQ(found->machine.paths, model::default_machine().paths);
}

}  // namespace
}  // namespace unisono::tools::mpi_measured_test
