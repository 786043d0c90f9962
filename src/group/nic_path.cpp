// SPDX-License-Identifier: BSD-3-Clause
// The part of Communicator that runs operations in the NIC path (nic_path.hpp), and finds out why
// one does not end.
#include "group/nic_path.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <utility>

#include "base/clock.hpp"
#include "base/text.hpp"
#include "engine/nic/nic_patience.hpp"
#include "group/communicator.hpp"
#include "wait/short_slices.hpp"

namespace unisono::group {
namespace {

using base::Code;
using base::Error;
using base::Status;
using namespace engine::nic_patience;

// The fields of a standing's word, from the lowest bit on.
constexpr unsigned kGivenBit = 0, kGivenBits = 1U << engine::SplitChoice::kMost;
constexpr unsigned kEndedBit = kGivenBit + kGivenBits;
constexpr unsigned kCallsBit = kEndedBit + 1, kCallsBits = 18;
constexpr unsigned kCompletedBit = kCallsBit + kCallsBits, kCompletedBits = 17;
constexpr unsigned kHistoryBit = kCompletedBit + kCompletedBits;
static_assert(kHistoryBit + engine::kDigestBits == 64);

// Of the requests of a communicator; more of them would be taken for the next one's.
constexpr unsigned kRequestBits = 24;

constexpr std::uint64_t mask(unsigned bits) { return (std::uint64_t{1} << bits) - 1; }

// By how much `other` is ahead of `own`, of numbers that were cut to so many bits.
std::int64_t ahead(std::uint64_t own, std::uint64_t other, unsigned bits) {
  const unsigned unused = 64 - bits;
  return static_cast<std::int64_t>((other - own) << unused) >> unused;
}

// In a call's history, for one that was made in the NIC path: the same one started as a split-phase
// operation is another call.
constexpr std::uint32_t kInNicPath = 0x4e4943;

// A result is there in microseconds if all have come: so often a rank looks before it does anything
// else, and so often between two turns of other work. Not for long, as the core may be needed by
// those that have to come: 2000 looks made calls half as long again where ranks outnumber cores.
constexpr int kFirstLooks = 100;
constexpr int kLooks = 20;
// After its turns it naps, for longer and longer, and then sleeps until it is woken.
constexpr std::int64_t kFirstNapNs = 20 * base::kMicrosecond;
constexpr std::int64_t kLongestNapNs = base::kMillisecond;

}  // namespace

std::uint64_t NicStanding::word() const {
  return std::uint64_t{history} << kHistoryBit |
         (completed & mask(kCompletedBits)) << kCompletedBit |
         (calls & mask(kCallsBits)) << kCallsBit | std::uint64_t{ended} << kEndedBit |
         (given & mask(kGivenBits)) << kGivenBit;
}

NicStanding NicStanding::of_word(std::uint64_t word) {
  return {.history = static_cast<std::uint32_t>(word >> kHistoryBit),
          .calls = word >> kCallsBit & mask(kCallsBits),
          .completed = word >> kCompletedBit & mask(kCompletedBits),
          .given = static_cast<std::uint32_t>(word >> kGivenBit & mask(kGivenBits)),
          .ended = (word >> kEndedBit & 1) != 0};
}

bool has_result(const NicStanding& own, const NicStanding& other) {
  return ahead(own.completed, other.completed, kCompletedBits) > 0;
}

// Nobody gets past an operation of the NIC path without its result. Who has made fewer calls may
// still come; who has ended calls nothing more, and what it is missed for is another matter.
bool calls_differ(const NicStanding& own, const NicStanding& other) {
  if (has_result(own, other) || other.ended) return false;
  const std::int64_t calls = ahead(own.calls, other.calls, kCallsBits);
  return calls > 0 || (calls == 0 && other.history != own.history);
}

bool has_given(const NicStanding& own, const NicStanding& other, int tree) {
  if (has_result(own, other)) return true;
  return (other.given >> tree & 1) != 0 && ahead(own.calls, other.calls, kCallsBits) == 0 &&
         ahead(own.completed, other.completed, kCompletedBits) == 0;
}

// The lowest bit: that there is one.
constexpr unsigned kMarkBit = 1 + kCompletedBits;

std::uint64_t nic_farewell(std::uint64_t mark, std::uint64_t completed) {
  return mark << kMarkBit | (completed & mask(kCompletedBits)) << 1 | 1;
}

std::optional<NicStanding> read_farewell(std::uint64_t mark, std::uint64_t word) {
  if ((word & 1) == 0 || word >> kMarkBit != (mark << kMarkBit) >> kMarkBit) return std::nullopt;
  NicStanding standing;
  standing.completed = word >> 1 & mask(kCompletedBits);
  standing.ended = true;
  return standing;
}

NicPath::NicPath(std::unique_ptr<engine::NicGroup> joined, std::uint64_t segment_mark,
                 topology::HostMap map, int rank)
    : group(std::move(joined)),
      mark(segment_mark),
      first_asked(segment_mark << kRequestBits),
      hosts(std::move(map)) {
  for (const int other : hosts.members(hosts.of(rank))) {
    if (other != rank) neighbour(other).here = true;
  }
  if (!group->leads()) return;
  std::uint32_t tree = 1;
  for (const nic::Node& node : group->trees()) {
    if (node.parent >= 0) neighbour(rank_of({node.parent, 0})).above |= tree;
    for (const int child : node.children) neighbour(rank_of({child, 0})).below |= tree;
    tree <<= 1;
  }
  for (const auto& next : neighbours) {
    if (next.here) continue;
    const auto ranks = hosts.members(hosts.of(next.rank));
    awaited.insert(awaited.end(), ranks.begin(), ranks.end());
  }
  if (group->allgather() == nullptr) return;
  for (int other = 0; other < hosts.ranks(); ++other) {
    if (other != rank) neighbour(other);
  }
}

NicPath::Neighbour& NicPath::neighbour(int rank) {
  const auto found = std::ranges::find(neighbours, rank, &Neighbour::rank);
  if (found != neighbours.end()) return *found;
  return neighbours.emplace_back(Neighbour{.rank = rank, .asked = first_asked});
}

// A blocking call that is under way in the NIC path.
struct Communicator::NicOperation {
  const engine::Plan& plan;
  std::uint64_t index;  // in the communicator
  std::int64_t started_ns = 0;
  std::int64_t examined_ns = 0;
  std::int64_t nap_ns = 0;         // how long it sleeps next; 0: it has not slept
  std::int64_t owed_since_ns = 0;  // since when all was seen to be sent that it lacks; 0: not yet
  std::int64_t left_since_ns = 0;  // since when a rank was seen to have left; 0: none was

