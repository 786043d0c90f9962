// SPDX-License-Identifier: BSD-3-Clause
// Messages that land in the caller's output. The transport here spoils a target as soon as a rank
// expects a message there, as one that begins to come does. In the end the message may have landed,
// or lie in its place after all. Every algorithm is right all the same, in place as well.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <numeric>
#include <vector>

#include "algorithm/algorithm.hpp"
#include "base/prng.hpp"
#include "engine/host_operation.hpp"
#include "engine/interpreter.hpp"
#include "engine/lane.hpp"
#include "harness/collective_data.hpp"
#include "plan/bind/bind.hpp"

namespace unisono::engine::landing_test {
namespace {

using schedule::Collective;
using schedule::Schedule;
using schedule::Shape;
using unisono::test::Bytes;

constexpr auto kSpoilt = std::byte{0xa5};

class LandingTransport final : public transport::Transport, public transport::Landings {
 public:
  explicit LandingTransport(std::uint64_t seed) : prng_(seed) {}

  const transport::Capabilities& capabilities() const override { return capabilities_; }
  void put(const transport::Put& put) override {
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

// All ranks of one operation.
class Ranks {
 public:
  Ranks(std::vector<Schedule> set, const topology::HostMap& hosts, bool in_place,
        std::uint64_t seed)
      : transport(seed),
        set_(std::move(set)),
        positions_(set_.size()),
        of_(unisono::test::material(kType, kSum)) {
    const Shape& shape = set_[0].shape;
    options_.element_bytes = static_cast<std::int64_t>(of_.size);
    options_.geometry = {.ranks = shape.ranks, .channels = 2, .lines = 1024, .data_bytes = 1 << 19};
    options_.land_from = 1;
    options_.hosts = hosts;
    windows_.resize(at(options_.geometry.windows_bytes() + plan::kLineBytes));
    job_ranks_.resize(set_.size());
    std::iota(job_ranks_.begin(), job_ranks_.end(), 0);
    for (int r = 0; r < shape.ranks; ++r) {
      programs_.push_back(bind_schedules(set_, r, options_)[at(r)]);
      lay_out(r, in_place);
    }
  }

  const plan::Program& program(int rank) const { return programs_[at(rank)]; }
  Bytes output(int rank) const {
    const Buffers& own = buffers_[at(rank)];
    return {own.output, own.output + at(schedule::output_count(set_[0].shape, rank)) * of_.size};
  }
  Bytes expected(int rank) const {
    return unisono::test::expected_output(set_[0].shape, of_, rank);
  }

  Outcome run(int rank) {
    Frame frame;
    frame.bases[static_cast<int>(plan::Space::input)] = buffers_[at(rank)].input;
    frame.bases[static_cast<int>(plan::Space::output)] = buffers_[at(rank)].output;
    frame.bases[static_cast<int>(plan::Space::windows)] = base();
    frame.tag = make_tag(3, 1);
    frame.kernel = arith::find_kernel(kSum, kType);
    frame.sum = nullptr;
    const Machine machine{.router = network::Router(transport, &transport, options_.hosts, rank),
                          .doorbells = &doorbells_,
                          .job_ranks = job_ranks_.data(),
                          .ranks = set_[0].shape.ranks,
                          .counters = &counters_};
    const plan::Program& own = programs_[at(rank)];
    return engine::run(own, frame, machine, positions_[at(rank)],
                       static_cast<std::int32_t>(own.steps.size()));
  }

  LandingTransport transport;

 private:
  static constexpr arith::Type kType = arith::Type::int32;
  static constexpr arith::Operator kSum = arith::Operator::sum;
  struct Buffers {
    Bytes memory;
    std::byte* input;
    std::byte* output;
  };

  void lay_out(int rank, bool in_place) {
    const Shape& shape = set_[0].shape;
    const Bytes input = of_.input(rank, schedule::input_count(shape, rank));
    const std::size_t output = at(schedule::output_count(shape, rank)) * of_.size;
    const auto shared = in_place ? schedule::in_place(shape, rank) : std::nullopt;
    Buffers& own = buffers_.emplace_back();
    own.memory.resize(input.size() + output + 1);
    own.input = own.memory.data() + (shared ? at(shared->input) * of_.size : 0);
    own.output = own.memory.data() + (shared ? at(shared->output) * of_.size : input.size());
    std::ranges::copy(input, own.input);
  }
  std::byte* base() {
    return windows_.data() + plan::kLineBytes -
           reinterpret_cast<std::uintptr_t>(windows_.data()) % plan::kLineBytes;
  }
  static std::size_t at(std::int64_t number) { return static_cast<std::size_t>(number); }

  std::vector<Schedule> set_;
  std::vector<Position> positions_;
  unisono::test::Material of_;
  plan::BindOptions options_;
  Bytes windows_;
  std::vector<int> job_ranks_;
  std::vector<plan::Program> programs_;
  std::vector<Buffers> buffers_;
  Counters counters_;
  wait::SleeperTable table_;
  std::vector<wait::Doorbell> bell_{1024};
  wait::Doorbells doorbells_{table_, bell_.data()};
};

std::vector<Schedule> build_set(const algorithm::Algorithm& row, const Shape& shape) {
  std::vector<Schedule> set;
  for (int r = 0; r < shape.ranks; ++r) {
    set.push_back(*algorithm::build(row, shape, algorithm::default_parameters(row, shape), r));
  }
  return set;
}

// In every order of arrival. Ranks run again whenever something has come.
void check(Ranks& ranks, int count) {
  std::vector<Outcome> outcomes;
  for (int r = 0; r < count; ++r) outcomes.push_back(ranks.run(r));
  while (!ranks.transport.is_empty()) {
    const int target = ranks.transport.deliver();
    Outcome& outcome = outcomes[static_cast<std::size_t>(target)];
    if (outcome == Outcome::blocked) outcome = ranks.run(target);
  }
  for (int r = 0; r < count; ++r) {
    ASSERT_EQ(outcomes[static_cast<std::size_t>(r)], Outcome::finished) << "rank " << r;
    ASSERT_EQ(ranks.output(r), ranks.expected(r)) << "rank " << r;
  }
  EXPECT_TRUE(ranks.transport.expects_nothing()) << "a target that may still be written";
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
        Ranks ranks(build_set(row, shape), hosts_of(count, i / 2 == 2 && count > 2 ? 2 : 1),
                    i % 2 != 0, static_cast<std::uint64_t>(i));
        ASSERT_NO_FATAL_FAILURE(check(ranks, count));
        landings += ranks.transport.landed;
        for (int r = 0; r < count; ++r) {
          from_start += static_cast<int>(ranks.program(r).expected.size());
        }
      }
    }
  }
  EXPECT_GT(landings, 100 * count);
  EXPECT_GT(from_start, 100 * count);
}

// It may be freed with its buffers, and others go on.
TEST(Landing, AnOperationThatIsGivenUpExpectsNothingAnyMore) {
  const Shape shape{Collective::broadcast, 2, 1, 100, false};
  const auto set = build_set(*algorithm::find(Collective::broadcast, "fnomial"), shape);
  const plan::BindOptions options{
      .element_bytes = 4,
      .input = {},
      .output = {},
      .geometry = {.ranks = 2, .channels = 2, .lines = 8, .data_bytes = 1024},
      .land_from = 1,
      .hosts = topology::HostMap::apart(2)};
  const std::shared_ptr<plan::Plan::Part[]> parts = std::make_shared<plan::Plan::Part[]>(1);
  parts[0].programs = bind_schedules(set, 0, options);
  const auto plan = std::make_shared<plan::Plan>();
  plan->parts = parts;

  const auto control = static_cast<std::size_t>(lane_control_bytes(options.geometry));
  const std::size_t bytes = control + static_cast<std::size_t>(options.geometry.windows_bytes());
  const std::unique_ptr<std::byte, decltype(&std::free)> memory(
      static_cast<std::byte*>(std::aligned_alloc(64, bytes)), &std::free);
  std::fill_n(memory.get(), bytes, std::byte{0});
  Lane lane(options.geometry, 0, memory.get(), memory.get() + control, 1);

  LandingTransport transport(1);
  const std::vector<int> job_ranks{0, 1};
  Counters counters;
  const Machine machine{.router = network::Router(transport, &transport, options.hosts, 0),
                        .job_ranks = job_ranks.data(),
                        .ranks = 2,
                        .counters = &counters};
  std::vector<std::int32_t> output(100);
  HostOperation operation;
  operation.start(*plan, lane, {.input = nullptr, .output = output.data(), .history = 1});
  ASSERT_EQ(operation.step<false>(machine), Outcome::blocked);
  ASSERT_EQ(transport.expectations, 1);
  ASSERT_FALSE(transport.expects_nothing());
  operation.give_up(machine);
  EXPECT_TRUE(transport.expects_nothing());
}

INSTANTIATE_TEST_SUITE_P(Ranks, LandingOf, testing::Values(2, 3, 4, 7, 8),
                         [](const auto& value) { return "P" + std::to_string(value.param); });

}  // namespace
}  // namespace unisono::engine::landing_test
