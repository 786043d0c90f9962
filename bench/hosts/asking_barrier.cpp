// SPDX-License-Identifier: BSD-3-Clause
// One rank of asking_barrier.py: barriers in which one rank comes late, by turns another one, as
// unisono_barrier does them (`signals`), or by test and set (`asking`): rank 0 asks all for the
// number of the barrier that they have reached, again after a pause that doubles, until none is
// behind, and then releases them with one broadcast. Rank 0 prints a line of JSON: how long after
// the last arrival the last rank has left, and the packets and processor time of one barrier.
//
// The ranks' clocks have to be one: hosts are namespaces of one machine.
#include <fmt/format.h>
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <unisono/unisono.hpp>
#include <vector>

#include "options.hpp"

namespace {

constexpr std::int64_t kMicrosecond = 1'000;
// Between a barrier's end and the next one's beginning, about: all have left, and are asleep.
constexpr std::int64_t kQuietNs = 5'000'000;

struct Options {
  bool asks = false;
  std::int64_t calls = 200;
  std::int64_t late_us = 0;
  std::int64_t first_pause_us = 50;
  std::int64_t most_pause_us = 1600;
};

std::int64_t now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

void sleep_until(std::int64_t when_ns) {
  const timespec time{.tv_sec = when_ns / 1'000'000'000, .tv_nsec = when_ns % 1'000'000'000};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr) != 0) {
  }
}

std::int64_t cpu_ns() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto ns = [](const timeval& t) { return t.tv_sec * 1'000'000'000 + t.tv_usec * 1'000; };
  return ns(usage.ru_utime) + ns(usage.ru_stime);
}

// Packets of this host, by all interfaces but the loopback: the tenth number of a line.
std::int64_t packets_sent() {
  std::ifstream file("/proc/net/dev");
  std::int64_t packets = 0;
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos || line.find(" lo:") != std::string::npos) continue;
    std::istringstream numbers(line.substr(colon + 1));
    std::array<std::int64_t, 10> fields{};
    for (std::int64_t& field : fields) numbers >> field;
    if (!numbers) throw std::runtime_error("cannot read /proc/net/dev: " + line);
    packets += fields[9];
  }
  return packets;
}

class Barriers {
 public:
  Barriers(unisono::communicator& world, const Options& options)
      : world_(world), options_(options) {}

  void run();
  void report();

 private:
  void enter(std::int64_t call);
  void ask_all(std::uint64_t number);

  unisono::communicator& world_;
  const Options& options_;
  std::vector<std::int64_t> came_ns_, left_ns_;
  std::array<std::int64_t, 3> spent_{};  // packets, processor time, questions; of this rank
};

void Barriers::ask_all(std::uint64_t number) {
  std::int64_t pause_ns = options_.first_pause_us * kMicrosecond;
  for (;;) {
    ++spent_[2];
    if (world_.query(unisono::compare::greater_equal, number)) return;
    sleep_until(now_ns() + pause_ns);
    pause_ns = std::min(2 * pause_ns, options_.most_pause_us * kMicrosecond);
  }
}

void Barriers::enter(std::int64_t call) {
  if (!options_.asks) return world_.barrier();
  const auto number = static_cast<std::uint64_t>(call) + 1;
  world_.publish(number);
  if (world_.rank() == 0) ask_all(number);
  std::array<std::uint64_t, 1> released{number};
  world_.broadcast(released);
  if (released[0] != number) throw std::runtime_error("released from another barrier");
}

void Barriers::run() {
  const std::int64_t late_ns = options_.late_us * kMicrosecond;
  world_.barrier();
  std::array<std::int64_t, 1> start_ns{now_ns() + 4 * kQuietNs};
  world_.broadcast(start_ns);
  sleep_until(start_ns[0] - kQuietNs);  // the broadcast's packets are not counted
  const std::int64_t packets = packets_sent(), cpu = cpu_ns();
  for (std::int64_t call = 0; call < options_.calls; ++call) {
    const bool is_late = call % world_.size() == world_.rank();
    sleep_until(start_ns[0] + call * (late_ns + 2 * kQuietNs) + (is_late ? late_ns : 0));
    came_ns_.push_back(now_ns());
    enter(call);
    left_ns_.push_back(now_ns());
  }
  sleep_until(start_ns[0] + options_.calls * (late_ns + 2 * kQuietNs));
  spent_[0] = packets_sent() - packets;
  spent_[1] = cpu_ns() - cpu;
}

// Nobody leaves a barrier before all have come, so that a time below 0 is an error.
void Barriers::report() {
  std::vector<std::int64_t> came(came_ns_.size()), left(came_ns_.size());
  world_.allreduce(came_ns_, came, unisono::op::max);
  world_.allreduce(left_ns_, left, unisono::op::max);
  std::vector<std::int64_t> first_left(came_ns_.size());
  world_.allreduce(left_ns_, first_left, unisono::op::min);
  std::array<std::int64_t, 3> spent{};
  world_.allreduce(spent_, spent, unisono::op::sum);
  std::vector<double> us;
  for (std::size_t i = 0; i < came.size(); ++i) {
    if (first_left[i] < came[i]) throw std::runtime_error("a rank left before the last had come");
    us.push_back(static_cast<double>(left[i] - came[i]) * 1e-3);
  }
  if (world_.rank() != 0) return;
  std::ranges::sort(us);
  const auto calls = static_cast<double>(us.size());
  fmt::print(
      "{{\"median_us\": {:.1f}, \"p99_us\": {:.1f}, \"packets\": {:.2f}, \"cpu_us\": {:.1f}, "
      "\"questions\": {:.2f}}}\n",
      us[us.size() / 2], us[us.size() * 99 / 100], static_cast<double>(spent[0]) / calls,
      static_cast<double>(spent[1]) * 1e-3 / calls, static_cast<double>(spent[2]) / calls);
}

}  // namespace

int main(int argc, char** argv) try {
  Options options;
  unisono::bench::Options given("Barriers by signals or by asking, with a late rank.");
  given.flag("--asking", options.asks, "test and set, in place of unisono_barrier");
  given.number("--calls", options.calls, 1, 1'000'000);
  given.number("--late-us", options.late_us, 0);
  given.number("--first-pause-us", options.first_pause_us, 1);
  given.number("--most-pause-us", options.most_pause_us, 1);
  given.parse(argc, argv);
  unisono::job job;
  Barriers barriers(job.world(), options);
  barriers.run();
  barriers.report();
} catch (const std::exception& error) {
  fmt::print(stderr, "asking_barrier: {}\n", error.what());
  return 1;
}
