// SPDX-License-Identifier: BSD-3-Clause
// An attacker on the network of a running job. It has overheard the packets of one host. It sends
// noise, cut and lengthened packets, replays, packets with one bit changed, and packets of another
// job or without its key to each rank's port and to the job's multicast group. All results are
// right, no rank is lost, and every rank has counted its dropped packets, by reason.
#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <net/ethernet.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/descriptor.hpp"
#include "base/prng.hpp"
#include "harness/own_stderr.hpp"
#include "harness/scale.hpp"
#include "net/host_ranks.hpp"
#include "wire/siphash.h"

namespace unisono::harness::forged_test {
namespace {

using Bytes = std::vector<std::byte>;

constexpr int kStranger = kHosts;  // the number of its host, which has no rank

class HostsForged : public testing::Test {
 protected:
  void SetUp() override {
    if (!hosts_.reason_to_skip().empty()) GTEST_SKIP() << hosts_.reason_to_skip();
  }

  TestHosts hosts_ = TestHosts::up(kHosts + 1);
};

unisono_packet header_of(const Bytes& packet) {
  unisono_packet header;
  std::memcpy(&header, packet.data(), sizeof header);
  return header;
}

// ---- the packets that the attacker overhears ---------------------------------------------------

struct Heard {
  sockaddr_in to;
  Bytes packet;
};

// The part of an IP packet; nullopt: it is not of this library. The kernel shows several datagrams
// that go together as one: the first.
std::optional<Heard> packet_in(std::span<const std::byte> ip_packet) {
  iphdr ip;
  udphdr udp;
  if (ip_packet.size() < sizeof ip + sizeof udp + sizeof(unisono_packet)) return std::nullopt;
  std::memcpy(&ip, ip_packet.data(), sizeof ip);
  if (ip.version != 4 || ip.ihl != 5 || ip.protocol != IPPROTO_UDP) return std::nullopt;
  std::memcpy(&udp, ip_packet.data() + sizeof ip, sizeof udp);
  const auto payload = ip_packet.subspan(sizeof ip + sizeof udp);
  Heard heard{};
  heard.to.sin_family = AF_INET;
  heard.to.sin_addr.s_addr = ip.daddr;
  heard.to.sin_port = udp.dest;
  heard.packet.assign(payload.begin(), payload.end());
  const unisono_packet header = header_of(heard.packet);
  const std::size_t whole = sizeof header + header.length;
  if (header.magic != UNISONO_PACKET_MAGIC || heard.packet.size() < whole) return std::nullopt;
  heard.packet.resize(whole);
  return heard;
}

// All that goes to and from a host, for a process on another.
class Eavesdropper {
 public:
  explicit Eavesdropper(const tools::HostEntry& host) {
    const base::Descriptor own(open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
    const base::Descriptor other(
        open(fmt::format("/proc/{}/ns/net", host.pid).c_str(), O_RDONLY | O_CLOEXEC));
    EXPECT_EQ(setns(other.get(), CLONE_NEWNET), 0) << std::strerror(errno);
    socket_.reset(socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, htons(ETH_P_ALL)));
    EXPECT_TRUE(socket_.valid()) << std::strerror(errno);
    EXPECT_EQ(setns(own.get(), CLONE_NEWNET), 0) << std::strerror(errno);
    const timeval patience{.tv_sec = 60, .tv_usec = 0};  // should the job have ended
    EXPECT_EQ(setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
  }

  // The next packet; waits for it. nullopt if something else came, or with MSG_DONTWAIT nothing.
  std::optional<Heard> hear(int flags = 0) {
    const ssize_t count = recv(socket_.get(), buffer_.data(), buffer_.size(), flags);
    silent_ |= count < 0 && flags == 0;
    if (count <= 0) return std::nullopt;
    return packet_in(std::span(buffer_).first(static_cast<std::size_t>(count)));
  }
  // It waited in vain.
  bool silent() const { return silent_; }

 private:
  base::Descriptor socket_;
  bool silent_ = false;
  std::array<std::byte, 65536> buffer_{};
};

// ---- its forgeries -----------------------------------------------------------------------------

enum class Trick {
  noise,
  cut,
  lengthened,
  replayed,
  elsewhere,
  bit_changed,
  of_another_job,
  without_key
};
constexpr int kTricks = 8;

// Genuine packets of one port, the last ones, and where it is.
struct Port {
  static constexpr std::size_t kMost = 64;
  sockaddr_in address{};
  std::vector<Bytes> packets;
  std::size_t oldest = 0;

