// SPDX-License-Identifier: BSD-3-Clause
// Chakra execution traces: the bytes of a small one, and all steps of random schedules, decoded by
// a reader of protobuf fields that knows the numbers of et_def.proto only.
#include "sim/chakra/chakra.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "machines.hpp"
#include "random_schedule.hpp"
#include "sim/goal/goal_file.hpp"

namespace unisono::sim::chakra_test {
namespace {

std::uint64_t take_varint(std::string_view& text) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; !text.empty(); shift += 7) {
    const auto byte = static_cast<std::uint8_t>(text.front());
    text.remove_prefix(1);
    value |= std::uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) return value;
  }
  ADD_FAILURE() << "a number without an end";
  return 0;
}

// The fields of a message: a varint has its value, bytes have their text.
struct Field {
  unsigned number = 0;
  std::uint64_t value = 0;
  std::string_view bytes = {};
};
std::vector<Field> fields_of(std::string_view message) {
  std::vector<Field> fields;
  while (!message.empty()) {
    const std::uint64_t key = take_varint(message);
    Field field{.number = static_cast<unsigned>(key >> 3)};
    const std::uint64_t value = take_varint(message);
    if ((key & 7) == 2) {
      EXPECT_LE(value, message.size());
      field.bytes = message.substr(0, value);
      message.remove_prefix(std::min<std::size_t>(value, message.size()));
    } else {
      EXPECT_EQ(key & 7, 0U) << "neither a varint nor bytes";
      field.value = value;
    }
    fields.push_back(field);
  }
  return fields;
}

struct Node {
  std::uint64_t id = 0, type = 0, duration_us = 0;
  std::vector<std::uint64_t> dependencies;
  std::map<std::string, std::int64_t> attributes;
};

Node node_of(std::string_view message) {
  Node node;
  for (const Field& field : fields_of(message)) {
    if (field.number == 1) node.id = field.value;
    if (field.number == 3) node.type = field.value;
    if (field.number == 7) node.duration_us = field.value;
    if (field.number == 5) {
      for (std::string_view list = field.bytes; !list.empty();) {
        node.dependencies.push_back(take_varint(list));
      }
    }
    if (field.number != 10) continue;
    const auto attribute = fields_of(field.bytes);
    EXPECT_EQ(attribute.size(), 2U);
    node.attributes[std::string(attribute.front().bytes)] =
        static_cast<std::int64_t>(attribute.back().value);
  }
  return node;
}

std::vector<std::string_view> messages_of(std::string_view file) {
  std::vector<std::string_view> messages;
  while (!file.empty()) {
    const std::uint64_t bytes = take_varint(file);
    EXPECT_LE(bytes, file.size());
    messages.push_back(file.substr(0, bytes));
    file.remove_prefix(std::min<std::size_t>(bytes, file.size()));
  }
  return messages;
}

TEST(Chakra, TheBytesOfAReception) {
  const auto traces =
      parse_goal("num_ranks 2\nrank 0 {\nrecv 300b from 1\n}\nrank 1 {\nsend 300b to 0\n}\n", "g");
  ASSERT_TRUE(traces.ok());
  const ProgramSet programs = ProgramSet::compile_traces(*traces, test_machine());
  using namespace std::string_literals;
  const std::string metadata =
      "\x07\x0a\x05"
      "0.0.4";
  const std::string node =
      "\x12\x0e"
      "receive from 1"
      "\x18\x06"
      "\x52\x0e\x0a\x09"
      "is_cpu_op"
      "\xd8\x01\x00"
      "\x52\x0c\x0a\x08"
      "comm_src"
      "\x38\x01"
      "\x52\x0c\x0a\x08"
      "comm_dst"
      "\x38\x00"
      "\x52\x0e\x0a\x09"
      "comm_size"
      "\x48\xac\x02"
      "\x52\x0c\x0a\x08"
      "comm_tag"
      "\x38\x00"s;
  ASSERT_LT(node.size(), 128U);
  EXPECT_EQ(chakra_trace(programs, 0), metadata + static_cast<char>(node.size()) + node);
}

TEST(Chakra, HasEveryStepBehindTheOneBefore) {
  const ProgramSet programs = programs_of(random_set(5, 60, 3), test_machine());
  std::size_t works = 0;
  for (int rank = 0; rank < programs.ranks(); ++rank) {
    const std::string file = chakra_trace(programs, rank);
    const auto messages = messages_of(file);
    const auto steps = programs.steps(programs.program(rank));
    ASSERT_EQ(messages.size(), steps.size() + 1);
    EXPECT_EQ(fields_of(messages.front()).front().bytes, "0.0.4");
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const Node node = node_of(messages[i + 1]);
      const StepCost& cost = programs.cost(steps[i]);
      EXPECT_EQ(node.id, i);
      const std::vector<std::uint64_t> before =
          i == 0 ? std::vector<std::uint64_t>() : std::vector<std::uint64_t>{i - 1};
      EXPECT_EQ(node.dependencies, before);
      if (steps[i].kind == StepKind::work) {
        ++works;
        EXPECT_EQ(node.type, 4U);
        EXPECT_NEAR(static_cast<double>(node.attributes.at("duration_ns")), to_ns(cost.occupied),
                    1);
        EXPECT_GE(static_cast<std::int64_t>(node.duration_us) * 1000,
                  node.attributes.at("duration_ns"));
        continue;
      }
      const bool sends = steps[i].kind != StepKind::wait;
      const int peer = programs.peer(rank, steps[i]);
      EXPECT_EQ(node.type, sends ? 5U : 6U);
      EXPECT_EQ(node.attributes.at("comm_src"), sends ? rank : peer);
      EXPECT_EQ(node.attributes.at("comm_dst"), sends ? peer : rank);
      EXPECT_EQ(node.attributes.at("comm_size"), cost.bytes);
      EXPECT_EQ(node.attributes.at("comm_tag"), steps[i].slot);
    }
  }
  EXPECT_GT(works, 0U);
}

}  // namespace
}  // namespace unisono::sim::chakra_test
