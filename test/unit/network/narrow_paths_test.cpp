// SPDX-License-Identifier: BSD-3-Clause
#include "network/narrow_paths.hpp"

#include <gtest/gtest.h>

#include <string>

#include "base/log.hpp"
#include "transport/datagrams.hpp"
#include "transport/ip/ip.hpp"

namespace unisono::network {
namespace {

std::string written_by(const std::function<void()>& call) {
  testing::internal::CaptureStderr();
  call();
  return testing::internal::GetCapturedStderr();
}

// A rank behind one bad switch logs one warning, not one for each peer.
TEST(NarrowPaths, TheFirstIsAWarningAndTheOthersAreNot) {
  base::set_log_level(base::LogLevel::warn);
  std::vector<bootstrap::Member> members(3);
  members[1].address = *transport::parse_ip("10.0.0.7");
  const auto note = narrow_path_log(members, 1472);
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

}  // namespace
}  // namespace unisono::network
