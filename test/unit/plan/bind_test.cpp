// SPDX-License-Identifier: BSD-3-Clause
// Binding and interpreting by hand: two ranks in one buffer.
#include "plan/bind/bind.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "algorithm/algorithm.hpp"
#include "engine/interpreter.hpp"
#include "engine/size_queue.hpp"
#include "plan/bind/pulls.hpp"
#include "plan/bind/references.hpp"
#include "plan/bind/remote_partners.hpp"
#include "transport/shm/shm.hpp"

namespace unisono::plan::bind_test {
namespace {

using engine::Counters;
using engine::Frame;
using engine::Machine;
using engine::make_tag;
using engine::Outcome;
using engine::Position;
using schedule::Collective;
using schedule::Schedule;
using schedule::Shape;

std::vector<Schedule> build_set(std::string_view name, const Shape& shape) {
  const auto* row = algorithm::find(shape.collective, name);
  std::vector<Schedule> set;
  for (int r = 0; r < shape.ranks; ++r) {
    set.push_back(*algorithm::build(*row, shape, algorithm::default_parameters(*row, shape), r));
  }
  return set;
}

BindOptions options_for(int ranks, std::int64_t element_bytes) {
  BindOptions options;
  options.element_bytes = element_bytes;
  options.geometry = {.ranks = ranks, .slot_indexes = 2, .lines = 32, .data_bytes = 8192};
  return options;
}

std::vector<const Step*> steps_of(const Program& program, StepKind kind) {
  std::vector<const Step*> found;
  for (const Step& step : program.steps) {
    if (step.kind == kind) found.push_back(&step);
  }
  return found;
}

TEST(Bind, APayloadThatFitsSharesItsLineWithTheFlag) {
  const auto set = build_set("pairwise", {Collective::allreduce, 2, 0, 7, false});
  const auto program = bind_schedules(set, 0, options_for(2, 8))[0];
  const auto puts = steps_of(program, StepKind::put);
  ASSERT_EQ(puts.size(), 1U);
  EXPECT_EQ(puts[0]->bytes, kLinePayload);
  EXPECT_EQ(puts[0]->target.offset / kLineBytes, puts[0]->flag / kLineBytes);
}

TEST(Bind, ALongerPayloadLiesInTheDataAreaAndItsFlagInALine) {
  const auto set = build_set("pairwise", {Collective::allreduce, 2, 0, 8, false});
  const BindOptions options = options_for(2, 8);
  const auto program = bind_schedules(set, 0, options)[0];
  const Step& put = *steps_of(program, StepKind::put)[0];
  const std::int64_t buffer = options.geometry.rank_stride();  // of rank 1, the peer
  EXPECT_GE(put.target.offset - buffer, options.geometry.lines * kLineBytes);
  EXPECT_LT(put.flag - buffer, options.geometry.lines * kLineBytes);
  EXPECT_EQ(put.flag % kLineBytes, kLinePayload);
}

TEST(Bind, FlagsNeverLieWherePayloadMay) {
  for (const auto& row : algorithm::table()) {
    for (const std::int64_t count : {0, 1, 7, 8, 40}) {
      const Shape shape{row.collective, 5, 0, row.collective == Collective::barrier ? 0 : count,
                        false};
      if (!algorithm::why_illegal(row, shape, algorithm::default_parameters(row, shape)).empty()) {
        continue;
      }
      const auto set = build_set(row.name, shape);
      BindOptions options = options_for(5, 8);
      options.geometry.data_bytes = 1 << 15;
      options.helping = true;
      for (const Program& program : bind_schedules(set, 0, options)) {
        for (const Step& step : program.steps) {
          if (step.flag >= 0) {
            EXPECT_EQ(step.flag % kLineBytes, kLinePayload);
            EXPECT_LT(step.flag % options.geometry.rank_stride(),
                      options.geometry.lines * kLineBytes);
          }
          const Space space = step.target.space;
          if (step.kind == StepKind::wait ||
              (space != Space::receive_buffers && space != Space::data))
            continue;
          const std::int64_t at = step.target.offset % options.geometry.rank_stride();
          const std::int64_t end = at + step.bytes;
          if (space == Space::receive_buffers) {
            EXPECT_LT(at, options.geometry.lines * kLineBytes) << row.name;
            EXPECT_LE(at % kLineBytes + step.bytes, kLinePayload) << row.name;
          } else {
            EXPECT_GE(at, options.geometry.lines * kLineBytes) << row.name;
            EXPECT_LE(end, options.geometry.receive_buffer_bytes()) << row.name;
          }
        }
      }
    }
  }
}

// Two ranks of an allreduce by "ring" in one buffer, of which the last part is the callers' memory.
class TwoReferring : public testing::Test {
 protected:
  static constexpr std::int64_t kCount = 64;  // a block is longer than a line

