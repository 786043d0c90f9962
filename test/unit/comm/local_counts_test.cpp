// SPDX-License-Identifier: BSD-3-Clause
// Collectives whose ranks know their own counts only: lengths from nothing to more than a receive
// buffer holds, in buffers with gaps, with and without single copies, in place; and counts that
// differ.
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "harness/world.hpp"

namespace unisono::test::local_counts_test {
namespace {

using plan::Call;
using schedule::Blocks;
using schedule::Collective;
using Counts = std::vector<std::int64_t>;
using Values = std::vector<std::int64_t>;

constexpr std::int64_t kGap = 3;
constexpr std::int64_t kUntouched = -7;

std::int64_t value(int from, int to, std::int64_t element) {
  return (from * 100 + to) * 1'000'000 + element;
}

// The exchange of all ranks together; counts[from][to].
struct Exchange {
  int ranks;
  std::vector<Counts> counts;

  std::int64_t count(int from, int to) const {
    return counts[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)];
  }
};

// A buffer of blocks with gaps between them.
struct Gapped {
  std::vector<std::int64_t> places;
  Values values;

  explicit Gapped(const Counts& lengths) {
    std::int64_t end = kGap;
    for (const std::int64_t length : lengths) {
      places.push_back(end);
      end += length + kGap;
    }
    values.assign(static_cast<std::size_t>(end), kUntouched);
  }
  std::int64_t& at(int block, std::int64_t element) {
    return values[static_cast<std::size_t>(places[static_cast<std::size_t>(block)] + element)];
  }
  plan::Displacements displacements() const {
    return std::make_shared<const std::vector<std::int64_t>>(places);
  }
};

struct Rank {
  Counts sent, received;  // by peer; zero where the rank has nothing to do with it
  Gapped input, output;
  Call call;
  comm::Pending pending;

