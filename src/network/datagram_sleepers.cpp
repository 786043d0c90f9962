// SPDX-License-Identifier: BSD-3-Clause
#include "network/datagram_sleepers.hpp"

#include <sys/eventfd.h>

namespace unisono::network {

DatagramSleepers::~DatagramSleepers() {
  for (const Sleeper& sleeper : sleepers_) base::Descriptor(sleeper.eventfd.load());
}

// Its user alone makes it, except for the first, which open() makes before there are users.
int DatagramSleepers::made(int sleeper) {
  std::atomic<int>& own = sleepers_[static_cast<std::size_t>(sleeper)].eventfd;
  if (own.load() < 0) own.store(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  return own.load();
}

int DatagramSleepers::announce() {
  for (int i = 0; i < kMost; ++i) {
    Sleeper& sleeper = sleepers_[static_cast<std::size_t>(i)];
    if (sleeper.is_there.exchange(true)) continue;
    if (made(i) < 0) {
      sleeper.is_there.store(false);
      return kUntold;
    }
    count_.fetch_add(1);
    return i;
  }
  return kUntold;
}

void DatagramSleepers::withdraw(int sleeper) {
  if (sleeper == kUntold) return;
  count_.fetch_sub(1);
  sleepers_[static_cast<std::size_t>(sleeper)].is_there.store(false);
}

int DatagramSleepers::descriptor(int sleeper) const {
  return sleeper == kUntold ? -1 : sleepers_[static_cast<std::size_t>(sleeper)].eventfd.load();
}

void DatagramSleepers::drain(int sleeper) const {
  eventfd_t count = 0;
  if (sleeper != kUntold) eventfd_read(descriptor(sleeper), &count);
}

void DatagramSleepers::tell_all() {
  if (count_.load() == 0) return;
  for (const Sleeper& sleeper : sleepers_) {
    if (!sleeper.is_there.load()) continue;
    const int own = sleeper.eventfd.load();
    if (own >= 0) eventfd_write(own, 1);
  }
}

}  // namespace unisono::network
