// SPDX-License-Identifier: BSD-3-Clause
// TCP connections of the bootstrap use segments that fit every IPv6 path, whatever the interface
// says.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/clock.hpp"
#include "bootstrap/socket.hpp"

namespace unisono::bootstrap::segments_test {
namespace {

int most_segment(const base::Descriptor& socket) {
  int bytes = 0;
  socklen_t length = sizeof bytes;
  EXPECT_EQ(getsockopt(socket.get(), IPPROTO_TCP, TCP_MAXSEG, &bytes, &length), 0);
  return bytes;
}

TEST(BootstrapSegments, AreShortBothWays) {
  Address address{Address::Kind::tcp, "127.0.0.1", 0};
  auto listening = listen_at(address);
  ASSERT_TRUE(listening.ok()) << listening.error().message;
  auto connected = try_connect(address, base::now_ns() + 60 * base::kSecond);
  ASSERT_TRUE(connected.ok() && *connected);
  pollfd waiting{.fd = listening->get(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(poll(&waiting, 1, -1), 1);
  const base::Descriptor accepted(accept(listening->get(), nullptr, nullptr));
  ASSERT_TRUE(accepted.valid());
  EXPECT_LE(most_segment(**connected), 1220);
  EXPECT_LE(most_segment(accepted), 1220);
}

}  // namespace
}  // namespace unisono::bootstrap::segments_test
