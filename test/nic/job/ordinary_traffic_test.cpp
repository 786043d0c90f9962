// SPDX-License-Identifier: BSD-3-Clause
// Operations beside ordinary traffic. An inner node's queueing discipline is full of datagrams of
// another program, and sends them slowly or hardly at all. Contributions that pass this host are
// forwarded from the receive buffer: they enter neither that queue nor a socket. Packets that do
// leave by the queue, those of the own process and clones for several hosts, have a priority by
// which they overtake ordinary ones.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/descriptor.hpp"
#include "nic/job/many_hosts.hpp"
#include "nic/port/vector_limit.hpp"

namespace unisono::harness::ordinary_traffic_test {
namespace {

constexpr int kAtOnce = static_cast<int>(nic::kInFlightMax);
constexpr std::int64_t kOrdinaryBytes = 1400 + 20 + 8 + 14;  // with its headers
// Packets of the job itself, besides operations, and datagrams that leave all the same.
constexpr std::int64_t kFew = 10;

// Counts of a host so far.
struct Traffic {
  std::int64_t by_queue = 0;        // packets that have left by its queueing discipline ...
  std::int64_t by_queue_bytes = 0;  // ... and their bytes
  std::int64_t queued = 0;          // packets that wait there
  std::int64_t by_interface = 0;    // packets that have left by the interface, in whatever way
  std::int64_t read = 0;            // datagrams that its processes have read

  // Short packets that left by the queue since then; ordinary ones have all the same length.
  std::int64_t short_ones_since(const Traffic& before) const {
    const std::int64_t packets = by_queue - before.by_queue;
    const std::int64_t bytes = by_queue_bytes - before.by_queue_bytes;
    const std::int64_t ordinary = bytes / kOrdinaryBytes;
    return std::max<std::int64_t>(0, packets - ordinary - 1);
  }
};

// Prints the members of Traffic.
constexpr const char* kLook =
    "tc -s qdisc show dev eth0 | awk '/Sent/ {p = $4; b = $2} /backlog/ {print p, b, $3 + 0; exit}'"
    " && cat /sys/class/net/eth0/statistics/tx_packets"
    " && awk '/^Udp: [0-9]/ {print $2}' /proc/net/snmp";
// Otherwise the kernel would ask for addresses again, behind the ordinary traffic.
constexpr const char* kKeepNeighbours =
    "ip -4 neigh show dev eth0 | awk '$2 == \"lladdr\" {print \"neigh replace\", $1, \"lladdr\", "
    "$3, \"dev eth0 nud permanent\"}' | ip -batch -";

// In a network namespace of its own; false where it cannot be made, too.
bool has_token_buckets() {
  return std::system(
             "unshare -n tc qdisc add dev lo root tbf rate 1mbit burst 4k limit 8k "
             ">/dev/null 2>&1") == 0;
}

class NicOrdinaryTraffic : public NicManyHosts<10> {
 protected:
  void SetUp() override {
    NicManyHosts::SetUp();
    if (IsSkipped()) return;
    if (!has_token_buckets()) GTEST_SKIP() << "this kernel has no token bucket filter (tbf)";
  }

  // The host's queueing discipline is added with these commands, and then filled.
  void fill_queue(int host, int datagrams, const std::vector<std::string>& commands) {
    for (const int each : host_of_) ASSERT_NO_FATAL_FAILURE(run_command(each, kKeepNeighbours));
    for (const std::string& command : commands) {
      ASSERT_NO_FATAL_FAILURE(run_command(host, "tc qdisc add dev eth0 " + command));
    }
    HostProcess sender = start_on(host, [datagrams](const Line&) { send_ordinary(datagrams); });
    ASSERT_EQ(sender.wait(), 0);
  }
  static void empty_queue(int host) { run_command(host, "tc qdisc del dev eth0 root"); }

  static Traffic look(int host) {
    HostProcess process = start_on(host, [](const Line& line) {
      FILE* const output = popen(kLook, "r");
      ASSERT_NE(output, nullptr);
      std::string text;
      for (int c = fgetc(output); c != EOF; c = fgetc(output)) {
        text += c == '\n' ? ' ' : static_cast<char>(c);
      }
      EXPECT_EQ(pclose(output), 0) << text;
      line.say(text);
    });
    std::istringstream words(process.line().hear());
    EXPECT_EQ(process.wait(), 0);
    Traffic traffic;
    words >> traffic.by_queue >> traffic.by_queue_bytes >> traffic.queued >> traffic.by_interface >>
        traffic.read;
    EXPECT_FALSE(words.fail());
    return traffic;
  }

