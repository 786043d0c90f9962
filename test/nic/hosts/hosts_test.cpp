// SPDX-License-Identifier: BSD-3-Clause
// End to end: hosts in network namespaces, each with the NIC program on its interface and one rank,
// a thread. Results are compared bit by bit with those of the host engine on the same schedules.
#include <gtest/gtest.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <barrier>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <thread>

#include "base/descriptor.hpp"
#include "base/prng.hpp"
#include "nic/harness/frames.hpp"
#include "nic/harness/hosts.hpp"
#include "nic/harness/jobs.hpp"
#include "nic/harness/kernel_objects.hpp"
#include "nic/harness/with_hosts.hpp"
#include "nic/lowering/lower.hpp"
#include "nic/port/doorbell_socket.hpp"

namespace unisono::nic::test::hosts_test {
namespace {

using arith::Operator;
using arith::Type;
using schedule::Collective;

class NicHosts : public WithHosts<4> {};

// Each host has the program on its interface.
class NicJobs : public NicHosts {
 protected:
  static void SetUpTestSuite() {
    NicHosts::SetUpTestSuite();
    if (hosts == nullptr) return;
    hosts->run([](int host) {
      auto loaded = load_device(host_options());
      if (loaded.ok())
        devices[static_cast<std::size_t>(host)] = *std::move(loaded);
      else
        ADD_FAILURE() << loaded.error().message;
    });
  }
  static void TearDownTestSuite() {
    for (auto& device : devices) device.reset();
    NicHosts::TearDownTestSuite();
  }
  void SetUp() override {
    NicHosts::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    for (const auto& device : devices) ASSERT_NE(device, nullptr);
  }
  static Device& device_of(int rank) { return *devices[static_cast<std::size_t>(rank)]; }

  // All ranks run many barriers.
  void expect_nobody_leaves_early(const char* algorithm, int parameter);

  // All ranks run the job; those that get a result compare it with the host engine's.
  void run(const Job& job) {
    const std::vector<Words> expected = host_results(job, hosts->count());
    std::barrier<> together(hosts->count());
    std::atomic<bool> failed = false;
    ++communicator_;
    hosts->run([&](int rank) {
      const Counters before = *device_of(rank).counters();
      auto started = start_rank(device_of(rank), job, rank, hosts->count(), communicator_);
      if (!started.ok()) {
        ADD_FAILURE() << "rank " << rank << ": " << started.error().message;
        failed = true;
      }
      together.arrive_and_wait();  // no rank sends to a host that does not listen yet
      if (!failed) operate(job, rank, *started->port, expected);
      together.arrive_and_wait();
      if (failed) return;
      expect_packets(job, rank, *started, before);
      EXPECT_TRUE(device_of(rank).remove_group(started->row).ok());
    });
  }

  static inline std::array<std::unique_ptr<Device>, kHosts> devices;
  static inline std::uint32_t communicator_ = 0;

 private:
  void operate(const Job& job, int rank, Port& port, const std::vector<Words>& expected) {
    const bool has_result = job.collective == Collective::allreduce || rank == job.root;
    const std::uint32_t combine = *lower_operator(job.op, job.type);
    base::Prng random(static_cast<std::uint64_t>(rank) + 1);
    int finished = 0;
    int wrong = 0;
    const auto finish_one = [&] {
      const auto sequence = static_cast<std::uint64_t>(finished);
      while (!port.is_done(sequence)) std::this_thread::yield();
      const auto result = port.result(sequence);
      const Words words(result.begin(), result.end());
      wrong += has_result && words != expected[static_cast<std::size_t>(finished)];
      ++finished;
    };
    for (int operation = 0; operation < job.operations; ++operation) {
      while (operation - finished >= static_cast<int>(job.depth)) finish_one();
      // Sometimes one rank is late, sometimes another.
      for (std::uint64_t turns = random.below(4); turns > 0; --turns) std::this_thread::yield();
      const base::Status posted = port.post(combine, vector_of(job, rank, operation));
      ASSERT_TRUE(posted.ok()) << posted.error().message;
    }
    while (finished < job.operations) finish_one();
    EXPECT_EQ(wrong, 0) << "rank " << rank << " of " << job.algorithm << ", "
                        << arith::type_name(job.type);
  }

