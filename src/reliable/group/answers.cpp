// SPDX-License-Identifier: BSD-3-Clause
#include "reliable/group/answers.hpp"

#include <algorithm>

#include "wire/sequence.hpp"

namespace unisono::reliable {

void Answers::note(int child, std::uint64_t value) {
  const auto said = std::ranges::find(all_, child, &std::pair<int, std::uint64_t>::first);
  if (said == all_.end()) {
    all_.emplace_back(child, value);
  } else if (wire::is_before(said->second, value)) {
    said->second = value;
  }
}

const std::uint64_t* Answers::find(int child) const {
  const auto said = std::ranges::find(all_, child, &std::pair<int, std::uint64_t>::first);
  return said == all_.end() ? nullptr : &said->second;
}

std::optional<std::uint64_t> Answers::worst(std::span<const int> children,
                                            std::uint64_t own) const {
  std::uint64_t worst = own;
  for (const int child : children) {
    const std::uint64_t* const said = find(child);
    if (said == nullptr) return std::nullopt;
    if (wire::is_before(*said, worst)) worst = *said;
  }
  return worst;
}

std::vector<int> Answers::missing(std::vector<int> children) const {
  std::erase_if(children, [this](int child) { return find(child) != nullptr; });
  return children;
}

}  // namespace unisono::reliable
