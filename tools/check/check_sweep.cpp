// SPDX-License-Identifier: BSD-3-Clause
#include "check/check_sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <numeric>
#include <thread>

#include "base/clock.hpp"
#include "base/prng.hpp"
#include "machine.hpp"
#include "schedule/text.hpp"

namespace unisono::tools {
namespace {

constexpr int kEveryRootUpTo = 16;
constexpr int kEveryCombinationUpTo = 16;
constexpr int kEveryPlacementUpTo = 8;
constexpr std::size_t kMostFailures = 4;
constexpr int kMostViolations = 3;  // per set; the first explains most of the others

std::vector<std::int64_t> sweep_counts(const Sweep& sweep, schedule::Collective collective,
                                       int ranks) {
  switch (collective) {
    case schedule::Collective::barrier:
      return {0};
    case schedule::Collective::allgather:
    case schedule::Collective::gather:
    case schedule::Collective::scatter:
    case schedule::Collective::alltoall:
    case schedule::Collective::reduce_scatter:
    case schedule::Collective::many_to_many:
      if (sweep.counts.empty()) return {0, 1, 2};
      return sweep.counts;
    case schedule::Collective::broadcast:
    case schedule::Collective::reduce:
    case schedule::Collective::allreduce:
    case schedule::Collective::scan:
    case schedule::Collective::exscan:
      if (sweep.counts.empty()) return {0, 1, 2, ranks - 1, ranks, ranks + 1};
      return sweep.counts;
  }
  return {};
}

std::int64_t small_count(base::Prng& random) {
  return random.below(3) == 0 ? 0 : static_cast<std::int64_t>(random.below(6));
}

// Counts that follow from the seed, a third of them 0. `alike`: the same both ways, so that an
// alltoall can be in place.
std::vector<std::int64_t> pair_counts(int ranks, base::Prng& random, bool alike) {
  const auto n = static_cast<std::size_t>(ranks);
  std::vector<std::int64_t> counts(n * n);
  for (std::size_t from = 0; from < n; ++from) {
    for (std::size_t to = 0; to < n; ++to) {
      counts[from * n + to] = alike && to < from ? counts[to * n + from] : small_count(random);
    }
  }
  return counts;
}

std::vector<int> sweep_values(const algorithm::ParameterSpec& spec, int ranks) {
  const int high = spec.high == 0 ? std::max(ranks, spec.low) : spec.high;
  if (!spec.names.empty()) {
    std::vector<int> choices(spec.names.size());
    std::iota(choices.begin(), choices.end(), 0);
    return choices;
  }
  std::vector<int> values = {spec.low, spec.low + 1, spec.low + 2, 4, spec.fallback, ranks};
  std::erase_if(values, [&](int value) { return value < spec.low || value > high; });
  return values;
}

std::string describe_shape(const algorithm::Algorithm& algorithm, const schedule::Shape& shape,
                           const algorithm::Parameters& parameters) {
  return fmt::format(
      "{}, {} ranks{}, {}{}{}", algorithm::describe(algorithm, parameters), shape.ranks,
      schedule::is_rooted(shape.collective) ? fmt::format(", root {}", shape.root) : std::string(),
      schedule::print_counts(shape), shape.ordered ? ", ordered" : "",
      shape.hosts.given() ? "," + schedule::print_hosts(shape) : std::string());
}

std::vector<check::Violation> build_and_prove(const algorithm::Algorithm& algorithm,
                                              const schedule::Shape& shape,
                                              const algorithm::Parameters& parameters) {
  std::vector<schedule::Schedule> set;
  set.reserve(static_cast<std::size_t>(shape.ranks));
  for (int rank = 0; rank < shape.ranks; ++rank) {
    auto one = algorithm::build(algorithm, shape, parameters, rank);
    if (!one) return {{check::Rule::malformed, rank, -1, "not built: " + one.error().message}};
    set.push_back(std::move(one).value());
  }
  return check::prove(set, kMostViolations);
}

void prove_one(const algorithm::Algorithm& algorithm, const schedule::Shape& shape,
               const algorithm::Parameters& parameters, SweepResult& result) {
  if (!algorithm::why_illegal(algorithm, shape, parameters).empty()) return;
  ++result.sets;
  std::vector<check::Violation> violations = build_and_prove(algorithm, shape, parameters);
  if (violations.empty()) return;
  ++result.violated;
  if (result.failures.size() == kMostFailures) return;
  result.failures.push_back({describe_shape(algorithm, shape, parameters), std::move(violations)});
}

void prove_orders(const algorithm::Algorithm& algorithm, schedule::Shape shape,
                  const algorithm::Parameters& parameters, SweepResult& result) {
  const bool both_orders = schedule::is_reduction(algorithm.collective) && algorithm.keeps_order;
  for (const bool ordered : {false, true}) {
    if (ordered && !both_orders) continue;
    shape.ordered = ordered;
    prove_one(algorithm, shape, parameters, result);
  }
}

// All roots, parameters and counts, on these hosts.
void prove_on(const topology::HostMap& hosts, const Sweep& sweep,
              const algorithm::Algorithm& algorithm, int ranks, SweepResult& result) {
  // Explicit counts exclude unequal ones.
  const bool unequal = sweep.counts.empty() && algorithm.unequal_blocks;
  const auto blocks =
      unequal ? sweep_blocks(algorithm.collective, ranks) : std::vector<schedule::Blocks>();
  for (const int root : sweep_roots(algorithm.collective, ranks, sweep.every_root)) {
    for (const algorithm::Parameters& parameters : sweep_parameters(algorithm, ranks)) {
      schedule::Shape shape{
          .collective = algorithm.collective, .ranks = ranks, .root = root, .hosts = hosts};
      for (const std::int64_t count : sweep_counts(sweep, algorithm.collective, ranks)) {
        shape.count = count;
        prove_orders(algorithm, shape, parameters, result);
      }
      shape.count = 0;
      for (const schedule::Blocks& each : blocks) {
        shape.blocks = each;
        prove_orders(algorithm, shape, parameters, result);
      }
    }
  }
}

// One piece of work: an algorithm at one number of ranks.
SweepResult prove_all(const Sweep& sweep, const algorithm::Algorithm& algorithm, int ranks) {
  const std::int64_t start = base::now_ns();
  SweepResult result;
  result.algorithm = &algorithm;
  prove_on({}, sweep, algorithm, ranks, result);
  if (algorithm.uses_hosts) {
    for (const topology::HostMap& hosts : sweep_hosts(ranks)) {
      prove_on(hosts, sweep, algorithm, ranks, result);
    }
  }
  result.seconds = static_cast<double>(base::now_ns() - start) * 1e-9;
  return result;
}

// The pieces of a sweep, handed to threads one after another, and their results.
class Work {
 public:
  explicit Work(const Sweep& sweep)
      : sweep_(sweep),
        results_(sweep.algorithms.size()),
        failures_(sweep.algorithms.size() * sweep.ranks.size()),
        open_(sweep.algorithms.size(), sweep.ranks.size()) {
    for (std::size_t i = 0; i < results_.size(); ++i) results_[i].algorithm = sweep.algorithms[i];
  }

