// SPDX-License-Identifier: BSD-3-Clause
#include "network/network.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <limits>
#include <utility>

#include "base/check.hpp"
#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/thread.hpp"
#include "network/hosts.hpp"
#include "network/narrow_paths.hpp"
#include "reliable/trouble.hpp"

namespace unisono::network {
namespace {

using base::Code;
using base::Error;

// So long after a thread of the rank has looked, the agent takes it to be still about.
constexpr std::int64_t kThreadAboutNs = 2 * base::kMillisecond;
// How long it leaves a thread alone that sleeps on the datagrams itself.
constexpr std::int64_t kLeaveNs = 250 * base::kMillisecond;
constexpr std::int64_t kLongestSleepNs = base::kSecond;
constexpr std::size_t kMostDescriptors = 4;
// The limit of a sleep with pending operations: deaths must be noticed meanwhile.
constexpr std::int64_t kBusySleepNs = 50 * base::kMillisecond;
// The pool for packets that may have to be repeated.
constexpr std::size_t kPoolBytes = std::size_t{6} << 20;

thread_local bool is_agent = false;

// Sleeps until one of them is readable (-1: there is none), or the time is over. Bit i: the i-th is
// readable. A list and not an array of a fixed size: an array would fill up with 0, which is
// standard input.
unsigned sleep_on(std::initializer_list<int> descriptors, std::int64_t timeout_ns) {
  std::array<pollfd, kMostDescriptors> sources{};
  UNISONO_CHECK(descriptors.size() <= sources.size(), "descriptors to sleep on");
  nfds_t count = 0;
  for (const int descriptor : descriptors) sources[count++] = {descriptor, POLLIN, 0};
  const std::int64_t limit = std::clamp<std::int64_t>(timeout_ns, 0, kLongestSleepNs);
  const timespec time{.tv_sec = limit / base::kSecond, .tv_nsec = limit % base::kSecond};
  if (ppoll(sources.data(), count, &time, nullptr) <= 0) return 0;
  unsigned readable = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (sources[i].revents != 0) readable |= 1U << i;
  }
  return readable;
}

}  // namespace

Network::Network(std::unique_ptr<reliable::Reliable> reliable) : reliable_(std::move(reliable)) {}

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
  options.hosts = hosts_of(info.members);
  options.group = bootstrap::first_ranks(info.members);
  options.lull_ns = std::max(options.lull_ns, suspect_ns / 2);
  options.now_ns = base::now_ns;
  options.narrowed = narrow_path_log(info.members, info.datagrams->limits().max_payload);
  const std::vector<int> neighbours = neighbours_of(info.rank, options.group);
  auto reliable = std::make_unique<reliable::Reliable>(std::move(info.datagrams), options);
  for (const int rank : neighbours) reliable->probe_path(rank);
  return std::make_unique<Network>(std::move(reliable));
}

Network::~Network() {
  stop_.store(true);
  nudge();
  if (agent_.joinable()) agent_.join();
  const std::string trouble = reliable::trouble_text(*reliable_);
  if (!trouble.empty()) base::log(base::LogLevel::info, "network", "{}", trouble);
}

base::Status Network::start_agent(Duties duties) {
  duties_ = std::move(duties);
  bell_ = base::Descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  taken_ = base::Descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!bell_.valid() || !taken_.valid()) {
    return Error{Code::system, fmt::format("eventfd: {}", std::strerror(errno))};
  }
  base::Result<std::thread> started = base::start_thread("unisono-net", [this] { run_agent(); });
  if (!started.ok()) {
    return Error{started.error().code,
                 fmt::format("no thread for the network's agent: {}", started.error().message)};
  }
  agent_ = std::move(*started);
  return base::success();
}

transport::MulticastReport Network::probe_multicast(std::int64_t deadline_ns) {
  const std::lock_guard lock(mutex_);
  return reliable_->probe_multicast(deadline_ns);
}

void Network::give_up_multicast(std::string note) {
  const std::lock_guard lock(mutex_);
  reliable_->datagrams().give_up_multicast(std::move(note));
}

base::Status Network::use_bulk(std::unique_ptr<transport::RemoteMemory> memory,
                               reliable::BulkOptions options) {
  const std::lock_guard lock(mutex_);
  UNISONO_ASSIGN(bulk_, reliable::Bulk::over(*reliable_, std::move(memory), std::move(options)));
  return base::success();
}

