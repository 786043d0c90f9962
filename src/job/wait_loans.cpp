// SPDX-License-Identifier: BSD-3-Clause
#include "job/wait_loans.hpp"

#include <algorithm>
#include <new>

namespace unisono::job {

std::vector<WaitLoans::Loan>::iterator WaitLoans::find(const Carried& carried) {
  return std::ranges::find(loans_, &carried, &Loan::carried);
}

void WaitLoans::remove(std::vector<Loan>::iterator loan) {
  loans_.erase(loan);
  count_.store(static_cast<int>(loans_.size()), std::memory_order_relaxed);
}

bool WaitLoans::lend(Carried& carried) {
  const std::lock_guard lock(mutex_);
  try {
    loans_.push_back({.carried = &carried});
  } catch (const std::bad_alloc&) {
    return false;
  }
  count_.store(static_cast<int>(loans_.size()), std::memory_order_relaxed);
  return true;
}

void WaitLoans::take_back(Carried& carried) {
  std::unique_lock lock(mutex_);
  if (const auto loan = find(carried); loan != loans_.end()) loan->is_wanted = true;
  returned_.wait(lock, [&] {
    const auto loan = find(carried);
    if (loan == loans_.end()) return true;
    if (loan->is_in_use) return false;
    remove(loan);
    return true;
  });
}

bool WaitLoans::try_to_take_back(Carried& carried) {
  const std::lock_guard lock(mutex_);
  const auto loan = find(carried);
  if (loan == loans_.end()) return true;
  if (loan->is_in_use) return false;
  remove(loan);
  return true;
}

// One that is free, and has not had a turn in this round or in a later one of another thread.
Carried* WaitLoans::next(std::uint64_t round) {
  const std::lock_guard lock(mutex_);
  const auto is_due = [round](const Loan& loan) {
    return !loan.is_in_use && !loan.is_wanted && loan.round < round;
  };
  const auto loan = std::ranges::find_if(loans_, is_due);
  if (loan == loans_.end()) return nullptr;
  loan->is_in_use = true;
  loan->round = round;
  return loan->carried;
}

// Also if the turn has thrown.
class WaitLoans::Use {
 public:
  Use(WaitLoans& loans, const Carried& carried) : loans_(loans), carried_(carried) {}
  ~Use() {
    const std::lock_guard lock(loans_.mutex_);
    const auto loan = loans_.find(carried_);
    loan->is_in_use = false;
    if (!goes_on) loans_.remove(loan);
    loans_.returned_.notify_all();
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

  bool goes_on = true;

 private:
  WaitLoans& loans_;
  const Carried& carried_;
};

bool WaitLoans::carry_all() {
  if (Carried::is_thread_in_turn()) return false;
  const std::uint64_t round = ++rounds_;
  while (Carried* const carried = next(round)) {
    Use use(*this, *carried);
    use.goes_on = carried->take_turn();
  }
  return count_.load(std::memory_order_relaxed) > 0;
}

}  // namespace unisono::job
