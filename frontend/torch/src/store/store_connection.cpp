// SPDX-License-Identifier: BSD-3-Clause
#include "store/store_connection.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>

#include "own_process.hpp"
#include "signals.hpp"

namespace unisono::pytorch {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;
// A new connection to a TCPStore needs a few milliseconds. The store's server asks the DNS for the
// name of each address that connects, and serves nobody meanwhile. If that answer is lost, the
// resolver asks again after 5 s.
constexpr Milliseconds kPatience{100};
constexpr Milliseconds kTurn{20};
// The end of the last group waits for the thread that connects. A store's own limit may be 30 min.
constexpr Milliseconds kMostToConnect{10'000};

c10::intrusive_ptr<c10d::Store> connect_again(c10d::Store& base) {
  auto* const server = dynamic_cast<c10d::TCPStore*>(&base);
  if (server == nullptr) return base.clone();
  c10d::TCPStoreOptions options;
  options.port = server->getPort();
  options.waitWorkers = false;
  options.timeout = std::min(kMostToConnect, base.getTimeout());
  options.useLibUV = server->isLibUvBackend();
  auto made = c10::make_intrusive<c10d::TCPStore>(server->getHost(), options);
  made->setTimeout(base.getTimeout());
  return made;
}

}  // namespace

// The further connection to one store.
class StoreConnection::Shared {
 public:
  explicit Shared(StorePtr base) : base_(std::move(base)) {}
  // In a forked child the thread is the parent's.
  ~Shared() {
    if (!thread_.joinable()) return;
    if (own_process_.is_here()) {
      without_gil([this] { thread_.join(); });
    } else {
      thread_.detach();
    }
  }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;

  bool is_here() const { return own_process_.is_here(); }

  // Null: it is not made yet, and torch is slow.
  StorePtr get(const std::function<void()>& look) {
    std::unique_lock lock(mutex_);
    if (!thread_.joinable()) {
      begin_ = Clock::now();
      thread_ = std::thread([this] { connect(); });
    }
    while (!made_ && Clock::now() - begin_ < kPatience) {
      if (changed_.wait_for(lock, kTurn, [this] { return made_ != nullptr; })) break;
      lock.unlock();
      look();
      lock.lock();
    }
    return made_;
  }

 private:
  void connect() {
    leave_signals_to_others();
    StorePtr made;
    try {
      made = connect_again(*base_);
    } catch (const std::exception&) {  // a store that has ended fails there, too
      made = base_;
    }
    {
      const std::lock_guard lock(mutex_);
      made_ = std::move(made);
    }
    changed_.notify_all();
  }

  OwnProcess own_process_;
  StorePtr base_;
  std::mutex mutex_;  // for the next four
  std::condition_variable changed_;
  StorePtr made_;
  Clock::time_point begin_;
  std::thread thread_;
};

std::shared_ptr<StoreConnection::Shared> StoreConnection::shared_for(const StorePtr& base) {
  struct Table {
    std::mutex mutex;
    std::map<const c10d::Store*, std::weak_ptr<Shared>> all;  // a Shared keeps its store alive
  };
  static auto* const table = new Table;  // groups may be destroyed late
  const std::lock_guard lock(table->mutex);
  std::erase_if(table->all, [](const auto& each) { return each.second.expired(); });
  std::weak_ptr<Shared>& entry = table->all[base.get()];
  std::shared_ptr<Shared> found = entry.lock();
  if (!found || !found->is_here()) entry = found = std::make_shared<Shared>(base);
  return found;
}

StoreConnection::StoreConnection(StorePtr base, std::string prefix)
    : prefix_(std::move(prefix)),
      own_(c10::make_intrusive<c10d::PrefixStore>(prefix_, base)),
      shared_(shared_for(base)) {}

StoreConnection::StorePtr StoreConnection::get(const std::function<void()>& look) {
  std::shared_ptr<Shared> shared;
  {
    const std::lock_guard lock(mutex_);
    if (further_) return further_;
    shared = shared_;
  }
  const StorePtr made = shared ? shared->get(look) : nullptr;
  if (!made) return own_;
  const std::lock_guard lock(mutex_);
  further_ = c10::make_intrusive<c10d::PrefixStore>(prefix_, made);
  return further_;
}

void StoreConnection::release() {
  std::shared_ptr<Shared> last;
  const std::lock_guard lock(mutex_);
  last = std::exchange(shared_, nullptr);
  further_.reset();
}

}  // namespace unisono::pytorch
