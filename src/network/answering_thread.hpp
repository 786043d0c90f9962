// SPDX-License-Identifier: BSD-3-Clause
// AnsweringThread: looks after a rank's datagrams while no thread of the rank does. A rank that
// computes has to repeat lost packets, and to show that it lives. While a thread of the rank polls
// or sleeps on the datagrams itself, this thread leaves them to it. But packets that wait for
// others leave in time in any case (reliable/link/burst.hpp). Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "base/clock.hpp"
#include "base/descriptor.hpp"
#include "base/result.hpp"
#include "network/carrier.hpp"
#include "network/datagram_sleepers.hpp"

namespace unisono::network {

class AnsweringThread {
 public:
  // `mutex`: of `carrier`. Both outlive it.
  AnsweringThread(Carrier& carrier, std::mutex& mutex) : carrier_(carrier), mutex_(mutex) {}
  ~AnsweringThread();
  AnsweringThread(const AnsweringThread&) = delete;
  AnsweringThread& operator=(const AnsweringThread&) = delete;

  // Callbacks of this thread. `heard` is called when it has polled the network, with whether
  // something had come; it returns whether more is awaited. `someone_died` is called when `deaths`
  // (-1: none) is readable, and makes it unreadable.
  struct Duties {
    std::function<bool(bool)> heard;
    int deaths = -1;
    std::function<void()> someone_died;
    // Whether packets of a row of calls may wait for each other; none: they never do.
    std::function<bool(std::int64_t now_ns)> may_gather{};
    // How long a thread of the rank that sleeps on the datagrams itself is left alone.
    std::int64_t leave_ns = 250 * base::kMillisecond;
  };
  base::Status start(Duties duties);

  // A thread polls the datagrams; if it is one of the rank's, this one leaves them to it.
  void note_look();
  // A thread has polled, and something has come: the sleeping ones look.
  void note_arrival();
  // The caller will sleep elsewhere: this thread takes over at once. `look`: it also polls if
  // nothing comes.
  void hand_over(bool look);
  // Something has been begun, for which this thread may have to send again: it sleeps no longer
  // than until then.
  void note_begun();
  // A thread of the rank has begun something, or its wait is over. This thread may rest for long,
  // as the other one slept. If long messages are under way, it then rests for a moment only. Not
  // with the mutex.
  void note_transfers();
  // Until when it leaves the datagrams to the rank's threads, at most; 0: it does not.
  std::int64_t rests_until_ns() const { return rests_until_ns_.load(); }

  // For a thread of the rank that sleeps on the datagrams itself: announce, check once more, then
  // sleep, then withdraw. The sleep ends when something comes, also if another thread takes it,
  // when one of `others` is readable, or after `timeout_ns`.
  // by_network: datagrams have come, or one is due to be sent again. The caller carries them on.
  // by_uncounted: the same for memory that does not count what arrives, so it may be a message.
  enum class Woken : std::uint8_t { by_time, by_network, by_uncounted, by_other };
  int announce() { return sleepers_.announce(); }  // the number of this sleeper
  struct Others {
    int first = -1, second = -1;  // descriptors; -1: none
  };
  Woken sleep(int sleeper, std::int64_t timeout_ns, Others others);
  void withdraw(int sleeper) { sleepers_.withdraw(sleeper); }

 private:
  void run();
  std::optional<bool> turn(bool busy);
  void nudge() const;
  bool rests_too_long() const;
  void allow_bursts();
  void end_burst();
  void sleep_until_nudged(int descriptor, std::int64_t timeout_ns);

  Carrier& carrier_;
  std::mutex& mutex_;  // of carrier_
  Duties duties_;
  base::Descriptor doorbell_;     // eventfd: this thread is to look around
  base::Descriptor burst_timer_;  // packets have waited for others for long enough
  DatagramSleepers sleepers_;
  std::atomic<std::int64_t> looked_ns_{0};  // when a thread of the rank last polled
  std::atomic<std::int64_t> rests_until_ns_{0};
  std::atomic<bool> handed_over_{false};
  std::atomic<bool> look_{false};     // the next turn is at once
  std::int64_t sleeps_until_ns_ = 0;  // its last turn, at most; under mutex_
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace unisono::network
