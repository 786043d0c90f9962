// SPDX-License-Identifier: BSD-3-Clause
// Program: what the ranks of a random job do, as it follows from a seed: its settings, its
// communicators, and collectives in the order in which all members start them. All that ranks may
// decide for themselves, they draw from the seed and their number (rank_run.hpp). For tests only;
// values.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace unisono::test::programs {

enum class Function : std::uint8_t {
  barrier,
  broadcast,
  reduce,
  allreduce,
  allgather,
  gather,
  scatter,
  alltoall,
  reduce_scatter_block,
  scan,
  exscan,
  allgatherv,
  many_to_many,
  reduce_scatter,
  gatherv,
  scatterv,
  alltoallv,
  alltoallw
};
inline constexpr int kFunctions = 18;

bool is_rooted(Function function);
bool is_reduction(Function function);
bool has_pairs(Function function);  // counts for each pair of ranks

// The ranks of a communicator, by their ranks in the world.
using Members = std::vector<int>;

// A call that makes communicators: all members of `parent` make it.
struct Derivation {
  enum class How : std::uint8_t { dup, split, list };

  int parent = 0;  // a group
  How how = How::dup;
  std::vector<int> colors, keys;  // by member of the parent
  std::vector<int> list;          // of ranks in the parent
};

// The members of one communicator. Derivation `origin` makes it; -1: the world.
struct Group {
  int origin = -1;
  Members members;
};

enum class InPlace : std::uint8_t { nowhere, everywhere, at_some };

struct Call {
  Function function = Function::barrier;
  int group = 0;
  int type = 0, op = 0;  // see types.hpp
  int root = 0;
  // One for a vector or all blocks; or one a rank; or one a pair, by senders and then receivers.
  std::vector<std::int64_t> counts = {0};
  std::vector<int> receives;  // many_to_many: by rank; empty: all do
  InPlace in_place = InPlace::nowhere;
  bool gaps = false;          // blocks lie anyhow, with gaps
  bool shared_input = false;  // blocks of the input lie over each other
};

// One after the other at each rank: a derivation or the next round of a call.
struct Entry {
  int derivation = -1;
  int call = -1;
  int round = 0;
};

struct Limits {
  int most_ranks = 9;
  bool hosts = false;  // settings of jobs on several hosts, too
};

struct Program {
  std::uint64_t seed = 0;
  int ranks = 1;
  std::map<std::string, std::string> settings;
  std::map<std::string, std::int64_t> constants;  // of its machine file; none: the default machine
  std::vector<Derivation> derivations;
  std::vector<Group> groups;
  std::vector<Call> calls;
  std::vector<Entry> entries;
  bool same_forms = false;     // all ranks make a call in the same form
  bool ends_together = false;  // with a barrier before communicators end

  static Program draw(std::uint64_t seed, const Limits& limits);
};

// A key of the values of a call in one of its rounds.
std::uint64_t key_of(const Program& program, int call, int round);

// For people: all of it, and one entry in a line.
std::string listing(const Program& program);
std::string describe(const Program& program, const Entry& entry);

}  // namespace unisono::test::programs
