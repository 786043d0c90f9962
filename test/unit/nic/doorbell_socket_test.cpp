// SPDX-License-Identifier: BSD-3-Clause
// If the interface accepts packets slower than they come, doorbell packets are lost and no process
// waits. Needs root.
#include "nic/port/doorbell_socket.hpp"

#include <gtest/gtest.h>
#include <net/if.h>
#include <signal.h>
#include <sys/time.h>

#include <cstdlib>

#include "harness/network_namespace.hpp"
#include "nic/program/tables.h"

namespace unisono::nic::doorbell_socket_test {
namespace {

// A call that waits is interrupted by it, and fails in place of waiting for ever.
class Interrupts {
 public:
  Interrupts() {
    struct sigaction action {};
    action.sa_handler = [](int) {};  // and no SA_RESTART
    sigaction(SIGALRM, &action, &before_);
    const itimerval often{{0, 20'000}, {0, 20'000}};
    setitimer(ITIMER_REAL, &often, nullptr);
  }
  ~Interrupts() {
    const itimerval never{};
    setitimer(ITIMER_REAL, &never, nullptr);
    sigaction(SIGALRM, &before_, nullptr);
  }
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

 private:
  struct sigaction before_ {};
};

TEST(DoorbellSocket, DoesNotWaitForAnInterfaceThatTakesNothing) {
  const auto network = harness::NetworkNamespace::enter();
  if (!network.ok()) GTEST_SKIP() << network.error().message;
  ASSERT_TRUE((*network)->add_interface("slow0", "10.9.0.1/24", "fd09::1/64").ok());
  ASSERT_TRUE(
      (*network)->ip("neigh add 10.9.0.2 lladdr 02:00:00:00:00:02 dev slow0 nud permanent").ok());
  if (std::system("tc qdisc add dev slow0 root tbf rate 1kbit burst 1600 limit 100000000") != 0) {
    GTEST_SKIP() << "this kernel has no token bucket filter (tbf)";
  }
  unisono_nic_row row = {};
  row.interface = if_nametoindex("slow0");
  row.own.port = htons(7777);
  row.up.ipv4 = inet_addr("10.9.0.2");
  const auto socket = DoorbellSocket::open(row);
  ASSERT_TRUE(socket.ok()) << socket.error().message;
  const Interrupts interrupts;
  for (int i = 0; i < 2000; ++i) {
    const base::Status sent = (*socket)->send(UNISONO_NIC_DOORBELL, 1, UNISONO_NIC_WORDS_MAX);
    ASSERT_TRUE(sent.ok()) << "doorbell " << i << ": " << sent.error().message;
  }
}

}  // namespace
}  // namespace unisono::nic::doorbell_socket_test