  void keep(Heard heard) {
    address = heard.to;
    if (packets.size() < kMost) {
      packets.push_back(std::move(heard.packet));
    } else {
      packets[oldest++ % kMost] = std::move(heard.packet);
    }
  }
};

class Stranger {
 public:
  Stranger(const tools::HostsRecord& hosts, std::uint64_t seed)
      : ears_(hosts.hosts[0]),
        random_(seed),
        socket_(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    in_addr own{};
    EXPECT_EQ(inet_pton(AF_INET, hosts.hosts[kStranger].address.c_str(), &own), 1);
    EXPECT_EQ(setsockopt(socket_.get(), IPPROTO_IP, IP_MULTICAST_IF, &own, sizeof own), 0);
  }

  // Until it knows all ranks' ports, and the group's.
  void learn() {
    while (ports_.size() < kRanks + 1) {
      take(ears_.hear());
      ASSERT_FALSE(ears_.silent()) << ports_.size() << " ports are known";
    }
  }

  // Sends one of each kind to each port; and overhears new packets.
  void throw_all() {
    take(ears_.hear());
    ASSERT_FALSE(ears_.silent());
    while (auto heard = ears_.hear(MSG_DONTWAIT)) take(std::move(heard));
    for (auto& [target, port] : ports_) {
      for (int trick = 0; trick < kTricks; ++trick) {
        send(port.address, make(static_cast<Trick>(trick), target));
      }
    }
  }

  std::int64_t thrown() const { return thrown_; }

 private:
  void take(std::optional<Heard> heard) {
    if (!heard) return;
    const std::uint32_t target = header_of(heard->packet).target;
    ports_[target].keep(std::move(*heard));
  }

  void send(const sockaddr_in& to, const Bytes& bytes) {
    const ssize_t sent = sendto(socket_.get(), bytes.data(), bytes.size(), 0,
                                reinterpret_cast<const sockaddr*>(&to), sizeof to);
    ASSERT_EQ(sent, static_cast<ssize_t>(bytes.size())) << std::strerror(errno);
    ++thrown_;
  }

  std::byte noise() { return static_cast<std::byte>(random_.next()); }
  std::size_t below(std::size_t bound) { return random_.below(bound); }
  const Bytes& any_of(std::uint32_t target) {
    const auto& packets = ports_[target].packets;
    return packets[below(packets.size())];
  }

  Bytes make(Trick trick, std::uint32_t target) {
    Bytes bytes = any_of(target);
    switch (trick) {
      case Trick::noise:
        bytes.resize(1 + below(1400));
        for (std::byte& b : bytes) b = noise();
        break;
      case Trick::cut:
        bytes.resize(below(bytes.size()));
        break;
      case Trick::lengthened:  // now and then longer than any packet
        bytes.resize(bytes.size() + 1 + (below(8) == 0 ? 4000 : below(64)), noise());
        break;
      case Trick::replayed:
        break;
      case Trick::elsewhere:
        if (below(2) == 0) {
          bytes = any_of(target == 0 ? 1 : 0);
        } else {  // the other packet may be from the target itself, and is dropped for that
          redirect(bytes);
        }
        break;
      case Trick::bit_changed:
        bytes[below(bytes.size())] ^= std::byte{1} << below(8);
        break;
      case Trick::of_another_job:
        sign(bytes, 1 + static_cast<std::uint32_t>(below(1000)));
        break;
      case Trick::without_key:
        sign(bytes, 0);
        break;
    }
    return bytes;
  }

  // To another rank than the one whose port it goes to.
  static void redirect(Bytes& bytes) {
    unisono_packet header = header_of(bytes);
    header.target = (header.target + 1) % kRanks;
    std::memcpy(bytes.data(), &header, sizeof header);
  }

  // Right in all fields that an attacker can know; its sequence number would be one of the next.
  void sign(Bytes& bytes, std::uint32_t other_job) {
    unisono_packet header = header_of(bytes);
    header.job += other_job;
    header.sequence += below(64);
    header.place ^= below(2) * 8 * below(4096);
    const unisono_key key = {random_.next(), random_.next()};
    header.tag = unisono_packet_tag(&key, &header, bytes.data() + sizeof header);
    std::memcpy(bytes.data(), &header, sizeof header);
  }

