// SPDX-License-Identifier: BSD-3-Clause
// Messages that land in the caller's output. The transport here spoils a target as soon as a rank
// expects a message there, as one that begins to come does. In the end the message may have landed,
// or lie in its place after all. Every algorithm is right all the same, in place as well.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <new>
#include <vector>

#include "algorithm/algorithm.hpp"
#include "base/prng.hpp"
#include "engine/engine.hpp"
#include "plan/bind/bind.hpp"
#include "unit/engine/ranks_by_hand.hpp"

namespace unisono::engine::landing_test {
namespace {

using schedule::Collective;
using schedule::Schedule;
using schedule::Shape;
using test::build_set;
using test::Bytes;

constexpr auto kSpoilt = std::byte{0xa5};

class LandingTransport final : public transport::Transport, public transport::Landings {
 public:
  explicit LandingTransport(std::uint64_t seed) : prng_(seed) {}

  const transport::Capabilities& capabilities() const override { return capabilities_; }
  void put(const transport::Put& put) override {
    if (lacks_memory) throw std::bad_alloc();
    kept_.push_back({put.target, Bytes(put.source, put.source + put.bytes), put.place, put.flag,
                     put.flag_value});
  }
  int progress() override { return 0; }
  transport::Landings* landings() override { return this; }
  void expect(const transport::Landing& landing) override {
    ASSERT_TRUE(expected_.emplace(landing.place, landing).second) << "expected twice";
    std::fill_n(landing.target, landing.bytes, kSpoilt);
    ++expectations;
  }
  bool has_landed(const std::byte* place) override {
    expected_.erase(place);
    return landed_.erase(place) != 0;
  }

  void withdraw(const std::byte* place, std::size_t bytes) override {
    std::erase_if(expected_, [&](const auto& each) {
      return each.first >= place && each.first < place + bytes;
    });
  }

  bool is_empty() const { return kept_.empty(); }
  bool expects_nothing() const { return expected_.empty(); }
  // Any of those under way; returns its receiver.
  int deliver() {
    const std::size_t index = prng_.below(kept_.size());
    const Message message = kept_[index];
    kept_.erase(kept_.begin() + static_cast<std::ptrdiff_t>(index));
    std::byte* place = message.place;
    const auto landing = expected_.find(message.place);
    if (landing != expected_.end() && prng_.below(4) != 0) {
      EXPECT_EQ(landing->second.bytes, message.bytes.size());
      place = landing->second.target;
      landed_[message.place] = true;
      std::fill_n(message.place, message.bytes.size(), kSpoilt);
      ++landed;
    }
    std::ranges::copy(message.bytes, place);
    if (message.flag != nullptr) *message.flag = message.flag_value;
    return message.target;
  }

  int expectations = 0, landed = 0;
  bool lacks_memory = false;

 private:
  struct Message {
    int target;
    Bytes bytes;
    std::byte* place;
    std::uint64_t* flag;
    std::uint64_t flag_value;
  };

  transport::Capabilities capabilities_{.name = "landing", .lands_from = 1};
  std::vector<Message> kept_;
  std::map<const std::byte*, transport::Landing> expected_;  // by place
  std::map<const std::byte*, bool> landed_;
  base::Prng prng_;
};

using test::RanksByHand;

// In every order of arrival. Ranks run again whenever something has come.
void check(RanksByHand& ranks, LandingTransport& transport, int count) {
  std::vector<Outcome> outcomes;
  for (int r = 0; r < count; ++r) outcomes.push_back(ranks.run(r));
  while (!transport.is_empty()) {
    const int target = transport.deliver();
    Outcome& outcome = outcomes[static_cast<std::size_t>(target)];
    if (outcome == Outcome::blocked) outcome = ranks.run(target);
  }
  for (int r = 0; r < count; ++r) {
    ASSERT_EQ(outcomes[static_cast<std::size_t>(r)], Outcome::finished) << "rank " << r;
    ASSERT_EQ(ranks.output(r), ranks.expected(r)) << "rank " << r;
  }
  EXPECT_TRUE(transport.expects_nothing()) << "a target that may still be written";
}

// So many ranks on each host but the last.
topology::HostMap hosts_of(int ranks, int each) {
  std::vector<int> labels;
  for (int r = 0; r < ranks; ++r) labels.push_back(r / each);
  return topology::HostMap::of_labels(labels);
}

// The value: how many ranks.
class LandingOf : public testing::TestWithParam<int> {};

TEST_P(LandingOf, EveryAlgorithmIsRight) {
  const int count = GetParam();
  int landings = 0, from_start = 0;
  for (const algorithm::Algorithm& row : algorithm::table()) {
    const bool is_barrier = row.collective == Collective::barrier;
    for (const int root : {0, count - 1}) {
      const Shape shape{row.collective, count, root, is_barrier ? 0 : 20 * count, false};
      const auto parameters = algorithm::default_parameters(row, shape);
      if (!algorithm::why_illegal(row, shape, parameters).empty()) continue;
      for (int i = 0; i < 6; ++i) {
        SCOPED_TRACE(std::string(schedule::collective_name(row.collective)) + " " +
                     std::string(row.name) + (i % 2 == 0 ? "" : " in place"));
        LandingTransport transport(static_cast<std::uint64_t>(i));
        RanksByHand ranks(build_set(row, shape), transport,
                          {.hosts = hosts_of(count, i / 2 == 2 && count > 2 ? 2 : 1),
                           .land_from = 1,
                           .in_place = i % 2 != 0});
        ASSERT_NO_FATAL_FAILURE(check(ranks, transport, count));
        landings += transport.landed;
        for (int r = 0; r < count; ++r) {
          from_start += static_cast<int>(ranks.program(r).expected.size());
        }
      }
    }
  }
  EXPECT_GT(landings, 100 * count);
  EXPECT_GT(from_start, 100 * count);
}

// Rank 0 of two, and its operation of the inline engine.
class LandingOperation : public testing::Test {
 protected:
  LandingOperation() {
    for (SizeQueue& size_queue : size_queues_) size_queue.set_remote({{1}});
  }

