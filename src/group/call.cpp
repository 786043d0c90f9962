// SPDX-License-Identifier: BSD-3-Clause
#include "group/call.hpp"

#include <fmt/format.h>

#include "arith/type.hpp"

namespace unisono::group {
namespace {

using schedule::Collective;

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

// The C API's name, without its prefix.
std::string name_of(Collective collective, Purpose purpose) {
  const std::string name(schedule::collective_name(collective));
  const bool user_blocks = purpose == Purpose::user_blocks;
  if (collective == Collective::reduce_scatter) return user_blocks ? name : name + "_block";
  return user_blocks && collective != Collective::many_to_many ? name + "v" : name;
}

}  // namespace

int record_number(Collective collective, Purpose purpose) {
  return static_cast<int>(collective) + static_cast<int>(purpose) * schedule::kCollectiveCount;
}

std::string describe_call(int record_number, std::int64_t count, std::int32_t type, std::int32_t op,
                          std::int32_t root) {
  const auto purpose = static_cast<Purpose>(record_number / schedule::kCollectiveCount);
  switch (purpose) {
    case Purpose::user:
    case Purpose::user_blocks:
      break;
    case Purpose::duplicate:
      return "comm_dup";
    case Purpose::split:
      return "comm_split";
    case Purpose::from_list:
      return fmt::format("comm_from_list(list with digest {:08x})",
                         static_cast<std::uint32_t>(root));
  }
  const auto collective = static_cast<Collective>(record_number % schedule::kCollectiveCount);
  std::string text = name_of(collective, purpose);
  if (collective == Collective::barrier) return text + "()";
  if (purpose == Purpose::user_blocks) {
    text += fmt::format("(blocks of {} elements in all, {}", count, type_text(type));
  } else {
    text += fmt::format("(count {}, {}", count, type_text(type));
  }
  if (schedule::is_reduction(collective)) text += ", " + operator_text(op);
  if (schedule::is_rooted(collective)) text += fmt::format(", root {}", root);
  return text + ")";
}

}  // namespace unisono::group