  // The inner node with the most children, of which it needs so many, and their number.
  struct InnerNode {
    int host = -1;
    int children = 0;
  };
  InnerNode busiest(int least_children) const {
    InnerNode most;
    for (const int host : inner_nodes()) {
      for (const nic::GroupLine& line : status(host).own_groups) {
        const auto children = static_cast<int>(line.children);
        if (children > most.children) most = {host, children};
      }
    }
    EXPECT_GE(most.children, least_children);
    return most;
  }

 private:
  // By a queue that nobody empties: to the discard port of the first host.
  static void send_ordinary(int datagrams) {
    const base::Descriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    const int room = 1 << 24;
    ASSERT_EQ(setsockopt(socket.get(), SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof room), 0);
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(9);
    ASSERT_EQ(inet_pton(AF_INET, "10.77.0.1", &to.sin_addr), 1);
    const std::array<char, 1400> bytes = {};
    for (int i = 0; i < datagrams; ++i) {
      ASSERT_EQ(sendto(socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT,
                       reinterpret_cast<const sockaddr*>(&to), sizeof to),
                static_cast<ssize_t>(bytes.size()))
          << std::strerror(errno);
    }
  }
};

// Sums that this rank has started, all at once.
class Sums {
 public:
  explicit Sums(const NicRank& self) : self_(self) {
    for (std::size_t i = 0; i < kAtOnce; ++i) {
      values_[i] = self.rank + static_cast<std::int64_t>(i);
      EXPECT_TRUE(succeeded(unisono_allreduce_start(UNISONO_IN_PLACE, &values_[i], 1, UNISONO_INT64,
                                                    UNISONO_SUM, self.world, &requests_[i])));
    }
  }
  void collect() {
    const std::int64_t ranks = self_.ranks;
    for (std::size_t i = 0; i < kAtOnce; ++i) {
      ASSERT_TRUE(succeeded(unisono_wait(&requests_[i])));
      ASSERT_EQ(values_[i], ranks * (ranks - 1) / 2 + ranks * static_cast<std::int64_t>(i));
    }
  }

 private:
  const NicRank& self_;
  std::array<std::int64_t, kAtOnce> values_ = {};
  std::array<unisono_request_t, kAtOnce> requests_ = {};
};

void gather(const NicRank& self) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(self.ranks));
  const std::int64_t own = self.rank + 1;
  ASSERT_TRUE(succeeded(unisono_allgather(&own, all.data(), 1, UNISONO_INT64, self.world)));
  for (std::size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], static_cast<std::int64_t>(i) + 1);
}

// As often as it is told.
void sum_when_told(const NicRank& self) {
  Sums(self).collect();
  gather(self);
  self.line.say("ready");
  for (std::string told = self.line.hear(); told != "leave"; told = self.line.hear()) {
    if (told == "gather") {
      ASSERT_NO_FATAL_FAILURE(gather(self));
    } else {
      Sums sums(self);
      self.line.say("given");
      self.line.hear();
      ASSERT_NO_FATAL_FAILURE(sums.collect());
    }
    self.line.say("done");
  }
  leave(self);
}

void say_to_all(const std::vector<HostProcess>& ranks, const std::string& text) {
  for (const HostProcess& rank : ranks) rank.line().say(text);
}
void expect_of_all(const std::vector<HostProcess>& ranks, const std::string& text) {
  for (const HostProcess& rank : ranks) ASSERT_EQ(rank.line().hear(), text);
}

// This rank gives its parts before all others, or after them.
void make_sums(const std::vector<HostProcess>& ranks, int odd_one, bool comes_first) {
  const Line& odd = ranks[static_cast<std::size_t>(odd_one)].line();
  const auto give = [](const Line& line) {
    line.say("sum");
    ASSERT_EQ(line.hear(), "given");
  };
  if (comes_first) {
    ASSERT_NO_FATAL_FAILURE(give(odd));
  }
  for (const HostProcess& rank : ranks) {
    if (&rank.line() == &odd) continue;
    ASSERT_NO_FATAL_FAILURE(give(rank.line()));
  }
  if (!comes_first) {
    ASSERT_NO_FATAL_FAILURE(give(odd));
  }
  say_to_all(ranks, "collect");
  expect_of_all(ranks, "done");
}