  // Without loss, exactly the packets of the schedule; a rank without children sends a doorbell
  // packet each time.
  static void expect_packets(const Job& job, int rank, const Rank& started,
                             const Counters& before) {
    const auto operations = static_cast<std::uint64_t>(job.operations);
    const bool is_root = rank == job.root;
    Counters counts = *device_of(rank).counters();
    for (std::size_t i = 0; i < counts.size(); ++i) counts[i] -= before[i];
    EXPECT_EQ(counts[UNISONO_NIC_SENT_UP], is_root ? 0 : operations);
    EXPECT_EQ(counts[UNISONO_NIC_CAME_DOWN], is_root ? 0 : operations);
    EXPECT_EQ(counts[UNISONO_NIC_SENT_DOWN], is_root || started.forwards ? operations : 0);
    for (int i = UNISONO_NIC_SHORT; i < UNISONO_NIC_COUNTERS; ++i) {
      if (i >= UNISONO_NIC_TAKEN_IN && i <= UNISONO_NIC_CAME_DOWN) continue;
      EXPECT_EQ(counts[static_cast<std::size_t>(i)], 0U)
          << "rank " << rank << ": " << counter_name(static_cast<unisono_nic_counter>(i));
    }
    EXPECT_LE(started.port->doorbells(), operations);
    if (counts[UNISONO_NIC_TAKEN_IN] == 0 && !is_root && job.parameter == kHosts) {
      EXPECT_EQ(started.port->doorbells(), operations);
    }
  }
};

TEST_F(NicJobs, AllreduceHasTheBitsOfTheHostEngine) {
  for (const Type type : {Type::int64, Type::float64, Type::int32, Type::float32}) {
    for (const int fanin : {1, 3}) {
      for (const std::int64_t bytes : {8, 1400}) {
        Job job;
        job.type = type;
        job.parameter = fanin;
        job.count = bytes / static_cast<std::int64_t>(arith::type_size(type));
        run(job);
      }
    }
  }
}

// Where the network does not carry multicast: clones of the result, from parent to children.
TEST_F(NicJobs, AllreduceThatGoesDownTheTree) {
  for (const int degree : {2, 3, 4}) {
    for (const std::int64_t count : {1, 175}) {
      Job job;
      job.algorithm = "reduce-broadcast";
      job.parameter = degree;
      job.type = Type::float64;
      job.count = count;
      run(job);
    }
  }
}

TEST_F(NicJobs, OtherOperators) {
  Job job;
  job.count = 7;
  for (const Type type : {Type::int32, Type::uint64, Type::float32, Type::float64}) {
    for (const Operator op : {Operator::min, Operator::max, Operator::bitwise_xor}) {
      job.type = type;
      job.op = op;
      if (lower_operator(op, type).ok()) run(job);
    }
  }
}

TEST_F(NicJobs, ReduceToEveryRoot) {
  Job job;
  job.collective = Collective::reduce;
  job.algorithm = "fnomial";
  job.type = Type::float64;
  job.count = 20;
  for (job.root = 0; job.root < kHosts; ++job.root) {
    for (const int degree : {2, 4}) {
      job.parameter = degree;
      run(job);
    }
  }
}

TEST_F(NicJobs, ManyOperationsInFlight) {
  Job job;
  job.type = Type::float64;
  job.count = 16;
  job.operations = 2000;
  for (const std::uint32_t depth : {1, 2, UNISONO_NIC_DEPTH_MAX / 2}) {
    job.depth = depth;
    run(job);
  }
}

void NicJobs::expect_nobody_leaves_early(const char* algorithm, int parameter) {
  Job job;
  job.collective = Collective::barrier;
  job.algorithm = algorithm;
  job.parameter = parameter;
  constexpr int kBarriers = 500;
  ++communicator_;
  std::vector<std::atomic<int>> entered(kBarriers);
  std::atomic<int> early = 0;
  std::barrier<> together(kHosts);
  std::atomic<bool> failed = false;
  hosts->run([&](int rank) {
    auto started = start_rank(device_of(rank), job, rank, kHosts, communicator_);
    if (!started.ok()) {
      ADD_FAILURE() << started.error().message;
      failed = true;
    }
    together.arrive_and_wait();
    for (int i = 0; i < kBarriers && !failed; ++i) {
      ++entered[static_cast<std::size_t>(i)];
      EXPECT_TRUE(started->port->post(UNISONO_NIC_NOTHING, {}).ok());
      while (!started->port->is_done(static_cast<std::uint64_t>(i))) std::this_thread::yield();
      early += entered[static_cast<std::size_t>(i)] != kHosts;
    }
    together.arrive_and_wait();
    if (!started.ok()) return;
    EXPECT_TRUE(device_of(rank).remove_group(started->row).ok());
  });
  EXPECT_EQ(early, 0) << algorithm;
}

TEST_F(NicJobs, NobodyLeavesABarrierBeforeAllHaveEntered) {
  expect_nobody_leaves_early("gather-release", 1);
  expect_nobody_leaves_early("gather-broadcast", 2);
}

// EBUSY while another program is attached.
bool may_attach() { return load_device(host_options()).ok(); }

TEST_F(NicHosts, NothingStaysAttached) {
  hosts->run([](int host) {
    if (host != 0) return;
    {
      const auto device = load_device(host_options());
      ASSERT_TRUE(device.ok()) << device.error().message;
      EXPECT_EQ((*device)->native(), has_native_hosts()) << "veth is served by the generic mode";
      // As the kernel says it.
      const std::string attached = attached_to_u0();
      EXPECT_NE(attached.find("prog/xdp"), std::string::npos) << attached;
      EXPECT_EQ(attached.find("xdpgeneric") == std::string::npos, has_native_hosts()) << attached;
      EXPECT_EQ(programs_on_egress(), 1);
      EXPECT_FALSE(may_attach());
    }
    while (programs_on_egress() != 0 || !may_attach()) std::this_thread::yield();
  });
}

TEST_F(NicHosts, NothingStaysAttachedAfterAKill) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    hosts->enter(0);
    const auto device = load_device(host_options());
    const char outcome = device.ok() ? 'y' : 'n';
    if (write(ends[1], &outcome, 1) == 1) pause();
    _exit(1);
  }
  char outcome = 0;
  ASSERT_EQ(read(ends[0], &outcome, 1), 1);
  EXPECT_EQ(outcome, 'y');
  hosts->run([](int host) {
    if (host != 0) return;
    EXPECT_EQ(programs_on_egress(), 1);
    EXPECT_FALSE(may_attach());
  });
  kill(child, SIGKILL);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  close(ends[0]);
  close(ends[1]);
  hosts->run([](int host) {
    while (host == 0 && (programs_on_egress() != 0 || !may_attach())) std::this_thread::yield();
  });
}

