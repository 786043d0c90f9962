// SPDX-License-Identifier: BSD-3-Clause
// Consent: each member of a shrinking communicator reports once, to all others, whether it has the
// memory for its part. All go on, or none does. One thread at a time.
//
// A member that refuses to take part before there is a decision may die before all have received
// the refusal. So a rank that receives it refuses as well, with the name of the first. A member
// that lacks the memory for the new communicator may die likewise. A rank that has received this
// fails the new communicator, for members that took the other for dead and own it already.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "comm/member_record.hpp"
#include "comm/members.hpp"
#include "job/job.hpp"

namespace unisono::comm {

class Consent {
 public:
  // `records`: of all members, in the memory of this host. They outlive it.
  Consent(const Members& members, MemberRecord* records)
      : job_(members.job()), members_(members), records_(records) {}

  // One of these is called, once. `origin`: the member that refused first.
  void refuse(int origin) { say(kRefuses + (static_cast<std::uint64_t>(origin) << kOriginBit)); }
  void say_yes() { say(kHasMemory); }
  void say_no() { say(kLacksMemory); }
  // This rank has ended with an error. It affects the members that are in a list with it.
  void give_up() { say(kGivesUp); }

  // The member that refused first, if any has.
  std::optional<int> refusing() const;
  // The members of the list that cannot go on. Lost members are left to the next call.
  std::vector<int> missing(std::span<const int> members) const;
  bool lacks_memory(int member) const { return word_of(member) == kLacksMemory; }
  // Living members of the list that have said nothing. Looks after them, so that their silence, or
  // stop, is noticed.
  std::vector<int> await(std::span<const int> members) const;
  // The same without a look, for messages.
  std::vector<int> awaited(std::span<const int> members) const;

 private:
  static constexpr std::uint64_t kRefuses = 1, kHasMemory = 2, kLacksMemory = 3, kGivesUp = 4;
  static constexpr unsigned kOriginBit = 8;

  void say(std::uint64_t word);
  std::uint64_t word_of(int member) const {
    return records_[member].consent.load(std::memory_order_acquire);
  }
  int job_rank(int member) const { return members_.job_rank(member); }
  bool lives(int member) const { return members_.lives(member); }
  // A lost member's word does not count, because not all may have received it.
  bool counts(int member) const {
    return lives(member) || job_.ranks().state(job_rank(member)) == job::RankState::left;
  }

  job::Job& job_;
  const Members& members_;
  MemberRecord* records_;
};

}  // namespace unisono::comm
