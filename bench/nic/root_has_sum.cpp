// SPDX-License-Identifier: BSD-3-Clause
// How long until the root of a tree has the sum, once the deepest leaf gives the last contribution:
// in the NIC path (XDP), and by processes on the same tree over UDP and TCP. Hosts are network
// namespaces, ranks processes; all take turns, some operations each. Needs root.
//
//   root_has_sum [--hosts 4] [--degree 2] [--words 1] [--operations 20000] [--hogs 0]
//
// "in memory" is when the NIC program had written the sum to the root's memory, "seen" when the
// root's process, which polls, had found it there. All but the leaf have given their part before
// the clock starts. Processes of the other trees sleep in recv, as a blocking collective does, but
// for the root in the way that says so. --hogs: that many processes that only burn the processor.
// Times in microseconds.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <netinet/tcp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <csignal>
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include "algorithm/algorithm.hpp"
#include "algorithm/pattern/fnomial.hpp"
#include "base/clock.hpp"
#include "base/descriptor.hpp"
#include "nic/harness/frames.hpp"
#include "nic/harness/hosts.hpp"
#include "nic/loader/device.hpp"
#include "nic/lowering/lower.hpp"
#include "nic/lowering/row.hpp"
#include "nic/port/port.hpp"
#include "options.hpp"

namespace {

using namespace unisono;
using nic::test::Words;

struct Options {
  int hosts = 4;
  int degree = 2;
  int words = 1;
  int operations = 20000;
  int hogs = 0;
};

constexpr int kRanksMax = 64;
constexpr std::int64_t kSettle = 50 * base::kMicrosecond;  // for processes on their way to sleep
constexpr std::uint16_t kUdpPort = 5000;
constexpr std::uint16_t kTcpPort = 5001;

enum Way { by_nic, by_udp_polling, by_udp, by_tcp, kWays };

// A slow path leaves the caches cold for the next one, so each has some operations in a row.
constexpr int kInARow = 20;

Way way_of(std::int64_t operation) { return static_cast<Way>(operation / kInARow % kWays); }

struct Times {
  std::int64_t seen_ns;       // from the leaf's call until the root's process had the sum
  std::int64_t in_memory_ns;  // the same until its memory had it, in the NIC path
};

// Data that the processes exchange besides the measured path.
struct Shared {
  std::atomic<std::uint32_t>
      ready;  // operations' worth of ranks that have given their part; a futex
  std::atomic<std::uint32_t> finished;  // operations; a futex
  std::atomic<std::int64_t> start_ns;
  std::atomic<std::uint32_t> listening;  // ranks that others may connect to
  Times times[];                         // of operations; ways take turns
};

[[noreturn]] void die(const std::string& message) {
  fmt::print(stderr, "root_has_sum: {}\n", message);
  std::exit(1);
}

void sleep_until(std::atomic<std::uint32_t>& word, std::uint32_t wanted) {
  for (std::uint32_t seen = word; seen < wanted; seen = word) {
    syscall(SYS_futex, &word, FUTEX_WAIT, seen, nullptr, nullptr, 0);
  }
}

void raise(std::atomic<std::uint32_t>& word) {
  word.fetch_add(1);
  syscall(SYS_futex, &word, FUTEX_WAKE, kRanksMax, nullptr, nullptr, 0);
}

// One rank, in its process.
class Rank {
 public:
  Rank(const Options& options, int rank, Shared& shared)
      : options_(options),
        rank_(rank),
        shared_(shared),
        tree_(options.hosts, options.degree),
        node_(tree_.node(rank)),
        vector_(static_cast<std::size_t>(options.words), static_cast<std::uint64_t>(rank) + 1) {
    find_leaf();
    open_nic();
    open_udp();
    open_tcp();
  }

