// SPDX-License-Identifier: BSD-3-Clause
// The part of Communicator that sleeps: on its rank's bell, or on the datagrams if the ranks of its
// host can wake it there.
#include <algorithm>

#include "base/clock.hpp"
#include "group/communicator.hpp"

namespace unisono::group {
namespace {

// How long the futex is slept on by who waits for a descriptor as well, which it does not hear.
constexpr std::int64_t kDeafNs = base::kMillisecond;

}  // namespace

// True if rung, or if there was no need to sleep after all.
bool Communicator::sleep(std::span<Communicator* const> communicators, std::int64_t limit_ns,
                         int other) {
  const auto change_credit = [&](bool sleeping) {
    for (Communicator* c : communicators) {
      if (sleeping) {
        c->header_->credit_sleepers.fetch_add(1, std::memory_order_seq_cst);
      } else {
        c->header_->credit_sleepers.fetch_sub(1, std::memory_order_seq_cst);
      }
    }
  };
  const bool credit =
      std::ranges::any_of(communicators, [](const Communicator* c) { return c->credit_blocked(); });
  if (credit) change_credit(true);
  Bed bed = announce_sleep();
  bed.other = other;
  reliable::Reliable::Arrived before;
  if (bed.datagrams) before = job_.network()->arrived();
  Network::Woken woken = Network::Woken::by_time;
  bool rung = false;
  for (Communicator* c : communicators) {
    rung |= c->advance();
    rung |= c->job_.alarm() != c->alarm_seen_;
    // It went on to where it waits for credit, which was not announced.
    rung |= c->credit_blocked() && !credit;
  }
  if (!rung) {
    ++statistics_.sleeps;
    woken = sleep_announced(bed, std::min(limit_ns, job_.watch_interval_ns()));
  }
  withdraw_sleep(bed);
  rung = rung || has_rung(woken, before);
  if (credit) change_credit(false);
  job_.watch(base::now_ns());
  return rung;
}

// On the datagrams if the ranks of this host can wake it there; else the agent has to.
Communicator::Bed Communicator::announce_sleep() {
  Bed bed;
  if (job_.network() != nullptr) {
    const bool alone = job_.hosts().count_here() == 1;
    bed.pipe = !alone && job_.doorbells().announce_poll_sleep(job_.rank());
    bed.datagrams = alone || bed.pipe;
  }
  if (bed.datagrams) {
    job_.network()->announce();
  } else {
    bed.announced = job_.doorbells().announce(job_.rank());
  }
  return bed;
}

Network::Woken Communicator::sleep_announced(const Bed& bed, std::int64_t limit_ns) {
  if (bed.datagrams) {
    return job_.network()->sleep(limit_ns, {bed.pipe ? job_.doorbells().pipe() : -1, bed.other});
  }
  if (bed.other >= 0) limit_ns = std::min(limit_ns, kDeafNs);
  if (job_.network() != nullptr) job_.network()->hand_over();
  return job_.doorbells().sleep(job_.rank(), bed.announced, limit_ns) ? Network::Woken::by_other
                                                                      : Network::Woken::by_time;
}

// A part of a message that comes slowly does not: it is taken, and the rest will come. Nor does who
// asks whether this rank is there: to look out for more would keep a core busy all the time.
bool Communicator::has_rung(Network::Woken woken, const reliable::Reliable::Arrived& before) {
  if (woken != Network::Woken::by_datagrams) return woken == Network::Woken::by_other;
  job_.carry_network();
  const reliable::Reliable::Arrived now = job_.network()->arrived();
  if (now.messages != before.messages) return true;
  return now.packets != before.packets && !job_.network()->comes_slowly();
}

void Communicator::withdraw_sleep(const Bed& bed) {
  if (bed.datagrams) job_.network()->withdraw();
  if (bed.pipe) return job_.doorbells().withdraw_poll_sleep(job_.rank());
  if (!bed.datagrams) job_.doorbells().withdraw(job_.rank());
}

bool Communicator::credit_blocked() const {
  return std::ranges::any_of(active_, [](const Pending* p) { return !p->operation.entered(); });
}

}  // namespace unisono::group
