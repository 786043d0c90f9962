// SPDX-License-Identifier: BSD-3-Clause
#include "plan/call.hpp"

#include <fmt/format.h>

#include "arith/type.hpp"

namespace unisono::plan {
namespace {

using schedule::Collective;

// The C API's name, without its prefix.
std::string name_of(Collective collective, Purpose purpose) {
  const std::string name(schedule::collective_name(collective));
  if (collective == Collective::reduce_scatter) {
    return purpose == Purpose::user_blocks ? name : name + "_block";
  }
  if (collective == Collective::many_to_many) return name;
  if (purpose == Purpose::user_typed_blocks) return name + "w";
  return purpose == Purpose::user_blocks ? name + "v" : name;
}

// Whether ranks may have local counts, so that their count arguments need not be equal.
bool has_own_blocks(Collective c) {
  return c == Collective::gather || c == Collective::scatter || c == Collective::alltoall;
}

std::string count_text(Collective collective, Purpose purpose, std::int64_t count) {
  if (purpose == Purpose::user) return fmt::format("count {}", count);
  if (has_own_blocks(collective)) return fmt::format("own blocks of {} elements", count);
  return fmt::format("blocks of {} elements in all", count);
}

}  // namespace

Call call_of_exchange(Purpose purpose, std::int32_t digest, std::int64_t bytes) {
  Call call;
  call.collective = Collective::allgather;
  call.purpose = purpose;
  call.count = bytes;
  call.type = static_cast<std::int32_t>(arith::Type::byte);
  call.root = digest;
  return call;
}

std::string type_text(std::int32_t type) {
  if (type >= 0 && type < arith::kTypeCount) {
    return std::string(arith::type_name(static_cast<arith::Type>(type)));
  }
  return "a type of the user's";
}

std::string operator_text(std::int32_t op) {
  if (op >= 0 && op < arith::kOperatorCount) {
    return std::string(arith::operator_name(static_cast<arith::Operator>(op)));
  }
  return "an operator of the user's";
}

int call_code(Collective collective, Purpose purpose) {
  return static_cast<int>(collective) + static_cast<int>(purpose) * schedule::kCollectiveCount;
}

std::string call_name(int call_code) {
  const auto purpose = static_cast<Purpose>(call_code / schedule::kCollectiveCount);
  switch (purpose) {
    case Purpose::user:
    case Purpose::user_blocks:
    case Purpose::user_typed_blocks:
      break;
    case Purpose::duplicate:
      return "comm_dup";
    case Purpose::split:
      return "comm_split";
    case Purpose::from_list:
      return "comm_from_list";
    case Purpose::nic_path:
      return "the agreement on the NIC path";
    case Purpose::learning:
      return "the agreement on learned algorithms (UNISONO_LEARN)";
  }
  return name_of(static_cast<Collective>(call_code % schedule::kCollectiveCount), purpose);
}

std::string describe_call(int call_code, std::int64_t count, std::int32_t type, std::int32_t op,
                          std::int32_t root) {
  std::string text = call_name(call_code);
  const auto purpose = static_cast<Purpose>(call_code / schedule::kCollectiveCount);
  if (purpose == Purpose::duplicate || purpose == Purpose::split || purpose == Purpose::nic_path ||
      purpose == Purpose::learning) {
    return text;
  }
  if (purpose == Purpose::from_list) {
    return fmt::format("{}(list with digest {:08x})", text, static_cast<std::uint32_t>(root));
  }
  const auto collective = static_cast<Collective>(call_code % schedule::kCollectiveCount);
  if (collective == Collective::barrier) return text + "()";
  text += fmt::format("({}, {}", count_text(collective, purpose, count), type_text(type));
  if (schedule::is_reduction(collective)) text += ", " + operator_text(op);
  if (schedule::is_rooted(collective)) text += fmt::format(", root {}", root);
  return text + ")";
}

}  // namespace unisono::plan
