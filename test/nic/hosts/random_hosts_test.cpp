// SPDX-License-Identifier: BSD-3-Clause
// Reductions, broadcasts and barriers end to end on up to sixteen hosts, drawn at random: trees of
// any shape and root, results by multicast or clones, every type and operator, any length of one
// packet or of several that follow one another, with and without losses. Results have the bits of
// the host engine's on the same schedule, exactly the schedule's packets are sent, and hosts
// outside of the group take none of them. A failure prints its seed; `--seed N` runs that one
// alone, and `--seeds N` (label slow) many.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <bit>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/prng.hpp"
#include "harness/scale.hpp"
#include "harness/seeds.hpp"
#include "nic/harness/jobs.hpp"
#include "nic/harness/lossy_hosts.hpp"
#include "nic/lowering/lower.hpp"
#include "nic/port/segments.hpp"

namespace unisono::nic::test::random_hosts_test {
namespace {

unisono::test::Seeds seeds{.count = 80};

constexpr int kMostHosts = 16;

struct Scenario {
  Job job;
  int ranks = 2;
  bool multicasts = true;  // results; otherwise clones go down the tree

  std::uint64_t packets() const {
    const std::size_t bytes = static_cast<std::size_t>(job.count) * arith::type_size(job.type);
    return Segments::pieces((bytes + 7) / 8, UNISONO_NIC_WORDS_MAX);
  }
  std::uint64_t operations() const {
    return packets() * static_cast<std::uint64_t>(job.operations);
  }
};

// All that the NIC path combines.
std::vector<std::pair<Type, Operator>> legal_pairs() {
  std::vector<std::pair<Type, Operator>> pairs;
  for (int type = 0; type < arith::kTypeCount; ++type) {
    for (int op = 0; op < arith::kOperatorCount; ++op) {
      const std::pair pair(static_cast<Type>(type), static_cast<Operator>(op));
      if (lower_operator(pair.second, pair.first).ok()) pairs.push_back(pair);
    }
  }
  return pairs;
}

int draw(base::Prng& random, int least, int most) {
  return least + static_cast<int>(random.below(static_cast<std::uint64_t>(most - least + 1)));
}

void draw_tree(Scenario& drawn, base::Prng& random) {
  Job& job = drawn.job;
  const bool is_barrier = job.collective == Collective::barrier;
  drawn.multicasts = job.collective == Collective::reduce || random.below(2) == 0;
  job.algorithm = job.collective == Collective::reduce ? "fnomial"
                  : drawn.multicasts                   ? "gather-release"
                  : is_barrier                         ? "gather-broadcast"
                                                       : "reduce-broadcast";
  const bool is_fan_in = job.collective != Collective::reduce && drawn.multicasts;
  job.parameter = is_fan_in ? draw(random, 1, drawn.ranks) : draw(random, 2, drawn.ranks);
}

void draw_vector(Job& job, base::Prng& random) {
  static const auto pairs = legal_pairs();
  do {
    std::tie(job.type, job.op) = pairs[random.below(pairs.size())];
  } while (job.giver >= 0 && job.op != Operator::bitwise_or);
  constexpr std::size_t kPacket = UNISONO_NIC_WORDS_MAX * sizeof(std::uint64_t);
  const auto most = static_cast<int>(kPacket / arith::type_size(job.type));
  job.count = random.below(4) == 0 ? most : draw(random, 1, most);
  constexpr int kPackets = 6;
  if (random.below(4) == 0) job.count = draw(random, most + 1, kPackets * most);
}

Scenario scenario_of(std::uint64_t seed) {
  base::Prng random(seed);
  Scenario drawn;
  Job& job = drawn.job;
  drawn.ranks = draw(random, 2, kMostHosts);
  constexpr Collective kCollectives[] = {Collective::reduce, Collective::allreduce,
                                         Collective::barrier, Collective::broadcast};
  job.collective = kCollectives[random.below(std::size(kCollectives))];
  const int root = draw(random, 0, drawn.ranks - 1);
  if (job.collective == Collective::reduce) job.root = root;
  if (job.collective == Collective::broadcast) {
    job.collective = Collective::allreduce;  // which it is in the NIC path
    job.giver = root;
  }
  draw_tree(drawn, random);
  if (job.collective == Collective::barrier)
    job.count = 0;
  else
    draw_vector(job, random);
  job.operations = draw(random, 20, 60);
  job.depth = 1U << random.below(std::bit_width(UNISONO_NIC_DEPTH_MAX / 2U));
  if (random.below(4) == 0) job.loss = 0.1 * random.unit();
  return drawn;
}

std::string describe(const Scenario& drawn) {
  const Job& job = drawn.job;
  return fmt::format("{} {}({}) of {} ranks, root {}, giver {}, {} {} of {}, {} at a time, loss {}",
                     schedule::collective_name(job.collective), job.algorithm, job.parameter,
                     drawn.ranks, job.root, job.giver, job.count, arith::type_name(job.type),
                     arith::operator_name(job.op), job.depth, job.loss);
}

class NicRandom : public LossyHostsOf<kMostHosts> {
 protected:
  // Data shared by the ranks of a scenario.
  struct Shared {
    explicit Shared(const Scenario& drawn)
        : entered(static_cast<std::size_t>(drawn.job.operations)) {}
    std::vector<Words> expected;            // by operation; none of a barrier
    std::vector<std::atomic<int>> entered;  // ranks that have come to it
    std::atomic<int> wrong = 0;             // results
    std::atomic<int> early = 0;             // results that were there before all had come
    std::atomic<int> senders = 0;           // ranks that send results
    std::atomic<bool> failed = false;
  };

