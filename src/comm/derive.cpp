// SPDX-License-Identifier: BSD-3-Clause
// Derivation: how a communicator makes new ones: duplicate, split, from_list. All members of the
// parent get what they asked for, or all get an error that names the first that could not.
//
// It takes three allgathers on the parent: where each rank goes; where each group's leader has
// reserved the segment; whether each rank has the memory and the object. A rank that completes the
// third knows that all others have entered it, and so know the segments. Should the third fail at
// some ranks only, because a member was lost, then
//   - on one host a word of the parent decides for all, by compare and exchange;
//   - between hosts a rank without success fails the new communicator for those that own it.
// A segment is noted from its reservation until a communicator owns it. So a rank that dies in
// between leaves nothing behind (reservations.hpp).
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

#include "arith/type.hpp"
#include "comm/communicator.hpp"
#include "comm/reservations.hpp"

namespace unisono::comm {
namespace {

using base::Code;
using base::Error;
using base::Result;

// The first message of each rank to the others.
struct Wish {
  std::int32_t color = -1;
  std::int32_t key = 0;
};

// FNV-1a: the ranks compare their lists by it.
std::int32_t list_digest(std::span<const int> members) {
  std::uint32_t hash = 2166136261U;
  for (const int member : members) {
    for (int shift = 0; shift < 32; shift += 8) {
      hash = (hash ^ ((static_cast<std::uint32_t>(member) >> shift) & 0xffU)) * 16777619U;
    }
  }
  return static_cast<std::int32_t>(hash);
}

// The reason of a rank that cannot take part, for the others.
struct Reason {
  std::int32_t code = 0;
  char text[220] = {};  // ends with a zero
};

// The outcome in SegmentHeader::derivation, below the number of the derivation.
enum class Agreed : std::uint64_t { open, made, given_up };
constexpr unsigned kOutcomeBits = 2;

}  // namespace

// One call of one rank.
class Derivation {
 public:
  using Made = std::unique_ptr<Communicator>;

  Derivation(Communicator& parent, plan::Purpose purpose, std::int32_t digest)
      : parent_(parent),
        purpose_(purpose),
        digest_(digest),
        number_(parent.queue_.next_index()),
        reservations_(parent.members_, parent.segment_) {}

  Result<Made> make(const Wish& wish);

 private:
  base::Status agree(const Wish& wish);
  base::Status learn_group(const Wish& wish);
  bool decide(Agreed outcome);
  Made build() const;
  Error end_after_loss(const Error& why, bool has_begun);
  Error end_without();
  Result<Reason> spread_reason();
  Error parents_failure();
  void give_up();
  void abandon() noexcept;
  void fail_made(const Error& why);
  bool leads() const { return !group_.empty() && group_.front() == parent_.rank(); }

