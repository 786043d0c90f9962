// SPDX-License-Identifier: BSD-3-Clause
#include "reliable/group/answers.hpp"

#include <algorithm>

#include "wire/sequence.hpp"

namespace unisono::reliable {

void Answers::note(int child, const Answer& answer) {
  const auto said = std::ranges::find(all_, child, &Said::child);
  if (said == all_.end()) {
    all_.push_back({child, answer});
    return;
  }
  if (wire::is_before(said->answer.value, answer.value)) said->answer.value = answer.value;
  said->answer.passes_over |= answer.passes_over;
}

const Answers::Answer* Answers::find(int child) const {
  const auto said = std::ranges::find(all_, child, &Said::child);
  return said == all_.end() ? nullptr : &said->answer;
}

std::optional<Answers::Answer> Answers::worst(std::span<const int> children,
                                              const Answer& own) const {
  Answer worst = own;
  for (const int child : children) {
    const Answer* const said = find(child);
    if (said == nullptr) return std::nullopt;
    if (wire::is_before(said->value, worst.value)) worst.value = said->value;
    worst.passes_over |= said->passes_over;
  }
  return worst;
}

std::vector<int> Answers::missing(std::vector<int> children) const {
  std::erase_if(children, [this](int child) { return find(child) != nullptr; });
  return children;
}

}  // namespace unisono::reliable
