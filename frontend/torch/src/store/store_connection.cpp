// SPDX-License-Identifier: BSD-3-Clause
#include "store/store_connection.hpp"

#include <thread>

#include "signals.hpp"

namespace unisono::pytorch {
namespace {

using Clock = std::chrono::steady_clock;
// A new connection to a TCPStore needs a few milliseconds. The store's server asks the DNS for the
// name of each address that connects, and serves nobody meanwhile. If that answer is lost, the
// resolver asks again after 5 s.
constexpr std::chrono::milliseconds kPatience{100};
constexpr std::chrono::milliseconds kTurn{20};

}  // namespace

// With the mutex.
void StoreConnection::connect(const std::shared_ptr<Shared>& shared) {
  shared->is_connecting = true;
  shared->begin = Clock::now();
  // Nobody joins the thread, because it may take as long as the store's timeout.
  std::thread([shared] {
    leave_signals_to_others();
    StorePtr made;
    std::exception_ptr error;
    try {
      made = shared->own->clone();
    } catch (...) {
      error = std::current_exception();
    }
    {
      const std::lock_guard lock(shared->mutex);
      shared->is_connecting = false;
      shared->made = std::move(made);
      shared->error = error;
    }
    shared->changed.notify_all();
  }).detach();
}

StoreConnection::StorePtr StoreConnection::get(const std::function<void()>& look) {
  Shared& shared = *shared_;
  std::unique_lock lock(shared.mutex);
  while (!shared.made) {
    if (shared.error) std::rethrow_exception(std::exchange(shared.error, nullptr));
    if (!shared.is_connecting) connect(shared_);
    if (Clock::now() - shared.begin >= kPatience) return shared.own;
    shared.changed.wait_for(lock, kTurn);
    if (shared.made) break;
    lock.unlock();
    look();
    lock.lock();
  }
  return shared.made;
}

}  // namespace unisono::pytorch
