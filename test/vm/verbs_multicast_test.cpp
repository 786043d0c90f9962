// SPDX-License-Identifier: BSD-3-Clause
// Multicast by verbs over soft-RoCE, in the virtual machine of `./dev test --vm`: reliable
// multicasts between ranks of one process, each at an interface and device of its own, with lost
// packets, a dead member and a removed device. The name of a case that begins with Short belongs to
// the part that `./dev test` runs.
#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "reliable/reliable.hpp"
#include "transport/ip/interfaces.hpp"
#include "transport/multicast_probe.hpp"
#include "transport/udp/udp.hpp"
#include "transport/verbs/multicast/group_datagrams.hpp"
#include "vm/vm_hosts.hpp"
#include "vm/vm_test.hpp"

namespace unisono::harness::verbs_multicast_test {
namespace {

constexpr std::size_t kRegionBytes = 1 << 16;
constexpr std::size_t kFlag = kRegionBytes - 64;

class VerbsMulticastVm : public VmTest {
 protected:
  // Rank I is at the interface of host I; the last one, if asked for, at the spare one.
  void make(int ranks, bool spare = false) {
    const auto locals = transport::local_addresses();
    ASSERT_TRUE(locals.ok()) << locals.error().message;
    std::vector<transport::Endpoint> endpoints;
    std::vector<std::unique_ptr<transport::VerbsGroupDatagrams>> opened;
    for (int rank = 0; rank < ranks; ++rank) {
      const int host = spare && rank == ranks - 1 ? vm_hosts() : rank;
      const auto address = transport::parse_ip(vm_address(host));
      const auto local = std::ranges::find(*locals, *address, &transport::LocalAddress::address);
      ASSERT_NE(local, locals->end()) << vm_address(host);
      auto udp = transport::Udp::open({.rank = rank, .local = *local, .why = "test"});
      ASSERT_TRUE(udp.ok()) << udp.error().message;
      endpoints.push_back((*udp)->endpoint());
      auto made = transport::VerbsGroupDatagrams::over(
          std::move(*udp), {}, transport::verbs_library(), transport::join_by_socket);
      ASSERT_TRUE(made.ok()) << made.error().message;
      opened.push_back(std::move(*made));
    }
    for (int rank = 0; rank < ranks; ++rank) {
      auto& datagrams = opened[static_cast<std::size_t>(rank)];
      ASSERT_TRUE(datagrams->meet(endpoints, datagrams->limits().max_payload).ok());
      ASSERT_TRUE(datagrams->join_multicast(77).ok());
      ASSERT_TRUE(datagrams->has_other_multicast()) << "rank " << rank << " does not use verbs";
      regions_.emplace_back(kRegionBytes / 8);
      reliable::ReliableOptions options;
      options.key = wire::key_of("a test in the machine");
      options.ranks = ranks;
      options.region = region(rank);
      options.region_bytes = kRegionBytes;
      options.now_ns = base::now_ns;
      probe(*datagrams, rank, ranks);
      all_.push_back(std::make_unique<reliable::Reliable>(std::move(datagrams), options));
    }
    probe_all();
  }
  void TearDown() override {
    for (const auto& each : all_) {
      if (each == nullptr) continue;
      const auto counts = each->datagrams().counts();
      const auto& group = each->group().counts();
      std::printf(
          "sent %lu received %lu refused %lu; group: %lu packets, %lu repaired, %lu nacks\n",
          counts.sent, counts.received, counts.refused, group.packets, group.repaired, group.nacks);
    }
  }