const transport::Capabilities& Network::capabilities() const { return reliable_->capabilities(); }

void Network::put(const transport::Put& message) {
  const std::thread::id self = std::this_thread::get_id();
  if (sending_.load(std::memory_order_relaxed) != self) mutex_.lock();
  carrier().put(message);
  if (message.flag == nullptr) {
    sending_.store(self, std::memory_order_relaxed);
    return;
  }
  sending_.store({}, std::memory_order_relaxed);
  mutex_.unlock();
}

void Network::put_to_all(const transport::Put& message) {
  const std::lock_guard lock(mutex_);
  reliable_->put_to_all(message);
}

void Network::get(const transport::Get& wanted) {
  const std::lock_guard lock(mutex_);
  carrier().get(wanted);
}

transport::Transport& Network::carrier() {
  if (bulk_ != nullptr) return *bulk_;
  return *reliable_;
}

Network::Bed Network::bed() {
  Bed bed{reliable_->datagrams().descriptor(), reliable_->next_deadline_ns(), 0};
  if (bulk_ == nullptr) {
    bed.pause_ns = reliable_->pause_ns();
    return bed;
  }
  bed.descriptor = bulk_->descriptor();
  const std::int64_t now = base::now_ns();
  if (!bulk_->may_sleep()) {
    bed.deadline_ns = now;
  } else if (const std::int64_t longest_ns = bulk_->longest_sleep_ns();
             bed.deadline_ns - now > longest_ns) {
    bed.deadline_ns = now + longest_ns;
  }
  return bed;
}

int Network::progress() {
  // The agent's thread progresses operations too, and must not leave the datagrams to itself.
  if (!is_agent) {
    looked_ns_.store(base::now_ns(), std::memory_order_relaxed);
    handed_over_.store(false, std::memory_order_relaxed);
  }
  bool came;
  {
    const std::lock_guard lock(mutex_);
    came = progress_held();
  }
  if (came && sleepers_.load() > 0 && taken_.valid()) eventfd_write(taken_.get(), 1);
  return came ? 1 : 0;
}

// Whether an awaited packet has come. No rank waits for questions whether it lives, nor for their
// answers. Acknowledgements matter only to a rank with packets to send.
bool Network::progress_held() {
  const std::int64_t before = reliable_->arrived().packets;
  const bool lacks_room = reliable_->lacks_room();
  const int received = carrier().progress();
  if (bulk_ != nullptr || lacks_room) return received > 0;
  return reliable_->arrived().packets != before;
}

void Network::awaits(int rank) {
  const std::lock_guard lock(mutex_);
  reliable_->awaits(rank);
}

void Network::awaits_multicast(int origin) {
  const std::lock_guard lock(mutex_);
  reliable_->awaits_multicast(origin);
}

Network::Woken Network::sleep(std::int64_t timeout_ns, Others others) {
  Bed bed;
  {
    const std::lock_guard lock(mutex_);
    bed = this->bed();
  }
  const std::int64_t now = base::now_ns();
  looked_ns_.store(now + kLeaveNs, std::memory_order_relaxed);
  const std::int64_t limit_ns = std::min({timeout_ns, bed.deadline_ns - now, kLeaveNs});
  constexpr unsigned kOthers = 3U << 2;
  const bool pauses = bed.pause_ns > 0;
  unsigned woken =
      sleep_on({pauses ? -1 : bed.descriptor, taken_.get(), others.first, others.second},
               pauses ? std::min(limit_ns, bed.pause_ns) : limit_ns);
  if (pauses) woken |= 1U;  // something has come, most likely
  eventfd_t count = 0;
  if (taken_.valid()) eventfd_read(taken_.get(), &count);
  looked_ns_.store(base::now_ns(), std::memory_order_relaxed);
  if (woken == 0) return Woken::by_time;
  // Arrivals by remote memory are not counted.
  return (woken & kOthers) != 0 || bulk_ != nullptr ? Woken::by_other : Woken::by_datagrams;
}

void Network::hand_over(bool look) {
  handed_over_.store(true);
  if (look) look_.store(true);
  if (look || agent_rests_.load()) nudge();
}

