// SPDX-License-Identifier: BSD-3-Clause
#include "reliable/bulk/bulk.hpp"

#include <fmt/format.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "base/check.hpp"
#include "base/text.hpp"

namespace unisono::reliable {
namespace {

using base::Code;
using base::Error;

// The number of checks for stalls in each silence limit, and the part of it that one check may add
// at most. A process that was itself stopped for long learns only now of arrivals meanwhile.
constexpr std::int64_t kLooksInLimit = 8;
constexpr std::int64_t kMostOfLimit = 4;

base::Status watch(const base::Descriptor& sleeper, int descriptor) {
  epoll_event event{};
  event.events = EPOLLIN;
  if (descriptor < 0 || epoll_ctl(sleeper.get(), EPOLL_CTL_ADD, descriptor, &event) == 0) {
    return base::success();
  }
  return Error{Code::system, fmt::format("epoll_ctl: {}", std::strerror(errno))};
}

}  // namespace

base::Result<std::unique_ptr<Bulk>> Bulk::over(Reliable& reliable,
                                               std::unique_ptr<transport::RemoteMemory> memory,
                                               BulkOptions options) {
  std::unique_ptr<Bulk> bulk(new Bulk(reliable, std::move(memory), std::move(options)));
  if (!bulk->memory_->watch_beside(reliable.datagrams().descriptor())) {
    bulk->sleeper_ = base::Descriptor(epoll_create1(EPOLL_CLOEXEC));
    if (!bulk->sleeper_.valid()) {
      return Error{Code::system, fmt::format("epoll_create1: {}", std::strerror(errno))};
    }
    UNISONO_TRY(watch(bulk->sleeper_, reliable.datagrams().descriptor()));
    bulk->watched_ = bulk->memory_->descriptor();
    UNISONO_TRY(watch(bulk->sleeper_, bulk->watched_));
  }
  if (bulk->memory_->raises_flags()) reliable.answers_ = bulk.get();
  return bulk;
}

Bulk::Bulk(Reliable& reliable, std::unique_ptr<transport::RemoteMemory> memory, BulkOptions options)
    : reliable_(reliable),
      memory_(std::move(memory)),
      options_(std::move(options)),
      capabilities_(reliable.capabilities()),
      peers_(static_cast<std::size_t>(options_.ranks)),
      ordered_({reliable_, *memory_, counts_}, options_.ranks, options_.from_bytes,
               options_.region) {
  if (memory_->landings() != nullptr) capabilities_.lands_from = options_.from_bytes;
}

std::size_t Bulk::take_message(int target) {
  ++peers_[static_cast<std::size_t>(target)].under_way;
  return messages_.take(target);
}

void Bulk::begin_transfer(int rank) {
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  if (!peer.is_given_up()) ++transfers_;
  if (peer.transfers++ != 0) return;
  peer.moved.reset();
  peer.still_ns = 0;
}

// False if there is no room.
bool Bulk::write(std::size_t index, const transport::Put& message) {
  const bool taken =
      memory_->write({.rank = message.target,
                      .offset = static_cast<std::uint64_t>(message.place - options_.region),
                      .from = message.source,
                      .bytes = message.bytes,
                      .token = index});
  if (taken) {
    ++messages_[index].writes_left;
    begin_transfer(message.target);
  }
  ++(taken ? counts_.written : counts_.refused);
  return taken;
}

void Bulk::put(const transport::Put& message) {
  if (message.target == options_.rank) return reliable_.put(message);
  if (message.bytes == 0 && message.flag == nullptr) return;
  Peer& peer = peers_[static_cast<std::size_t>(message.target)];
  if (memory_->raises_flags()) {
    ordered_.put(message, !peer.is_given_up());
    return look_for_failures();
  }
  const bool is_long = message.bytes >= options_.from_bytes && !peer.lost && !peer.forgotten;
  if (peer.open == kNone && !is_long && message.flag != nullptr) return reliable_.put(message);
  if (peer.open == kNone) peer.open = take_message(message.target);
  const std::size_t index = peer.open;
  const bool written = is_long && write(index, message);
  if (message.flag == nullptr) {
    if (!written) messages_[index].keep(message);
    return;
  }
  peer.open = kNone;
  BulkMessage& open = messages_[index];
  if (open.writes_left == 0) {  // packets carry it instead
    open.put_kept(reliable_);
    reliable_.put(message);
    return finish(index);
  }
  if (!written && message.bytes != 0) open.keep(message);
  open.flag = message.flag;
  open.flag_value = message.flag_value;
  open.forward = message.forward;
}

// ---- memory that raises flags ------------------------------------------------------------------

void Bulk::look_for_failures() {
  if (memory_->failures() == failures_) [[likely]]
    return;
  failures_ = memory_->failures();
  if (!memory_->device_loss().empty()) return;  // the others are not to blame
  for (int rank = 0; rank < options_.ranks; ++rank) {
    if (!memory_->error_of(rank).empty()) lose(rank, memory_->error_of(rank));
  }
}

// ---- memory that reports completions -----------------------------------------------------------

void Bulk::get(const transport::Get& wanted) {
  // The other side answers by its own Bulk.
  if (memory_->raises_flags()) return reliable_.get(wanted);
  if (wanted.bytes < options_.from_bytes || has_lost(wanted.source)) return reliable_.get(wanted);
  const std::size_t index = take_message(wanted.source);
  const bool taken = memory_->read({.rank = wanted.source,
                                    .offset = wanted.offset,
                                    .to = wanted.place,
                                    .bytes = wanted.bytes,
                                    .token = index});
  if (!taken) {
    ++counts_.refused;
    finish(index);
    return reliable_.get(wanted);
  }
  BulkMessage& message = messages_[index];
  message.is_get = true;
  message.writes_left = 1;
  message.flag = wanted.flag;
  message.flag_value = wanted.flag_value;
  begin_transfer(wanted.source);
  ++counts_.read;
}

// One look at the kernel tells of both, so datagrams are asked for only if there are some.
int Bulk::progress() {
  const int arrived = collect();
  const bool none =
      memory_->beside() == transport::Beside::silent && reliable_.datagrams().descriptor_tells();
  return arrived + reliable_.progress(!none);
}

// Written messages have flags, which are puts.
bool Bulk::settle() {
  collect();
  const bool written = is_settled();
  return reliable_.settle() && written;
}

// Returns how many messages arrived.
int Bulk::collect() {
  std::array<transport::Completion, 16> completions;
  int arrived = 0;
  std::size_t count;
  do {
    count = memory_->poll(completions);
    for (std::size_t i = 0; i < count; ++i) complete(completions[i]);
    arrived += static_cast<int>(count);
  } while (count == completions.size());
  look_for_failures();
  if (watched_ >= 0 && memory_->descriptor() < 0) stop_watching_memory();
  if (transfers_ != 0) look_for_stalls();
  return arrived;
}

// It would be readable for ever.
void Bulk::stop_watching_memory() {
  epoll_ctl(sleeper_.get(), EPOLL_CTL_DEL, std::exchange(watched_, -1), nullptr);
}

void Bulk::look_for_stalls() {
  const std::int64_t now = options_.now_ns();
  const std::int64_t passed_ns = now - looked_ns_;
  if (passed_ns < options_.silence_ns / kLooksInLimit) return;
  looked_ns_ = now;
  for (int rank = 0; rank < options_.ranks; ++rank) {
    if (!has_stalled(rank, std::min(passed_ns, options_.silence_ns / kMostOfLimit))) continue;
    lose(rank, fmt::format("{}: transfers with rank {} have not moved for {} ({} under way; "
                           "UNISONO_DETECT_TIMEOUT_HOSTS). Check firewalls and the MTU of the path "
                           "for the provider's packets, or set UNISONO_BULK=udp",
                           memory_->name(), rank, base::format_time_ns(options_.silence_ns),
                           peers_[static_cast<std::size_t>(rank)].transfers));
  }
}

bool Bulk::has_stalled(int rank, std::int64_t passed_ns) {
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  if (peer.transfers == 0 || peer.is_given_up()) return false;
  const std::uint64_t moved = memory_->moved(rank);
  if (peer.moved != moved) {  // or it was not looked at before
    peer.moved = moved;
    peer.still_ns = 0;
    return false;
  }
  peer.still_ns += passed_ns;
  return peer.still_ns >= options_.silence_ns;
}

void Bulk::complete(const transport::Completion& completion) {
  const auto index = static_cast<std::size_t>(completion.token);
  UNISONO_CHECK(index < messages_.size() && messages_[index].writes_left != 0,
                "a completion that nobody waits for");
  Peer& peer = peers_[static_cast<std::size_t>(completion.rank)];
  --peer.transfers;
  if (!peer.is_given_up()) --transfers_;
  if (!completion.arrived) lose(completion.rank, memory_->error_of(completion.rank));
  BulkMessage& message = messages_[index];
  if (--message.writes_left != 0) return;
  if (message.flag == nullptr) return;  // it is still being put
  finish(index);
}

// All its bytes are there: the rest, and the flag.
void Bulk::finish(std::size_t index) {
  BulkMessage& message = messages_[index];
  Peer& peer = peers_[static_cast<std::size_t>(message.target)];
  if (message.flag != nullptr && !peer.lost) {
    message.put_kept(reliable_);
    if (message.is_get) {
      std::atomic_ref(*message.flag).store(message.flag_value, std::memory_order_release);
    } else {
      reliable_.put({.target = message.target,
                     .flag = message.flag,
                     .flag_value = message.flag_value,
                     .forward = message.forward});
    }
  }
  --peer.under_way;
  messages_.give_back(index);
}

std::string Bulk::why_lost(int rank) const {
  return rank == options_.rank ? memory_->device_loss()
                               : peers_[static_cast<std::size_t>(rank)].why;
}

void Bulk::lose(int rank, const std::string& why) {
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  if (!peer.is_given_up()) transfers_ -= peer.transfers;
  if (std::exchange(peer.lost, true) || peer.forgotten) return;
  peer.why = why;
  if (options_.failed) options_.failed(rank, why);
}

bool Bulk::is_settled() const {
  if (memory_->raises_flags() && memory_->under_way() != 0) return false;
  return std::ranges::all_of(
      peers_, [](const Peer& peer) { return peer.under_way == 0 || peer.forgotten || peer.lost; });
}

void Bulk::forget(int rank, Departure how) {
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  if (!peer.is_given_up()) transfers_ -= peer.transfers;
  peer.forgotten = true;
  memory_->forget(rank);
  reliable_.forget(rank, how);
}

std::int64_t Bulk::longest_sleep_ns() const {
  const bool wakes = memory_->descriptor() >= 0;
  // There are none where the memory raises flags.
  if (wakes && transfers_ == 0) return std::numeric_limits<std::int64_t>::max();
  // Transfers that the provider has not accepted yet cause no wake-up.
  return wakes ? 5 * base::kMillisecond : base::kMillisecond;
}

}  // namespace unisono::reliable
