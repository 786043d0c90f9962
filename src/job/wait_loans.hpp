// SPDX-License-Identifier: BSD-3-Clause
// WaitLoans: communicators that are lent to the threads of a rank that wait in the library, as
// their operations call functions of the program. Such a function may take a lock, for instance
// Python's, so no lock of the library is held during a turn, and the agent takes none. Any thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

#include "job/carried.hpp"

namespace unisono::job {

class WaitLoans {
 public:
  // False without memory: its rank then carries it in its calls only.
  bool lend(Carried& carried);
  // Waits until no thread uses it. The caller holds no lock that the program's functions take.
  void take_back(Carried& carried);
  // False if a thread uses it: it goes on there.
  bool try_to_take_back(Carried& carried);

  // For a thread that waits: a turn of each that no other thread uses. True if any is lent.
  bool carry() { return count_.load(std::memory_order_relaxed) > 0 && carry_all(); }

 private:
  struct Loan {
    Carried* carried;
    bool is_in_use = false;
    bool is_wanted = false;   // by its owner: no other thread begins a turn
    std::uint64_t round = 0;  // in which it has had its last turn
  };
  class Use;
  // These two with the lock.
  std::vector<Loan>::iterator find(const Carried& carried);
  void remove(std::vector<Loan>::iterator loan);
  Carried* next(std::uint64_t round);
  bool carry_all();

  std::mutex mutex_;  // not held in a turn
  std::condition_variable returned_;
  std::vector<Loan> loans_;
  std::atomic<int> count_ = 0;
  std::atomic<std::uint64_t> rounds_ = 0;
};

}  // namespace unisono::job
