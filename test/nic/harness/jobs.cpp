// SPDX-License-Identifier: BSD-3-Clause
// Jobs: the same schedules, lowered for the NIC path and run by the host engine.
#include "nic/harness/jobs.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>

#include "algorithm/algorithm.hpp"
#include "base/prng.hpp"
#include "harness/world.hpp"
#include "nic/lowering/lower.hpp"
#include "nic/lowering/row.hpp"

namespace unisono::nic::test {
namespace {

constexpr unisono_key kKey = {0x1111222233334444, 0x5555666677778888};

schedule::Shape shape_of(const Job& job, int ranks) {
  schedule::Shape shape;
  shape.collective = job.collective;
  shape.ranks = ranks;
  shape.root = job.root;
  shape.count = job.collective == Collective::barrier ? 0 : job.count;
  return shape;
}

// A complex number has two of them.
Type part_of(Type type) {
  if (type == Type::complex64) return Type::float32;
  return type == Type::complex128 ? Type::float64 : type;
}

// No NaN, because no rule says which bits the NaN of two others has.
std::uint64_t bits_of(Type type, base::Prng& random) {
  const std::uint64_t bits = random.next();
  const double number = (random.unit() - 0.5) * static_cast<double>(1 << random.below(30));
  if (type == Type::float64) return std::bit_cast<std::uint64_t>(number);
  if (type == Type::float32) return std::bit_cast<std::uint32_t>(static_cast<float>(number));
  // Below 2, so that no sum or product is infinite.
  constexpr std::uint64_t kHighestOfExponent = 0x4000;
  const bool is_half = type == Type::float16 || type == Type::bfloat16;
  return is_half ? bits & ~kHighestOfExponent : bits;
}

}  // namespace

Words vector_of(const Job& job, int rank, int operation) {
  base::Prng random(static_cast<std::uint64_t>(operation) * 1000 +
                    static_cast<std::uint64_t>(rank));
  Words words((static_cast<std::size_t>(job.count) * arith::type_size(job.type) + 7) / 8);
  if (job.giver >= 0 && rank != job.giver) return words;
  const Type part = part_of(job.type);
  const auto size = arith::type_size(part);
  const auto parts = static_cast<std::size_t>(job.count) * (arith::type_size(job.type) / size);
  for (std::size_t i = 0; i < parts; ++i) {
    const std::uint64_t bits = bits_of(part, random);
    std::memcpy(reinterpret_cast<char*>(words.data()) + i * size, &bits, size);
  }
  return words;
}

std::vector<Words> host_results(const Job& job, int ranks) {
  unisono::test::WorldOptions options;
  options.ranks = ranks;
  unisono::test::World world(options);
  const algorithm::Algorithm* row = algorithm::find(job.collective, job.algorithm);
  world.override_with(*row, algorithm::Parameters{{job.parameter}});
  plan::Call call;
  call.collective = job.collective;
  call.count = job.count;
  call.type = static_cast<std::int32_t>(job.type);
  call.op = static_cast<std::int32_t>(job.op);
  call.root = job.root;
  call.element_bytes = static_cast<std::int64_t>(arith::type_size(job.type));
  std::vector<Words> results;
  for (int operation = 0; operation < job.operations; ++operation) {
    std::vector<Words> inputs;
    std::vector<Words> outputs;
    std::vector<const void*> from;
    std::vector<void*> to;
    for (int rank = 0; rank < ranks; ++rank) {
      inputs.push_back(vector_of(job, rank, operation));
      outputs.emplace_back(inputs.back().size());
    }
    for (auto& input : inputs) from.push_back(input.data());
    for (auto& output : outputs) to.push_back(output.data());
    EXPECT_TRUE(world.run(call, from, to));
    results.push_back(outputs[static_cast<std::size_t>(job.root)]);
  }
  return results;
}

base::Result<Rank> start_rank(Device& device, const Job& job, int rank, int ranks,
                              std::uint32_t communicator) {
  const algorithm::Algorithm* row = algorithm::find(job.collective, job.algorithm);
  UNISONO_ASSIGN(const auto schedule,
                 algorithm::build(*row, shape_of(job, ranks), {{job.parameter}}, rank));
  UNISONO_ASSIGN(const Node node, lower(schedule));
  std::vector<unisono_nic_address> addresses;
  for (int i = 0; i < ranks; ++i) addresses.push_back(host_address(i));
  GroupAddresses group;
  group.id = {4711, communicator};
  group.key = kKey;
  group.ranks = addresses;
  group.multicast = group_address();
  group.depth = job.depth;
  UNISONO_ASSIGN(unisono_nic_row placed, make_row(node, group));
  placed.loss = static_cast<std::uint32_t>(job.loss * 4294967295.0);
  Rank started;
  started.forwards = !node.forwards.empty();
  UNISONO_ASSIGN(started.row, device.add_group(placed));
  UNISONO_ASSIGN(started.port, Port::open(device.row(started.row), device.memory(started.row)));
  return started;
}

}  // namespace unisono::nic::test