  reliable::Reliable& at(int rank) { return *all_[static_cast<std::size_t>(rank)]; }
  std::byte* region(int rank) {
    return reinterpret_cast<std::byte*>(regions_[static_cast<std::size_t>(rank)].data());
  }
  std::uint64_t word(int rank, std::size_t offset = kFlag) {
    std::uint64_t value = 0;
    std::memcpy(&value, region(rank) + offset, sizeof value);
    return value;
  }
  void put_to_all(int from, const std::vector<std::byte>& bytes, std::uint64_t value,
                  std::size_t flag = kFlag) {
    at(from).put_to_all({.source = bytes.data(),
                         .place = region(from),
                         .bytes = bytes.size(),
                         .flag = reinterpret_cast<std::uint64_t*>(region(from) + flag),
                         .flag_value = value});
  }
  void progress_all() {
    for (auto& each : all_) {
      if (each != nullptr) each->progress();
    }
  }
  bool all_have(int origin, std::uint64_t value, std::size_t flag = kFlag) {
    for (int rank = 0; rank < static_cast<int>(all_.size()); ++rank) {
      if (rank != origin && all_[static_cast<std::size_t>(rank)] != nullptr &&
          word(rank, flag) != value) {
        return false;
      }
    }
    return true;
  }
  // All but the origin wait for its multicast.
  void await_all(int origin, std::uint64_t value, std::size_t flag = kFlag) {
    while (!all_have(origin, value, flag)) {
      for (int rank = 0; rank < static_cast<int>(all_.size()); ++rank) {
        if (rank != origin && all_[static_cast<std::size_t>(rank)] != nullptr) {
          at(rank).awaits_multicast(origin);
        }
      }
      progress_all();
    }
  }
  // A burst is no longer than a part of the window.
  void multicast_many(int origin, std::uint64_t count) {
    const std::vector<std::byte> bytes(200, std::byte{5});
    for (std::uint64_t i = 1; i <= count; ++i) {
      put_to_all(origin, bytes, i);
      if (i % 32 == 0) progress_all();
    }
    await_all(origin, count);
  }

  std::vector<std::unique_ptr<reliable::Reliable>> all_;

 private:
  void probe(transport::Datagrams& datagrams, int rank, int ranks) {
    members_.push_back(rank);
    filters_.push_back(
        std::make_unique<wire::PacketFilter>(wire::key_of("a test in the machine"), rank, ranks));
    probed_.push_back(&datagrams);
  }
  // One thread does it for all.
  void probe_all() {
    std::vector<std::unique_ptr<transport::MulticastProbe>> probes;
    for (std::size_t i = 0; i < probed_.size(); ++i) {
      probes.push_back(
          std::make_unique<transport::MulticastProbe>(*probed_[i], *filters_[i], members_));
    }
    while (!std::ranges::all_of(probes, [](const auto& each) { return each->carries(); })) {
      for (auto& each : probes) each->step(base::now_ns());
    }
  }

