// SPDX-License-Identifier: BSD-3-Clause
#include "network/carrier.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/clock.hpp"

namespace unisono::network {
namespace {

bool is_alone_on_host(reliable::Reliable& reliable) {
  const topology::HostMap& hosts = reliable.hosts();
  return hosts.members(hosts.of(reliable.datagrams().rank())).size() == 1;
}

}  // namespace

base::Status Carrier::use_bulk(std::unique_ptr<transport::RemoteMemory> memory,
                               reliable::BulkOptions options) {
  UNISONO_ASSIGN(bulk_, reliable::Bulk::over(*reliable_, std::move(memory), std::move(options)));
  return base::success();
}

transport::Transport& Carrier::transport() const {
  if (bulk_ != nullptr) return *bulk_;
  return *reliable_;
}

reliable::Reliable::Arrived Carrier::arrived() const {
  reliable::Reliable::Arrived arrived = reliable_->arrived();
  if (bulk_ == nullptr) return arrived;
  const auto flags = static_cast<std::int64_t>(bulk_->memory().flags_raised());
  arrived.packets += flags;
  arrived.messages += flags;
  return arrived;
}

bool Carrier::progress() {
  const bool lacks_room = reliable_->deliveries().lack_room();
  const int received = transport().progress();
  const bool has_come = take_arrivals();
  if (!counts_arrivals() || lacks_room) return received > 0 || has_come;
  return has_come;
}

bool Carrier::take_arrivals() {
  const std::int64_t now = arrived().packets;
  return std::exchange(noticed_, now) != now;
}

std::int64_t Carrier::silence_ns(int rank) const {
  // It may answer, but the missing writes will never come.
  if (bulk_ != nullptr && bulk_->has_lost(rank)) return std::numeric_limits<std::int64_t>::max();
  return reliable_->silence_ns(rank);
}

std::string Carrier::why_lost(int rank) const {
  return bulk_ == nullptr ? std::string() : bulk_->why_lost(rank);
}

void Carrier::forget(int rank, reliable::Departure how) {
  if (bulk_ != nullptr) return bulk_->forget(rank, how);
  reliable_->forget(rank, how);
}

bool Carrier::settle() { return bulk_ != nullptr ? bulk_->settle() : reliable_->settle(); }

Carrier::SleepTarget Carrier::sleep_target(bool idle) {
  SleepTarget target{.descriptor = reliable_->datagrams().descriptor(),
                     .deadline_ns = reliable_->next_deadline_ns()};
  if (counts_arrivals()) target.pause_ns = reliable_->pause_ns();
  const std::int64_t now = base::now_ns();
  const bool only_urgent = idle && is_alone_on_host(*reliable_);
  const bool is_there = !reliable_->datagrams().may_sleep(only_urgent);
  if (is_there) target.deadline_ns = now;
  if (bulk_ == nullptr) return target;
  target.descriptor = bulk_->descriptor();
  if (is_there || !bulk_->may_sleep()) {
    target.deadline_ns = now;
  } else if (const std::int64_t longest_ns = bulk_->longest_sleep_ns();
             target.deadline_ns - now > longest_ns) {
    target.deadline_ns = now + longest_ns;
  }
  return target;
}

}  // namespace unisono::network