void Network::nudge() const {
  if (bell_.valid()) eventfd_write(bell_.get(), 1);
}

void Network::run_agent() {
  is_agent = true;
  bool busy = false;
  while (!stop_.load()) {
    const std::int64_t about_ns = looked_ns_.load(std::memory_order_relaxed) + kThreadAboutNs;
    const std::int64_t now = base::now_ns();
    if (!handed_over_.load() && now < about_ns) {
      agent_rests_.store(true);
      if (!handed_over_.load() && !stop_.load()) sleep_as_agent(-1, about_ns - now);
      agent_rests_.store(false);
      continue;
    }
    const std::optional<bool> came = agent_turn(busy);
    if (came && duties_.heard) busy = duties_.heard(*came);
  }
}

// Sleeps also until it is woken, or a process dies.
void Network::sleep_as_agent(int descriptor, std::int64_t timeout_ns) {
  constexpr unsigned kDeaths = 1U << 2;
  const unsigned woken = sleep_on({descriptor, bell_.get(), duties_.deaths}, timeout_ns);
  eventfd_t count = 0;
  eventfd_read(bell_.get(), &count);
  if ((woken & kDeaths) != 0 && !stop_.load()) duties_.someone_died();
}

// Sleeps until there is something to do, and does it. Returns whether something has come; nullopt
// if a thread of the rank is active.
std::optional<bool> Network::agent_turn(bool busy) {
  Bed bed;
  {
    const std::lock_guard lock(mutex_);
    bed = this->bed();
  }
  std::int64_t sleep_ns = bed.deadline_ns - base::now_ns();
  if (busy) sleep_ns = std::min(sleep_ns, kBusySleepNs);
  if (bed.pause_ns > 0) {
    bed.descriptor = -1;
    sleep_ns = std::min(sleep_ns, bed.pause_ns);
  }
  if (!look_.load()) sleep_as_agent(bed.descriptor, sleep_ns);
  look_.store(false);
  const std::int64_t about_ns = looked_ns_.load(std::memory_order_relaxed) + kThreadAboutNs;
  if (!handed_over_.load() && base::now_ns() < about_ns) return std::nullopt;
  const std::lock_guard lock(mutex_);
  return progress_held();
}

int Network::unreached_by() {
  const std::lock_guard lock(mutex_);
  return reliable_->unreached_by();
}

std::int64_t Network::silence_ns(int rank) {
  const std::lock_guard lock(mutex_);
  // It may answer, but the missing writes will never come.
  if (bulk_ != nullptr && bulk_->has_lost(rank)) return std::numeric_limits<std::int64_t>::max();
  return reliable_->silence_ns(rank);
}

std::string Network::why_lost(int rank) {
  const std::lock_guard lock(mutex_);
  return bulk_ == nullptr ? std::string() : bulk_->why_lost(rank);
}

void Network::confirm(int rank) {
  const std::lock_guard lock(mutex_);
  reliable_->confirm(rank);
}

void Network::forget(int rank) {
  const std::lock_guard lock(mutex_);
  forget_held(rank);
}

void Network::forget_once(int rank) {
  const std::lock_guard lock(mutex_);
  if (!reliable_->has_forgotten(rank)) forget_held(rank);
}

void Network::forget_held(int rank) {
  if (bulk_ != nullptr) return bulk_->forget(rank);
  reliable_->forget(rank);
}

bool Network::settle(std::int64_t patience_ns, const std::function<bool(int rank)>& has_left) {
  constexpr std::int64_t kPauseNs = base::kMillisecond;
  const std::int64_t deadline_ns = base::now_ns() + patience_ns;
  for (;;) {
    int descriptor;
    {
      const std::lock_guard lock(mutex_);
      for (int r = 0; r < reliable_->ranks(); ++r) {
        if (has_left(r)) forget_held(r);
      }
      if (bulk_ != nullptr ? bulk_->settle() : reliable_->settle()) return true;
      if (base::now_ns() > deadline_ns) return false;
      descriptor = bed().descriptor;
    }
    sleep_on({descriptor}, kPauseNs);
  }
}

void Network::finish(std::int64_t patience_ns, const std::function<bool(int rank)>& has_left) {
  settle(patience_ns, has_left);
  const std::lock_guard lock(mutex_);
  reliable_->say_farewell();
}

}  // namespace unisono::network