  std::vector<std::vector<std::uint64_t>> regions_;
  std::vector<int> members_;
  std::vector<std::unique_ptr<wire::PacketFilter>> filters_;
  std::vector<transport::Datagrams*> probed_;
};

TEST_F(VerbsMulticastVm, ShortAllReceiveWhatEachMulticasts) {
  const std::uint64_t before = rdma_packets_sent(1);
  ASSERT_NO_FATAL_FAILURE(make(4));
  for (int origin = 0; origin < 4; ++origin) {
    const std::vector<std::byte> bytes(5000, static_cast<std::byte>(origin + 1));
    put_to_all(origin, bytes, 1, kFlag - 8 * static_cast<std::size_t>(origin));
    await_all(origin, 1, kFlag - 8 * static_cast<std::size_t>(origin));
    for (int rank = 0; rank < 4; ++rank) {
      if (rank == origin) continue;
      ASSERT_EQ(std::memcmp(region(rank), bytes.data(), bytes.size()), 0) << origin << rank;
    }
    while (!at(origin).settle()) progress_all();
  }
  EXPECT_GE(rdma_packets_sent(1), before + 6) << "it went by the device";
  EXPECT_EQ(at(0).drops().total(), 0U) << "own copies are no foreign packets";
}

TEST_F(VerbsMulticastVm, ShortOnlySolicitedEventsWakeAnIdleRank) {
  ASSERT_NO_FATAL_FAILURE(make(2));
  // Two ranks, and a third datagram in flight does not exist: nothing but the put comes.
  while (!at(0).settle() || !at(1).settle()) progress_all();
  transport::Datagrams& idle = at(1).datagrams();
  while (!idle.may_sleep(true)) at(1).progress();
  const std::uint64_t before = rdma_packets_sent(0);
  put_to_all(0, {}, 9);
  while (rdma_packets_sent(0) == before) {
  }
  pollfd one{.fd = idle.descriptor(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(poll(&one, 1, 0), 0) << "a put wakes nobody";
  while (!at(0).settle() && poll(&one, 1, 0) == 0) {  // its question is urgent
  }
  EXPECT_EQ(poll(&one, 1, -1), 1);
  while (word(1) != 9) progress_all();
}

TEST_F(VerbsMulticastVm, ManyInARowOfEachRank) {
  ASSERT_NO_FATAL_FAILURE(make(4));
  for (int origin = 0; origin < 4; ++origin) {
    multicast_many(origin, 1500);
    for (int rank = 0; rank < 4; ++rank) std::memset(region(rank) + kFlag, 0, 8);
  }
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(at(rank).datagrams().multicast_loss(), "") << rank;
  }
}

TEST_F(VerbsMulticastVm, LostPacketsAreRepeated) {
  ASSERT_NO_FATAL_FAILURE(make(3));
  for (int host = 0; host < 3; ++host) {
    run("tc qdisc add dev v" + std::to_string(host) + " root netem loss 5%");
  }
  multicast_many(0, 600);
  while (!at(0).settle()) progress_all();
  EXPECT_GT(at(0).group().counts().repaired + at(1).group().counts().repaired +
                at(2).group().counts().repaired,
            0U);
  for (int host = 0; host < 3; ++host) run("tc qdisc del dev v" + std::to_string(host) + " root");
}

TEST_F(VerbsMulticastVm, ADeadMemberIsNotTakenForOneThatHasAll) {
  ASSERT_NO_FATAL_FAILURE(make(3));
  multicast_many(0, 10);
  while (!at(0).settle()) progress_all();
  all_[2].reset();
  const std::uint64_t before = at(0).group().last();
  put_to_all(0, {}, 11);
  await_all(0, 11);
  for (int i = 0; i < 200; ++i) {
    EXPECT_FALSE(at(0).settle()) << i;
    progress_all();
  }
  EXPECT_EQ(at(0).group().acknowledgement(before + 1), reliable::Acknowledgement::not_yet);
  for (int rank = 0; rank < 2; ++rank) at(rank).forget(2);
  while (!at(0).settle()) progress_all();
  EXPECT_EQ(at(0).group().acknowledgement(before), reliable::Acknowledgement::all_have_all);
  EXPECT_EQ(at(0).group().acknowledgement(before + 1), reliable::Acknowledgement::failed);
}

// The kernel keeps a soft-RoCE device until no process has it open, and its interface, too.
TEST_F(VerbsMulticastVm, ADeviceThatIsRemovedIsNamedAndClosed) {
  ASSERT_NO_FATAL_FAILURE(make(3, true));
  multicast_many(0, 10);
  run("setsid ip link del v" + std::to_string(vm_hosts()) + " >/dev/null 2>&1 &");
  while (at(2).datagrams().multicast_loss().empty()) {
    at(2).datagrams().may_sleep(true);
    progress_all();
  }
  const std::string& loss = at(2).datagrams().multicast_loss();
  const std::string port = vm_device(vm_hosts()) + " port 1";
  for (const std::string& part : {std::string("rank 2"), port, std::string("MULTICAST_BY=ip")}) {
    EXPECT_NE(loss.find(part), std::string::npos) << part << " in: " << loss;
  }
  std::printf("%s\n", loss.c_str());
  const std::string folder = "/sys/class/infiniband/" + vm_device(vm_hosts());
  while (access(folder.c_str(), F_OK) == 0) progress_all();
  for (int rank = 0; rank < 2; ++rank) at(rank).forget(2);
  put_to_all(0, {}, 12);
  while (word(1) != 12) {
    at(1).awaits_multicast(0);
    progress_all();
  }
  while (!at(0).settle()) progress_all();
}

}  // namespace
}  // namespace unisono::harness::verbs_multicast_test
