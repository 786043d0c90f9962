// SPDX-License-Identifier: BSD-3-Clause
// Two users on one host: each has its quota and its own groups, and neither gets at the memory of
// the other's, by the daemon or past it. What one sends in the other's name does no harm.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/bpf.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>

#include "nic/daemon/daemon_hosts.hpp"
#include "nic/daemon/reduce_as.hpp"

namespace unisono::nic::test::users_test {
namespace {

// A pipe on which a child says one letter.
class Word {
 public:
  Word() { good_ = pipe(ends_) == 0; }
  Word(const Word&) = delete;
  Word& operator=(const Word&) = delete;
  ~Word() {
    close(ends_[0]);
    close(ends_[1]);
  }
  bool tell(bool yes) const {
    const char letter = yes ? 'y' : 'n';
    return write(ends_[1], &letter, 1) == 1;
  }
  // And waits until it is killed.
  int say(bool yes) const {
    if (tell(yes)) pause();
    return 1;
  }
  bool hear() const {
    char letter = 0;
    return good_ && read(ends_[0], &letter, 1) == 1 && letter == 'y';
  }

 private:
  int ends_[2] = {-1, -1};
  bool good_ = false;
};

class Users : public Daemon {};

TEST_F(Users, EverybodyMayConnectAndNobodyMayReplaceTheSocket) {
  start(0);
  struct stat socket = {};
  ASSERT_EQ(lstat(path(0).c_str(), &socket), 0);
  EXPECT_TRUE(S_ISSOCK(socket.st_mode));
  EXPECT_EQ(socket.st_mode & 0777, 0666U);
  EXPECT_EQ(socket.st_uid, geteuid());
  Child anna = as(kAnna, 0, [&] {
    if (!ServiceClient::connect(path(0)).ok()) return 1;
    if (unlink(path(0).c_str()) == 0 || errno != EACCES) return 2;
    return chmod(path(0).c_str(), 0777) == 0 || errno != EPERM ? 3 : 0;
  });
  EXPECT_EQ(anna.wait(), 0);
}

TEST_F(Users, MemoryIsCountedByUser) {
  start(0, {"--memory-per-user", "30kb"});
  const Word word;
  Child anna = as(kAnna, 0, [&] {
    const auto own = ServiceClient::connect(path(0));
    if (!own.ok()) return word.say(false);
    std::uint32_t joined = 0;
    std::string refusal;
    while (refusal.empty() && joined < 8) {
      const auto group = (*own)->join(leaf_row(joined + 1));
      if (group.ok())
        ++joined;
      else
        refusal = group.error().message;
    }
    const auto left = (*own)->describe();
    const bool as_expected =
        joined > 0 && joined < 8 && left.ok() && left->bytes_left < memory_bytes(leaf_row(1)) &&
        refusal.starts_with("unisonod: user 54321 has ") && refusal.ends_with("--memory-per-user");
    return word.say(as_expected);
  });
  EXPECT_TRUE(word.hear());
  Child bert = as(kBert, 0, [&] {
    const auto own = ServiceClient::connect(path(0));
    return own.ok() && (*own)->join(leaf_row(100)).ok() ? 0 : 1;
  });
  EXPECT_EQ(bert.wait(), 0) << "what Anna has is not Bert's";
}

TEST_F(Users, ConnectionsAreCountedByUser) {
  start(0, {"--connections-per-user", "2"});
  const Word word;
  Child anna = as(kAnna, 0, [&] {
    const auto first = ServiceClient::connect(path(0));
    const auto second = ServiceClient::connect(path(0));
    const auto third = ServiceClient::connect(path(0));
    const bool served =
        first.ok() && second.ok() && (*first)->describe().ok() && (*second)->describe().ok();
    const auto refused = third.ok() ? (*third)->describe() : third.error();
    return word.say(served && !refused.ok() &&
                    refused.error().message.starts_with("unisonod: user 54321 has 2 connections"));
  });
  EXPECT_TRUE(word.hear());
  Child bert = as(kBert, 0, [&] {
    const auto own = ServiceClient::connect(path(0));
    return own.ok() && (*own)->describe().ok() ? 0 : 1;
  });
  EXPECT_EQ(bert.wait(), 0);
}

// The processes of one host share a group if they have the same user and know the job's key.
TEST_F(Users, AGroupIsSharedWithWhoKnowsItsKey) {
  start(0);
  unisono_nic_row row = leaf_row(1);
  row.key = {0x1111, 0x2222};
  const Word word;
  Child anna = as(kAnna, 0, [&] {
    const auto own = ServiceClient::connect(path(0));
    const auto group = own.ok() ? (*own)->join(row) : own.error();
    if (group.ok()) (*group)->mapping.memory().blocks[1].data[3] = 4711;
    return word.say(group.ok());
  });
  ASSERT_TRUE(word.hear());
  const auto share = [&](const unisono_nic_row& wanted) {
    const auto own = ServiceClient::connect(path(0));
    if (!own.ok()) return 1;
    const auto group = (*own)->share(wanted);
    if (!group.ok()) return group.error().message.find("has no group") == std::string::npos ? 2 : 3;
    return (*group)->mapping.memory().blocks[1].data[3] == 4711 ? 0 : 4;
  };
  EXPECT_EQ(as(kAnna, 0, [&] { return share(row); }).wait(), 0);
  EXPECT_EQ(as(kBert, 0, [&] { return share(row); }).wait(), 3) << "of another user";
  unisono_nic_row other = row;
  other.key.high ^= 1;
  EXPECT_EQ(as(kAnna, 0, [&] { return share(other); }).wait(), 3) << "with another key";
  other = row;
  other.id.communicator = 2;
  EXPECT_EQ(as(kAnna, 0, [&] { return share(other); }).wait(), 3) << "which nobody has";
  EXPECT_EQ(client(0)->status()->groups, 1U) << "it is one group, whoever shares it";
  anna.end(SIGKILL);
  while (client(0)->status()->groups != 0) std::this_thread::yield();
  EXPECT_EQ(as(kAnna, 0, [&] { return share(row); }).wait(), 3) << "after its end";
}

// A row says where its places are; the daemon does not believe it.
TEST_F(Users, TheIndexOfAnothersGroupIsOfNoUse) {
  start(0);
  const auto anna = client(0);
  const auto hers = anna->join(leaf_row(1));
  ASSERT_TRUE(hers.ok()) << hers.error().message;
  const unisono_nic_row row = (*hers)->row;
  const GroupMemory memory = (*hers)->mapping.memory();
  const std::size_t blocks = blocks_of(row);
  for (std::size_t i = 0; i < blocks; ++i) memory.blocks[i].data[0] = 0xA0 + i;
  Child bert = as(kBert, 0, [&] {
    const auto own = ServiceClient::connect(path(0));
    if (!own.ok()) return 1;
    unisono_nic_row wanted = leaf_row(2);
    wanted.index = row.index;
    const auto his = (*own)->join(wanted);
    if (!his.ok()) return 2;
    if ((*his)->row.index == row.index) return 3;
    const GroupMemory place = (*his)->mapping.memory();
    for (std::size_t i = 0; i < blocks; ++i) {
      if (place.blocks[i].data[0] != 0) return 4;
      std::memset(&place.blocks[i], 0xFF, sizeof place.blocks[i]);
    }
    std::memset(place.slots, 0xFF, wanted.depth * sizeof place.slots[0]);
    return 0;
  });
  EXPECT_EQ(bert.wait(), 0);
  for (std::size_t i = 0; i < blocks; ++i) EXPECT_EQ(memory.blocks[i].data[0], 0xA0 + i);
  EXPECT_EQ(memory.slots[0].arrived, 0U);
}

bool is_refused(long outcome) { return outcome < 0 && (errno == EPERM || errno == EACCES); }

bool may_open(const std::string& file) {
  const base::Descriptor opened(open(file.c_str(), O_RDONLY | O_CLOEXEC));
  return opened.valid() || (errno != EACCES && errno != EPERM);
}

// Attacks of another user on a process: 0 if the kernel refused all of them.
int intrude(pid_t process, const KernelObjects& objects) {
  const std::string folder = "/proc/" + std::to_string(process);
  for (const char* file : {"/mem", "/maps", "/map_files", "/fd", "/fdinfo"}) {
    if (may_open(folder + file)) return 1;
  }
  if (!is_refused(ptrace(PTRACE_SEIZE, process, nullptr, nullptr))) return 2;
  const base::Descriptor handle(static_cast<int>(syscall(SYS_pidfd_open, process, 0)));
  if (!handle.valid()) return 3;
  for (int descriptor = 3; descriptor < 40; ++descriptor) {
    if (!is_refused(syscall(SYS_pidfd_getfd, handle.get(), descriptor, 0))) return 4;
  }
  for (const std::uint32_t map : objects.maps) {
    bpf_attr question = {};
    question.map_id = map;
    if (!is_refused(syscall(SYS_bpf, BPF_MAP_GET_FD_BY_ID, &question, sizeof question))) return 5;
  }
  return 0;
}

TEST_F(Users, NobodyGetsAtMemoryPastTheDaemon) {
  start(0);
  const std::size_t maps = objects_of(daemons[0].pid()).maps.size();
  const Word word;
  Child anna = as(kAnna, 0, [&] {
    const auto own = ServiceClient::connect(path(0));
    const auto group = own.ok() ? (*own)->join(leaf_row(1)) : own.error();
    return word.say(group.ok());
  });
  ASSERT_TRUE(word.hear());
  const KernelObjects objects = objects_of(daemons[0].pid());
  ASSERT_EQ(objects.maps.size(), maps + 3) << "slots, blocks and ring of Anna's group";
  Child bert = as(kBert, 0, [&] { return intrude(daemons[0].pid(), objects); });
  EXPECT_EQ(bert.wait(), 0) << "of the daemon";
  bert = as(kBert, 0, [&] { return intrude(anna.pid(), objects); });
  EXPECT_EQ(bert.wait(), 0) << "of Anna's process";
}

// Headers show which users communicate when.
TEST_F(Users, OnlyRootAndTheDaemonsGroupMayTrace) {
  start(0);
  Child anna = as(kAnna, 0, [&] {
    const auto own = ServiceClient::connect(path(0));
    const auto refused = own.ok() ? (*own)->start_trace(1) : base::Status(own.error());
    return !refused.ok() &&
                   refused.error().message.starts_with("unisonod: user 54321 may not trace")
               ? 0
               : 1;
  });
  EXPECT_EQ(anna.wait(), 0);
  const gid_t of_the_daemon = getegid();
  anna = run_as(kAnna, *hosts, 0, {of_the_daemon}, [&] {
    const auto own = ServiceClient::connect(path(0));
    return own.ok() && (*own)->start_trace(1).ok() ? 0 : 1;
  });
  EXPECT_EQ(anna.wait(), 0) << "a member of the daemon's group";
}

// Rank 0 is the root: it gets a contribution in each operation. Until all have been seen, or
// nothing comes any more.
void expect_contributions(ServiceClient& watcher, const std::atomic<bool>& over) {
  std::uint64_t seen = 0;
  std::uint64_t lost = 0;
  while (seen + lost < kReductions) {
    const auto records = watcher.next_records();
    ASSERT_TRUE(records.ok()) << records.error().message;
    ASSERT_FALSE(over && records->records.empty()) << "after " << seen << " contributions";
    lost += records->lost;
    for (const unisono_nic_trace& record : records->records) {
      EXPECT_EQ(record.packet.job, kReduceId.job);
      const bool is_first =
          record.reason == 1 + UNISONO_NIC_SENT_DOWN || record.reason == 1 + UNISONO_NIC_TAKEN_IN;
      seen += record.packet.kind == UNISONO_NIC_GIVE && is_first;
    }
  }
  EXPECT_GT(seen, 0U);
}

// A trace shows others' packets, and ends with its process.
TEST_F(Users, ATraceShowsOperationsAndEndsWithItsProcess) {
  for (int host = 0; host < kHosts; ++host) start(host);
  chmod(folder.c_str(), 0777);
  const auto watcher = client(0);
  ASSERT_TRUE(watcher->start_trace(1).ok());
  const auto second = client(0)->start_trace(1);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, base::Code::state);
  std::vector<Child> ranks;
  for (int rank = 0; rank < kHosts; ++rank) {
    ranks.push_back(as(kAnna, rank, [&, rank] { return reduce_as(path(rank), rank); }));
  }
  std::atomic<bool> over = false;
  std::thread reader([&] { expect_contributions(*watcher, over); });
  for (Child& rank : ranks) EXPECT_EQ(rank.wait(), 0);
  over = true;
  reader.join();
  Child other = as(0, 0, [&] {  // root
    const auto own = ServiceClient::connect(path(1));
    if (!own.ok() || !(*own)->start_trace(1).ok()) return 1;
    kill(getpid(), SIGKILL);
    return 2;
  });
  EXPECT_EQ(other.wait(), 128 + SIGKILL);
  const auto next = client(1);
  while (!next->start_trace(1).ok()) std::this_thread::yield();
}

// Sends every kind of doorbell packet to its own program and to the other host's, for a group that
// it has not joined. It does so until it is killed.
int disturb(const Word& word) {
  const base::Descriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ip_mreqn by = {};
  by.imr_ifindex = static_cast<int>(if_nametoindex("u0"));
  setsockopt(socket.get(), IPPROTO_IP, IP_MULTICAST_IF, &by, sizeof by);
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = htons(kServicePort);
  std::array<std::byte, UNISONO_PACKET_BYTES + 8> bytes = {};
  for (std::uint64_t turn = 0;; ++turn) {
    for (const std::uint8_t kind :
         {UNISONO_NIC_DOORBELL, UNISONO_NIC_ASK, UNISONO_NIC_QUERY, UNISONO_NIC_GIVE,
          UNISONO_NIC_RESULT, UNISONO_NIC_ASK_RESULT, UNISONO_NIC_ASK_GIVE}) {
      unisono_packet packet =
          packet_of(kind, kReduceId, static_cast<int>(turn % kHosts), turn % kReductions);
      packet.length = 8;
      packet.place = UNISONO_NIC_SUM_INT64;
      std::memcpy(bytes.data(), &packet, sizeof packet);
      const std::uint32_t targets[] = {htonl(0xE0000001), host_address(0).ipv4,
                                       host_address(1).ipv4};
      for (const std::uint32_t target : targets) {
        to.sin_addr.s_addr = target;
        sendto(socket.get(), bytes.data(), bytes.size(), 0, reinterpret_cast<sockaddr*>(&to),
               sizeof to);
      }
    }
    if (turn == 100 && !word.tell(true)) return 1;
  }
}

TEST_F(Users, WhatOneSendsInTheNameOfTheOtherDoesNoHarm) {
  for (int host = 0; host < kHosts; ++host) start(host);
  chmod(folder.c_str(), 0777);  // where the ranks tell each other that they are there
  const std::array<Word, kHosts> words;
  std::vector<Child> strangers;
  for (int host = 0; host < kHosts; ++host) {
    strangers.push_back(
        as(kBert, host, [&, host] { return disturb(words[static_cast<std::size_t>(host)]); }));
  }
  for (const Word& word : words) EXPECT_TRUE(word.hear());
  std::vector<Child> ranks;
  for (int rank = 0; rank < kHosts; ++rank) {
    ranks.push_back(as(kAnna, rank, [&, rank] { return reduce_as(path(rank), rank); }));
  }
  for (Child& rank : ranks) EXPECT_EQ(rank.wait(), 0);
  for (Child& stranger : strangers) EXPECT_EQ(stranger.end(SIGKILL), 128 + SIGKILL);
  const auto status = client(0)->status();
  ASSERT_TRUE(status.ok());
  EXPECT_GT(status->counters[UNISONO_NIC_BAD_TAG], 0U);
}

}  // namespace
}  // namespace unisono::nic::test::users_test
