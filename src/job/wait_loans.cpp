// SPDX-License-Identifier: BSD-3-Clause
#include "job/wait_loans.hpp"

#include <algorithm>

namespace unisono::job {

std::vector<WaitLoans::Loan>::iterator WaitLoans::find(const Carried& carried) {
  return std::ranges::find(loans_, &carried, &Loan::carried);
}

void WaitLoans::remove(std::vector<Loan>::iterator loan) {
  loans_.erase(loan);
  count_.store(static_cast<int>(loans_.size()), std::memory_order_relaxed);
}

void WaitLoans::lend(Carried& carried) {
  const std::lock_guard lock(mutex_);
  loans_.push_back({.carried = &carried});
  count_.store(static_cast<int>(loans_.size()), std::memory_order_relaxed);
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

// One that is free, and of which this thread has not had a turn.
Carried* WaitLoans::next(const std::vector<Carried*>& had) {
  const std::lock_guard lock(mutex_);
  const auto is_free = [&had](const Loan& loan) {
    return !loan.is_in_use && !loan.is_wanted && std::ranges::count(had, loan.carried) == 0;
  };
  const auto loan = std::ranges::find_if(loans_, is_free);
  if (loan == loans_.end()) return nullptr;
  loan->is_in_use = true;
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
  std::vector<Carried*> had;
  while (Carried* const carried = next(had)) {
    Use use(*this, *carried);
    had.push_back(carried);
    use.goes_on = carried->take_turn();
  }
  return count_.load(std::memory_order_relaxed) > 0;
}

}  // namespace unisono::job