  Rank(Counts to_send, Counts to_receive)
      : sent(std::move(to_send)), received(std::move(to_receive)), input(sent), output(received) {}
};

std::vector<std::unique_ptr<Rank>> prepare(const Exchange& exchange, Collective collective,
                                           int root) {
  std::vector<std::unique_ptr<Rank>> all;
  for (int r = 0; r < exchange.ranks; ++r) {
    Counts sent, received;
    for (int peer = 0; peer < exchange.ranks; ++peer) {
      const bool sends = collective == Collective::alltoall ||
                         (collective == Collective::gather ? peer == root : r == root);
      const bool receives = collective == Collective::alltoall ||
                            (collective == Collective::gather ? r == root : peer == root);
      sent.push_back(sends ? exchange.count(r, peer) : 0);
      received.push_back(receives ? exchange.count(peer, r) : 0);
    }
    auto rank = std::make_unique<Rank>(sent, received);
    for (int peer = 0; peer < exchange.ranks; ++peer) {
      for (std::int64_t i = 0; i < sent[static_cast<std::size_t>(peer)]; ++i) {
        rank->input.at(peer, i) = value(r, peer, i);
      }
    }
    Call& call = rank->call;
    call.collective = collective;
    call.purpose = plan::Purpose::user_blocks;
    call.local_counts = true;
    call.type = 7;
    call.element_bytes = 8;
    call.root = root;
    const bool is_root = r == root;
    if (collective == Collective::alltoall) {
      call.blocks = *Blocks::of_pairs_of(r, sent, received);
      call.input_places = rank->input.displacements();
      call.output_places = rank->output.displacements();
    } else if (collective == Collective::gather) {
      Counts blocks = is_root ? received : Counts(received.size(), 0);
      if (!is_root) blocks[static_cast<std::size_t>(r)] = sent[static_cast<std::size_t>(root)];
      call.blocks = *Blocks::of_ranks(blocks);
      call.output_places = rank->output.displacements();
    } else {
      Counts blocks = is_root ? sent : Counts(sent.size(), 0);
      if (!is_root) blocks[static_cast<std::size_t>(r)] = received[static_cast<std::size_t>(root)];
      call.blocks = *Blocks::of_ranks(blocks);
      call.input_places = rank->input.displacements();
    }
    all.push_back(std::move(rank));
  }
  return all;
}

// A gather's input and a scatter's output are one block, without gaps before it.
void start(World& world, int r, Rank& rank, int root) {
  const void* input = rank.input.values.data();
  void* output = rank.output.values.data();
  if (rank.call.collective == Collective::gather) input = &rank.input.at(root, 0);
  if (rank.call.collective == Collective::scatter) output = &rank.output.at(root, 0);
  auto plan = world.at(r).plan(rank.call);
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  ASSERT_TRUE(world.at(r).start(**plan, input, output, rank.pending).ok());
}

void finish(World& world, std::vector<std::unique_ptr<Rank>>& all) {
  constexpr int kMostSteps = 4'000'000;
  const auto running = [&] {
    return std::ranges::any_of(
        all, [](const auto& r) { return r->pending.state == comm::Pending::State::running; });
  };
  for (int steps = 0; steps < kMostSteps && running(); ++steps) world.step();
}

void check(World& world, const Exchange& exchange, Collective collective, int root) {
  SCOPED_TRACE(std::string(schedule::collective_name(collective)) + ", root " +
               std::to_string(root));
  auto all = prepare(exchange, collective, root);
  for (int r = 0; r < exchange.ranks; ++r) {
    start(world, r, *all[static_cast<std::size_t>(r)], root);
    if (testing::Test::HasFatalFailure()) return;
  }
  finish(world, all);
  for (int r = 0; r < exchange.ranks; ++r) {
    Rank& rank = *all[static_cast<std::size_t>(r)];
    ASSERT_EQ(rank.pending.state, comm::Pending::State::complete) << "rank " << r;
    EXPECT_EQ(rank.pending.staging.offset, 0);
    Gapped expected(rank.received);
    for (int peer = 0; peer < exchange.ranks; ++peer) {
      for (std::int64_t i = 0; i < rank.received[static_cast<std::size_t>(peer)]; ++i) {
        expected.at(peer, i) = value(peer, r, i);
      }
    }
    ASSERT_EQ(rank.output.values, expected.values) << "rank " << r;
  }
}

Exchange random_exchange(int ranks, std::uint64_t seed) {
  base::Prng random(seed);
  Exchange exchange{ranks, {}};
  // Nothing, in a line, at its border, in the receive buffer, and more than a share of it.
  constexpr std::int64_t kLengths[] = {0, 1, 5, 6, 7, 100, 1500, 20'000};
  for (int from = 0; from < ranks; ++from) {
    Counts row;
    for (int to = 0; to < ranks; ++to) row.push_back(kLengths[random.below(std::size(kLengths))]);
    exchange.counts.push_back(std::move(row));
  }
  return exchange;
}

class LocalCounts : public testing::TestWithParam<const char*> {
 protected:
  static WorldOptions options(int ranks) {
    WorldOptions options;
    options.ranks = ranks;
    const std::string way = GetParam();
    options.settings = {{"UNISONO_SINGLE_COPY", way == "buffers" ? "off" : "on"}};
    if (way == "pull") options.settings["UNISONO_SINGLE_COPY_FROM"] = "64";
    options.virtual_network = way == "virtual";
    options.virtual_datagrams = way == "datagrams";
    if (options.virtual_network || options.virtual_datagrams) options.settings.clear();
    return options;
  }
};

TEST_P(LocalCounts, EveryBlockArrivesAndNothingElseIsTouched) {
  for (const int ranks : {1, 2, 3, 5, 8}) {
    World world(options(ranks));
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      SCOPED_TRACE("P " + std::to_string(ranks) + ", seed " + std::to_string(seed));
      const Exchange exchange = random_exchange(ranks, seed);
      const int root = static_cast<int>(seed) % ranks;
      for (const Collective collective :
           {Collective::gather, Collective::scatter, Collective::alltoall}) {
        check(world, exchange, collective, root);
        if (HasFatalFailure()) return;
      }
    }
  }
}

// To get pages costs more than to fill them.
TEST_P(LocalCounts, TheMemoryOfLongBlocksServesTheNextOperation) {
  World world(options(2));
  int requests = 0;
  world.memory_at(1).refuse_where([&requests](const char* purpose) {
    requests += std::string_view(purpose) == "blocks that others will fetch" ? 1 : 0;
    return false;
  });
  const int for_each = GetParam() == std::string("pull") ? 0 : 1;
  int expected = 0;
  for (const std::int64_t length : {20'000, 40'000}) {
    const Exchange exchange{2, std::vector<Counts>(2, Counts(2, length))};
    expected += for_each;
    for (int call = 0; call < 3; ++call) check(world, exchange, Collective::gather, 0);
    EXPECT_EQ(requests, expected) << length;
  }
  const Exchange shorter{2, std::vector<Counts>(2, Counts(2, 15'000))};
  check(world, shorter, Collective::gather, 0);
  EXPECT_EQ(requests, expected);
}

// Rank 1 runs as far ahead of the root as it may. So it uses all its memory, and then again that of
// which the root has just read the blocks.
TEST_P(LocalCounts, ASenderThatIsAheadOverwritesNothing) {
  constexpr int kCalls = 200;
  constexpr std::int64_t kOfCall = 1'000'000'000;
  struct Case {
    std::int64_t length;
    int ahead;  // at least so many calls
  };
  for (const auto& [length, ahead] : {Case{5, 60}, Case{100, 60}, Case{1000, 8}, Case{20'000, 3}}) {
    SCOPED_TRACE(length);
    World world(options(2));
    const Exchange exchange{2, {{0, 0}, {length, 0}}};
    std::vector<std::vector<std::unique_ptr<Rank>>> calls;
    int received = 0;
    int most_ahead = 0;
    const auto receive = [&] {
      start(world, 0, *calls[static_cast<std::size_t>(received++)][0], 0);
    };
    for (int call = 0; call < kCalls; ++call) {
      calls.push_back(prepare(exchange, Collective::gather, 0));
      Rank& sender = *calls.back()[1];
      for (std::int64_t i = 0; i < length; ++i) sender.input.at(0, i) += call * kOfCall;
      start(world, 1, sender, 0);
      world.step();
      while (sender.pending.state == comm::Pending::State::running && received <= call) {
        receive();
        finish(world, calls[static_cast<std::size_t>(received - 1)]);
        world.step();
      }
      ASSERT_EQ(sender.pending.state, comm::Pending::State::complete) << call;
      most_ahead = std::max(most_ahead, call + 1 - received);
    }
    while (received < kCalls) receive();
    for (int call = 0; call < kCalls; ++call) {
      auto& of_call = calls[static_cast<std::size_t>(call)];
      finish(world, of_call);
      ASSERT_EQ(of_call[0]->pending.state, comm::Pending::State::complete) << call;
      for (std::int64_t i = 0; i < length; ++i) {
        ASSERT_EQ(of_call[0]->output.at(1, i), value(1, 0, i) + call * kOfCall) << call;
      }
    }
    if (GetParam() != std::string("pull")) {
      EXPECT_GE(most_ahead, ahead);
    }
  }
}

// In place, a block may be overwritten before its receiver has it: it has to be staged.
TEST_P(LocalCounts, AllToAllInPlace) {
  for (const int ranks : {2, 5}) {
    World world(options(ranks));
    Exchange exchange = random_exchange(ranks, 9);
    for (int a = 0; a < ranks; ++a) {
      for (int b = 0; b < a; ++b) {
        exchange.counts[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)] =
            exchange.count(b, a);
      }
    }
    auto all = prepare(exchange, Collective::alltoall, 0);
    for (int r = 0; r < ranks; ++r) {
      Rank& rank = *all[static_cast<std::size_t>(r)];
      rank.call.in_place = true;
      auto plan = world.at(r).plan(rank.call);
      ASSERT_TRUE(plan.ok());
      ASSERT_TRUE(
          world.at(r)
              .start(**plan, rank.input.values.data(), rank.input.values.data(), rank.pending)
              .ok());
    }
    finish(world, all);
    for (int r = 0; r < ranks; ++r) {
      Rank& rank = *all[static_cast<std::size_t>(r)];
      ASSERT_EQ(rank.pending.state, comm::Pending::State::complete);
      for (int peer = 0; peer < ranks; ++peer) {
        for (std::int64_t i = 0; i < exchange.count(peer, r); ++i) {
          ASSERT_EQ(rank.input.at(peer, i), value(peer, r, i)) << "rank " << r;
        }
      }
    }
  }
}

TEST_P(LocalCounts, CountsThatDisagreeAreAMismatchThatNamesBoth) {
  for (const std::int64_t length : {2, 1000, 20'000}) {
    World fresh(options(3));
    const Exchange exchange{3, std::vector<Counts>(3, Counts(3, length))};
    auto all = prepare(exchange, Collective::gather, 0);
    Counts wrong(3, 0);
    wrong[1] = length + 1;
    all[1]->call.blocks = *Blocks::of_ranks(wrong);
    for (int r = 0; r < 3; ++r) start(fresh, r, *all[static_cast<std::size_t>(r)], 0);
    finish(fresh, all);
    EXPECT_EQ(all[0]->pending.state, comm::Pending::State::failed);
    const auto error = fresh.at(0).failures().tell();
    EXPECT_EQ(error.code, base::Code::mismatch);
    EXPECT_NE(error.message.find("rank 1 sends " + std::to_string((length + 1) * 8) + " bytes"),
              std::string::npos)
        << error.message;
    EXPECT_NE(error.message.find("expects " + std::to_string(length * 8)), std::string::npos)
        << error.message;
  }
}

// One side knows of a message that the other does not: whoever waits for it is told, and does not
// wait for ever. A message is missed by its receiver, or by its sender if that waits until it has
// been read.
TEST(LocalCountsSilence, AMessageThatOneSideDoesNotKnowOfIsAMismatch) {
  for (const bool sent : {false, true}) {
    SCOPED_TRACE(sent ? "sent and not expected" : "expected and not sent");
    WorldOptions options;
    World world(options);
    const Exchange exchange{2, {{0, 0}, {100'000, 0}}};
    auto all = prepare(exchange, Collective::gather, 0);
    Rank& ignorant = *all[sent ? 0 : 1];
    Rank& waiting = *all[sent ? 1 : 0];
    ignorant.call.blocks = *Blocks::of_ranks({0, 0});
    for (int r = 0; r < 2; ++r) start(world, r, *all[static_cast<std::size_t>(r)], 0);
    EXPECT_EQ(ignorant.pending.state, comm::Pending::State::complete);
    comm::Communicator& waiter = world.at(sent ? 1 : 0);
    comm::Communicator* const communicators[] = {&waiter};
    comm::Pending* const awaited[] = {&waiting.pending};
    comm::Communicator::wait_any(communicators, awaited);
    EXPECT_EQ(waiting.pending.state, comm::Pending::State::failed);
    const auto error = waiter.failures().tell();
    EXPECT_EQ(error.code, base::Code::mismatch);
    EXPECT_NE(
        error.message.find(sent ? "rank 1 waits in operation 0" : "rank 0 waits in operation 0"),
        std::string::npos)
        << error.message;
  }
}

// Rank 1 leaves its call before the root has started, and its communicator, too. Rank 2 takes as
// much memory as becomes free. The root may end its call well, so it has to get what rank 1 has
// sent.
TEST(LocalCountsStranded, ALateMemberReadsWhatAnEndedOneHasLeft) {
  for (const char* const single_copy : {"on", "off"}) {
    SCOPED_TRACE(std::string("single copies ") + single_copy);
    WorldOptions options;
    options.ranks = 3;
    options.settings = {{"UNISONO_SINGLE_COPY", single_copy}};
    World world(options);
    const std::int64_t at_start = world.given_out(0);
    const Exchange exchange{3, std::vector<Counts>(3, Counts(3, 20'000))};
    auto all = prepare(exchange, Collective::gather, 0);
    for (const int r : {1, 2}) start(world, r, *all[static_cast<std::size_t>(r)], 0);
    const std::int64_t staged = world.given_out(0) - at_start;
    ASSERT_GT(staged, 0);
    all[1].reset();
    world.end(1);

    memory::JobMemory& memory = world.memory_at(2);
    const std::int64_t bytes = staged / 2;
    auto reused = memory.allocate(bytes);
    ASSERT_TRUE(reused.ok());
    ASSERT_TRUE(memory.commit(*reused, bytes, "a test"));
    std::memset(memory.at(*reused), 0x5a, static_cast<std::size_t>(bytes));

    start(world, 0, *all[0], 0);
    while (all[0]->pending.state == comm::Pending::State::running) world.at(0).progress();
    ASSERT_EQ(all[0]->pending.state, comm::Pending::State::complete);
    for (int peer = 0; peer < 3; ++peer) {
      for (std::int64_t i = 0; i < exchange.count(peer, 0); ++i) {
        ASSERT_EQ(all[0]->output.at(peer, i), value(peer, 0, i)) << "from rank " << peer;
      }
    }

    while (all[2]->pending.state == comm::Pending::State::running) world.at(2).progress();
    world.end(2);
    EXPECT_GE(world.given_out(0), at_start + 2 * bytes) << "what rank 1 left, and the test's";
    world.end(0);
    memory.release(*reused, bytes);
    EXPECT_LE(world.given_out(0), at_start) << "the last member has given it back";
  }
}

INSTANTIATE_TEST_SUITE_P(Over, LocalCounts,
                         testing::Values("pull", "staged", "buffers", "virtual", "datagrams"),
                         [](const auto& suite) { return std::string(suite.param); });

}  // namespace
}  // namespace unisono::test::local_counts_test