// The host's process has given its part when contributions come, so only these make packets. The
// queue sends a datagram in three minutes.
TEST_F(NicOrdinaryTraffic, ForwardedContributionsEnterNoQueue) {
  constexpr int kRounds = 25;
  constexpr int kDatagrams = 100;
  use(kMany, {});
  start_daemons();
  auto ranks = start_job(sum_when_told);
  ASSERT_NO_FATAL_FAILURE(expect_of_all(ranks, "ready"));
  const int host = busiest(1).host;
  ASSERT_NO_FATAL_FAILURE(
      fill_queue(host, kDatagrams, {"root tbf rate 64bit burst 1600 limit 1000000"}));
  const std::uint64_t sent_up = counted(host, UNISONO_NIC_SENT_UP);
  const Traffic before = look(host);
  ASSERT_GE(before.queued, kDatagrams - kFew);
  for (int round = 0; round < kRounds; ++round) {
    ASSERT_NO_FATAL_FAILURE(make_sums(ranks, host, true));
  }
  const Traffic after = look(host);
  const std::int64_t sums = kRounds * kAtOnce;
  EXPECT_EQ(counted(host, UNISONO_NIC_SENT_UP) - sent_up, static_cast<std::uint64_t>(sums));
  EXPECT_GE(after.by_interface - before.by_interface, sums) << "each sum left by the interface ...";
  EXPECT_LE(after.by_queue - before.by_queue, kFew) << "... and not by its queue";
  EXPECT_GE(after.queued, before.queued - kFew) << "ordinary traffic still waits";
  EXPECT_LE(after.read - before.read, kFew) << "no process has read one";
  empty_queue(host);
  say_to_all(ranks, "leave");
  expect_all_clean(ranks);
}

// The queue sends an ordinary datagram in a fifth of a second, of which it has hundreds. Those of
// the operations have left when most of these still wait. Other hosts may have asked for the
// results meanwhile, and had them from the receive buffer.
TEST_F(NicOrdinaryTraffic, ClonesAndDoorbellPacketsOvertakeInTheQueue) {
  constexpr int kRounds = 3;
  constexpr int kDatagrams = 900;
  use(8, {{"UNISONO_MULTICAST", "off"}});
  start_daemons();
  auto ranks = start_job(sum_when_told);
  ASSERT_NO_FATAL_FAILURE(expect_of_all(ranks, "ready"));
  const InnerNode inner = busiest(2);
  ASSERT_NO_FATAL_FAILURE(fill_queue(
      inner.host, kDatagrams,
      {"root handle 1: tbf rate 64kbit burst 1600 limit 4000000", "parent 1:1 pfifo_fast"}));
  const std::uint64_t blocks_sent = counted(inner.host, UNISONO_NIC_BLOCK_SENT);
  const Traffic before = look(inner.host);
  ASSERT_GE(before.queued, kDatagrams - kFew);
  for (int round = 0; round < kRounds; ++round) {
    for (const bool comes_first : {true, false}) {
      ASSERT_NO_FATAL_FAILURE(make_sums(ranks, inner.host, comes_first));
    }
    say_to_all(ranks, "gather");
    ASSERT_NO_FATAL_FAILURE(expect_of_all(ranks, "done"));
  }
  const std::uint64_t blocks = counted(inner.host, UNISONO_NIC_BLOCK_SENT) - blocks_sent;
  EXPECT_GE(blocks, std::uint64_t{kRounds});
  const std::int64_t clones = 2 * kRounds * kAtOnce * inner.children;
  const std::int64_t wanted = clones + static_cast<std::int64_t>(blocks);
  Traffic now = look(inner.host);
  while (now.short_ones_since(before) < wanted && now.queued > kDatagrams / 2) {
    std::this_thread::yield();
    now = look(inner.host);
  }
  EXPECT_GE(now.short_ones_since(before), wanted) << "they wait behind ordinary traffic";
  EXPECT_GT(now.queued, kDatagrams / 2) << "ordinary traffic still waits";
  empty_queue(inner.host);
  say_to_all(ranks, "leave");
  expect_all_clean(ranks);
}

}  // namespace
}  // namespace unisono::harness::ordinary_traffic_test
