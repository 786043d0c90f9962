// SPDX-License-Identifier: BSD-3-Clause
#include "sim/chakra/chakra.hpp"

#include <fmt/format.h>

#include <cmath>
#include <string_view>

namespace unisono::sim {
namespace {

// The version of the schema that has these fields.
constexpr std::string_view kChakraSchema = "0.0.4";
// Numbers of et_def.proto.
constexpr unsigned kVersion = 1;  // of GlobalMetadata
constexpr unsigned kId = 1, kName = 2, kType = 3, kDataDependencies = 5, kDuration = 7,
                   kAttribute = 10;                                         // of Node
constexpr unsigned kAttributeName = 1, kInt32 = 7, kInt64 = 9, kBool = 27;  // of AttributeProto
constexpr std::uint64_t kComputation = 4, kSendNode = 5, kReceiveNode = 6;

// A protobuf message: fields of varints and of bytes, which is all that is needed here.
class Message {
 public:
  Message& number(unsigned field, std::uint64_t value) {
    varint(std::uint64_t{field} << 3);
    varint(value);
    return *this;
  }
  Message& bytes(unsigned field, std::string_view value) {
    varint((std::uint64_t{field} << 3) | 2);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  // The value of a field that is a list of one number.
  static std::string list_of(std::uint64_t value) {
    Message list;
    list.varint(value);
    return list.bytes_;
  }
  void append(std::string_view bytes) { bytes_ += bytes; }
  const std::string& text() const { return bytes_; }
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>((value & 0x7f) | 0x80);
    bytes_ += static_cast<char>(value);
  }

 private:
  std::string bytes_;
};

std::string attribute(std::string_view name, unsigned field, std::uint64_t value) {
  return Message().bytes(kAttributeName, name).number(field, value).text();
}

std::string node(const ProgramSet& programs, int rank, const Step& step, std::uint64_t id) {
  const StepCost& cost = programs.cost(step);
  Message out;
  if (id != 0) out.number(kId, id);  // a field of its default is left out
  if (step.kind == StepKind::work) {
    const auto ns = static_cast<std::uint64_t>(std::llround(to_ns(cost.occupied)));
    out.bytes(kName, "work").number(kType, kComputation);
    if (id != 0) out.bytes(kDataDependencies, Message::list_of(id - 1));
    out.number(kDuration, (ns + 999) / 1000);
    return out.bytes(kAttribute, attribute("is_cpu_op", kBool, 1))
        .bytes(kAttribute, attribute("duration_ns", kInt64, ns))
        .text();
  }
  const bool sends = step.kind != StepKind::wait;
  const int peer = programs.peer(rank, step);
  out.bytes(kName, fmt::format("{} {}", sends ? "send to" : "receive from", peer));
  out.number(kType, sends ? kSendNode : kReceiveNode);
  if (id != 0) out.bytes(kDataDependencies, Message::list_of(id - 1));
  const auto source = static_cast<std::uint64_t>(sends ? rank : peer);
  const auto target = static_cast<std::uint64_t>(sends ? peer : rank);
  return out.bytes(kAttribute, attribute("is_cpu_op", kBool, 0))
      .bytes(kAttribute, attribute("comm_src", kInt32, source))
      .bytes(kAttribute, attribute("comm_dst", kInt32, target))
      .bytes(kAttribute, attribute("comm_size", kInt64, static_cast<std::uint64_t>(cost.bytes)))
      .bytes(kAttribute, attribute("comm_tag", kInt32, static_cast<std::uint64_t>(step.slot)))
      .text();
}

void append_message(Message& file, const std::string& message) {
  file.varint(message.size());
  file.append(message);
}

}  // namespace

std::string chakra_trace(const ProgramSet& programs, int rank) {
  Message file;
  append_message(file, Message().bytes(kVersion, kChakraSchema).text());
  std::uint64_t id = 0;
  for (const Step& step : programs.steps(programs.program(rank))) {
    append_message(file, node(programs, rank, step, id++));
  }
  return file.text();
}

}  // namespace unisono::sim