  void run() {
    const auto others = static_cast<std::uint32_t>(options_.hosts);
    raise(shared_.ready);
    sleep_until(shared_.ready, others);  // all programs are attached
    for (std::uint32_t i = 0; i < kWays * static_cast<std::uint32_t>(options_.operations); ++i) {
      const std::uint32_t all_ready = (i + 1) * (others - 1) + others;
      if (rank_ == leaf_) {
        sleep_until(shared_.ready, all_ready);  // no turns: a hog would have its slice in them
        for (const std::int64_t from = base::now_ns(); base::now_ns() - from < kSettle;) {
        }
        shared_.start_ns = base::now_ns();
      }
      in_memory_ns_ = 0;
      reduce(way_of(i));
      if (rank_ == 0) {
        shared_.times[i] = {base::now_ns() - shared_.start_ns, in_memory_ns_ - shared_.start_ns};
        raise(shared_.finished);
      } else {
        sleep_until(shared_.finished, i + 1);
      }
    }
  }

 private:
  // The deepest leaf; of several, the last.
  void find_leaf() {
    int deepest = 0;
    for (int rank = 1; rank < options_.hosts; ++rank) {
      int depth = 0;
      for (int at = rank; at != 0; at = tree_.node(at).parent) ++depth;
      if (depth >= deepest && tree_.node(rank).children == 0) {
        deepest = depth;
        leaf_ = rank;
      }
    }
    for (int at = leaf_; at != 0; at = tree_.node(at).parent) on_path_ |= at == rank_;
    on_path_ |= rank_ == 0;
  }

  void open_nic() {
    schedule::Shape shape;
    shape.collective = schedule::Collective::reduce;
    shape.ranks = options_.hosts;
    shape.count = options_.words;
    const auto* row = algorithm::find(shape.collective, "fnomial");
    auto schedule = algorithm::build(*row, shape, {{options_.degree}}, rank_);
    if (!schedule.ok()) die(schedule.error().message);
    auto node = nic::lower(*schedule);
    if (!node.ok()) die(node.error().message);
    std::vector<unisono_nic_address> addresses;
    for (int i = 0; i < options_.hosts; ++i) addresses.push_back(nic::test::host_address(i));
    nic::GroupAddresses group;
    group.id = {1, 1};
    group.key = {3, 5};
    group.ranks = addresses;
    group.multicast = nic::test::group_address();
    auto made = nic::make_row(*node, group);
    if (!made.ok()) die(made.error().message);
    nic::DeviceOptions device;
    device.interface = "u0";
    auto loaded = nic::load_device(device);
    if (!loaded.ok()) die(loaded.error().message);
    device_ = *std::move(loaded);
    auto index = device_->add_group(*made);
    if (!index.ok()) die(index.error().message);
    auto port = nic::Port::open(device_->row(*index), device_->memory(*index));
    if (!port.ok()) die(port.error().message);
    port_ = *std::move(port);
  }

  void open_udp() {
    socket_ = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    sockaddr_in own = {};
    own.sin_family = AF_INET;
    own.sin_port = htons(kUdpPort);
    if (bind(socket_, reinterpret_cast<sockaddr*>(&own), sizeof own) != 0) die("bind");
    // Not connected: contributions come from several children.
    parent_ = own;
    parent_.sin_addr.s_addr = nic::test::host_address(std::max(node_.parent, 0)).ipv4;
  }