TEST_F(NicHosts, ErrorsSayWhatToDo) {
  hosts->run([](int host) {
    if (host != 0) return;
    DeviceOptions options = host_options();
    options.interface = "u7";
    EXPECT_EQ(load_device(options).error().message,
              "NIC program: there is no interface u7; `ip link` lists them");
    options.interface = "u0";
    const auto first = load_device(options);
    ASSERT_TRUE(first.ok());
    const auto second = load_device(options);
    ASSERT_FALSE(second.ok());
    EXPECT_EQ(second.error().message,
              std::string("NIC program: attach to interface u0 in ") +
                  (has_native_hosts() ? "native" : "generic") +
                  " mode (another XDP program is there: ip link show u0): Device or resource busy");
  });
}

// If no program intercepts them, doorbell packets end at another host, which reports that no
// process listens.
TEST_F(NicHosts, DoorbellsWithoutAProgramAreLost) {
  hosts->run([](int host) {
    if (host != 0) return;
    unisono_nic_row row = {};
    row.interface = if_nametoindex("u0");
    row.flags = UNISONO_NIC_ROOT;
    row.children = 1;
    row.child[0] = host_address(1);
    row.own = host_address(0);
    const base::Descriptor plain(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = row.own.port;
    to.sin_addr.s_addr = row.child[0].ipv4;
    ASSERT_EQ(connect(plain.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
    while (::send(plain.get(), "", 1, 0) == 1) std::this_thread::yield();
    EXPECT_EQ(errno, ECONNREFUSED);
    const auto socket = DoorbellSocket::open(row);
    ASSERT_TRUE(socket.ok()) << socket.error().message;
    for (std::uint64_t sequence = 1; sequence < 100; ++sequence) {
      const auto sent = (*socket)->send(UNISONO_NIC_DOORBELL, sequence, 1);
      EXPECT_TRUE(sent) << sent.error().message;
    }
  });
}

// As after a kill: the program is removed a moment later, and the next one waits for that.
TEST_F(NicHosts, AttachingWaitsForAProgramThatGoes) {
  hosts->run([](int host) {
    if (host != 0) return;
    const DeviceOptions options = host_options();
    auto first = load_device(options);
    ASSERT_TRUE(first.ok());
    std::thread going([&first] {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      (*first).reset();
    });
    const auto second = load_device(options);
    going.join();
    EXPECT_TRUE(second.ok());
  });
}

}  // namespace
}  // namespace unisono::nic::test::hosts_test
