// SPDX-License-Identifier: BSD-3-Clause
// Which of the compiled versions of a function this processor runs. Highway can choose as well, but
// its library measures a timer when it is loaded, which takes longer than anything else in the
// start of a process; so we use its headers only.
#pragma once

#include <atomic>
#include <type_traits>
#include <vector>

namespace unisono::base {

// In ascending order: a processor that has one has those before it. The baseline is what the
// compiler may use everywhere: plain C++, NEON on AArch64, or what -march names.
enum class InstructionSet : int { baseline = 1, sse4, avx2, avx3 };

namespace detail {
extern std::atomic<int> chosen_set;  // 0 before the first question
InstructionSet choose_instruction_set();
}  // namespace detail

// The best one of this processor and its system, unless a test has narrowed it. Any thread.
inline InstructionSet instruction_set() {
  const int set = detail::chosen_set.load(std::memory_order_relaxed);
  return set != 0 ? static_cast<InstructionSet>(set) : detail::choose_instruction_set();
}

// Ascending; the last one is the best.
std::vector<InstructionSet> supported_instruction_sets();

// For tests: while it lives, instruction_set() is this one, which the processor has to support.
class NarrowedInstructionSet {
 public:
  explicit NarrowedInstructionSet(InstructionSet set);
  ~NarrowedInstructionSet();
  NarrowedInstructionSet(const NarrowedInstructionSet&) = delete;
  NarrowedInstructionSet& operator=(const NarrowedInstructionSet&) = delete;
};

// It returns the best version of a function for instruction_set(). Those that are not compiled are
// null, except for the baseline.
template <class Function>
Function* best_version(Function* baseline, std::type_identity_t<Function>* sse4,
                       std::type_identity_t<Function>* avx2, std::type_identity_t<Function>* avx3) {
  const InstructionSet set = instruction_set();
  if (avx3 != nullptr && set >= InstructionSet::avx3) return avx3;
  if (avx2 != nullptr && set >= InstructionSet::avx2) return avx2;
  if (sse4 != nullptr && set >= InstructionSet::sse4) return sse4;
  return baseline;
}

}  // namespace unisono::base

// UNISONO_BEST_VERSION(function)(argument, ...): where HWY_ONCE is true, in the namespace that
// holds each target's namespace. The function has no overloads.
#define UNISONO_BEST_VERSION(FUNCTION)                                                     \
  ::unisono::base::best_version(&HWY_STATIC_DISPATCH(FUNCTION), HWY_CHOOSE_SSE4(FUNCTION), \
                                HWY_CHOOSE_AVX2(FUNCTION), HWY_CHOOSE_AVX3(FUNCTION))