  // To each neighbour in the tree. Parents listen before anybody connects.
  void open_tcp() {
    base::Descriptor listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in own = {};
    own.sin_family = AF_INET;
    own.sin_port = htons(kTcpPort);
    if (bind(listener.get(), reinterpret_cast<sockaddr*>(&own), sizeof own) != 0 ||
        listen(listener.get(), kRanksMax) != 0) {
      die("listen");
    }
    raise(shared_.listening);
    sleep_until(shared_.listening, static_cast<std::uint32_t>(options_.hosts));
    if (rank_ != 0) {
      own.sin_addr.s_addr = nic::test::host_address(node_.parent).ipv4;
      to_parent_.reset(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      const int on = 1;
      if (connect(to_parent_.get(), reinterpret_cast<const sockaddr*>(&own), sizeof own) != 0 ||
          setsockopt(to_parent_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0 ||
          send(to_parent_.get(), &rank_, sizeof rank_, 0) != sizeof rank_) {
        die("connect");
      }
    }
    from_children_.resize(static_cast<std::size_t>(options_.hosts));  // by ranks
    for (int child = 0; child < node_.children; ++child) {
      base::Descriptor accepted(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
      int from = 0;
      if (recv(accepted.get(), &from, sizeof from, MSG_WAITALL) != sizeof from || from <= rank_ ||
          from >= options_.hosts) {
        die("accept");
      }
      children_.push_back(from);
      from_children_[static_cast<std::size_t>(from)] = std::move(accepted);
    }
    // The child on the leaf's side comes last.
    std::ranges::sort(children_, {}, [&](int child) { return is_above(child, leaf_); });
  }

  bool is_above(int rank, int below) const {
    while (below > rank && below != 0) below = tree_.node(below).parent;
    return below == rank;
  }

  void reduce(Way way) {
    switch (way) {
      case by_nic:
        return reduce_by_nic();
      case by_udp_polling:
      case by_udp:
        return reduce_by_udp(way == by_udp_polling && rank_ == 0);
      case by_tcp:
        return reduce_by_tcp();
      case kWays:
        die("no way");
    }
  }

  void reduce_by_nic() {
    while (!port_->may_post()) std::this_thread::yield();
    if (!port_->post(UNISONO_NIC_SUM_INT64, vector_).ok()) die("post");
    if (rank_ != leaf_) raise(shared_.ready);
    const std::uint64_t sequence = port_->next() - 1;
    if (rank_ != 0) return;
    while (!port_->is_done(sequence)) {
    }
    in_memory_ns_ = port_->done_ns(sequence);
    check(port_->result(sequence));
  }

  // Children to come after the clock started.
  int last_children() const { return on_path_ && rank_ != leaf_ ? 1 : 0; }

  void add(Words& sum, const Words& part) const {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
  }

  void reduce_by_tcp() {
    Words sum = vector_;
    const int last = last_children();
    for (int child = 0; child < node_.children; ++child) {
      if (child == node_.children - last) raise(shared_.ready);
      const auto from = static_cast<std::size_t>(children_[static_cast<std::size_t>(child)]);
      Words part(sum.size());
      const auto bytes = static_cast<ssize_t>(part.size() * 8);
      if (recv(from_children_[from].get(), part.data(), part.size() * 8, MSG_WAITALL) != bytes) {
        die("receive");
      }
      add(sum, part);
    }
    if (rank_ == 0) return check(sum);
    if (send(to_parent_.get(), sum.data(), sum.size() * 8, MSG_NOSIGNAL) < 0) die("send");
    if (last == 0 && rank_ != leaf_) raise(shared_.ready);
  }

  void reduce_by_udp(bool polls) {
    Words sum = vector_;
    const int last = last_children();
    for (int child = 0; child < node_.children; ++child) {
      if (child == node_.children - last) raise(shared_.ready);
      Words part(sum.size());
      while (recv(socket_, part.data(), part.size() * 8, polls ? MSG_DONTWAIT : 0) < 0) {
      }
      add(sum, part);
    }
    if (rank_ == 0) return check(sum);
    if (sendto(socket_, sum.data(), sum.size() * 8, 0, reinterpret_cast<sockaddr*>(&parent_),
               sizeof parent_) < 0) {
      die("send");
    }
    if (last == 0 && rank_ != leaf_) raise(shared_.ready);
  }

  void check(std::span<const std::uint64_t> sum) const {
    const auto ranks = static_cast<std::uint64_t>(options_.hosts);
    for (const std::uint64_t word : sum) {
      if (word != ranks * (ranks + 1) / 2) die(fmt::format("wrong sum {}", word));
    }
  }

  const Options& options_;
  const int rank_;
  Shared& shared_;
  const algorithm::pattern::FnomialTree tree_;
  const algorithm::pattern::TreeNode node_;
  const Words vector_;
  int leaf_ = 0;
  bool on_path_ = false;
  std::int64_t in_memory_ns_ = 0;
  std::unique_ptr<nic::Device> device_;
  std::unique_ptr<nic::Port> port_;
  int socket_ = -1;
  sockaddr_in parent_ = {};
  base::Descriptor to_parent_;
  std::vector<base::Descriptor> from_children_;
  std::vector<int> children_;
};

void print_row(const char* name, std::vector<std::int64_t> times) {
  std::sort(times.begin(), times.end());
  const auto count = static_cast<double>(times.size());
  const auto at = [&](double share) {
    return static_cast<double>(times[static_cast<std::size_t>(share * (count - 1))]) / 1e3;
  };
  const double mean = static_cast<double>(std::accumulate(times.begin(), times.end(), 0LL)) / count;
  double squares = 0;
  for (const std::int64_t time : times) {
    squares += (static_cast<double>(time) - mean) * (static_cast<double>(time) - mean);
  }
  fmt::print("{:>16} {:>10.1f} {:>10.1f} {:>10.1f} {:>10.1f} {:>10.1f} {:>10.1f}\n", name, at(0.5),
             mean / 1e3, std::sqrt(squares / count) / 1e3, at(0.99), at(0.999), at(1));
}

void report(const Options& options, const Shared& shared) {
  std::vector<std::int64_t> in_memory;
  std::array<std::vector<std::int64_t>, kWays> seen;
  for (int i = 0; i < kWays * options.operations; ++i) {
    seen[way_of(i)].push_back(shared.times[i].seen_ns);
    if (way_of(i) == by_nic) in_memory.push_back(shared.times[i].in_memory_ns);
  }
  fmt::print("{} hosts, degree {}, {} words of int64, {} operations each, {} hogs; us\n",
             options.hosts, options.degree, options.words, options.operations, options.hogs);
  fmt::print("{:>16} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}\n", "", "median", "mean",
             "deviation", "p99", "p99.9", "most");
  print_row("NIC, in memory", std::move(in_memory));
  print_row("NIC, seen", std::move(seen[by_nic]));
  print_row("UDP, root polls", std::move(seen[by_udp_polling]));
  print_row("UDP", std::move(seen[by_udp]));
  print_row("TCP", std::move(seen[by_tcp]));
}

// A process that ends with this one.
template <class Body>
pid_t start_process(const Body& body) {
  const pid_t child = fork();
  if (child != 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  body();
  std::exit(0);
}

int measure(const Options& options) {
  auto hosts = nic::test::Hosts::make(options.hosts);
  if (!hosts.ok()) die(hosts.error().message);
  const std::size_t bytes =
      sizeof(Shared) + kWays * static_cast<std::size_t>(options.operations) * sizeof(Times);
  void* const memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) die("no shared memory");
  auto& shared = *static_cast<Shared*>(memory);
  std::vector<pid_t> hogs;
  for (int i = 0; i < options.hogs; ++i) {
    hogs.push_back(start_process([] {
      for (std::atomic<int> burnt = 0;;) burnt.fetch_add(1, std::memory_order_relaxed);
    }));
  }
  std::vector<pid_t> ranks;
  for (int rank = 0; rank < options.hosts; ++rank) {
    ranks.push_back(start_process([&] {
      (*hosts)->enter(rank);
      Rank(options, rank, shared).run();
    }));
  }
  bool good = true;
  for (std::size_t left = ranks.size(); left > 0 && good; --left) {
    int status = 0;
    const pid_t ended = wait(&status);
    good = ended > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  if (!good) {
    for (const pid_t rank : ranks) kill(rank, SIGKILL);
  }
  for (const pid_t hog : hogs) kill(hog, SIGKILL);
  if (good) report(options, shared);
  return good ? 0 : 1;
}

}  // namespace

int main(int count, char** arguments) {
  Options options;
  bench::Options given("Time until the root of a tree has the sum: NIC path, UDP and TCP");
  given.number("--hosts", options.hosts, 2, kRanksMax);
  given.number("--degree", options.degree, 2, kRanksMax);
  given.number("--words", options.words, 1, UNISONO_NIC_WORDS_MAX);
  given.number("--operations", options.operations, 1);
  given.number("--hogs", options.hogs, 0);
  given.parse(count, arguments);
  return measure(options);
}
