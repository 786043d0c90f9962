// SPDX-License-Identifier: BSD-3-Clause
// Cross test: every algorithm x ranks x roots x types x operators x engines x transports, against
// one naive reference, bit for bit; separate buffers and in place. With the argument `--full`
// (label slow) every P up to 12, otherwise a sample of them. What does not apply is counted and
// printed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>

#include "algorithm/algorithm.hpp"
#include "harness/collective_data.hpp"
#include "harness/world.hpp"

namespace unisono::test {
namespace {

using algorithm::Algorithm;
using arith::Operator;
using arith::Type;
using schedule::Collective;
using schedule::Shape;

bool full_sweep = false;

struct Combination {
  const char* engine;
  // shm, pull: shm with single copies; virtual, multicast: virtual with staged multicast
  const char* network;
};

class Cross : public testing::TestWithParam<Combination> {
 protected:
  void make_world(int ranks) {
    const Combination setup = GetParam();
    WorldOptions options{.ranks = ranks,
                         .virtual_network = !over_memory(),
                         .network = {.seed = static_cast<std::uint64_t>(ranks)},
                         .settings = {{"UNISONO_ENGINE", setup.engine}, {"UNISONO_CHANNELS", "4"}}};
    if (std::strcmp(setup.network, "pull") == 0) {
      options.settings["UNISONO_SINGLE_COPY"] = "on";
      options.settings["UNISONO_SINGLE_COPY_FROM"] = "64";
    }
    options.network.multicast = std::strcmp(setup.network, "multicast") == 0;
    world_ = std::make_unique<World>(options);
  }

  static bool over_memory() {
    return std::strcmp(GetParam().network, "shm") == 0 ||
           std::strcmp(GetParam().network, "pull") == 0;
  }

  void check(const Algorithm& row, const Shape& shape, Type type, Operator op, bool in_place) {
    const bool product = op == Operator::prod;
    const auto n = static_cast<std::size_t>(shape.ranks);
    const std::size_t size = arith::type_size(type);
    group::Call call;
    call.collective = shape.collective;
    call.count = shape.count;
    call.type = static_cast<int>(type);
    call.op = schedule::is_reduction(shape.collective) ? static_cast<int>(op) : -1;
    call.root = shape.root;
    call.element_bytes = static_cast<std::int64_t>(size);
    std::vector<Bytes> inputs(n), outputs(n), shared(n);
    std::vector<const void*> in(n);
    std::vector<void*> out(n);
    for (std::size_t r = 0; r < n; ++r) {
      const int rank = static_cast<int>(r);
      inputs[r] = make_input(type, product, rank, schedule::input_count(shape, rank));
      outputs[r].assign(static_cast<std::size_t>(schedule::output_count(shape, rank)) * size,
                        std::byte{0xee});
      in[r] = inputs[r].data();
      out[r] = outputs[r].data();
      const auto place = schedule::in_place(shape, rank);
      if (!in_place || !place) continue;
      const std::size_t input_at = static_cast<std::size_t>(place->input) * size;
      const std::size_t output_at = static_cast<std::size_t>(place->output) * size;
      shared[r].resize(std::max(input_at + inputs[r].size(), output_at + outputs[r].size()));
      std::ranges::copy(inputs[r], shared[r].begin() + static_cast<std::ptrdiff_t>(input_at));
      in[r] = shared[r].data() + input_at;
      out[r] = shared[r].data() + output_at;
    }
    ASSERT_TRUE(world_->run(call, in, out)) << "did not complete";
    for (std::size_t r = 0; r < n; ++r) {
      if (!shared[r].empty()) {
        std::copy_n(static_cast<std::byte*>(out[r]), outputs[r].size(), outputs[r].begin());
      }
      ASSERT_EQ(outputs[r], expected_output(shape, type, op, product, static_cast<int>(r)))
          << row.name << " of " << schedule::collective_name(shape.collective) << ", P "
          << shape.ranks << ", root " << shape.root << ", count " << shape.count << ", "
          << arith::type_name(type) << ", " << arith::operator_name(op) << ", rank " << r
          << (in_place ? ", in place" : "");
    }
    ++cells_;
  }

  void check_types(const Algorithm& row, const Shape& shape, bool in_place) {
    for (int t = 0; t < arith::kTypeCount; ++t) {
      const auto type = static_cast<Type>(t);
      if (!schedule::is_reduction(shape.collective)) {
        check(row, shape, type, Operator::sum, in_place);
        continue;
      }
      for (int o = 0; o < arith::kOperatorCount; ++o) {
        const auto op = static_cast<Operator>(o);
        if (arith::fits(op, type)) check(row, shape, type, op, in_place);
      }
    }
  }

  void check_row(const Algorithm& row, int ranks) {
    std::vector<algorithm::Parameters> choices = {
        algorithm::default_parameters(row, {row.collective, ranks, 0, 1, false})};
    if (!row.parameters.empty()) {
      for (const int value : {row.parameters[0].low, ranks}) {
        choices.push_back(choices[0]);
        choices.back().values[0] = value;
      }
    }
    const int roots = schedule::is_rooted(row.collective) ? ranks : 1;
    for (const auto& parameters : choices) {
      // Neither the root nor the count matters to this.
      if (!algorithm::why_illegal(row, {row.collective, ranks, 0, 1, false}, parameters).empty()) {
        ++not_legal_;
        continue;
      }
      world_->override_with(row, parameters);
      for (int root = 0; root < roots; ++root) {
        for (const std::int64_t count : {0, 1, 7, 300}) {
          const Shape shape{row.collective, ranks, root, count, false};
          check(row, shape, Type::float64, Operator::sum, false);
          check(row, shape, Type::int32, Operator::sum, true);
        }
      }
      if (row.collective == Collective::barrier) continue;
      check_types(row, {row.collective, ranks, roots - 1, 5, false}, ranks % 2 == 0);
      // More than the windows hold at once: several segments.
      if (parameters == choices[0]) {
        check(row, {row.collective, ranks, 0, 70'001, false}, Type::float64, Operator::sum, false);
      }
    }
  }

  std::unique_ptr<World> world_;
  std::int64_t cells_ = 0;
  std::int64_t not_legal_ = 0;
};

TEST_P(Cross, EveryAlgorithmEqualsTheReference) {
  const std::vector<int> sample = {1, 2, 3, 5, 8};
  for (int ranks = 1; ranks <= 12; ++ranks) {
    if (!full_sweep && std::ranges::find(sample, ranks) == sample.end()) continue;
    make_world(ranks);
    for (const Algorithm& row : algorithm::table()) {
      check_row(row, ranks);
      if (HasFatalFailure()) return;
    }
  }
  std::printf("%s over %s: %lld cells compared, %lld rows that refuse the ranks or parameters\n",
              GetParam().engine, GetParam().network, static_cast<long long>(cells_),
              static_cast<long long>(not_legal_));
  EXPECT_GT(cells_, 1000);
}

std::string setup_name(const testing::TestParamInfo<Combination>& info) {
  return std::string(info.param.engine) + "_" + info.param.network;
}

INSTANTIATE_TEST_SUITE_P(
    All, Cross,
    testing::Values(Combination{"inline", "shm"}, Combination{"helping", "shm"},
                    Combination{"inline", "pull"}, Combination{"inline", "virtual"},
                    Combination{"helping", "virtual"}, Combination{"inline", "multicast"},
                    Combination{"helping", "multicast"}),
    setup_name);

}  // namespace
}  // namespace unisono::test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) unisono::test::full_sweep |= std::string(argv[i]) == "--full";
  return RUN_ALL_TESTS();
}