  void start(const Shape& shape, std::string_view algorithm) {
    const auto set = build_set(*algorithm::find(shape.collective, algorithm), shape);
    const plan::BindOptions options{.element_bytes = 4,
                                    .input = {},
                                    .output = {},
                                    .geometry = geometry_,
                                    .land_from = 1,
                                    .hosts = hosts_};
    const std::shared_ptr<plan::Plan::Part[]> parts = std::make_shared<plan::Plan::Part[]>(1);
    parts[0].programs = bind_schedules(set, 0, options);
    plan_->parts = parts;
    engine.start(operation, *plan_,
                 {.input = input_.data(), .output = output_.data(), .history = 1});
  }

  LandingTransport transport{1};
  Operation operation;

 private:
  static constexpr plan::ReceiveGeometry geometry_{
      .ranks = 2, .slot_indexes = 2, .lines = 8, .data_bytes = 1024};
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::unique_ptr<std::byte, Free> make_memory() const {
    const std::size_t bytes = control_bytes_ + static_cast<std::size_t>(geometry_.total_bytes());
    std::unique_ptr<std::byte, Free> memory(static_cast<std::byte*>(std::aligned_alloc(64, bytes)));
    std::fill_n(memory.get(), bytes, std::byte{0});
    return memory;
  }

  const topology::HostMap hosts_ = topology::HostMap::apart(2);
  const std::size_t control_bytes_ = static_cast<std::size_t>(size_queue_control_bytes(geometry_));
  const std::unique_ptr<std::byte, Free> memory_ = make_memory();
  const SizeQueue size_queue_{geometry_, 0, memory_.get(), memory_.get() + control_bytes_, 1};
  SizeQueues size_queues_{size_queue_, size_queue_, size_queue_};
  const std::vector<int> job_ranks_{0, 1};
  Counters counters_;
  const Machine machine_{.router = network::Router(transport, &transport, hosts_, 0),
                         .job_ranks = job_ranks_.data(),
                         .ranks = 2,
                         .counters = &counters_};
  const std::shared_ptr<plan::Plan> plan_ = std::make_shared<plan::Plan>();
  std::vector<std::int32_t> input_ = std::vector<std::int32_t>(200);
  std::vector<std::int32_t> output_ = std::vector<std::int32_t>(200);

 protected:
  InlineEngine engine{{machine_, size_queues_}};
};

// It may be freed with its buffers, and others go on.
TEST_F(LandingOperation, ACancelledOneExpectsNothingAnyMore) {
  start({Collective::broadcast, 2, 1, 100, false}, "fnomial");
  ASSERT_EQ(engine.step(operation), Outcome::blocked);
  ASSERT_EQ(engine.step(operation), Outcome::blocked);
  ASSERT_EQ(transport.expectations, 1);
  ASSERT_FALSE(transport.expects_nothing());
  engine.cancel(operation);
  EXPECT_TRUE(transport.expects_nothing());
}

// Its caller has the exception, and may free the buffers.
TEST_F(LandingOperation, OneThatEndsByAnExceptionExpectsNothingAnyMore) {
  start({Collective::allgather, 2, 0, 100, false}, "ring");
  transport.lacks_memory = true;
  EXPECT_THROW(engine.step(operation), std::bad_alloc);
  EXPECT_EQ(transport.expectations, 1);
  EXPECT_TRUE(transport.expects_nothing());
}

INSTANTIATE_TEST_SUITE_P(Ranks, LandingOf, testing::Values(2, 3, 4, 7, 8),
                         [](const auto& value) { return "P" + std::to_string(value.param); });

}  // namespace
}  // namespace unisono::engine::landing_test