  Communicator& parent_;
  plan::Purpose purpose_;
  std::int32_t digest_;
  std::uint64_t number_;      // number of the first allgather among the parent's operations
  std::vector<int> group_;    // the parent's ranks of this one's color, in their new order
  std::optional<Grant> own_;  // reserved by this rank
  Grant grant_;               // the group's, if this rank knows it and has the memory
  base::Status status_ = base::success();  // why this rank cannot go along
  std::optional<int> without_;             // the first rank that cannot
  Reservations reservations_;
  Made made_;
};

Result<std::unique_ptr<Communicator>> Communicator::duplicate() {
  return Derivation(*this, plan::Purpose::duplicate, 0).make({0, rank()});
}

Result<std::unique_ptr<Communicator>> Communicator::split(int color, int key) {
  return Derivation(*this, plan::Purpose::split, 0).make({color, key});
}

Result<std::unique_ptr<Communicator>> Communicator::from_list(std::span<const int> members) {
  const auto place = std::ranges::find(members, rank());
  const int color = place == members.end() ? -1 : 0;
  return Derivation(*this, plan::Purpose::from_list, list_digest(members))
      .make({color, static_cast<int>(place - members.begin())});
}

Result<Derivation::Made> Derivation::make(const Wish& wish) try {
  const base::Status agreed = agree(wish);
  const bool is_one_host = parent_.members_.on_one_host();
  if (!agreed) {
    // A call that started nothing is no part of a derivation.
    const bool has_begun = parent_.queue_.next_index() != number_;
    const bool is_made = is_one_host && has_begun && decide(Agreed::given_up);
    if (!is_made) return end_after_loss(agreed.error(), has_begun);
  } else if (without_) {
    return end_without();
  } else if (is_one_host && !decide(Agreed::made)) {
    return end_after_loss(parents_failure(), true);
  }
  reservations_.hand_over();
  if (group_.empty()) return Made();
  made_ = build();
  UNISONO_TRY(made_->join_nic());
  return std::move(made_);
} catch (const std::exception&) {
  abandon();
  throw;
}

base::Status Derivation::agree(const Wish& wish) {
  UNISONO_TRY(learn_group(wish));
  if (leads()) {
    const auto reserved = Segment::reserve(parent_.job_, parent_.members_.job_ranks_of(group_),
                                           &reservations_.own(), number_ + 1);
    if (reserved) own_ = *reserved;
    if (!reserved) status_ = reserved.error();
  }
  const Grant given = own_.value_or(Grant{});
  std::vector<Grant> grants(static_cast<std::size_t>(parent_.size()));
  UNISONO_TRY(parent_.exchange(purpose_, digest_, &given, grants.data(), sizeof given));
  if (!group_.empty()) {
    // Without one, it is the leader that does not go along.
    const Grant& grant = grants[static_cast<std::size_t>(group_.front())];
    if (grant.offset >= 0 && parent_.members_.is_remote(group_.front())) {
      reservations_.own().note(grant.offset, grant.layout.bytes, number_ + 1);
      status_ = Segment::adopt(parent_.job_, grant);
    }
    if (status_) grant_ = grant;
  }

  const auto goes_along = static_cast<std::uint8_t>(status_.ok());
  std::vector<std::uint8_t> all(static_cast<std::size_t>(parent_.size()));
  UNISONO_TRY(parent_.exchange(purpose_, digest_, &goes_along, all.data(), sizeof goes_along));
  const auto found = std::ranges::find(all, std::uint8_t{0});
  if (found != all.end()) without_ = static_cast<int>(found - all.begin());
  return base::success();
}

base::Status Derivation::learn_group(const Wish& wish) {
  std::vector<Wish> wishes(static_cast<std::size_t>(parent_.size()));
  UNISONO_TRY(parent_.exchange(purpose_, digest_, &wish, wishes.data(), sizeof wish));
  const auto wish_of = [&](int r) { return wishes[static_cast<std::size_t>(r)]; };
  for (int r = 0; r < parent_.size(); ++r) {
    if (wish.color >= 0 && wish_of(r).color == wish.color) group_.push_back(r);
  }
  std::ranges::stable_sort(group_, {}, [&](int r) { return wish_of(r).key; });
  return base::success();
}

// Whether the new communicator is made. The first rank of the host that reports success or failure
// decides. A word with a higher number belongs to a later call, so this one succeeded.
bool Derivation::decide(Agreed outcome) {
  constexpr std::uint64_t kMask = (std::uint64_t{1} << kOutcomeBits) - 1;
  const std::uint64_t own = (number_ + 1) << kOutcomeBits | static_cast<std::uint64_t>(outcome);
  std::atomic<std::uint64_t>& word = parent_.segment_.header().derivation;
  std::uint64_t seen = word.load(std::memory_order_acquire);
  for (;;) {
    const std::uint64_t number = seen >> kOutcomeBits;
    if (number > number_ + 1) return true;
    if (number == number_ + 1) return (seen & kMask) == static_cast<std::uint64_t>(Agreed::made);
    if (word.compare_exchange_weak(seen, own, std::memory_order_acq_rel)) {
      return outcome == Agreed::made;
    }
  }
}

Error Derivation::parents_failure() {
  FailureState& failures = parent_.failures();
  failures.adopt();
  if (failures.has_failed()) return failures.tell();
  return {Code::rank_lost,
          fmt::format("rank {}: another rank has given up {}", parent_.rank(),
                      purpose_ == plan::Purpose::split ? "this split" : "this call")};
}

// Writes into the segment, so on one host not before it is decided that it will be used.
Derivation::Made Derivation::build() const {
  const auto rank = static_cast<int>(std::ranges::find(group_, parent_.rank()) - group_.begin());
  return Made(
      new Communicator(parent_.job_, parent_.members_.job_ranks_of(group_), rank, grant_, false));
}

// An allgather failed here, and the parent with it.
Error Derivation::end_after_loss(const Error& why, bool has_begun) {
  if (parent_.members_.on_one_host()) {
    reservations_.release_own();  // no rank uses it: that is decided
  } else {
    // Others may own it by now, or fail it as well.
    if (own_) grant_ = *own_;
    if (grant_.offset >= 0) build()->failures().fail_all(why.code, why.message, 0);
  }
  if (has_begun) give_up();
  return why;
}

// An exception ends the call of this rank; the caller of make() fails the parent. Ranks that own
// the new communicator, or will, get the error from it.
void Derivation::abandon() noexcept try {
  const bool has_begun = parent_.queue_.next_index() != number_;
  const Error why{Code::resources,
                  fmt::format("{} got no memory to take part in a new communicator",
                              parent_.members_.name(parent_.rank()))};
  if (without_) return give_up();  // all know that no rank gets one
  if (made_ != nullptr) return fail_made(why);
  if (parent_.members_.on_one_host() && has_begun && decide(Agreed::given_up)) {
    reservations_.hand_over();
    return fail_made(why);
  }
  end_after_loss(why, has_begun);
} catch (const std::exception&) {
  // No memory for this either: the other ranks wait until this one ends.
}

void Derivation::fail_made(const Error& why) {
  if (group_.empty()) return;
  if (made_ == nullptr) made_ = build();
  made_->failures().fail_all(why.code, why.message, 0, made_->rank());
}

// The last rank of the host that has none gives the segment back, also where the rank that reserved
// it is dead.
void Derivation::give_up() {
  reservations_.give_up(number_ + 1);
  reservations_.give_back_failed();
}

// All know that one rank cannot take part, and no rank uses the segments.
Error Derivation::end_without() {
  const bool is_one_host = parent_.members_.on_one_host();
  if (!own_) reservations_.empty_own();  // what this rank has adopted
  const Result<Reason> reason = spread_reason();
  // Between hosts the segment is free when all have emptied their part of it.
  const std::uint8_t done = 1;
  std::vector<std::uint8_t> all(static_cast<std::size_t>(parent_.size()));
  const bool is_free =
      is_one_host || parent_.exchange(purpose_, digest_, &done, all.data(), sizeof done).ok();
  if (is_free) reservations_.release_own();
  give_up();
  return {reason ? static_cast<Code>(reason->code) : Code::resources,
          fmt::format("rank {}: no rank gets a new communicator: {}: {}", parent_.rank(),
                      parent_.members_.locate(*without_), reason ? reason->text : "it says why")};
}

// The first rank that cannot go along tells all others why.
Result<Reason> Derivation::spread_reason() {
  Reason own;
  if (*without_ == parent_.rank()) {
    own.code = static_cast<std::int32_t>(status_.error().code);
    status_.error().message.copy(own.text, sizeof own.text - 1);
  }
  plan::Call call;
  call.collective = schedule::Collective::broadcast;
  call.purpose = purpose_;
  call.count = sizeof own;
  call.type = static_cast<std::int32_t>(arith::Type::byte);
  call.root = *without_;
  Reason told;
  UNISONO_TRY(parent_.run(call, &own, &told));
  return *without_ == parent_.rank() ? own : told;
}

}  // namespace unisono::comm
