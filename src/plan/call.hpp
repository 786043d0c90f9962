// SPDX-License-Identifier: BSD-3-Clause
// Call: one collective as the caller requested it, with its arguments checked and its datatype and
// operator resolved. A value; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "schedule/shape.hpp"

namespace unisono::plan {

// Communicators are made by collectives of their own, which must not be taken for a user's.
// user_blocks: a user's, with blocks of different lengths; user_typed_blocks: and types
// (alltoallw).
enum class Purpose : std::uint8_t {
  user,
  user_blocks,
  user_typed_blocks,
  duplicate,
  split,
  from_list,
  nic_path,
  learning
};

// A user-defined operator; `type` is passed to its function.
struct UserOperator {
  void (*function)(void* target, const void* left, const void* right, std::int64_t count,
                   std::int32_t type, void* user) = nullptr;
  void* user = nullptr;
  std::int32_t type = 0;
};

// Where each block of a buffer begins, in elements from its start; null: one behind the other.
using Displacements = std::shared_ptr<const std::vector<std::int64_t>>;

struct Call {
  schedule::Collective collective = schedule::Collective::barrier;
  Purpose purpose = Purpose::user;
  std::int64_t count = 0;
  std::int32_t type = 0;  // the C API's number
  std::int32_t op = -1;   // the C API's number; -1: none
  std::int32_t root = 0;  // for from_list: a digest of the list
  std::int64_t element_bytes = 1;
  bool ordered = false;  // the operator does not commute
  UserOperator user{};   // for user-defined operators
  // Purpose::user_blocks and user_typed_blocks; `count` is then the elements of all blocks; with
  // local_counts, of those that this rank has, or for an alltoall sends.
  schedule::Blocks blocks{};
  Displacements input_places{}, output_places{};
  // The counts are local; `blocks` has 0 for unknown ones.
  bool local_counts = false;
  bool in_place = false;  // used only with local_counts
};

// Types and operators from this number on are the user's.
inline constexpr std::int32_t kFirstUserNumber = 1000;

// An allgather of `bytes` of each rank. Ranks whose digests differ get an error.
Call call_of_exchange(Purpose purpose, std::int32_t digest, std::int64_t bytes);

// "allreduce(count 8, float64, sum)", from the numbers of a Call or of a CallRecord.
int call_code(schedule::Collective collective, Purpose purpose);
std::string call_name(int call_code);  // "allreduce"
// "float64", "a type of the user's"
std::string type_text(std::int32_t type);
std::string operator_text(std::int32_t op);
std::string describe_call(int call_code, std::int64_t count, std::int32_t type, std::int32_t op,
                          std::int32_t root);

}  // namespace unisono::plan
