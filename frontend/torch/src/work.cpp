// SPDX-License-Identifier: BSD-3-Clause
#include "work.hpp"

#include <ATen/core/ivalue.h>
#include <pthread.h>
#include <unisono/unisono.h>

#include <utility>

#include "errors.hpp"
#include "signals.hpp"

namespace unisono::pytorch {
namespace {

using Clock = std::chrono::steady_clock;
// A waiting thread of Python looks so often whether a signal has come.
constexpr std::chrono::milliseconds kTurn{100};

// The queue of which this thread is in callbacks.
thread_local WorkQueue* completing = nullptr;

}  // namespace

// A thread of the parent may have held the lock at the fork; then it is never free here.
void QueuedWork::require_own_process() {
  if (own_process_.is_here()) [[likely]]
    return;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock.owns_lock() && completed_) return;
  own_process_.require(("unisono: " + c10d::opTypeToString(opType_) + ": a wait").c_str());
}

bool QueuedWork::wait(std::chrono::milliseconds timeout) {
  const StayAtEnd stay;
  require_own_process();
  const Clock::time_point limit = Clock::now() + timeout;
  WorkQueue::let_others_serve();
  std::unique_lock lock(mutex_);
  while (!cv_.wait_for(lock, kTurn, [this] { return completed_; })) {
    lock.unlock();
    if (const std::exception_ptr error = exception_of_signals()) std::rethrow_exception(error);
    TORCH_CHECK_WITH(DistBackendError, timeout == kNoTimeout || Clock::now() < limit,
                     "unisono: ", c10d::opTypeToString(opType_), ": a wait timed out after ",
                     timeout.count(), " ms; the operation goes on");
    lock.lock();
  }
  if (exception_) std::rethrow_exception(exception_);
  lock.unlock();
  synchronize();  // torch keeps no reference to it then
  return true;
}

void QueuedWork::settle(c10::ivalue::Future& future, const std::exception_ptr& error) const {
  if (error) {
    future.setError(error);
  } else if (lists_ == 1) {
    future.markCompleted(c10::IValue(results_));
  } else {
    std::vector<std::vector<at::Tensor>> lists(lists_);
    const std::size_t length = lists_ == 0 ? 0 : results_.size() / lists_;
    for (std::size_t i = 0; i < lists_ * length; ++i) lists[i / length].push_back(results_[i]);
    future.markCompleted(c10::IValue(std::move(lists)));
  }
}

c10::intrusive_ptr<c10::ivalue::Future> QueuedWork::getFuture() {
  require_own_process();
  std::unique_lock lock(mutex_);
  if (future_) return future_;
  c10::TypePtr type = c10::ListType::create(c10::TensorType::get());
  if (lists_ != 1) type = c10::ListType::create(std::move(type));
  future_ = c10::make_intrusive<c10::ivalue::Future>(std::move(type));
  if (completed_) settle(*future_, exception_);
  return future_;
}

void QueuedWork::complete(std::exception_ptr error) {
  c10::intrusive_ptr<c10::ivalue::Future> future;
  // Before a waiting thread goes on, which may end the profile.
  if (recordFunctionEndCallback_) std::exchange(recordFunctionEndCallback_, nullptr)();
  {
    const std::lock_guard lock(mutex_);
    completed_ = true;
    exception_ = error;
    future = future_;
  }
  cv_.notify_all();
  if (future) settle(*future, error);  // runs callbacks, so without the lock
}

WorkQueue::~WorkQueue() {
  finish();
  if (!own_process_.is_here()) (void)shared_.release();
}

void WorkQueue::push(c10::intrusive_ptr<QueuedWork> work, std::function<void()> run) {
  own_process_.require("unisono");
  Shared& shared = *shared_;
  {
    const std::lock_guard lock(shared.mutex);
    TORCH_CHECK_WITH(DistBackendError, !shared.is_finished,
                     "unisono: the group has been shut down");
    // A callback may wait for what it starts, so another thread serves from now on.
    if (shared.server == std::this_thread::get_id()) shared.server = {};
    ensure_server();
    pending_.fetch_add(1, std::memory_order_relaxed);
    shared.items.push_back({std::move(work), std::move(run)});
  }
  shared.changed.notify_one();
}

// With the mutex.
void WorkQueue::ensure_server() {
  Shared& shared = *shared_;
  if (shared.server != std::thread::id() || shared.waiting > 0) return;
  shared.threads.emplace_back([this] { serve(); });
  ++shared.waiting;  // it will wait, or finds an operation
}

WorkQueue::Callbacks::Callbacks(WorkQueue& queue) : outer_(std::exchange(completing, &queue)) {}

WorkQueue::Callbacks::~Callbacks() { completing = outer_; }

void WorkQueue::let_others_serve() {
  if (completing == nullptr) return;
  Shared& shared = *completing->shared_;
  {
    const std::lock_guard lock(shared.mutex);
    if (shared.server != std::this_thread::get_id()) return;
    shared.server = {};
    if (!shared.items.empty()) completing->ensure_server();
  }
  shared.changed.notify_all();
}

std::vector<std::string> WorkQueue::names_under_way() const {
  std::vector<std::string> names;
  if (!own_process_.is_here()) return names;
  const std::lock_guard lock(shared_->mutex);
  if (shared_->running) names.push_back(shared_->running->name());
  for (const Item& item : shared_->items) {
    if (item.work) names.push_back(item.work->name());
  }
  return names;
}

void WorkQueue::finish() {
  if (!own_process_.is_here()) return;
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->is_finished = true;
  }
  shared_->changed.notify_all();
  without_gil([this] {
    for (std::thread& thread : shared_->threads) {
      if (thread.joinable()) thread.join();
    }
  });
}

void WorkQueue::serve() {
  pthread_setname_np(pthread_self(), "unisono-torch");
  unisono_set_background_thread(1);  // the program computes meanwhile, for instance gradients
  leave_signals_to_others();
  Shared& shared = *shared_;
  const std::thread::id self = std::this_thread::get_id();
  std::unique_lock lock(shared.mutex);
  for (;;) {
    shared.changed.wait(lock, [&] {
      const bool has_server = shared.server != std::thread::id();
      return shared.items.empty() ? shared.is_finished : !has_server;
    });
    --shared.waiting;
    if (shared.items.empty()) {
      shared.changed.notify_all();  // the others end, too
      return;
    }
    shared.server = self;
    Item item = std::move(shared.items.front());
    shared.items.pop_front();
    shared.running = item.work;
    lock.unlock();
    std::exception_ptr error;
    try {
      item.run();
    } catch (...) {
      error = std::current_exception();
    }
    item.run = nullptr;
    {
      const std::lock_guard running(shared.mutex);
      if (shared.running == item.work) shared.running.reset();
    }
    pending_.fetch_sub(1, std::memory_order_release);
    if (item.work) {
      const Callbacks callbacks(*this);
      item.work->complete(error);
    }
    item.work.reset();
    lock.lock();
    if (shared.server == self) shared.server = {};
    ++shared.waiting;
  }
}

}  // namespace unisono::pytorch