  // A worker thread: does pieces until none is left.
  void run() {
    for (std::size_t piece; take(piece);) {
      const std::size_t row = piece / sweep_.ranks.size();
      finish(piece,
             prove_all(sweep_, *sweep_.algorithms[row], sweep_.ranks[piece % sweep_.ranks.size()]));
    }
  }

  // The calling thread: reports until everything is done.
  void report(const SweepObserver& observer) {
    std::unique_lock lock(mutex_);
    for (std::size_t row = 0; row < results_.size(); ++row) {
      while (open_[row] > 0) {
        const std::string text =
            fmt::format("{}/{}, {} of {} pieces done",
                        schedule::collective_name(sweep_.algorithms[row]->collective),
                        sweep_.algorithms[row]->name, done_, pieces());
        lock.unlock();
        observer.on_progress(text);
        lock.lock();
        if (open_[row] > 0) changed_.wait_for(lock, std::chrono::milliseconds(200));
      }
      const SweepResult result = results_[row];
      lock.unlock();
      observer.on_result(result);
      lock.lock();
    }
  }

 private:
  std::size_t pieces() const { return sweep_.algorithms.size() * sweep_.ranks.size(); }

  bool take(std::size_t& piece) {
    const std::lock_guard lock(mutex_);
    if (next_ == pieces()) return false;
    piece = next_++;
    return true;
  }

  void finish(std::size_t piece, SweepResult result) {
    const std::lock_guard lock(mutex_);
    const std::size_t row = piece / sweep_.ranks.size();
    SweepResult& sum = results_[row];
    sum.sets += result.sets;
    sum.violated += result.violated;
    sum.seconds += result.seconds;
    failures_[piece] = std::move(result.failures);
    if (--open_[row] == 0) take_failures(row);
    ++done_;
    changed_.notify_one();
  }

  // In the order of the pieces, whatever the order in which they were done.
  void take_failures(std::size_t row) {
    std::vector<SweepFailure>& first = results_[row].failures;
    const std::size_t end = (row + 1) * sweep_.ranks.size();
    for (std::size_t piece = row * sweep_.ranks.size(); piece < end; ++piece) {
      for (SweepFailure& failure : failures_[piece]) {
        if (first.size() < kMostFailures) first.push_back(std::move(failure));
      }
      failures_[piece].clear();
    }
  }