  std::string describe() const {
    return fmt::format("{} (operation {}, in the NIC path)",
                       describe_call(plan.collective, plan.count, plan.type, plan.op, plan.root),
                       index);
  }
};

Status Communicator::run_in_nic(CachedPlan& plan, const void* input, void* output) {
  note_call(plan.plan.digest ^ kInNicPath);
  engine::NicCall call = *plan.nic;
  call.combine |= flag_history() << UNISONO_NIC_COMBINE_BITS;
  NicOperation operation{.plan = plan.plan, .index = next_index_++};
  plans_.use(plan);
  const auto started = nic_->group->start(call, input, output);
  if (!started) return fail_in_nic(operation, started.error());
  UNISONO_TRY(await_nic(operation));
  if (const Status taken = nic_->group->take(call, output); !taken) {
    return fail_in_nic(operation, taken.error());
  }
  ++statistics_.operations;
  ++statistics_.in_nic;
  ++nic_->completed;
  publish_standing();
  lend(true);
  return base::success();
}

Status Communicator::await_nic(NicOperation& operation) {
  wait::Waiter waiter(job_.wait_policy(), job_.foreign_load());
  const engine::NicGroup& group = *nic_->group;
  for (int looks = kFirstLooks;; looks = kLooks) {
    for (int i = 0; i < looks; ++i) {
      const auto done = nic_->group->poll();
      if (!done) return fail_in_nic(operation, done.error());
      if (!*done) continue;
      const bool took_turns = looks == kLooks && operation.nap_ns == 0;
      if (took_turns) nic_->core_loss.saw(group.done_ns(), base::now_ns());
      return base::success();
    }
    if (!active_.empty()) advance();
    examine(false);
    if (operation.nap_ns != 0) {
      examine_after_sleep();
      examine_nic(operation);
    }
    if (someone_gone_) [[unlikely]]
      examine_members_in_nic(operation);
    if (has_failed_by(operation.index)) return give_up_nic();
    // Not next(), which has a clock looked at now and then: these looks take longer than the clock.
    const std::int64_t now_ns = base::now_ns();
    const bool at_once = nic_->core_loss.is_there(now_ns);
    switch (at_once ? wait::Waiter::Next::sleep : waiter.next_at(now_ns)) {
      case wait::Waiter::Next::spin:
        break;
      case wait::Waiter::Next::yield:
        sched_yield();
        break;
      case wait::Waiter::Next::sleep:
        sleep_in_nic(operation, at_once);
        break;
    }
  }
}

// Where others compute on the core, a rank sleeps at once and until it is woken: who gives its core
// away there is not let in soon when it is woken, either. Otherwise it naps for a while: where
// ranks outnumber cores, each that is woken by itself costs the others more than their naps do.
void Communicator::sleep_in_nic(NicOperation& operation, bool at_once) {
  Communicator* const self[] = {this};
  engine::NicGroup& group = *nic_->group;
  std::int64_t& nap_ns = operation.nap_ns;
  if (nap_ns == 0) nap_ns = at_once ? kFirstSleep : kFirstNapNs;
  if (nap_ns < kLongestNapNs || !group.is_woken()) {
    nap_ns = std::min(nap_ns, kLongestNapNs);
    sleep(self, nap_ns);
    nap_ns *= 2;
    return;
  }
  if (at_once && job_.wait_policy().short_slices != wait::ShortSlices::never) {
    wait::ask_for_short_slices();
  }
  nap_ns = std::max(nap_ns, kFirstSleep);
  const bool rung = !group.arm() || sleep(self, nap_ns, group.wake_descriptor());
  group.disarm();
  if (!rung) nap_ns = std::min(2 * nap_ns, kLongestSleep);
}

bool Communicator::has_failed_by(std::uint64_t index) const {
  return failure_.has_value() && failure_->index <= index;
}

// What this rank lacks it will not ask for any more.
Error Communicator::give_up_nic() {
  publish_standing(true);
  return failure();
}

Error Communicator::fail_in_nic(const NicOperation& operation, const Error& why) {
  if (why.code == Code::mismatch) {
    const auto odd = nic_->group->odd_rank();
    tell_difference(operation, odd ? nic_->rank_of(*odd) : -1);
  } else {
    fail_all(why.code,
             fmt::format("{} ends at {}: {}", operation.describe(), name_rank(rank_), why.message),
             operation.index);
  }
  return give_up_nic();
}

void Communicator::tell_difference(const NicOperation& operation, int other) {
  const engine::Plan& plan = operation.plan;
  fail_all(Code::mismatch,
           fmt::format("the ranks' calls differ at operation {} of the communicator: {} called {}, "
                       "but {} something else, now or before, or the same as a split-phase "
                       "operation; all ranks have to make the same calls in the same order",
                       operation.index, name_rank(rank_),
                       describe_call(plan.collective, plan.count, plan.type, plan.op, plan.root),
                       other < 0 ? "another rank" : name_rank(other)),
           operation.index);
}

// Each is asked once at a time.
template <class Which>
void Communicator::ask_for_standings(const Which& which) {
  for (auto& next : nic_->neighbours) {
    if (next.here || awaits_answer(next) || !which(next)) continue;
    MemberRecord& member = members()[next.rank];
    const auto offset = reinterpret_cast<std::byte*>(&member.standing) - job_.memory().at(0);
    machine_.network->get({.source = job_ranks_[static_cast<std::size_t>(next.rank)],
                           .offset = static_cast<std::uint64_t>(offset),
                           .place = reinterpret_cast<std::byte*>(&member.heard),
                           .bytes = sizeof member.heard,
                           .flag = reinterpret_cast<std::uint64_t*>(&member.heard_number),
                           .flag_value = ++next.asked});
  }
}

// After each nap.
void Communicator::examine_nic(NicOperation& operation) {
  const Status there = nic_->group->look_around();
  if (!there) {
    fail_in_nic(operation, there.error());
    return;
  }
  await_silence_in_nic();
  const std::int64_t now = base::now_ns();
  if (operation.started_ns == 0) operation.started_ns = operation.examined_ns = now;
  if (now - operation.examined_ns < job_.watch_interval_ns()) return;
  operation.examined_ns = now;
  publish_standing();
  for (int r = 0; r < size(); ++r) {
    if (!is_remote(r) && r != rank_) job_.is_stopped(job_ranks_[static_cast<std::size_t>(r)]);
  }
  examine_ends_in_nic(operation);
  examine_standings(operation);  // which were asked for the last time
  ask_for_standings([&](const auto& next) { return nic_->concerns(next); });
  ask_for_failure_in_nic();
  examine_nic_deadline(operation);
}

void Communicator::examine_ends_in_nic(const NicOperation& operation) {
  for (int r = 0; r < size(); ++r) {
    if (r == rank_ || state_of(r) != RankState::present) continue;
    const auto end = ends_.of(r);
    const bool is_lacking = end && !end->has_failed && end->index <= operation.index;
    if (is_lacking) return fail_without(r, operation.describe(), operation.index);
  }
}

// Those next to this host in turn; the other ranks of the host find it in their memory.
void Communicator::ask_for_failure_in_nic() {
  const auto may_know = [this](const auto& next) {
    return !next.here && nic_->concerns(next) && state_of(next.rank) == RankState::present;
  };
  const auto count = static_cast<std::uint64_t>(std::ranges::count_if(nic_->neighbours, may_know));
  if (count == 0) return;
  std::uint64_t turn = news_.asked() % count;
  for (const auto& next : nic_->neighbours) {
    if (may_know(next) && turn-- == 0) return news_.ask(next.rank);
  }
}

// Whom of other hosts this rank may be held up by.
void Communicator::await_silence_in_nic() {
  const auto await = [&](int rank) {
    machine_.network->awaits(job_ranks_[static_cast<std::size_t>(rank)]);
  };
  if (!nic_->group->is_gathering()) {
    std::ranges::for_each(nic_->awaited, await);
    return;
  }
  for (const auto& next : nic_->neighbours) {
    if (nic_->concerns(next)) await(next.rank);
  }
}

// Who has left had completed it, if it has said so; but no leader leaves before those below it have
// their results as well, and after an allgather nobody before all have.
void Communicator::examine_members_in_nic(NicOperation& operation) {
  for (int r = 0; r < size(); ++r) {
    const RankState state = state_of(r);
    if (state == RankState::present) continue;
    const auto last = farewell_of(r);
    const bool would_stay = nic_->is_above(r) || nic_->group->is_gathering();
    if (state == RankState::left && !would_stay && last && has_result(standing(), *last)) continue;
    // It may have told of a failure and left since this rank looked for one, or the news of that
    // are overtaken by those of its end. Also one of a later operation is why it gives nothing.
    adopt_failure();
    if (has_failed_by(operation.index) || is_being_told()) return;
    if (state == RankState::left && operation.left_since_ns == 0) {
      operation.left_since_ns = base::now_ns();
    }
    const bool may_come =
        state == RankState::left && is_remote(r) &&
        base::now_ns() - operation.left_since_ns < SilenceLimits::of(job_.settings()).suspect_ns;
    if (may_come && !failure_) continue;
    fail_all(failure_ ? failure_->error.code : Code::rank_lost,
             failure_ ? failure_->error.message
                      : fmt::format("{}: {} cannot complete", describe_loss(cause_of_loss(r)),
                                    operation.describe()),
             operation.index);
    return;
  }
}

// Whether all that the operation lacks has been sent by a neighbour who says so. Where nothing
// holds it up, a host that has given on a tree waits for its parent there only, and one that has
// not for its children.
bool Communicator::is_owed_by(const NicPath::Neighbour& next, const NicStanding& own,
                              const std::optional<NicStanding>& other) const {
  if (nic_->group->is_gathering()) return other && has_given(own, *other, 0);
  const std::uint32_t lacking = nic_->group->lacking();
  for (int tree = 0; lacking >> tree != 0; ++tree) {
    const std::uint32_t bit = lacking & std::uint32_t{1} << tree;
    const bool given = (own.given & bit) != 0;
    if ((next.above & bit) != 0 && given && !(other && has_result(own, *other))) return false;
    if ((next.below & bit) != 0 && !given && !(other && has_given(own, *other, tree))) return false;
  }
  return true;
}

// Ranks may come as late as they like. What is sent to a host is for its leader to miss: the others
// wait for nobody but who is here.
void Communicator::examine_standings(NicOperation& operation) {
  const NicStanding own = standing();
  bool owed = nic_->group->leads() && nic_->group->is_host_complete();
  for (const auto& next : nic_->neighbours) {
    if (!nic_->concerns(next)) continue;
    const auto other = standing_of(next);
    if (other && calls_differ(own, *other)) {
      adopt_failure();  // because of which it may have gone on
      if (!has_failed_by(operation.index)) tell_difference(operation, next.rank);
      return;
    }
    if (!next.here) owed &= is_owed_by(next, own, other);
  }
  const std::int64_t now = base::now_ns();
  if (!owed) operation.owed_since_ns = 0;
  if (owed && operation.owed_since_ns == 0) operation.owed_since_ns = now;
  const std::int64_t limit = SilenceLimits::of(job_.settings()).lost_ns;
  if (!owed || now - operation.owed_since_ns < limit) return;
  fail_all(Code::system,
           fmt::format("{} gets no further at {}: all that it lacks has been sent, and does not "
                       "come; the network drops packets of the NIC path, or a unisonod has ended "
                       "(UNISONO_NIC=off goes without)",
                       operation.describe(), name_rank(rank_)),
           operation.index);
}

void Communicator::examine_nic_deadline(const NicOperation& operation) {
  const std::int64_t limit = job_.settings().time_ns(base::Setting::timeout);
  if (limit <= 0 || base::now_ns() - operation.started_ns < limit) return;
  fail_all(Code::timeout,
           fmt::format("{} was not complete after {} ms (UNISONO_TIMEOUT)", operation.describe(),
                       limit / base::kMillisecond),
           operation.index);
}

NicStanding Communicator::standing() const {
  return {.history = flag_history(),
          .calls = next_index_ & mask(kCallsBits),
          .completed = nic_->completed & mask(kCompletedBits),
          .given = nic_->group->given()};
}

void Communicator::publish_standing(bool ended) {
  NicStanding own = standing();
  own.ended = ended || failure_.has_value();
  const auto held = job_.network()->hold();  // it may be reading it for another host
  members()[rank_].standing.store(own.word(), std::memory_order_release);
}

std::optional<NicStanding> Communicator::farewell_of(int rank) const {
  return read_farewell(nic_->mark, members()[rank].farewell.load(std::memory_order_acquire));
}

// What a neighbour told at its end, or else what it says here, or answered last; nullopt: nothing,
// or the answer is under way, and may be coming in.
std::optional<NicStanding> Communicator::standing_of(const NicPath::Neighbour& next) const {
  if (const auto last = farewell_of(next.rank)) return last;
  const MemberRecord& member = members()[next.rank];
  if (!next.here && (next.asked == nic_->first_asked || awaits_answer(next))) return std::nullopt;
  const std::uint64_t said = next.here ? member.standing.load(std::memory_order_acquire)
                                       : member.heard.load(std::memory_order_relaxed);
  if (said == 0) return std::nullopt;
  return NicStanding::of_word(said);
}

bool Communicator::awaits_answer(const NicPath::Neighbour& next) const {
  return next.asked != nic_->first_asked &&
         members()[next.rank].heard_number.load(std::memory_order_acquire) != next.asked;
}

// Whether nobody may still ask this rank for the last result, and nothing that this one has
// asked for is still to come. To those on this host it owes nothing: their results are in memory
// that they have as well.
bool Communicator::may_leave_nic() const {
  NicStanding waiting = standing();
  waiting.completed -= 1;  // as one that lacks the last result
  return std::ranges::all_of(nic_->neighbours, [&](const NicPath::Neighbour& next) {
    if (next.here || state_of(next.rank) != RankState::present) return true;
    if (awaits_answer(next)) return false;
    if (!nic_->may_be_asked_by(next)) return true;
    const auto other = standing_of(next);
    return other && (other->ended || has_result(waiting, *other));
  });
}

// Programs of this host answer for it until then.
void Communicator::leave_nic() {
  if (nic_ == nullptr) return;
  const std::int64_t deadline_ns = base::now_ns() + SilenceLimits::of(job_.settings()).lost_ns;
  Network& network = *job_.network();
  publish_standing();
  while (!may_leave_nic() && base::now_ns() < deadline_ns) {
    ask_for_standings([&](const auto& next) { return nic_->may_be_asked_by(next); });
    network.announce();
    job_.carry_network();
    if (!may_leave_nic()) network.sleep(base::kMillisecond, {});
    network.withdraw();
    job_.watch(base::now_ns());
  }
  publish_standing(true);
  members()[rank_].farewell.store(nic_farewell(nic_->mark, nic_->completed),
                                  std::memory_order_release);
  for (const int member : remote_) {
    machine_.network->put({.target = job_ranks_[static_cast<std::size_t>(member)],
                           .flag = reinterpret_cast<std::uint64_t*>(&members()[rank_].farewell),
                           .flag_value = nic_farewell(nic_->mark, nic_->completed)});
  }
  nic_.reset();
}

}  // namespace unisono::group
