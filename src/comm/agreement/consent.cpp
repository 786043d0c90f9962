// SPDX-License-Identifier: BSD-3-Clause
#include "comm/agreement/consent.hpp"

namespace unisono::comm {

// Sent to every rank of a host, since it is unknown which of them will live. Also to silent ranks,
// which may be in the list and wait for it.
void Consent::say(std::uint64_t word) {
  auto& own = records_[members_.rank()].consent;
  own.store(word, std::memory_order_release);
  job_.events().raise();
  for (const int member : members_.remote()) {
    const int target = members_.job_rank(member);
    const job::RankState state = job_.ranks().state(target);
    const bool hears = state == job::RankState::present || state == job::RankState::silent;
    if (!hears) continue;
    job_.network()->put(
        {.target = target, .flag = reinterpret_cast<std::uint64_t*>(&own), .flag_value = word});
    job_.losses().send_update(target);
  }
}

std::optional<int> Consent::refusing() const {
  constexpr std::uint64_t kWhat = (std::uint64_t{1} << kOriginBit) - 1;
  for (int m = 0; m < members_.size(); ++m) {
    const std::uint64_t word = word_of(m);
    if ((word & kWhat) == kRefuses && counts(m)) return static_cast<int>(word >> kOriginBit);
  }
  return std::nullopt;
}

std::vector<int> Consent::missing(std::span<const int> members) const {
  std::vector<int> missing;
  for (const int member : members) {
    const std::uint64_t word = word_of(member);
    if (word != 0 && word != kHasMemory && counts(member)) missing.push_back(member);
  }
  return missing;
}

std::vector<int> Consent::awaited(std::span<const int> members) const {
  std::vector<int> silent;
  for (const int member : members) {
    if (lives(member) && word_of(member) == 0) silent.push_back(member);
  }
  return silent;
}

std::vector<int> Consent::await(std::span<const int> members) const {
  std::vector<int> silent = awaited(members);
  for (const int member : silent) {
    if (members_.is_remote(member)) {
      job_.network()->awaits(job_rank(member));
    } else {
      job_.watch().is_stopped(job_rank(member));
    }
  }
  return silent;
}

}  // namespace unisono::comm
