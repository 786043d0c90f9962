// SPDX-License-Identifier: BSD-3-Clause
#include "base/simd/instruction_set.hpp"

namespace unisono::base {
namespace {

// It asks for what the compiler may use in the code of Highway's targets
// (hwy/ops/set_macros-inl.h).
InstructionSet best_instruction_set() {
#if defined(__x86_64__)
  const bool has_sse4 = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul") &&
                        __builtin_cpu_supports("aes");
  if (!has_sse4) return InstructionSet::baseline;
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
                        __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma") &&
                        __builtin_cpu_supports("f16c");
  if (!has_avx2) return InstructionSet::sse4;
  const bool has_avx3 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
  return has_avx3 ? InstructionSet::avx3 : InstructionSet::avx2;
#else
  return InstructionSet::baseline;
#endif
}

}  // namespace

namespace detail {

std::atomic<int> chosen_set{0};

InstructionSet choose_instruction_set() {
  // Two threads that come here at once find the same.
  const InstructionSet best = best_instruction_set();
  chosen_set.store(static_cast<int>(best), std::memory_order_relaxed);
  return best;
}

}  // namespace detail

std::vector<InstructionSet> supported_instruction_sets() {
  std::vector<InstructionSet> sets;
  const int best = static_cast<int>(best_instruction_set());
  for (int set = 1; set <= best; ++set) sets.push_back(static_cast<InstructionSet>(set));
  return sets;
}

NarrowedInstructionSet::NarrowedInstructionSet(InstructionSet set) {
  detail::chosen_set.store(static_cast<int>(set), std::memory_order_relaxed);
}

NarrowedInstructionSet::~NarrowedInstructionSet() { detail::choose_instruction_set(); }

}  // namespace unisono::base
