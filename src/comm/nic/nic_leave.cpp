// SPDX-License-Identifier: BSD-3-Clause
#include "comm/nic/nic_leave.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.hpp"
#include "wait/wait_until.hpp"

namespace unisono::comm {

using engine::Operation;

// A rank that has to ask before anything can come sleeps at once. `work` is done in each sleep.
template <class Turn, class Work>
void NicLeave::wait(const Turn& turn, const Work& work) {
  job::Job& job = members_.job();
  network::AnsweringThread& thread = job.network()->agent();
  const auto sleep = [&] {
    work();
    const int sleeper = thread.announce();
    job.carry_network();
    if (!turn()) thread.sleep(sleeper, base::kMillisecond, {});
    thread.withdraw(sleeper);
    job.watch().look(base::now_ns());
    return false;
  };
  wait::Waiter waiter(job.cores().wait_policy(), engine_.contention_);
  wait::wait_until(
      waiter, turn, [] { return true; }, sleep);
}

// A member that never makes its call is no failure, as in other waits, unless it has left.
void NicLeave::wait_for_results() {
  const std::int64_t begun_ns = base::now_ns();
  bool is_over = false;
  const auto turn = [&] {
    is_over = is_over || has_results(base::now_ns() - begun_ns);
    return is_over;
  };
  if (!turn()) wait(turn, [this] { examine(); });
  engine_.order_.drop_detached();
}

// Or whether it has to go without them. Those before a failed operation may still end well.
bool NicLeave::has_results(std::int64_t waited_ns) {
  engine_.collect();
  const Operation* const first = engine_.order_.first_detached();
  if (first == nullptr) return true;
  engine_.report_error();
  const auto& settings = members_.job().settings();
  const std::int64_t limit_ns = settings.time_ns(base::Setting::timeout);
  if (limit_ns > 0 && waited_ns >= limit_ns) {
    failures_.fail_all(base::Code::timeout,
                       fmt::format("{} was not complete after {} ms (UNISONO_TIMEOUT), so that {} "
                                   "could not leave",
                                   describe(*first), limit_ns / base::kMillisecond,
                                   members_.name(members_.rank())),
                       first->index);
  }
  if (failures_.has_failed_by(first->index)) return true;
  if (failures_.has_failed() && waited_ns >= job::SilenceLimits::of(settings).lost_ns) return true;
  return failures_.has_interrupt() && failures_.ask_application() != 0;
}

// The watchdog examines waits for operations in progress, and there is none.
void NicLeave::examine() {
  failures_.adopt();
  engine_.publish();
  engine_.examine();
  if (engine_.examine_members()) return;
  const Operation* const first = engine_.order_.first_detached();
  if (first == nullptr || failures_.has_failed()) return;
  const NicProgress own = engine_.progress();
  for (int r = 0; r < members_.size(); ++r) {
    const auto last = engine_.peers_.leave_record_of(r);
    if (r == members_.rank() || !last || has_result(own, *last)) continue;
    failures_.adopt();  // that may be why it has left
    if (!failures_.has_failed()) failures_.fail_without(r, describe(*first), first->index);
    return;
  }
}

// Ranks on this host need nothing from it: they have the results in shared memory.
bool NicLeave::may_leave() const {
  const NicPeers& peers = engine_.peers_;
  const NicPath& path = *engine_.path_;
  NicProgress waiting = engine_.progress();
  waiting.completed -= 1;  // like a rank that lacks the last result
  return std::ranges::all_of(path.neighbours, [&](const NicPath::Neighbour& next) {
    if (next.here || !members_.lives(next.rank)) return true;
    if (peers.awaits_answer(next)) return false;
    if (!path.may_be_asked_by(next)) return true;
    const auto other = peers.of(next);
    return other && (other->ended || has_result(waiting, *other));
  });
}

// The root of a broadcast may be far ahead of ranks that have not called, and its program has to
// answer them. Other operations have all ranks' contributions, so these ask soon.
bool NicLeave::has_to_stay(std::int64_t waited_ns) {
  const auto& settings = members_.job().settings();
  if (waited_ns < job::SilenceLimits::of(settings).lost_ns) return true;
  if (!engine_.path_->group->has_cast_lately() || failures_.has_failed()) return false;
  const std::int64_t limit_ns = settings.time_ns(base::Setting::timeout);
  if (limit_ns > 0 && waited_ns >= limit_ns) return false;
  return !failures_.has_interrupt() || failures_.ask_application() == 0;
}

// A member whose call was another one than this rank's last broadcast will never make that.
void NicLeave::find_differences() {
  if (failures_.has_failed()) return;
  for (const NicPath::Neighbour& next : engine_.path_->neighbours) {
    const auto other = engine_.peers_.of(next);
    const auto different = other ? find_different_call(engine_.queue_, *other) : std::nullopt;
    if (different) return fail_at_difference(members_, failures_, *different, next.rank);
  }
}

// Whether no neighbour may still ask, and no requested packet is under way to it.
void NicLeave::wait_for_neighbours() {
  const std::int64_t begun_ns = base::now_ns();
  engine_.publish();
  const auto turn = [&] { return may_leave() || !has_to_stay(base::now_ns() - begun_ns); };
  wait(turn, [this] {
    failures_.adopt();
    find_differences();
    for (NicPath::Neighbour& next : engine_.path_->neighbours) {
      if (engine_.path_->may_be_asked_by(next)) engine_.peers_.ask(next);
    }
  });
}

}  // namespace unisono::comm
