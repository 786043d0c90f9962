// SPDX-License-Identifier: BSD-3-Clause
#include "reliable/link/link.hpp"

#include <algorithm>

namespace unisono::reliable {

const WaitingFlag* ReceivingSide::note(std::uint64_t number, std::uint32_t position,
                                       std::uint64_t flag, std::uint64_t value) {
  const std::uint64_t first = number - position;
  if (flag != wire::kNoPlace) {
    const WaitingFlag whole{first, number, flag, value};
    if (arrivals.has_all(first, number)) {
      raised_ = whole;
      return &raised_;
    }
    flags.push_back(whole);
    return nullptr;
  }
  // Few messages are incomplete at a time, and none where nothing is lost or overtaken.
  const auto waiting = std::find_if(flags.begin(), flags.end(),
                                    [first](const WaitingFlag& f) { return f.first == first; });
  if (waiting == flags.end() || !arrivals.has_all(waiting->first, waiting->last)) return nullptr;
  raised_ = *waiting;
  *waiting = flags.back();
  flags.pop_back();
  return &raised_;
}

}  // namespace unisono::reliable
