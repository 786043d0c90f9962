// SPDX-License-Identifier: BSD-3-Clause
// ToldProgress: the progress of this rank in a size class queue, as the members on other hosts know
// it (docs/decisions/0068). They have been told it by puts. One of each SizeQueue; one thread at a
// time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace unisono::engine {

// How many times the slot indexes a rank may be ahead of a member to which it does not write.
inline constexpr int kFarTurns = 4;

class ToldProgress {
 public:
  // All members are on one host.
  ToldProgress() = default;
  // The members on other hosts, host by host, of so many `ranks`. `done`: the last operation that
  // `rank` has completed; all know it.
  ToldProgress(const std::vector<std::vector<int>>& hosts, int ranks, int rank, int slot_indexes,
               std::uint64_t done);

  // The members that have to be told `done`, each followed by note_told(). Valid until the next
  // call. `senders`: Program::remote_senders.
  // After each completion:
  std::span<const std::int32_t> take_due(std::uint64_t done, std::span<const std::int32_t> senders);
  // While operation `sequence` is in progress: senders that may not enter it by what they know.
  std::span<const std::int32_t> take_needed(std::uint64_t done, std::uint64_t sequence,
                                            std::span<const std::int32_t> senders);
  // At the end: all that do not know it.
  std::span<const std::int32_t> take_untold(std::uint64_t done);
  void note_told(int rank, std::uint64_t done);
  // Whether all these senders may enter operation `sequence` by what they know.
  bool know_enough(std::uint64_t sequence, std::span<const std::int32_t> senders) const;

 private:
  struct Member {
    bool is_remote = false;
    std::uint64_t told = 0;
    std::uint64_t due = 0;      // it is told again from there on, if it sends to this rank's host
    std::uint64_t far_due = 0;  // and if it does not
  };
  Member& member(std::int32_t rank) { return members_[static_cast<std::size_t>(rank)]; }

  std::vector<Member> members_;  // by rank
  std::uint64_t slots_ = 0;
  std::uint64_t next_far_due_ = 0;   // the least
  std::vector<std::int32_t> ranks_;  // of the last answer
};

}  // namespace unisono::engine
