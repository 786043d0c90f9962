// SPDX-License-Identifier: BSD-3-Clause
#include "job/rank_sleep.hpp"

#include <algorithm>
#include <utility>

#include "base/clock.hpp"

namespace unisono::job {
namespace {

// How long a rank sleeps on its futex while it waits for a descriptor as well, which cannot wake it
// there.
constexpr std::int64_t kDeafNs = base::kMillisecond;

}  // namespace

// On the datagrams if the ranks of this host can wake it there; otherwise the network's thread has
// to.
RankSleep::RankSleep(Job& job) : job_(job) {
  if (job.network() != nullptr) {
    const bool alone = job.hosts().count_here() == 1;
    pipe_ = !alone && job.doorbells().announce_poll_sleep(job.ranks().own());
    datagrams_ = alone || pipe_;
  }
  if (datagrams_) {
    sleeper_ = job.network()->agent().announce();
    before_ = job.network()->arrived();
  } else {
    announced_ = job.doorbells().announce(job.ranks().own());
  }
}

RankSleep::~RankSleep() { withdraw(); }

void RankSleep::withdraw() {
  if (std::exchange(is_withdrawn_, true)) return;
  if (datagrams_) job_.network()->agent().withdraw(sleeper_);
  if (pipe_) return job_.doorbells().withdraw_poll_sleep(job_.ranks().own());
  if (!datagrams_) job_.doorbells().withdraw(job_.ranks().own());
}

bool RankSleep::sleep(std::int64_t limit_ns, int descriptor) {
  if (datagrams_) {
    const int pipe = pipe_ ? job_.doorbells().pipe() : -1;
    const auto woken = job_.network()->agent().sleep(sleeper_, limit_ns, {pipe, descriptor});
    withdraw();  // before a look at the network, which would wake this sleeper again
    return has_come(woken);
  }
  if (descriptor >= 0) limit_ns = std::min(limit_ns, kDeafNs);
  if (job_.network() != nullptr) job_.network()->agent().hand_over(false);
  return job_.doorbells().sleep(job_.ranks().own(), announced_, limit_ns);
}

// A part of a long message that comes slowly does not count: the rest will come. Neither does a
// question whether this rank lives: polling for more would keep a core busy all the time.
bool RankSleep::has_come(Woken woken) {
  if (woken == Woken::by_time || woken == Woken::by_other) return woken == Woken::by_other;
  job_.carry_network();  // a rank that waits for the NIC path only does it nowhere else
  if (woken == Woken::by_uncounted) return true;
  const reliable::Reliable::Arrived now = job_.network()->arrived();
  if (now.messages != before_.messages) return true;
  return now.packets != before_.packets && !job_.network()->comes_slowly();
}

}  // namespace unisono::job
