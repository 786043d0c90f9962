// SPDX-License-Identifier: BSD-3-Clause
#include "random/program.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "base/prng.hpp"
#include "random/settings.hpp"
#include "random/types.hpp"

namespace unisono::test::programs {
namespace {

constexpr std::array<const char*, kFunctions> kNames = {
    "barrier",      "broadcast",      "reduce",
    "allreduce",    "allgather",      "gather",
    "scatter",      "alltoall",       "reduce_scatter_block",
    "scan",         "exscan",         "allgatherv",
    "many_to_many", "reduce_scatter", "gatherv",
    "scatterv",     "alltoallv",      "alltoallw"};

// Blocks of alltoallw have so many bytes times their counts: a multiple of the sizes of their
// types.
constexpr std::int64_t kUnit = 48;

bool has_rank_counts(Function f) {
  return f == Function::allgatherv || f == Function::many_to_many ||
         f == Function::reduce_scatter || f == Function::gatherv || f == Function::scatterv;
}

schedule::Collective collective_of(Function f) {
  using enum schedule::Collective;
  constexpr std::array<schedule::Collective, kFunctions> kCollectives = {
      barrier,      broadcast,      reduce,         allreduce, allgather, gather,
      scatter,      alltoall,       reduce_scatter, scan,      exscan,    allgather,
      many_to_many, reduce_scatter, gather,         scatter,   alltoall,  alltoall};
  return kCollectives[static_cast<std::size_t>(f)];
}

std::int64_t sum_of(const std::vector<std::int64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

// Draws a program part by part.
class Drawing {
 public:
  Drawing(std::uint64_t seed, const Limits& limits) : prng_(seed), limits_(limits) {
    program_.seed = seed;
  }

  Program draw() {
    program_.ranks = draw_ranks();
    often_ = draw_function();
    program_.settings = draw_settings(prng_, limits_.hosts, collective_of(often_));
    if (chance(2)) program_.constants = draw_constants(prng_);
    likes_segments_ = chance(2);
    if (likes_segments_) prefer_segments();
    program_.same_forms = program_.settings["UNISONO_LEARN"] == "on";
    program_.ends_together = chance(2);
    Members all(static_cast<std::size_t>(program_.ranks));
    std::iota(all.begin(), all.end(), 0);
    program_.groups.push_back({-1, all});
    budget_ = chance(6) ? 48 << 20 : 12 << 20;
    draw_entries();
    return std::move(program_);
  }

 private:
  bool chance(std::uint64_t one_in) { return prng_.below(one_in) == 0; }
  std::int64_t below(std::int64_t bound) {
    return static_cast<std::int64_t>(prng_.below(static_cast<std::uint64_t>(bound)));
  }
  int small(int bound) { return static_cast<int>(below(bound)); }

  // Calls of many segments, and ranks that sleep soon. Small buffers make segments short, and large
  // ones let ranks begin several.
  void prefer_segments() {
    constexpr const char* kBuffers[] = {"64K", "256K", "8M", "64M"};
    program_.settings["UNISONO_BUFFERS"] = kBuffers[prng_.below(4)];
    if (chance(2)) program_.settings["UNISONO_SPIN"] = "0";
    if (chance(2)) program_.settings["UNISONO_ENGINE"] = "inline";
  }

  int draw_ranks() {
    if (chance(20)) return 1;
    const int most = chance(3) ? limits_.most_ranks : std::min(limits_.most_ranks, 4);
    return 2 + small(most - 1);
  }

  // Derivations come between calls, which are then on all communicators there are. Rounds of
  // several calls are mixed.
  void draw_entries() {
    int calls = 3 + small(16);
    int derivations = small(4);
    std::vector<Entry> later;
    while (calls > 0 || derivations > 0 || !later.empty()) {
      const int kind = small(4);
      if (kind == 0 && derivations > 0) {
        --derivations;
        draw_derivation();
      } else if (kind == 1 && !later.empty()) {
        take_round(later);
      } else if (calls > 0) {
        --calls;
        draw_call(later);
      } else if (!later.empty()) {
        take_round(later);
      }
    }
  }

  void take_round(std::vector<Entry>& later) {
    const std::size_t at = prng_.below(later.size());
    Entry& entry = later[at];
    const int call = entry.call;
    // Rounds of a call keep their order.
    const auto first = std::ranges::find_if(later, [&](const Entry& e) { return e.call == call; });
    program_.entries.push_back(*first);
    later.erase(first);
  }

  void draw_derivation() {
    Derivation made;
    made.parent = small(static_cast<int>(program_.groups.size()));
    made.how = static_cast<Derivation::How>(small(3));
    const Members parent = program_.groups[static_cast<std::size_t>(made.parent)].members;
    const auto size = static_cast<int>(parent.size());
    const auto number = static_cast<int>(program_.derivations.size());
    if (made.how == Derivation::How::dup) {
      program_.groups.push_back({number, parent});
    } else if (made.how == Derivation::How::list) {
      made.list.resize(parent.size());
      std::iota(made.list.begin(), made.list.end(), 0);
      std::shuffle(made.list.begin(), made.list.end(), prng_);
      made.list.resize(static_cast<std::size_t>(1 + small(size)));
      Members members;
      for (const int rank : made.list) members.push_back(parent[static_cast<std::size_t>(rank)]);
      program_.groups.push_back({number, members});
    } else {
      split(made, parent, number);
    }
    program_.derivations.push_back(made);
    program_.entries.push_back({number, -1, 0});
  }

  void split(Derivation& made, const Members& parent, int number) {
    const int colors = 1 + small(3);
    for (std::size_t r = 0; r < parent.size(); ++r) {
      made.colors.push_back(chance(8) ? -1 : small(colors));
      made.keys.push_back(small(5) - 2);
    }
    for (int color = 0; color < colors; ++color) {
      std::vector<std::pair<int, int>> by_key;  // and the old rank
      for (std::size_t r = 0; r < parent.size(); ++r) {
        if (made.colors[r] == color) by_key.emplace_back(made.keys[r], static_cast<int>(r));
      }
      std::ranges::sort(by_key);
      Members members;
      for (const auto& [key, rank] : by_key) {
        members.push_back(parent[static_cast<std::size_t>(rank)]);
      }
      if (!members.empty()) program_.groups.push_back({number, members});
    }
  }

  void draw_call(std::vector<Entry>& later) {
    Call call;
    call.group = small(static_cast<int>(program_.groups.size()));
    const auto size = static_cast<int>(group_of(call).members.size());
    call.function = draw_function();
    // An element has to fit into the smallest buffers.
    const bool is_roomy = program_.settings["UNISONO_BUFFERS"] == "64M";
    call.type = small(is_roomy ? kAllTypes : kAllTypes - 1);
    if (is_reduction(call.function) && chance(2)) call.type = 1 + small(UNISONO_FLOAT64);
    if (is_reduction(call.function)) draw_operator(call);
    call.root = is_rooted(call.function) ? small(size) : 0;
    call.in_place = static_cast<InPlace>(small(3));
    call.gaps = chance(2);
    call.shared_input = chance(6);
    const int rounds = chance(2) ? 1 : 2 + small(3);
    draw_counts(call, size);
    shorten(call, rounds, size);
    if (call.function == Function::many_to_many && !chance(4)) {
      for (int r = 0; r < size; ++r) call.receives.push_back(small(2));
    }
    const auto number = static_cast<int>(program_.calls.size());
    program_.calls.push_back(call);
    program_.entries.push_back({-1, number, 0});
    for (int round = 1; round < rounds; ++round) later.push_back({-1, number, round});
  }

  const Group& group_of(const Call& call) const {
    return program_.groups[static_cast<std::size_t>(call.group)];
  }

  // Those with most ways to go wrong come more often, and one that each program prefers.
  Function draw_function() {
    if (often_ != Function::barrier && chance(2)) return often_;
    const int drawn = small(kFunctions + 8);
    if (drawn < kFunctions) return static_cast<Function>(drawn);
    constexpr Function kOften[] = {Function::reduce_scatter,
                                   Function::reduce_scatter,
                                   Function::reduce_scatter,
                                   Function::allreduce,
                                   Function::reduce_scatter_block,
                                   Function::scan,
                                   Function::alltoallv,
                                   Function::allgatherv};
    return kOften[drawn - kFunctions];
  }

  void draw_operator(Call& call) {
    if (call.type >= kBuiltIn || chance(8)) {
      call.op = chance(3) ? kOwnCommutative : kOwnOrdered;
      return;
    }
    std::vector<int> fitting;
    for (int op = 0; op < harness::kOperators; ++op) {
      if (harness::fits(op, call.type)) fitting.push_back(op);
    }
    call.op = fitting[prng_.below(fitting.size())];
    if (harness::fits(UNISONO_SUM, call.type) && chance(3)) call.op = UNISONO_SUM;
  }

  std::int64_t unit(const Call& call) const {
    return call.function == Function::alltoallw
               ? kUnit
               : static_cast<std::int64_t>(size_of_type(call.type));
  }

  // Elements; often about the sizes where the library changes its way.
  std::int64_t draw_count(const Call& call) {
    const int kind = small(16);
    const std::int64_t size = unit(call);
    if (likes_segments_ && kind < 10) {
      return ((std::int64_t{4096} << below(8)) + below(4096)) / size + below(3) - 1;
    }
    if (kind < 5) return below(17);
    if (kind < 8) return below(4096) / size;
    if (kind < 11) {  // buffers and segments are powers of two, less some lines, by the ranks
      const std::int64_t power = std::int64_t{64} << below(13);
      const std::int64_t lines = chance(2) ? 0 : 8 * below(32);
      return std::max<std::int64_t>(0, (power - lines) / (1 + below(8)) / size + below(3) - 1);
    }
    if (kind < 14) return below(std::int64_t{64} << below(13)) / size;
    return below(std::int64_t{4} << 20) / size;
  }

  void draw_counts(Call& call, int size) {
    if (call.function == Function::barrier) return;
    const std::int64_t most = draw_count(call);
    call.counts = {most};
    if (has_rank_counts(call.function)) {
      call.counts = draw_blocks(most, size);
    } else if (has_pairs(call.function)) {
      call.counts.clear();
      for (int from = 0; from < size; ++from) {
        const std::vector<std::int64_t> row = draw_blocks(most, size);
        call.counts.insert(call.counts.end(), row.begin(), row.end());
      }
      if (call.in_place != InPlace::nowhere) mirror(call.counts, size);
    }
  }

  std::vector<std::int64_t> draw_blocks(std::int64_t most, int size) {
    std::vector<std::int64_t> counts;
    const int kind = small(7);
    const int special = chance(2) ? 0 : small(size);
    for (int r = 0; r < size; ++r) {
      const std::int64_t any = below(most + 1);
      const std::int64_t few = below(std::min<std::int64_t>(most + 1, 40));
      const std::int64_t choices[] = {any,                        // anyhow
                                      r == special ? most : few,  // one is long
                                      r == special ? few : most,  // one is short
                                      r == special ? any : most,
                                      chance(2) ? 0 : any,  // many are empty
                                      std::max<std::int64_t>(0, most + below(3) - 1),
                                      most * (r + 1) / size};  // ascending
      counts.push_back(choices[kind]);
    }
    return counts;
  }

  // In place, a block is replaced by one of the same length.
  static void mirror(std::vector<std::int64_t>& counts, int size) {
    const auto n = static_cast<std::size_t>(size);
    for (std::size_t from = 0; from < n; ++from) {
      for (std::size_t to = 0; to < from; ++to) counts[from * n + to] = counts[to * n + from];
    }
  }

  // As the bytes that all ranks have in their buffers allow.
  void shorten(Call& call, int rounds, int size) {
    for (;;) {
      const std::int64_t all = sum_of(call.counts);
      const bool is_vector = !is_block_function(call.function);
      const std::int64_t elements = has_pairs(call.function) ? 2 * all
                                    : has_rank_counts(call.function) || is_vector
                                        ? 2 * all * size
                                        : 2 * all * size * size;
      if (elements * unit(call) * rounds <= budget_) {
        budget_ -= elements * unit(call) * rounds;
        return;
      }
      if (all == 0) return;
      for (std::int64_t& count : call.counts) count /= 2;
    }
  }
  static bool is_block_function(Function f) {
    return f == Function::allgather || f == Function::gather || f == Function::scatter ||
           f == Function::alltoall || f == Function::reduce_scatter_block;
  }

  base::Prng prng_;
  Limits limits_;
  Program program_;
  std::int64_t budget_ = 0;
  bool likes_segments_ = false;
  Function often_ = Function::barrier;
};

std::string describe_members(const Members& members) {
  return fmt::format("{{{}}}", fmt::join(members, ","));
}

std::string describe_counts(const std::vector<std::int64_t>& counts) {
  return fmt::format("{}", fmt::join(counts, " "));
}

std::string describe(const Program& program, const Call& call) {
  const Group& group = program.groups[static_cast<std::size_t>(call.group)];
  std::string text = kNames[static_cast<std::size_t>(call.function)];
  text += fmt::format(" on {} (group {})", describe_members(group.members), call.group);
  if (call.function == Function::barrier) return text;
  if (call.function != Function::alltoallw) text += ", " + name_of_type(call.type);
  if (is_reduction(call.function)) text += ", " + name_of_operator(call.op);
  if (is_rooted(call.function)) text += fmt::format(", root {}", call.root);
  text += ", counts " + describe_counts(call.counts);
  if (call.function == Function::alltoallw) text += fmt::format(" of {} bytes", kUnit);
  if (!call.receives.empty()) text += fmt::format(", receives {}", fmt::join(call.receives, " "));
  if (call.in_place == InPlace::everywhere) text += ", in place";
  if (call.in_place == InPlace::at_some) text += ", in place at some";
  if (call.gaps) text += ", gaps";
  if (call.shared_input) text += ", blocks of inputs overlap";
  return text;
}

std::string describe(const Program& program, const Derivation& made) {
  std::string text = fmt::format("group {}: ", made.parent);
  if (made.how == Derivation::How::dup) text += "dup";
  if (made.how == Derivation::How::list) {
    text += fmt::format("from list {}", fmt::join(made.list, " "));
  }
  if (made.how == Derivation::How::split) {
    text += fmt::format("split, colors {}, keys {}", fmt::join(made.colors, " "),
                        fmt::join(made.keys, " "));
  }
  const auto number = static_cast<int>(&made - program.derivations.data());
  for (std::size_t g = 0; g < program.groups.size(); ++g) {
    if (program.groups[g].origin != number) continue;
    text += fmt::format("; group {}: {}", g, describe_members(program.groups[g].members));
  }
  return text;
}

}  // namespace

bool is_rooted(Function f) {
  return f == Function::broadcast || f == Function::reduce || f == Function::gather ||
         f == Function::scatter || f == Function::gatherv || f == Function::scatterv;
}
bool is_reduction(Function f) {
  return f == Function::reduce || f == Function::allreduce || f == Function::reduce_scatter_block ||
         f == Function::reduce_scatter || f == Function::scan || f == Function::exscan;
}
bool has_pairs(Function f) { return f == Function::alltoallv || f == Function::alltoallw; }

Program Program::draw(std::uint64_t seed, const Limits& limits) {
  return Drawing(seed, limits).draw();
}

std::uint64_t key_of(const Program& program, int call, int round) {
  return harness::mixed(program.seed, static_cast<std::uint64_t>(call * 64 + round));
}

std::string describe(const Program& program, const Entry& entry) {
  if (entry.derivation >= 0) {
    return describe(program, program.derivations[static_cast<std::size_t>(entry.derivation)]);
  }
  std::string text = describe(program, program.calls[static_cast<std::size_t>(entry.call)]);
  if (entry.round > 0) text += fmt::format(", round {} of call {}", entry.round, entry.call);
  return text;
}

std::string listing(const Program& program) {
  std::string text = fmt::format("{} ranks", program.ranks);
  for (const auto& [name, value] : program.settings) text += fmt::format("\n{}='{}'", name, value);
  if (!program.constants.empty()) text += "\nmachine file:";
  for (const auto& [name, value] : program.constants) text += fmt::format(" {} {}", name, value);
  for (std::size_t i = 0; i < program.entries.size(); ++i) {
    text += fmt::format("\n{:3}: {}", i, describe(program, program.entries[i]));
  }
  return text + (program.ends_together ? "\nall: barrier\n" : "\n");
}

}  // namespace unisono::test::programs