  TwoReferring() {
    options_.refer_from = 1;
    const auto set = build_set("ring", {Collective::allreduce, 2, 0, kCount, false});
    const auto receive_buffers = static_cast<std::size_t>(options_.geometry.total_bytes());
    memory_.resize(receive_buffers + 4 * kBuffer);
    for (int r = 0; r < 2; ++r) {
      programs_.push_back(bind_schedules(set, r, options_)[static_cast<std::size_t>(r)]);
      machines_[r].job_ranks = kJobRanks;
      machines_[r].doorbells = &doorbells_;
      machines_[r].counters = &counters_;
      machines_[r].job_memory = memory_.data();
      machines_[r].job_memory_bytes = memory_.size();
      Frame& frame = frames_[r];
      frame.bases[static_cast<int>(Space::receive_buffers)] = memory_.data();
      frame.bases[static_cast<int>(Space::data)] = memory_.data();
      frame.bases[static_cast<int>(Space::input)] =
          memory_.data() + receive_buffers + 2 * r * kBuffer;
      frame.bases[static_cast<int>(Space::output)] =
          frame.bases[static_cast<int>(Space::input)] + kBuffer;
      frame.tag = make_tag(1, 7);
      frame.kernel = [](void* target, const void* left, const void* right, std::int64_t count,
                        const void*) {
        for (std::int64_t i = 0; i < count; ++i) {
          static_cast<std::int64_t*>(target)[i] = static_cast<const std::int64_t*>(left)[i] +
                                                  static_cast<const std::int64_t*>(right)[i];
        }
      };
      for (int i = 0; i < kCount; ++i) values(r, Space::input)[i] = 100 * (r + 1) + i;
    }
  }

  std::int64_t* values(int rank, Space space) {
    return reinterpret_cast<std::int64_t*>(frames_[rank].bases[static_cast<int>(space)]);
  }
  Outcome run(int rank) {
    const Program& program = programs_[static_cast<std::size_t>(rank)];
    return engine::run(program, frames_[rank], machines_[rank], at_[rank],
                       static_cast<std::int32_t>(program.steps.size()));
  }
  // Whether a payload lies in some data area.
  bool has_copies() const {
    for (int r = 0; r < 2; ++r) {
      const auto* data = memory_.data() + r * options_.geometry.rank_stride() +
                         options_.geometry.lines * kLineBytes;
      if (std::any_of(data, data + options_.geometry.data_bytes,
                      [](std::byte b) { return b != std::byte{0}; })) {
        return true;
      }
    }
    return false;
  }
  void expect_sums() {
    for (int r = 0; r < 2; ++r) {
      for (int i = 0; i < kCount; ++i) EXPECT_EQ(values(r, Space::output)[i], 300 + 2 * i);
    }
  }

