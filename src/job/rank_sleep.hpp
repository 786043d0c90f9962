// SPDX-License-Identifier: BSD-3-Clause
// RankSleep: one sleep of a rank, on its doorbell, or on its datagrams if the ranks of its host can
// wake it there. It is announced by the constructor and withdrawn by the destructor; an event in
// between ends it. For one thread; several threads of a rank may sleep.
#pragma once

#include <cstdint>

#include "job/job.hpp"

namespace unisono::job {

class RankSleep {
 public:
  // Announces it. After that the caller checks once more for the awaited event.
  explicit RankSleep(Job& job);
  ~RankSleep();
  RankSleep(const RankSleep&) = delete;
  RankSleep& operator=(const RankSleep&) = delete;

  // Once: until woken, `descriptor` (-1: none) is readable, or the time is over. True if woken by
  // something that may concern this rank.
  bool sleep(std::int64_t limit_ns, int descriptor);

 private:
  void withdraw();
  using Woken = network::AnsweringThread::Woken;
  bool has_come(Woken woken);

  Job& job_;
  bool datagrams_ = false, pipe_ = false, is_withdrawn_ = false;
  int sleeper_ = 0;              // of the datagrams
  std::uint32_t announced_ = 0;  // of the doorbell, if it uses neither
  reliable::Reliable::Arrived before_{};
};

}  // namespace unisono::job