  Eavesdropper ears_;
  base::Prng random_;
  base::Descriptor socket_;
  std::map<std::uint32_t, Port> ports_;  // by target
  std::int64_t thrown_ = 0;
};

// ---- the job ------------------------------------------------------------------------------------

using Words = std::vector<std::int64_t>;

void check_allreduce(const HostRank& self, std::int64_t round) {
  Words values(static_cast<std::size_t>(1 + round * 37 % 3000));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = self.rank + round * static_cast<std::int64_t>(i);
  }
  ASSERT_TRUE(succeeded(unisono_allreduce(UNISONO_IN_PLACE, values.data(),
                                          static_cast<std::int64_t>(values.size()), UNISONO_INT64,
                                          UNISONO_SUM, self.world)));
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(values[i], kRanks * (kRanks - 1) / 2 + kRanks * round * static_cast<std::int64_t>(i));
  }
}

// Every rank sends to every other one.
void check_alltoall(const HostRank& self, std::int64_t round) {
  const std::int64_t count = 1 + round * 11 % 200;
  Words out(static_cast<std::size_t>(kRanks * count));
  Words in(out.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto to = static_cast<std::int64_t>(i) / count;
    out[i] = round * 100 + self.rank * 10 + to;
  }
  ASSERT_TRUE(succeeded(unisono_alltoall(out.data(), in.data(), count, UNISONO_INT64, self.world)));
  for (std::size_t i = 0; i < in.size(); ++i) {
    const auto from = static_cast<std::int64_t>(i) / count;
    ASSERT_EQ(in[i], round * 100 + from * 10 + self.rank);
  }
}

void check_broadcast(const HostRank& self, std::int64_t round) {
  const int root = static_cast<int>(round % kRanks);
  Words values(static_cast<std::size_t>(1 + round * 101 % 5000), self.rank == root ? round : -1);
  ASSERT_TRUE(succeeded(unisono_broadcast(values.data(), static_cast<std::int64_t>(values.size()),
                                          UNISONO_INT64, root, self.world)));
  ASSERT_EQ(values, Words(values.size(), round));
}

void compute_until(const HostRank& self, const std::atomic<bool>& over) {
  std::int64_t goes_on = 1;
  for (std::int64_t round = 0; goes_on != 0; ++round) {
    ASSERT_NO_FATAL_FAILURE(check_allreduce(self, round)) << "round " << round;
    ASSERT_NO_FATAL_FAILURE(check_alltoall(self, round)) << "round " << round;
    ASSERT_NO_FATAL_FAILURE(check_broadcast(self, round)) << "round " << round;
    goes_on = over.load() ? 0 : 1;  // rank 0 says so
    ASSERT_TRUE(succeeded(unisono_broadcast(&goes_on, 1, UNISONO_INT64, 0, self.world)));
  }
}

// Parses a rank's line at its end: "...; dropped: short 3, tag 12".
std::int64_t dropped(const std::string& log, const std::string& reason) {
  const std::size_t list = log.find("dropped: ");
  if (list == std::string::npos) return 0;
  const std::string drops = ", " + log.substr(list + std::strlen("dropped: "));
  const std::size_t place = drops.find(", " + reason + " ");
  return place == std::string::npos ? 0 : std::stoll(drops.substr(place + reason.size() + 3));
}

// "..., 192 came twice": replayed packets.
bool tells_of_replays(const std::string& log) { return log.find(" came twice") != log.npos; }

TEST_F(HostsForged, WhatStrangersThrowIsDroppedAndCounted) {
  void* const shared = mmap(nullptr, sizeof(std::atomic<bool>), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  auto& over = *new (shared) std::atomic<bool>(false);
  ASSERT_EQ(setenv("UNISONO_LOG", "info", 1), 0);
  ASSERT_EQ(setenv("UNISONO_MULTICAST", "on", 1), 0);
  auto processes = start_job(hosts_, [&over](const HostRank& self) {
    const OwnStderr log;
    compute_until(self, over);
    leave(self);
    for (const char* reason : {"short", "magic", "length", "job", "target", "tag"}) {
      EXPECT_GT(dropped(log.text(), reason), 0) << reason << ": " << log.text();
    }
    EXPECT_TRUE(tells_of_replays(log.text())) << log.text();
    std::printf("             rank %d: %s", self.rank, log.text().c_str());
  });
  const auto seed = static_cast<std::uint64_t>(base::now_ns());
  const int stranger = hosts_.run(kStranger, [this, seed](const Line&) {
    Stranger self(hosts_.record(), seed);
    ASSERT_NO_FATAL_FAILURE(self.learn());
    for (std::int64_t i = 0; i < scaled(std::int64_t{300}); ++i) {
      ASSERT_NO_FATAL_FAILURE(self.throw_all()) << "seed " << seed;
    }
    std::printf("             %lld packets thrown, seed %llu\n",
                static_cast<long long>(self.thrown()), static_cast<unsigned long long>(seed));
  });
  over.store(true);
  EXPECT_EQ(stranger, 0);
  expect_all_clean(processes);
  unsetenv("UNISONO_LOG");
  unsetenv("UNISONO_MULTICAST");
  munmap(shared, sizeof(std::atomic<bool>));
}

}  // namespace
}  // namespace unisono::harness::forged_test
