// SPDX-License-Identifier: BSD-3-Clause
// The twin of bench/peers for the paths of this project between hosts: a whole barrier, allreduce,
// reduce, broadcast or allgather of two float32, or of a vector of float64 or int64, again and
// again, each call timed by rank 0. Each has another root, so that nobody is ahead of the others
// for long; with --one-root it is rank 0. Started once per rank, as a job of Unisono
// (bench/nic/compare.py does). Prints the times as JSON on rank 0, with the processor time of a
// call: cpu_us of the calling thread, agent_us of the process's others, the mean of the ranks. With
// --late-us the last rank comes to each call so much later than the others, and the times are from
// its call until all have returned.
//
//   path_twin --path api|tcp --collectives barrier,allreduce,reduce,broadcast,allgather
//             [--operations 20000] [--doubles 175 | --integers 175] [--apart-us 200] [--late-us
//             5000] [--at-once 4] [--one-root]
//
// With --at-once N each call of the C API starts N allreduces and then waits for all. The times are
// for one of them.
// api: the C API, whose settings say by which way (UNISONO_NIC). tcp: a binomial tree of processes
// on TCP connections that sleep in recv, for a yardstick without anybody's library.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "algorithm/pattern/fnomial.hpp"
#include "base/clock.hpp"
#include "base/descriptor.hpp"
#include "nic/loader/interface.hpp"
#include "options.hpp"
#include "unisono/unisono.h"

namespace {

using namespace unisono;

constexpr std::size_t kElements = 2;  // float32: 8 bytes
constexpr int kWarmUp = 100;
constexpr unsigned kSleptFromUs = 1000;

using Pair = std::array<float, kElements>;

[[noreturn]] void die(const std::string& message) {
  fmt::print(stderr, "path_twin: {}\n", message);
  std::exit(1);
}

void expect(int code, const char* what) {
  if (code != UNISONO_OK) die(fmt::format("{}: {}", what, unisono_last_error()));
}

// The job that started the ranks, over which they tell each other where they are.
struct Job {
  unisono_comm_t world = nullptr;
  int rank = 0;
  int ranks = 0;

  template <class Word>
  std::vector<Word> gather(const Word& own) const {
    std::vector<Word> all(static_cast<std::size_t>(ranks));
    expect(unisono_allgather(&own, all.data(), sizeof own, UNISONO_BYTE, world), "allgather");
    return all;
  }
};

class Path {
 public:
  Path() = default;
  Path(const Path&) = delete;
  Path& operator=(const Path&) = delete;
  virtual ~Path() = default;
  virtual void barrier() = 0;
  virtual void allreduce(const void* input, void* output) = 0;
  virtual void reduce(const void* input, void* output, int root) = 0;
  virtual void broadcast(void* buffer, int root) = 0;
  virtual void allgather(const void* block, void* all) = 0;
};

class ByApi final : public Path {
 public:
  ByApi(const Job& job, std::size_t count, unisono_type_t type, std::size_t at_once)
      : job_(job),
        count_(static_cast<std::int64_t>(count)),
        type_(type),
        requests_(at_once),
        others_(at_once, std::vector<std::uint64_t>(count)) {}
  void barrier() override { expect(unisono_barrier(job_.world), "barrier"); }
  void allreduce(const void* input, void* output) override {
    if (requests_.size() == 1) {
      expect(unisono_allreduce(input, output, count_, type_, UNISONO_SUM, job_.world), "allreduce");
      return;
    }
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      void* const result = i == 0 ? output : others_[i].data();
      expect(unisono_allreduce_start(input, result, count_, type_, UNISONO_SUM, job_.world,
                                     &requests_[i]),
             "allreduce_start");
    }
    for (unisono_request_t& request : requests_) expect(unisono_wait(&request), "wait");
  }
  void reduce(const void* input, void* output, int root) override {
    expect(unisono_reduce(input, output, count_, type_, UNISONO_SUM, root, job_.world), "reduce");
  }
  void broadcast(void* buffer, int root) override {
    expect(unisono_broadcast(buffer, count_, type_, root, job_.world), "broadcast");
  }
  void allgather(const void* block, void* all) override {
    expect(unisono_allgather(block, all, count_, type_, job_.world), "allgather");
  }