  static void run(const Scenario& drawn);

 private:
  static void run_rank(const Scenario& drawn, int rank, Port& port, Shared& shared);
  static void run_segments(const Scenario& drawn, int rank, Port& port, Shared& shared);
  static void finish(const Scenario& drawn, int rank, Port& port, int operation, Shared& shared);
  static void expect_packets(const Scenario& drawn, int senders, const Counters& counted);
  static void expect_nothing_outside(const Scenario& drawn, const Counters& before);

  // The counters of hosts `first` and above.
  static Counters counts_from(int first) {
    Counters sums = counts();
    const Counters below = counts(first);
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] -= below[i];
    return sums;
  }
};

void NicRandom::run(const Scenario& drawn) {
  Shared shared(drawn);
  if (drawn.job.collective != Collective::barrier) {
    shared.expected = host_results(drawn.job, drawn.ranks);
  }
  const Counters before = counts(drawn.ranks);
  const Counters outside_before = counts_from(drawn.ranks);
  std::barrier<> together(drawn.ranks);
  ++communicator;
  hosts->run([&](int rank) {
    if (rank >= drawn.ranks) return;
    Job one_packet = drawn.job;
    one_packet.count = std::min<std::int64_t>(one_packet.count, 1);
    auto started = start_rank(device_of(rank), one_packet, rank, drawn.ranks, communicator);
    if (!started.ok()) {
      ADD_FAILURE() << "rank " << rank << ": " << started.error().message;
      shared.failed = true;
    }
    together.arrive_and_wait();  // no rank sends to a host that does not listen yet
    if (!shared.failed) {
      const auto run = drawn.packets() > 1 ? run_segments : run_rank;
      run(drawn, rank, *started->port, shared);
    }
    together.arrive_and_wait();
    if (!started.ok()) return;
    shared.senders += rank == drawn.job.root || started->forwards;
    EXPECT_TRUE(device_of(rank).remove_group(started->row).ok());
  });
  if (shared.failed) return;
  EXPECT_EQ(shared.wrong, 0);
  EXPECT_EQ(shared.early, 0);
  Counters counted = counts(drawn.ranks);
  for (std::size_t i = 0; i < counted.size(); ++i) counted[i] -= before[i];
  expect_packets(drawn, shared.senders, counted);
  expect_nothing_outside(drawn, outside_before);
}

void NicRandom::run_rank(const Scenario& drawn, int rank, Port& port, Shared& shared) {
  const Job& job = drawn.job;
  const bool is_barrier = job.collective == Collective::barrier;
  const std::uint32_t combine =
      is_barrier ? std::uint32_t{UNISONO_NIC_NOTHING} : *lower_operator(job.op, job.type);
  base::Prng random(static_cast<std::uint64_t>(rank) + 1);
  const auto depth = static_cast<int>(job.depth);
  for (int operation = 0; operation < job.operations && !shared.failed; ++operation) {
    if (operation >= depth) finish(drawn, rank, port, operation - depth, shared);
    // Sometimes one rank is late, sometimes another.
    for (std::uint64_t turns = random.below(4); turns > 0; --turns) std::this_thread::yield();
    ++shared.entered[static_cast<std::size_t>(operation)];
    const auto posted = port.post(combine, is_barrier ? Words{} : vector_of(job, rank, operation));
    if (posted.ok()) continue;
    ADD_FAILURE() << posted.error().message;
    shared.failed = true;
  }
  for (int last = std::max(0, job.operations - depth); last < job.operations; ++last) {
    finish(drawn, rank, port, last, shared);
  }
}

// A vector at a time, as many of its packets in flight as there is room for.
void NicRandom::run_segments(const Scenario& drawn, int rank, Port& port, Shared& shared) {
  const Job& job = drawn.job;
  base::Prng random(static_cast<std::uint64_t>(rank) + 1);
  Segments segments(port);
  const bool has_result = job.collective == Collective::allreduce || rank == job.root;
  for (int operation = 0; operation < job.operations && !shared.failed; ++operation) {
    const auto number = static_cast<std::size_t>(operation);
    for (std::uint64_t turns = random.below(4); turns > 0; --turns) std::this_thread::yield();
    ++shared.entered[number];
    const Words own = vector_of(job, rank, operation);
    Words result(own.size());
    segments.begin(*lower_operator(job.op, job.type), own, result);
    while (!shared.failed) {
      const auto done = segments.step();
      if (done.ok() && *done) break;
      const auto delay_ns = static_cast<std::int64_t>(base::kMillisecond * (1 + random.unit()));
      const bool asks = done.ok() && job.loss > 0;
      if (!done.ok() || (asks && !port.repair(base::now_ns(), delay_ns).ok())) shared.failed = true;
      std::this_thread::yield();
    }
    shared.early += shared.entered[number] != drawn.ranks;
    shared.wrong += has_result && result != shared.expected[number];
  }
}

void NicRandom::finish(const Scenario& drawn, int rank, Port& port, int operation, Shared& shared) {
  const auto sequence = static_cast<std::uint64_t>(operation);
  base::Prng random(sequence * kMostHosts + static_cast<std::uint64_t>(rank));
  double patience_ns = base::kMillisecond;
  while (!port.is_done(sequence) && !shared.failed) {
    std::this_thread::yield();
    if (drawn.job.loss == 0) continue;  // nothing is lost, however late others come
    const auto delay_ns = static_cast<std::int64_t>(patience_ns * (0.5 + random.unit()));
    const auto asked = port.repair(base::now_ns(), delay_ns);
    if (!asked.ok()) shared.failed = true;
    if (asked.ok() && *asked > 0) patience_ns = std::min(patience_ns * 2, 8.0 * base::kMillisecond);
  }
  shared.early += shared.entered[static_cast<std::size_t>(operation)] != drawn.ranks;
  const bool has_result = drawn.job.collective == Collective::allreduce ||
                          (drawn.job.collective == Collective::reduce && rank == drawn.job.root);
  if (!has_result) return;
  const auto result = port.result(sequence);
  shared.wrong +=
      Words(result.begin(), result.end()) != shared.expected[static_cast<std::size_t>(operation)];
}

// The packets of all ranks. A lost packet is answered, and not sent again as if it were new.
void NicRandom::expect_packets(const Scenario& drawn, int senders, const Counters& counted) {
  const std::uint64_t operations = drawn.operations();
  const auto others = static_cast<std::uint64_t>(drawn.ranks - 1);
  EXPECT_EQ(counted[UNISONO_NIC_SENT_UP], operations * others);
  EXPECT_EQ(counted[UNISONO_NIC_CAME_DOWN], operations * others);
  EXPECT_EQ(counted[UNISONO_NIC_SENT_DOWN], operations * static_cast<std::uint64_t>(senders));
  for (int i = UNISONO_NIC_SHORT; i < UNISONO_NIC_COUNTERS; ++i) {
    const bool goes_wrong = i <= UNISONO_NIC_NO_ROOM && i != UNISONO_NIC_STALE;
    const bool is_schedules = i >= UNISONO_NIC_TAKEN_IN && i <= UNISONO_NIC_CAME_DOWN;
    if (is_schedules || (drawn.job.loss > 0 && !goes_wrong)) continue;
    EXPECT_EQ(counted[static_cast<std::size_t>(i)], 0U)
        << counter_name(static_cast<unisono_nic_counter>(i));
  }
}

// Multicasts come to all hosts; those without the group let them pass, and take nothing.
void NicRandom::expect_nothing_outside(const Scenario& drawn, const Counters& before) {
  if (drawn.ranks == kMostHosts) return;
  const auto outsiders = static_cast<std::uint64_t>(kMostHosts - drawn.ranks);
  const std::uint64_t multicasts = drawn.multicasts ? drawn.operations() : 0;
  Counters counted = {};
  do {
    counted = counts_from(drawn.ranks);
    for (std::size_t i = 0; i < counted.size(); ++i) counted[i] -= before[i];
  } while (counted[UNISONO_NIC_OTHERS_FRAME] < outsiders * multicasts);
  for (int i = UNISONO_NIC_OTHERS_FRAME; i < UNISONO_NIC_COUNTERS; ++i) {
    EXPECT_EQ(counted[static_cast<std::size_t>(i)],
              i == UNISONO_NIC_OTHERS_FRAME ? outsiders * multicasts : 0)
        << "outside: " << counter_name(static_cast<unisono_nic_counter>(i));
  }
}

TEST_F(NicRandom, CollectivesHaveTheBitsOfTheHostEngine) {
  const auto count = static_cast<std::uint64_t>(harness::scaled(seeds.count));
  for (std::uint64_t seed = seeds.first; seed < seeds.first + count; ++seed) {
    const Scenario drawn = scenario_of(seed);
    run(drawn);
    // Ranks are threads, which a SCOPED_TRACE does not reach.
    ASSERT_FALSE(HasFailure()) << "repeat with: nic_random --seed " << seed << " ("
                               << describe(drawn) << ")";
  }
}

}  // namespace
}  // namespace unisono::nic::test::random_hosts_test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  unisono::nic::test::random_hosts_test::seeds.read(argc, argv);
  return RUN_ALL_TESTS();
}