  static constexpr std::int64_t kBuffer = kCount * 8;
  static constexpr int kJobRanks[2] = {0, 1};
  BindOptions options_ = options_for(2, 8);
  std::vector<std::byte> memory_;
  std::vector<Program> programs_;
  wait::SleeperTable sleepers_;
  wait::Doorbell bells_[2];
  wait::Doorbells doorbells_{sleepers_, bells_};
  Counters counters_;
  transport::SharedMemory transport_;
  Machine machines_[2] = {{.router = network::Router(transport_)},
                          {.router = network::Router(transport_)}};
  Frame frames_[2];
  Position at_[2];
};

TEST_F(TwoReferring, NothingIsCopiedAndASourceIsFreeAfterItsReaderOnly) {
  EXPECT_EQ(run(0), Outcome::blocked);
  EXPECT_EQ(run(1), Outcome::blocked);
  // Rank 0 has all that it needs of rank 1, but rank 1 has not read its result yet.
  EXPECT_EQ(run(0), Outcome::blocked);
  const auto& waits_at = programs_[0].steps[static_cast<std::size_t>(at_[0].pc)];
  EXPECT_EQ(waits_at.kind, StepKind::await_release);
  EXPECT_EQ(waits_at.peer, 1);
  EXPECT_EQ(run(1), Outcome::finished);
  EXPECT_EQ(run(0), Outcome::finished);
  expect_sums();
  EXPECT_FALSE(has_copies());
}

TEST_F(TwoReferring, OtherMemoryIsCopiedAndNobodyWaits) {
  for (Machine& machine : machines_) machine.job_memory_bytes = 1;
  EXPECT_EQ(run(0), Outcome::blocked);
  EXPECT_EQ(run(1), Outcome::blocked);
  EXPECT_EQ(run(0), Outcome::finished);
  EXPECT_EQ(run(1), Outcome::finished);
  expect_sums();
  EXPECT_TRUE(has_copies());
}

TEST(References, EverySourceIsReadBeforeItIsWrittenAgain) {
  for (const std::string_view name : {"ring", "reduce-scatter-allgather"}) {
    for (const int ranks : {2, 3, 4, 7}) {
      const auto set = build_set(name, {Collective::allreduce, ranks, 0, 1000, false});
      for (int r = 0; r < ranks; ++r) {
        const References references(set, r, 1);
        EXPECT_TRUE(references.any()) << name << " of " << ranks;
      }
    }
  }
  // Each rank overwrites what it has sent without word from the peer: never a reference.
  const auto set = build_set("pairwise", {Collective::allreduce, 2, 0, 1000, false});
  for (int r = 0; r < 2; ++r) EXPECT_FALSE(References(set, r, 1).any());
}

// A linear scatter sends no empty block. Only a sanitizer notices a read beside the ops.
TEST(References, ASlotThatNobodyFillsHasNone) {
  const auto* row = algorithm::find(Collective::reduce_scatter, "mock-reduce-scatter");
  Shape shape{.collective = Collective::reduce_scatter, .ranks = 3};
  shape.blocks = *schedule::Blocks::of_ranks({6, 4, 0});
  algorithm::Parameters parameters = algorithm::default_parameters(*row, shape);
  parameters.values[0] = *algorithm::read_value(row->parameters[0], "fnomial");
  parameters.values[3] = *algorithm::read_value(row->parameters[3], "linear");
  std::vector<Schedule> set;
  for (int r = 0; r < shape.ranks; ++r) {
    set.push_back(*algorithm::build(*row, shape, parameters, r));
  }
  std::set<std::pair<int, schedule::SlotId>> filled;
  for (const Schedule& each : set) {
    for (const schedule::Target& target : each.targets) filled.emplace(target.peer, target.slot);
  }
  int empty = 0;
  for (int r = 0; r < shape.ranks; ++r) {
    const References references(set, r, 1);
    const auto slots = std::ssize(set[static_cast<std::size_t>(r)].slots);
    for (schedule::SlotId slot = 0; slot < slots; ++slot) {
      if (filled.contains({r, slot})) continue;
      ++empty;
      EXPECT_EQ(references.received(slot), Reference::no) << r;
    }
  }
  EXPECT_EQ(empty, 1);
}

TEST(Bind, AStagedMulticastIsPutOnceForAllItsReceivers) {
  const auto set = build_set("flat", {Collective::broadcast, 5, 0, 1, false});
  BindOptions options = options_for(5, 8);
  EXPECT_EQ(steps_of(bind_schedules(set, 0, options)[0], StepKind::put).size(), 4U);
  options.staged_multicast = true;
  const auto program = bind_schedules(set, 0, options)[0];
  const auto puts = steps_of(program, StepKind::put);
  ASSERT_EQ(puts.size(), 1U);
  EXPECT_EQ(puts[0]->woken_count, 4);
  for (int r = 1; r < 5; ++r) {
    const auto receiver = bind_schedules(set, r, options)[static_cast<std::size_t>(r)];
    EXPECT_EQ(steps_of(receiver, StepKind::wait)[0]->flag, puts[0]->flag);
  }
}

// Ranks 0 and 4 share a host, and 4 is not in the group. For ranks like it there is no multicast
// between hosts, unless all targets are on this host.
TEST(Bind, AMulticastGoesToAllHostsAtOnceIfAllItsReceiversHearIt) {
  BindOptions options = options_for(5, 8);
  options.staged_multicast = true;
  options.hosts = topology::HostMap::of_labels(std::vector{0, 1, 2, 3, 0});
  options.group = {true, true, true, true, false};
  const auto set = build_set("flat", {Collective::broadcast, 5, 0, 1, false});
  const auto puts_of_root = [&](int root) {
    const auto from = build_set("flat", {Collective::broadcast, 5, root, 1, false});
    const auto program = bind_schedules(from, root, options)[static_cast<std::size_t>(root)];
    std::vector<Step> puts;
    for (const Step* put : steps_of(program, StepKind::put)) puts.push_back(*put);
    return puts;
  };
  // To the other hosts, and a flag for the rank on this one.
  const auto puts = puts_of_root(0);
  ASSERT_EQ(puts.size(), 2U);
  EXPECT_TRUE(puts[0].to_all && puts[0].woken_count == 0);
  EXPECT_EQ(puts[0].bytes, 8);
  EXPECT_TRUE(!puts[1].to_all && puts[1].woken_count == 1);
  EXPECT_EQ(puts[1].flag, puts[0].flag);
  for (int r = 1; r < 5; ++r) {
    const auto receiver = bind_schedules(set, r, options)[static_cast<std::size_t>(r)];
    const Step& wait = *steps_of(receiver, StepKind::wait)[0];
    EXPECT_EQ(wait.flag, puts[0].flag);
    EXPECT_TRUE(wait.to_all);
  }
  // Rank 4 is on another host than rank 1, and does not hear it.
  EXPECT_EQ(puts_of_root(1).size(), 4U);
  for (const Step& put : puts_of_root(4)) EXPECT_FALSE(put.to_all);
  // Each host gets one packet: that is no more than one for all.
  options.hosts = topology::HostMap::of_labels(std::vector{0, 1, 1, 1, 1});
  options.group = {true, true, false, false, false};
  for (const Step& put : puts_of_root(0)) EXPECT_FALSE(put.to_all);
}

// A rank waits for the progress of the hosts that it writes to, and these have to know that.
TEST(Bind, WhoWritesToAnotherHostIsASenderOfAllItsRanks) {
  int pairs = 0, apart = 0;
  for (const auto& row : algorithm::table()) {
    for (const std::vector<int>& labels :
         {std::vector{0, 0, 1, 1, 2, 2}, std::vector{0, 1, 2, 3, 4, 5},
          std::vector{0, 1, 0, 1, 0, 0}}) {
      const int ranks = static_cast<int>(labels.size());
      const Shape shape{row.collective, ranks, schedule::is_rooted(row.collective) ? 4 : 0,
                        row.collective == Collective::barrier ? 0 : 24, false};
      if (!algorithm::why_illegal(row, shape, algorithm::default_parameters(row, shape)).empty()) {
        continue;
      }
      SCOPED_TRACE(std::string(row.name));
      BindOptions options = options_for(ranks, 8);
      options.geometry.lines = 512;
      options.geometry.data_bytes = 64 * 1024;
      options.hosts = topology::HostMap::of_labels(labels);
      const auto set = build_set(row.name, shape);
      std::vector<Program> own;
      for (int r = 0; r < ranks; ++r) {
        own.push_back(bind_schedules(set, r, options)[static_cast<std::size_t>(r)]);
      }
      for (int a = 0; a < ranks; ++a) {
        std::set<int> written;  // hosts
        const Program& program = own[static_cast<std::size_t>(a)];
        for (const Step* put : steps_of(program, StepKind::put)) {
          written.insert(options.hosts.of(put->peer));
        }
        for (int b = 0; b < ranks; ++b) {
          const bool remote = !options.hosts.share(a, b);
          const auto& receivers = program.remote_receivers;
          const auto& senders = own[static_cast<std::size_t>(b)].remote_senders;
          const bool receives = std::ranges::find(receivers, b) != receivers.end();
          EXPECT_EQ(receives, remote && written.contains(options.hosts.of(b))) << a << " to " << b;
          EXPECT_EQ(receives, std::ranges::find(senders, a) != senders.end()) << a << " to " << b;
          pairs += receives ? 1 : 0;
          apart += remote && !receives ? 1 : 0;
        }
      }
    }
  }
  EXPECT_GT(pairs, 1000);
  EXPECT_GT(apart, 1000) << "otherwise all would tell all";
}

TEST(Bind, WhereOneMulticastsAllTellAllOtherHosts) {
  BindOptions options = options_for(5, 8);
  options.staged_multicast = true;
  options.hosts = topology::HostMap::of_labels(std::vector{0, 1, 2, 3, 0});
  options.group = {true, true, true, true, false};
  const auto set = build_set("flat", {Collective::broadcast, 5, 0, 1, false});
  const auto partners = [&](int rank) {
    return bind_schedules(set, rank, options)[static_cast<std::size_t>(rank)];
  };
  EXPECT_EQ(partners(0).remote_receivers, (std::vector<std::int32_t>{1, 2, 3}));
  EXPECT_EQ(partners(1).remote_senders, (std::vector<std::int32_t>{0, 2, 3, 4}));
  EXPECT_EQ(partners(4).remote_senders, (std::vector<std::int32_t>{1, 2, 3}));
}

TEST(Bind, ARangeThatIsNotContiguousBecomesPiecesAndTheLastRaisesTheFlag) {
  const auto set = build_set("recursive-doubling", {Collective::allgather, 4, 0, 3, false});
  BindOptions options = options_for(4, 4);
  options.output = {{{0, 3, 0}, {3, 3, 10}, {6, 3, 20}, {9, 3, 30}}};
  const auto program = bind_schedules(set, 0, options)[0];
  std::int64_t pieces = 0;
  for (const Step* put : steps_of(program, StepKind::put)) {
    EXPECT_LE(put->bytes, 12);
    pieces += put->flag < 0;
  }
  EXPECT_GT(pieces, 0);
  std::set<std::int64_t> targets;
  for (const Step* copy : steps_of(program, StepKind::copy)) {
    if (copy->target.space == Space::output) targets.insert(copy->target.offset);
  }
  EXPECT_EQ(targets, (std::set<std::int64_t>{0, 40, 80, 120}));
}

// Such a block lies in no piece, and its message is a flag alone.
TEST(Bind, AnEmptyBlockBehindTheLastPieceIsSent) {
  const auto blocks = schedule::Blocks::of_ranks({3, 2, 0});
  ASSERT_TRUE(blocks.ok());
  Shape shape{Collective::reduce_scatter, 3, 0, 0, false};
  shape.blocks = *blocks;
  const auto set = build_set("ring", shape);
  BindOptions options = options_for(3, 4);
  options.input = {{{0, 3, 0}, {3, 2, 10}}};
  for (int rank = 0; rank < 3; ++rank) {
    const auto program = bind_schedules(set, rank, options)[static_cast<std::size_t>(rank)];
    std::int64_t flags = 0;
    for (const Step* put : steps_of(program, StepKind::put)) flags += put->flag >= 0;
    EXPECT_EQ(flags, 2) << "rank " << rank;
  }
}

TEST(Bind, OnlyWhatLeadsToAPutAfterAWaitIsHelpable) {
  const auto set = build_set("serial", {Collective::reduce, 4, 0, 1, false});
  BindOptions options = options_for(4, 8);
  options.helping = true;
  for (const Program& program : bind_schedules(set, 0, options)) EXPECT_EQ(program.helpable_end, 0);
  // Then others' programs, of which there are many on many ranks, are not bound at all.
  EXPECT_FALSE(bind_schedules(set, 0, options)[0].steps.empty());
  EXPECT_TRUE(bind_schedules(set, 0, options)[1].steps.empty());
  const auto tree = build_set("gather-release", {Collective::allreduce, 4, 0, 1, false});
  const auto programs = bind_schedules(tree, 0, options);
  EXPECT_GT(programs[0].helpable_end, 0);
  EXPECT_TRUE(programs[0].stages_input);
  EXPECT_TRUE(programs[0].stages_output);
  EXPECT_EQ(programs[3].helpable_end, 0);
}

// A helper has the steps that it may do, and the wait segments of the whole program, which say how
// far its owner is.
TEST(Bind, AHelperHasTheHelpableStepsOfTheOwnersProgram) {
  int shortened = 0;
  for (const auto& row : algorithm::table()) {
    const Shape shape{row.collective, 5, 0, row.collective == Collective::barrier ? 0 : 7, false};
    if (!algorithm::is_legal(row, shape, algorithm::default_parameters(row, shape))) continue;
    SCOPED_TRACE(std::string(row.name));
    const auto set = build_set(row.name, shape);
    BindOptions options = options_for(5, 8);
    options.geometry.data_bytes = 1 << 15;
    options.helping = true;
    const Program own = bind_schedules(set, 2, options)[2];
    const Program helped = bind_schedules(set, 0, options)[2];
    EXPECT_EQ(std::ssize(helped.steps), own.helpable_end);
    EXPECT_EQ(helped.helpable_end, own.helpable_end);
    if (own.helpable_end == 0) continue;
    shortened += helped.steps.size() < own.steps.size() ? 1 : 0;
    EXPECT_EQ(helped.looks_ahead, own.looks_ahead);
    EXPECT_EQ(helped.feeds, own.feeds);
    EXPECT_EQ(helped.staged_input, own.staged_input);
    EXPECT_EQ(helped.staged_output, own.staged_output);
    for (std::size_t i = 0; i < helped.steps.size(); ++i) {
      EXPECT_EQ(helped.steps[i].kind, own.steps[i].kind);
      EXPECT_EQ(helped.steps[i].peer, own.steps[i].peer);
      EXPECT_EQ(helped.steps[i].flag, own.steps[i].flag);
    }
    ASSERT_EQ(helped.wait_segments.size(), own.wait_segments.size());
    for (std::size_t i = 0; i < own.wait_segments.size(); ++i) {
      EXPECT_EQ(helped.wait_segments[i].needs, own.wait_segments[i].needs);
      EXPECT_EQ(helped.wait_segments[i].begin,
                std::min(own.wait_segments[i].begin, own.helpable_end));
    }
  }
  EXPECT_GT(shortened, 5);
}

// A pulled message is an advertisement; its receiver gives the source back, and the sender awaits
// that last.
TEST(Bind, APulledMessageIsAnOfferThatIsGivenBack) {
  const auto set = build_set("flat", {Collective::broadcast, 3, 0, 1000, false});
  BindOptions options = options_for(3, 8);
  options.staged_multicast = true;
  options.pull_from = 64;
  const auto root = bind_schedules(set, 0, options)[0];
  EXPECT_TRUE(steps_of(root, StepKind::put).empty());
  ASSERT_EQ(steps_of(root, StepKind::advertise).size(), 1U);
  const auto returns = steps_of(root, StepKind::wait);
  ASSERT_EQ(returns.size(), 2U);
  for (int r = 1; r < 3; ++r) {
    const auto receiver = bind_schedules(set, r, options)[static_cast<std::size_t>(r)];
    const auto pulls = steps_of(receiver, StepKind::pull);
    ASSERT_EQ(pulls.size(), 1U);
    EXPECT_EQ(pulls[0]->bytes, 8000);
    EXPECT_EQ(pulls[0]->peer, 0);
    const auto puts = steps_of(receiver, StepKind::put);
    ASSERT_EQ(puts.size(), 1U);
    EXPECT_EQ(puts[0]->bytes, 0);
    EXPECT_EQ(puts[0]->flag, returns[static_cast<std::size_t>(r - 1)]->flag);
    EXPECT_EQ(&receiver.steps.back(), puts[0]);
  }
  EXPECT_EQ(receive_need(set, options).data_bytes, 0);
}

TEST(Bind, WhatIsPulledToBeReducedComesInPartsThatFitACache) {
  const auto set = build_set("serial", {Collective::reduce, 2, 0, 10'000, false});
  BindOptions options = options_for(2, 8);
  options.geometry.data_bytes = 128 * 1024;
  options.pull_from = 64;
  const auto root = bind_schedules(set, 0, options)[0];
  const auto pulls = steps_of(root, StepKind::pull);
  const auto reduces = steps_of(root, StepKind::reduce);
  EXPECT_GT(pulls.size(), 1U);
  ASSERT_EQ(pulls.size(), reduces.size());
  std::int64_t next = 0, elements = 0;
  for (std::size_t i = 0; i < pulls.size(); ++i) {
    EXPECT_EQ(pulls[i]->count, next);
    EXPECT_EQ(pulls[i]->target.offset, reduces[i]->right.offset);
    next += pulls[i]->bytes;
    elements += reduces[i]->count;
  }
  EXPECT_EQ(next, 80'000);
  EXPECT_EQ(elements, 10'000);
}

TEST(Pulls, OnlyFromMemoryThatStaysAndToOnesThatDoNotSendItOn) {
  const auto pulled = [](std::string_view name, const Shape& shape) {
    const auto set = build_set(name, shape);
    const Pulls pulls(set, 1);
    std::size_t sent = 0, messages = 0;
    for (std::size_t r = 0; r < set.size(); ++r) {
      for (std::size_t i = 0; i < set[r].ops.size(); ++i) {
        if (set[r].targets_of(set[r].ops[i]).empty()) continue;
        ++messages;
        sent += pulls.sent(static_cast<int>(r), static_cast<schedule::OpId>(i));
      }
    }
    return std::pair(sent, messages);
  };
  const auto [flat, flat_of] = pulled("flat", {Collective::broadcast, 5, 2, 8, false});
  EXPECT_EQ(flat, flat_of);
  const auto [direct, direct_of] = pulled("direct", {Collective::allgather, 5, 0, 8, false});
  EXPECT_EQ(direct, direct_of);
  const auto [serial, serial_of] = pulled("serial", {Collective::reduce, 5, 2, 8, false});
  EXPECT_EQ(serial, serial_of);
  // An inner rank of the tree sends on what it got, so its parent's message has to be in its slot.
  const auto [tree, tree_of] = pulled("fnomial", {Collective::broadcast, 8, 0, 8, false});
  EXPECT_LT(tree, tree_of);
  // In place, the sum lies where the contribution was: the source would not stay.
  const auto [pairwise, pairwise_of] = pulled("pairwise", {Collective::allreduce, 2, 0, 8, false});
  EXPECT_EQ(pairwise, 0U);
  EXPECT_EQ(pairwise_of, 2U);
  // Messages below the bound go as they are.
  EXPECT_FALSE(Pulls(build_set("flat", {Collective::broadcast, 5, 2, 8, false}), 9).any());
}

TEST(Bind, TheNeedOfWindowsIsKnownBeforehand) {
  const auto set = build_set("serial", {Collective::reduce, 9, 0, 100, false});
  const auto need = receive_need(set, options_for(9, 8));
  EXPECT_EQ(need.lines, 8);
  EXPECT_GE(need.data_bytes, 8 * 800);
  EXPECT_TRUE(
      need.fits({.ranks = 9, .slot_indexes = 2, .lines = 8, .data_bytes = need.data_bytes}));
  EXPECT_FALSE(
      need.fits({.ranks = 9, .slot_indexes = 2, .lines = 7, .data_bytes = need.data_bytes}));
  EXPECT_FALSE(
      need.fits({.ranks = 9, .slot_indexes = 2, .lines = 8, .data_bytes = need.data_bytes - 1}));
}

// Two ranks exchange and add, one step at a time.
TEST(Interpreter, BlocksUntilTheFlagOfItsOwnOperationAndCallArrives) {
  const auto set = build_set("pairwise", {Collective::allreduce, 2, 0, 1, false});
  const BindOptions options = options_for(2, 8);
  const auto first = bind_schedules(set, 0, options)[0];
  const auto second = bind_schedules(set, 1, options)[1];
  alignas(64) static std::byte receive_buffers[64 * 1024] = {};
  ASSERT_LE(options.geometry.rank_stride() * 2, static_cast<std::int64_t>(sizeof receive_buffers));
  double in[2] = {1.5, 2.25}, out[2] = {};
  transport::SharedMemory shm;
  wait::SleeperTable sleepers;
  wait::Doorbell bells[2];
  wait::Doorbells ringing(sleepers, bells);
  const int job_ranks[] = {0, 1};
  Counters counters;
  const Machine machine{.router = network::Router(shm),
                        .doorbells = &ringing,
                        .job_ranks = job_ranks,
                        .counters = &counters};
  const auto frame_of = [&](int r, std::uint32_t digest) {
    Frame frame;
    frame.bases[0] = reinterpret_cast<std::byte*>(&in[r]);
    frame.bases[1] = reinterpret_cast<std::byte*>(&out[r]);
    frame.bases[2] = frame.bases[3] = receive_buffers;
    frame.tag = make_tag(9, digest);
    frame.kernel = arith::find_kernel(arith::Operator::sum, arith::Type::float64);
    return frame;
  };
  const auto end = [](const Program& program) {
    return static_cast<std::int32_t>(program.steps.size());
  };
  Position at, other_at;
  EXPECT_EQ(run(first, frame_of(0, 3), machine, at, end(first)), Outcome::blocked);
  const std::int32_t stopped = at.pc;
  EXPECT_EQ(run(first, frame_of(0, 3), machine, at, end(first)), Outcome::blocked);
  EXPECT_EQ(at.pc, stopped);
  EXPECT_EQ(run(second, frame_of(1, 4), machine, other_at, end(second)), Outcome::mismatch);
  other_at = {};
  EXPECT_EQ(run(second, frame_of(1, 3), machine, other_at, end(second)), Outcome::finished);
  EXPECT_EQ(run(first, frame_of(0, 3), machine, at, end(first)), Outcome::finished);
  EXPECT_EQ(out[0], 3.75);
  EXPECT_EQ(out[1], 3.75);
}

}  // namespace
}  // namespace unisono::plan::bind_test