 private:
  const Job& job_;
  std::int64_t count_;
  unisono_type_t type_;
  std::vector<unisono_request_t> requests_;         // of allreduces at once
  std::vector<std::vector<std::uint64_t>> others_;  // their results, but of the first
};

// Up and down one binomial tree.
class ByTcp final : public Path {
 public:
  explicit ByTcp(const Job& job) {
    const algorithm::pattern::FnomialTree tree(job.ranks, 2);
    const auto node = tree.node(job.rank);
    const base::Descriptor listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in own = {};
    own.sin_family = AF_INET;
    socklen_t bytes = sizeof own;
    const auto interface = nic::read_interface("eth0");
    if (!interface.ok()) die(interface.error().message);
    own.sin_addr.s_addr = interface->ipv4;
    if (bind(listener.get(), reinterpret_cast<sockaddr*>(&own), bytes) != 0 ||
        listen(listener.get(), job.ranks) != 0 ||
        getsockname(listener.get(), reinterpret_cast<sockaddr*>(&own), &bytes) != 0) {
      die("cannot listen");
    }
    const auto all = job.gather(own);
    if (job.rank != 0) {
      parent_.reset(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      const sockaddr_in& to = all[static_cast<std::size_t>(node.parent)];
      if (connect(parent_.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) {
        die("cannot connect to the parent");
      }
      send_at_once(parent_);
    }
    for (int child = 0; child < node.children; ++child) {
      children_.emplace_back(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
      send_at_once(children_.back());
    }
  }
  void barrier() override {
    const Pair nothing = {};
    Pair sum = {};
    allreduce(&nothing, &sum);
  }
  // Sums of whole numbers: the order in which children connected does not matter.
  void allreduce(const void* own, void* result) override {
    Pair& output = *static_cast<Pair*>(result);
    output = *static_cast<const Pair*>(own);
    Pair part = {};
    for (const base::Descriptor& child : children_) {
      receive(child, part);
      for (std::size_t i = 0; i < kElements; ++i) output[i] += part[i];
    }
    if (parent_.valid()) {
      send(parent_, output);
      receive(parent_, output);
    }
    for (const base::Descriptor& child : children_) send(child, output);
  }
  void reduce(const void*, void*, int) override { die("no reductions to a root by --path tcp"); }
  void broadcast(void*, int) override { die("no broadcasts by --path tcp"); }
  void allgather(const void*, void*) override { die("no allgathers by --path tcp"); }

 private:
  static void send_at_once(const base::Descriptor& socket) {
    const int on = 1;
    setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  static void send(const base::Descriptor& socket, const Pair& vector) {
    if (::send(socket.get(), vector.data(), sizeof vector, MSG_NOSIGNAL) != sizeof vector) {
      die("a neighbour has gone");
    }
  }
  static void receive(const base::Descriptor& socket, Pair& vector) {
    if (recv(socket.get(), vector.data(), sizeof vector, MSG_WAITALL) != sizeof vector) {
      die("a neighbour has gone");
    }
  }

  base::Descriptor parent_;
  std::vector<base::Descriptor> children_;
};

struct Vector {
  std::size_t count = kElements;
  unisono_type_t type = UNISONO_FLOAT32;
  std::size_t at_once = 1;
};

std::unique_ptr<Path> open_path(const std::string& name, const Job& job, const Vector& vector) {
  if (name == "tcp") return std::make_unique<ByTcp>(job);
  return std::make_unique<ByApi>(job, vector.count, vector.type, vector.at_once);
}

// The value that a rank contributes to an operation; it differs between operations, so mixed-up
// results are detected.
float value_of(int rank, int operation) {
  return static_cast<float>((operation % 61) * 100 + rank);
}

// Every element has the sum of all ranks' values, or of a broadcast the root's.
template <class T>
void check(const std::vector<T>& output, const Job& job, int operation, bool is_sum, int root) {
  T sum = 0;
  for (int rank = 0; rank < job.ranks; ++rank) {
    if (is_sum || rank == root) sum += static_cast<T>(value_of(rank, operation));
  }
  for (const T element : output) {
    if (element != sum) {
      die(fmt::format("rank {}: operation {} is {} and not {}", job.rank, operation, element, sum));
    }
  }
}

// The blocks lie in the order of the ranks.
template <class T>
void check_blocks(const std::vector<T>& output, const Job& job, int operation) {
  const std::size_t count = output.size() / static_cast<std::size_t>(job.ranks);
  for (std::size_t i = 0; i < output.size(); ++i) {
    const int origin = static_cast<int>(i / count);
    if (output[i] != static_cast<T>(value_of(origin, operation))) {
      die(fmt::format("rank {}: operation {} has {} as the block of rank {}", job.rank, operation,
                      output[i], origin));
    }
  }
}

// Time used by a rank's thread, and datagrams that the host's processes have received.
struct Usage {
  double processor_us = 0;
  double wake_ups = 0;
  double received = 0;
};

// The second line "Udp:" has the values; the first of them is InDatagrams.
double datagrams_received() {
  std::ifstream file("/proc/self/net/snmp");
  std::string word;
  double received = 0;
  while (file >> word) {
    if (word != "Udp:") continue;
    if (file >> received) break;
    file.clear();
  }
  return received;
}

Usage usage_now() {
  rusage used = {};
  getrusage(RUSAGE_THREAD, &used);
  const auto us = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_usec);
  };
  return {us(used.ru_utime) + us(used.ru_stime), static_cast<double>(used.ru_nvcsw),
          datagrams_received()};
}

// The mean for one operation, over the ranks that wait for the late one.
Usage usage_of_waiters(const Job& job, const Usage& before, const Usage& after, int operations) {
  Usage sum;
  const auto all =
      job.gather(Usage{after.processor_us - before.processor_us, after.wake_ups - before.wake_ups,
                       after.received - before.received});
  for (const Usage& each : std::span(all).first(all.size() - 1)) {
    sum.processor_us += each.processor_us;
    sum.wake_ups += each.wake_ups;
    sum.received += each.received;
  }
  const double operations_of_all = static_cast<double>(operations) * (job.ranks - 1);
  return {sum.processor_us / operations_of_all, sum.wake_ups / operations_of_all,
          sum.received / operations_of_all};
}

std::int64_t read_clock_ns(clockid_t clock) {
  timespec now = {};
  clock_gettime(clock, &now);
  return now.tv_sec * base::kSecond + now.tv_nsec;
}

// Processor time: of the calling thread in single calls, and of the process's other threads, which
// also work during pauses, in the whole row. As in bench/peers/mpi_twin.c, reading the clock is a
// system call, and the shortest reading is subtracted.
class CallCpu {
 public:
  explicit CallCpu(std::int64_t row_start_ns = 0) : row_start_ns_(row_start_ns) {}

  void start_row() { *this = CallCpu(others_now_ns()); }
  void before_call() {
    const std::int64_t reading_ns = read_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    start_ns_ = read_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    shortest_reading_ns_ = std::min(shortest_reading_ns_, start_ns_ - reading_ns);
  }
  void after_call() { sum_ns_ += read_clock_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns_; }

  struct OfCall {
    double caller_us = 0;
    double others_us = 0;
  };
  OfCall mean(const Job& job, int calls) const {
    const auto us = [&](std::int64_t ns) {
      return static_cast<double>(std::max<std::int64_t>(0, ns)) * 1e-3 / calls / job.ranks;
    };
    OfCall sum;
    for (const OfCall& each : job.gather(OfCall{us(sum_ns_ - calls * shortest_reading_ns_),
                                                us(others_now_ns() - row_start_ns_)})) {
      sum.caller_us += each.caller_us;
      sum.others_us += each.others_us;
    }
    return sum;
  }

 private:
  static std::int64_t others_now_ns() {
    const std::int64_t caller_ns = read_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    return read_clock_ns(CLOCK_PROCESS_CPUTIME_ID) - caller_ns;
  }

  std::int64_t row_start_ns_;
  std::int64_t sum_ns_ = 0;
  std::int64_t shortest_reading_ns_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t start_ns_ = 0;
};

struct Cell {
  std::vector<std::int64_t> times_ns;
  Usage waiters;
  CallCpu::OfCall cpu;
};

// Pauses before each call, of all ranks, and of the last one in addition; and its root.
struct Way {
  unsigned apart_us = 0;
  unsigned late_us = 0;
  bool has_one_root = false;
};

// Long pauses are slept. Short ones are not: a timer would give the sleeping rank's core extra work
// between the calls.
void rest(unsigned for_us) {
  if (for_us >= kSleptFromUs) {
    usleep(for_us);
    return;
  }
  const std::int64_t until_ns = base::now_ns() + std::int64_t{1000} * for_us;
  while (base::now_ns() < until_ns) sched_yield();
}

// For each operation, the time of the rank that reaches this point last.
void take_latest(std::vector<std::int64_t>& times_ns, const Job& job) {
  expect(unisono_allreduce(UNISONO_IN_PLACE, times_ns.data(),
                           static_cast<std::int64_t>(times_ns.size()), UNISONO_INT64, UNISONO_MAX,
                           job.world),
         "allreduce");
}

template <class T>
Cell measure(Path& path, const Job& job, std::size_t elements, const std::string& collective,
             int operations, const Way& way, std::int64_t at_once) {
  const bool is_broadcast = collective == "broadcast";
  const bool gathers = collective == "allgather";
  std::vector<std::int64_t> called_ns;
  std::vector<std::int64_t> times_ns;  // at first, when it returned
  called_ns.reserve(static_cast<std::size_t>(operations));
  times_ns.reserve(static_cast<std::size_t>(operations));
  Usage before;
  CallCpu cpu;
  for (int operation = -kWarmUp; operation < operations; ++operation) {
    const int number = operation + kWarmUp;
    const std::vector<T> input(elements, static_cast<T>(value_of(job.rank, number)));
    std::vector<T> output(input);
    if (gathers) output.resize(elements * static_cast<std::size_t>(job.ranks));
    const int root = way.has_one_root ? 0 : number % job.ranks;
    if (operation == 0) {
      before = usage_now();
      cpu.start_row();
    }
    rest(way.apart_us + (job.rank == job.ranks - 1 ? way.late_us : 0));
    cpu.before_call();
    const std::int64_t start_ns = base::now_ns();
    if (collective == "barrier") path.barrier();
    if (collective == "allreduce") path.allreduce(input.data(), output.data());
    if (collective == "reduce") path.reduce(input.data(), output.data(), root);
    if (is_broadcast) path.broadcast(output.data(), root);
    if (gathers) path.allgather(input.data(), output.data());
    const std::int64_t end_ns = base::now_ns();
    cpu.after_call();
    if (collective == "allreduce" || is_broadcast || (collective == "reduce" && job.rank == root)) {
      check(output, job, number, !is_broadcast, root);
    }
    if (gathers) check_blocks(output, job, number);
    if (operation < 0) continue;
    called_ns.push_back(start_ns);
    times_ns.push_back(end_ns);
  }
  const Usage after = usage_now();
  CallCpu::OfCall of_call = cpu.mean(job, operations);
  of_call.caller_us /= static_cast<double>(at_once);
  of_call.others_us /= static_cast<double>(at_once);
  if (way.late_us > 0) {
    take_latest(called_ns, job);
    take_latest(times_ns, job);
  }
  std::ranges::transform(times_ns, called_ns, times_ns.begin(), std::minus());
  for (std::int64_t& each : times_ns) each /= at_once;
  return {std::move(times_ns), usage_of_waiters(job, before, after, operations), of_call};
}

Cell measure(Path& path, const Job& job, const Vector& vector, const std::string& collective,
             int operations, const Way& way) {
  const std::size_t count = vector.count;
  const auto at_once =
      collective == "allreduce" ? static_cast<std::int64_t>(vector.at_once) : std::int64_t{1};
  if (vector.type == UNISONO_FLOAT64) {
    return measure<double>(path, job, count, collective, operations, way, at_once);
  }
  if (vector.type == UNISONO_INT64) {
    return measure<std::int64_t>(path, job, count, collective, operations, way, at_once);
  }
  return measure<float>(path, job, count, collective, operations, way, at_once);
}

}  // namespace

int main(int count, char** arguments) {
  std::string name = "api";
  std::vector<std::string> collectives = {"barrier", "allreduce"};
  int operations = 20000;
  std::size_t doubles = 0;
  std::size_t integers = 0;
  Way way;
  std::size_t at_once = 1;
  bench::Options given(
      "Times of whole barriers, reductions, broadcasts and allgathers, call by call");
  given.word("--path", name, {"api", "tcp"});
  given.words("--collectives", collectives,
              {"barrier", "allreduce", "reduce", "broadcast", "allgather"});
  given.number("--operations", operations, 1);
  given.number("--doubles", doubles, 0);
  given.number("--integers", integers, 0);
  given.number("--apart-us", way.apart_us, 0);
  given.number("--late-us", way.late_us, 0);
  given.number("--at-once", at_once, 1, 64);
  given.flag("--one-root", way.has_one_root, "rank 0 is the root of all calls");
  given.parse(count, arguments);
  if (doubles > 0 && integers > 0) die("either --doubles or --integers");
  if (at_once > 1 && name == "tcp") die("--at-once is for the C API");
  if (doubles + integers > 0 && name == "tcp") die("--doubles and --integers are for the C API");
  Vector vector;
  if (doubles > 0) vector = {doubles, UNISONO_FLOAT64};
  if (integers > 0) vector = {integers, UNISONO_INT64};
  vector.at_once = at_once;
  Job job;
  expect(unisono_init(&job.world), "init");
  expect(unisono_comm_rank(job.world, &job.rank), "rank");
  expect(unisono_comm_size(job.world, &job.ranks), "size");
  {
    const auto path = open_path(name, job, vector);
    std::string cells;
    for (const std::string& collective : collectives) {
      const Cell cell = measure(*path, job, vector, collective, operations, way);
      const std::size_t width = vector.type == UNISONO_FLOAT32 ? sizeof(float) : sizeof(double);
      const std::size_t bytes = collective == "barrier" ? 0 : vector.count * width;
      cells += fmt::format(
          "{}{{\"collective\": \"{}\", \"size\": {}, \"wrong\": 0, "
          "\"processor_us\": {:.3f}, \"wake_ups\": {:.3f}, \"received\": {:.3f}, "
          "\"cpu_us\": {:.3f}, "
          "\"agent_us\": {:.3f}, \"times_ns\": [{}]}}",
          cells.empty() ? "" : ",\n", collective, bytes, cell.waiters.processor_us,
          cell.waiters.wake_ups, cell.waiters.received, cell.cpu.caller_us, cell.cpu.others_us,
          fmt::join(cell.times_ns, ","));
    }
    // No rank goes while another may still lack its last result.
    expect(unisono_barrier(job.world), "barrier");
    if (job.rank == 0) {
      fmt::print(
          "{{\"tool\": \"path_twin\", \"library\": \"unisono {}\", \"ranks\": {}, "
          "\"results\": [\n{}\n]}}\n",
          unisono_version(), job.ranks, cells);
    }
  }
  expect(unisono_finalize(job.world), "finalize");
  return 0;
}
