// SPDX-License-Identifier: BSD-3-Clause
// QueuedWork: one operation as c10d sees it, with its future. WorkQueue: a thread that runs
// operations in their order. A queue may be used by any thread, and by callbacks of its operations,
// which may wait for any of them. A forked child can wait for no operation that was not
// complete at the fork: its thread is the parent's.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <vector>

#include "own_process.hpp"

namespace unisono::pytorch {

class QueuedWork : public c10d::Work {
 public:
  // A profiler shows it from here to its completion as `title`, a literal, with the shapes of
  // `inputs`. No title: it is not shown. The future has the results in so many lists of equal
  // length.
  QueuedWork(int rank, c10d::OpType type, std::vector<at::Tensor> results,
             const char* title = nullptr, const std::vector<at::Tensor>& inputs = {},
             std::size_t lists = 1)
      : Work(rank, type, title, inputs), results_(std::move(results)), lists_(lists) {}

  bool wait(std::chrono::milliseconds timeout) override;
  // The rank that has sent, of a complete receive. Throws for other operations.
  int sourceRank() const override { return source_ < 0 ? Work::sourceRank() : source_; }
  void set_source(int rank) { source_ = rank; }
  std::vector<at::Tensor> result() override { return results_; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;

  std::string name() const { return c10d::opTypeToString(opType_); }
  // Once, by the thread that has run it; null: without an error.
  void complete(std::exception_ptr error);

 private:
  void settle(c10::ivalue::Future& future, const std::exception_ptr& error) const;
  // In a forked child: throws DistBackendError unless the operation was complete before.
  void require_own_process();

  OwnProcess own_process_;
  std::vector<at::Tensor> results_;
  std::size_t lists_;
  int source_ = -1;
  c10::intrusive_ptr<c10::ivalue::Future> future_;  // made when it is asked for; under mutex_
};

class WorkQueue {
 public:
  WorkQueue() = default;
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  // Nothing is queued or running.
  bool is_idle() const { return pending_.load(std::memory_order_acquire) == 0; }
  // The names of operations that are queued or running, such as "ALLREDUCE". Operations without a
  // work have none.
  std::vector<std::string> names_under_way() const;
  // `work` is completed with what `run` throws; null: `run` does that, and throws nothing. The
  // thread starts with the first one. Throws DistBackendError after finish(), and in a forked
  // child.
  void push(c10::intrusive_ptr<QueuedWork> work, std::function<void()> run);
  // Runs what is queued and ends the thread. Later operations fail.
  void finish();
  // While it exists, the calling thread, which serves the queue, is in callbacks. They may wait for
  // what is queued.
  class Callbacks {
   public:
    explicit Callbacks(WorkQueue& queue);
    ~Callbacks();
    Callbacks(const Callbacks&) = delete;
    Callbacks& operator=(const Callbacks&) = delete;

   private:
    WorkQueue* outer_;
  };
  // Before the calling thread waits: if it is in a callback, another thread serves from now on.
  static void let_others_serve();

 private:
  struct Item {
    c10::intrusive_ptr<QueuedWork> work;
    std::function<void()> run;
  };

  // A forked child never frees it: threads of the parent wait in it.
  struct Shared {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<Item> items;
    c10::intrusive_ptr<QueuedWork> running;
    bool is_finished = false;
    // One of them serves: it runs an operation, or callbacks of it that have started nothing yet.
    // The others wait, or are in callbacks that have.
    std::thread::id server;
    int waiting = 0;
    std::vector<std::thread> threads;
  };

  void serve();
  void ensure_server();

  std::unique_ptr<Shared> shared_ = std::make_unique<Shared>();
  std::atomic<int> pending_ = 0;
  OwnProcess own_process_;
};

}  // namespace unisono::pytorch
