// SPDX-License-Identifier: BSD-3-Clause
#include "comm/operations/multicast_results.hpp"

#include <algorithm>

#include "network/network.hpp"

namespace unisono::comm {
namespace {

// So many operations are told apart. The network keeps no more packets than that, and asks for
// results before.
constexpr std::size_t kMost = 256;

}  // namespace

void MulticastResults::note_sent(std::uint64_t index, std::uint64_t first_packet) {
  sent_.reserve(kMost);  // once: later operations allocate nothing
  members_.job().network()->look_at_multicasts([&](const reliable::Group& group) {
    if (group.last() < first_packet) return;
    // A failure that was not looked at yet may be of one of them.
    if (group.counts().failed == known_failures_) {
      const auto is_open = [&group](const Sent& sent) { return sent.last >= group.lacking(); };
      sent_.erase(sent_.begin(), std::ranges::find_if(sent_, is_open));
    }
    if (sent_.size() == kMost) {
      sent_.back().last = group.last();  // counts as a part of the one before
    } else {
      sent_.push_back({index, first_packet, group.last()});
    }
  });
}

std::optional<std::uint64_t> MulticastResults::first_failed() {
  members_.job().network()->look_at_multicasts([this](const reliable::Group& group) {
    next_packet_ = group.last() + 1;
    if (group.counts().failed == known_failures_ || first_failed_) return;
    known_failures_ = group.counts().failed;
    const auto failed = std::ranges::find_if(sent_, [&group](const Sent& sent) {
      return group.acknowledgement(sent.first, sent.last) == reliable::Acknowledgement::failed;
    });
    if (failed != sent_.end()) first_failed_ = failed->index;
  });
  return first_failed_;
}

}  // namespace unisono::comm
