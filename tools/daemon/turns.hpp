// SPDX-License-Identifier: BSD-3-Clause
// Turns: the order in which users are served that ask at the same time, and how often one may join.
// A join takes the daemon milliseconds, so the user that has had the least of its time comes first.
// However many connections another user has, it waits for at most the message being answered. A
// user that joins too often is not refused: its messages wait. No clock of its own; one thread.
//
// The order is that of start-time fair queueing (Goyal, Vin, Cheng: "Start-time fair queueing",
// SIGCOMM 1996). The virtual clock is the start of the service chosen last, so that an idle user
// does not save up time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>

#include "base/clock.hpp"

namespace unisono::daemon {

class Turns {
 public:
  Turns(std::uint32_t burst, std::uint32_t joins_per_second)
      : burst_(std::max(burst, 1U)), interval_ns_(base::kSecond / std::max(joins_per_second, 1U)) {}

  // The user with the least is next.
  std::int64_t start_of(std::uint32_t user) const {
    const auto found = users_.find(user);
    return found == users_.end() ? clock_ : std::max(found->second.finish, clock_);
  }
  // The user was chosen, and took so long.
  void charge(std::uint32_t user, std::int64_t took_ns) {
    clock_ = start_of(user);
    users_[user].finish = clock_ + std::max<std::int64_t>(took_ns, 1);
  }

  void count_join(std::uint32_t user, std::int64_t now_ns) {
    std::int64_t& paid_ns = users_[user].joins_paid_ns;
    paid_ns = std::max(paid_ns, now_ns - burst_ * interval_ns_) + interval_ns_;
  }
  // How long the user's next message has to wait; 0: not at all.
  std::int64_t wait_ns(std::uint32_t user, std::int64_t now_ns) const {
    const auto found = users_.find(user);
    if (found == users_.end()) return 0;
    return std::max<std::int64_t>(found->second.joins_paid_ns - now_ns, 0);
  }

  // Forgets users that it makes no difference to know.
  void tidy(std::int64_t now_ns) {
    std::erase_if(users_, [&](const auto& entry) {
      return entry.second.finish <= clock_ &&
             entry.second.joins_paid_ns <= now_ns - burst_ * interval_ns_;
    });
  }
  std::size_t known() const { return users_.size(); }

 private:
  struct User {
    std::int64_t finish = 0;         // virtual time at which its service so far ends
    std::int64_t joins_paid_ns = 0;  // each join advances it by an interval, but not beyond now
  };

  const std::int64_t burst_;
  const std::int64_t interval_ns_;
  std::int64_t clock_ = 0;
  std::map<std::uint32_t, User> users_;
};

}  // namespace unisono::daemon
