// SPDX-License-Identifier: BSD-3-Clause
#include "network/narrow_paths.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/log.hpp"
#include "transport/datagrams.hpp"
#include "transport/ip/ip.hpp"

namespace unisono::network::narrow_paths_test {
namespace {

std::string written_by(const std::function<void()>& call) {
  testing::internal::CaptureStderr();
  call();
  return testing::internal::GetCapturedStderr();
}

// A rank behind one bad switch logs one warning, not one for each peer.
TEST(NarrowPaths, TheFirstIsAWarningAndTheOthersAreNot) {
  base::set_log_level(base::LogLevel::warn);
  bootstrap::JobInfo info;
  info.ranks = 3;
  info.members.resize(3);
  info.members[1].address = *transport::parse_ip("10.0.0.7");
  const auto note = narrow_path_log(Hosts(info), 1472);
  const std::string first = written_by([&note] { note(1, 1232); });
  EXPECT_NE(first.find("datagrams of 1472 bytes to rank 1 (host 10.0.0.7) vanish"),
            std::string::npos)
      << first;
  EXPECT_NE(first.find("UNISONO_DATAGRAM=1232"), std::string::npos) << first;
  EXPECT_EQ(written_by([&note] { note(2, 508); }), "");
  EXPECT_EQ(written_by([&note] { note(transport::kGroup, 1232); }), "");
  const std::string lost = written_by([&note] { note(2, 0); });
  EXPECT_NE(lost.find("rank 2 is taken to be lost"), std::string::npos) << lost;
}

TEST(NarrowPaths, NeighboursAreAtPowersOfTwo) {
  std::vector<int> in_fours;  // nine hosts
  for (int rank = 0; rank < 36; ++rank) in_fours.push_back(rank / 4);
  const auto hosts = topology::HostMap::of_labels(in_fours);
  EXPECT_EQ(neighbours_of(0, hosts), (std::vector<int>{4, 8, 16, 20, 28, 32}));
  EXPECT_EQ(neighbours_of(8, hosts), (std::vector<int>{0, 4, 12, 16, 24, 28}));
  EXPECT_EQ(neighbours_of(0, topology::HostMap::apart(2)), std::vector<int>{1});
  EXPECT_EQ(neighbours_of(1, topology::HostMap::apart(4)), (std::vector<int>{0, 2, 3}));
  EXPECT_EQ(neighbours_of(5, hosts), std::vector<int>{}) << "not the first of its host";
  EXPECT_EQ(neighbours_of(0, topology::HostMap::apart(1)), std::vector<int>{});
}

}  // namespace
}  // namespace unisono::network::narrow_paths_test
