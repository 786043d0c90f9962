// SPDX-License-Identifier: BSD-3-Clause
// DatagramSleepers: the threads of a rank that sleep on its datagrams, and how they are told that
// another thread has taken arrivals. Each has an eventfd of its own: with a common one, the first
// that wakes would empty it before the others have seen it. Any thread.
#pragma once

#include <array>
#include <atomic>

#include "base/descriptor.hpp"

namespace unisono::network {

class DatagramSleepers {
 public:
  DatagramSleepers() = default;
  ~DatagramSleepers();
  DatagramSleepers(const DatagramSleepers&) = delete;
  DatagramSleepers& operator=(const DatagramSleepers&) = delete;

  // So many threads at once; further ones are not told. Rarely does a rank have two.
  static constexpr int kMost = 16;
  static constexpr int kUntold = -1;

  // Makes the first eventfd. False: errno says why not.
  bool open() { return made(0) >= 0; }
  // The caller's number until withdraw(): whatever comes from now on makes its descriptor
  // readable. It may be so from before; then a sleep ends early, once. kUntold: there are too
  // many, or there is no descriptor for it.
  int announce();
  void withdraw(int sleeper);
  int descriptor(int sleeper) const;
  // Makes a readable descriptor unreadable until something comes again.
  void drain(int sleeper) const;
  // Something has come.
  void tell_all();

 private:
  struct Sleeper {
    std::atomic<bool> is_there{false};
    std::atomic<int> eventfd{-1};  // stays open once it is made
  };
  int made(int sleeper);

  std::array<Sleeper, kMost> sleepers_;
  std::atomic<int> count_{0};  // of those that are told
};

}  // namespace unisono::network
