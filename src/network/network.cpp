// SPDX-License-Identifier: BSD-3-Clause
#include "network/network.hpp"

#include <algorithm>
#include <utility>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "network/hosts.hpp"
#include "network/narrow_paths.hpp"
#include "network/sleep_on.hpp"
#include "reliable/trouble.hpp"
#include "wait/wait_until.hpp"

namespace unisono::network {
namespace {

// The pool for packets that may have to be repeated.
constexpr std::size_t kPoolBytes = std::size_t{6} << 20;

}  // namespace

Network::Network(std::unique_ptr<reliable::Reliable> reliable)
    : carrier_(std::move(reliable)), landings_(carrier_, mutex_), agent_(carrier_, mutex_) {}

std::unique_ptr<Network> Network::over(bootstrap::JobInfo& info, const memory::JobMemory& memory,
                                       std::int64_t suspect_ns) {
  reliable::ReliableOptions options;
  options.key = info.key;
  options.ranks = info.ranks;
  options.region = memory.at(0);
  options.region_bytes = static_cast<std::size_t>(info.memory_bytes);
  options.pool_packets =
      std::clamp<std::size_t>(kPoolBytes / info.datagrams->limits().max_payload, 128, 4096);
  options.seed = static_cast<std::uint64_t>(base::now_ns());
  options.hosts = info.hosts;
  options.lull_ns = std::max(options.lull_ns, suspect_ns / 2);
  options.now_ns = base::now_ns;
  options.narrowed = narrow_path_log(Hosts(info), info.datagrams->limits().max_payload);
  auto reliable = std::make_unique<reliable::Reliable>(std::move(info.datagrams), options);
  for (const int rank : neighbours_of(info.rank, info.hosts)) reliable->probe_path(rank);
  return std::make_unique<Network>(std::move(reliable));
}

Network::~Network() {
  const std::lock_guard lock(mutex_);
  const std::string trouble = reliable::trouble_text(carrier_.reliable());
  if (!trouble.empty()) base::log(base::LogLevel::info, "network", "{}", trouble);
  const std::string of_bulk = carrier_.trouble();
  if (!of_bulk.empty()) {
    base::log(base::LogLevel::info, "network", "{}: {}", carrier_.bulk_name(), of_bulk);
  }
}

transport::MulticastReport Network::probe_multicast(std::int64_t deadline_ns) {
  const std::lock_guard lock(mutex_);
  return carrier_.reliable().probe_multicast(deadline_ns);
}

void Network::give_up_multicast(std::string note) {
  const std::lock_guard lock(mutex_);
  carrier_.reliable().datagrams().give_up_multicast(std::move(note));
}

void Network::take_other_multicast() {
  const std::lock_guard lock(mutex_);
  carrier_.reliable().datagrams().take_other_multicast();
}

base::Status Network::use_bulk(std::unique_ptr<transport::RemoteMemory> memory,
                               reliable::BulkOptions options) {
  const std::lock_guard lock(mutex_);
  return carrier_.use_bulk(std::move(memory), std::move(options));
}

const transport::Capabilities& Network::capabilities() const {
  return carrier_.transport().capabilities();
}

void Network::put(const transport::Put& message) {
  const std::thread::id self = std::this_thread::get_id();
  if (sending_.load(std::memory_order_relaxed) != self) mutex_.lock();
  try {
    carrier_.transport().put(message);
  } catch (...) {  // no memory: the caller hears of it, and others go on
    sending_.store({}, std::memory_order_relaxed);
    mutex_.unlock();
    throw;
  }
  if (message.flag == nullptr) {
    sending_.store(self, std::memory_order_relaxed);
    return;
  }
  sending_.store({}, std::memory_order_relaxed);
  const bool came = carrier_.take_arrivals();
  mutex_.unlock();
  if (came) agent_.note_arrival();
  agent_.note_transfers();
}

void Network::put_to_all(const transport::Put& message) {
  const std::lock_guard lock(mutex_);
  carrier_.reliable().put_to_all(message);
}

void Network::get(const transport::Get& wanted) {
  {
    const std::lock_guard lock(mutex_);
    carrier_.transport().get(wanted);
  }
  agent_.note_transfers();
}

int Network::progress() {
  agent_.note_look();
  bool came;
  {
    const std::lock_guard lock(mutex_);
    came = carrier_.progress();
  }
  if (came) agent_.note_arrival();
  return came ? 1 : 0;
}

void Network::awaits(int rank) {
  const std::lock_guard lock(mutex_);
  carrier_.reliable().awaits(rank);
}

void Network::awaits_multicast(int origin) {
  const std::lock_guard lock(mutex_);
  carrier_.reliable().awaits_multicast(origin);
}

int Network::unreached_by() {
  const std::lock_guard lock(mutex_);
  return carrier_.reliable().group().unreached_by();
}

std::int64_t Network::silence_ns(int rank) {
  const std::lock_guard lock(mutex_);
  return carrier_.silence_ns(rank);
}

std::string Network::why_lost(int rank) {
  const std::lock_guard lock(mutex_);
  return carrier_.why_lost(rank);
}

void Network::confirm(int rank) {
  const std::lock_guard lock(mutex_);
  carrier_.reliable().deliveries().confirm(rank);
}

void Network::forget(int rank, reliable::Departure how) {
  const std::lock_guard lock(mutex_);
  if (!carrier_.reliable().deliveries().has_forgotten(rank)) carrier_.forget(rank, how);
}

bool Network::settle(std::int64_t patience_ns, const Departures& departures) {
  constexpr std::int64_t kPauseNs = base::kMillisecond;
  const std::int64_t deadline_ns = base::now_ns() + patience_ns;
  bool is_settled = false;
  int descriptor = -1;
  const auto turn = [&] {
    const std::lock_guard lock(mutex_);
    for (int r = 0; r < carrier_.reliable().hosts().ranks(); ++r) {
      if (const auto how = departures(r)) carrier_.forget(r, *how);
    }
    is_settled = carrier_.settle();
    if (is_settled || base::now_ns() > deadline_ns) return true;
    descriptor = carrier_.sleep_target(false).descriptor;
    return false;
  };
  wait::CoreContention contention;
  wait::Waiter waiter({.short_slices = wait::ShortSlices::never}, contention);
  wait::wait_until(
      waiter, turn, [] { return true; }, [&] { return sleep_on({descriptor}, kPauseNs) != 0; });
  return is_settled;
}

void Network::finish(std::int64_t patience_ns, const Departures& departures) {
  settle(patience_ns, departures);
  const std::lock_guard lock(mutex_);
  carrier_.reliable().send_last_statuses();
}

}  // namespace unisono::network