  const Sweep& sweep_;
  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::vector<SweepResult> results_;
  std::vector<std::vector<SweepFailure>> failures_;  // of each piece, until its row is done
  std::vector<std::size_t> open_;  // pieces of each algorithm that are not finished
  std::size_t next_ = 0;
  std::size_t done_ = 0;
};

}  // namespace

std::vector<int> sweep_roots(schedule::Collective collective, int ranks, bool every_root) {
  if (!schedule::is_rooted(collective)) return {0};
  std::vector<int> roots;
  if (every_root || ranks <= kEveryRootUpTo) {
    for (int root = 0; root < ranks; ++root) roots.push_back(root);
    return roots;
  }
  const int power = static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks - 1)));
  roots = {0, 1, power - 1, power, ranks / 2, ranks - 1};
  std::ranges::sort(roots);
  roots.erase(std::unique(roots.begin(), roots.end()), roots.end());
  return roots;
}

std::vector<schedule::Blocks> sweep_blocks(schedule::Collective collective, int ranks) {
  std::vector<schedule::Blocks> all;
  if (!schedule::has_blocks(collective)) return all;
  base::Prng random(static_cast<std::uint64_t>(ranks));
  if (schedule::has_pairs(collective)) {
    for (const bool alike : {false, true}) {
      all.push_back(*schedule::Blocks::of_pairs(ranks, pair_counts(ranks, random, alike)));
    }
    return all;
  }
  std::vector<std::int64_t> counts(static_cast<std::size_t>(ranks));
  std::vector<bool> receivers;
  for (std::int64_t& count : counts) count = small_count(random);
  if (collective == schedule::Collective::many_to_many) {
    for (int rank = 0; rank < ranks; ++rank) receivers.push_back(random.below(2) == 0);
  }
  all.push_back(*schedule::Blocks::of_ranks(counts, receivers));
  // One rank has everything.
  std::ranges::fill(counts, 0);
  counts[random.below(counts.size())] = ranks;
  all.push_back(*schedule::Blocks::of_ranks(counts));
  return all;
}

std::vector<topology::HostMap> sweep_hosts(int ranks) {
  const auto n = static_cast<std::size_t>(ranks);
  std::vector<int> pairs(n), dealt(n), anyhow(n), halves(n), alone(n);
  base::Prng random(static_cast<std::uint64_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    const auto r = static_cast<std::size_t>(rank);
    pairs[r] = rank / 2;
    dealt[r] = rank % 3;
    anyhow[r] = static_cast<int>(random.below((n + 2) / 2));
    halves[r] = rank < ranks / 2 ? 0 : 1 + (rank - ranks / 2) / 3;  // one half, and threes
    alone[r] = rank;
  }
  std::vector<std::vector<int>> all = {halves, anyhow};
  if (ranks <= kEveryPlacementUpTo) all.insert(all.end(), {pairs, dealt, alone});
  std::vector<topology::HostMap> maps;
  for (const std::vector<int>& labels : all) {
    const auto map = topology::HostMap::of_labels(labels);
    if (map.given() && std::ranges::find(maps, map) == maps.end()) maps.push_back(map);
  }
  return maps;
}

std::vector<algorithm::Parameters> sweep_parameters(const algorithm::Algorithm& algorithm,
                                                    int ranks) {
  const algorithm::Parameters usual = algorithm::default_parameters(
      algorithm, {.collective = algorithm.collective, .ranks = ranks});
  // The parts of a mock-up are proved as rows of their own, with all parameters.
  if (!algorithm.parts.empty() && ranks > kEveryCombinationUpTo) return {usual};
  std::vector<algorithm::Parameters> combinations = {usual};
  for (std::size_t i = 0; i < algorithm.parameters.size(); ++i) {
    const std::vector<int> values = sweep_values(algorithm.parameters[i], ranks);
    // Large groups vary one parameter at a time, and so do mock-ups, whose parts are proved as rows
    // of their own. Small groups try all combinations.
    const bool all = ranks <= kEveryCombinationUpTo && algorithm.parts.empty();
    const std::vector<algorithm::Parameters> before = all ? combinations : std::vector{usual};
    for (const algorithm::Parameters& each : before) {
      for (const int value : values) {
        combinations.push_back(each);
        combinations.back().values[i] = value;
      }
    }
  }
  std::ranges::sort(combinations, {}, &algorithm::Parameters::values);
  combinations.erase(std::unique(combinations.begin(), combinations.end()), combinations.end());
  return combinations;
}

void run_sweep(const Sweep& sweep, const SweepObserver& observer) {
  Work work(sweep);
  std::vector<std::jthread> workers;
  const int cores = usable_cores();
  workers.reserve(static_cast<std::size_t>(cores));
  for (int i = 0; i < cores; ++i) workers.emplace_back([&work] { work.run(); });
  work.report(observer);
}

}  // namespace unisono::tools
