// SPDX-License-Identifier: BSD-3-Clause
// WakePipes: how a rank is woken that sleeps on descriptors, as on its datagrams, where no futex
// can be waited for: each rank has a pipe whose number it tells in shared memory, and who wants to
// wake it opens that pipe through /proc/PROCESS/fd, which the kernel grants to processes of the
// same user. Nothing has a name in a directory, so nothing is left behind. Linux only. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "base/descriptor.hpp"
#include "base/result.hpp"

namespace unisono::wait {

struct PipeAddress {
  std::atomic<std::uint64_t> inode{0};  // 0: there is none
  std::atomic<std::uint64_t> process_namespace{0};
  std::atomic<std::int32_t> process{0}, descriptor{0};
};

class WakePipes {
 public:
  explicit WakePipes(int ranks)
      : others_(std::make_unique<std::atomic<int>[]>(static_cast<std::size_t>(ranks))),
        ranks_(ranks) {}
  ~WakePipes();
  WakePipes(const WakePipes&) = delete;
  WakePipes& operator=(const WakePipes&) = delete;

  // Makes this rank's pipe and tells where it is.
  base::Status make(PipeAddress& address);
  // The end that becomes readable when it is rung; -1: there is none.
  int descriptor() const { return reading_.get(); }
  // Before the next sleep.
  void drain();

  enum class Rung : std::uint8_t { yes, nobody, unreachable };
  // nobody: its process has ended. unreachable: its pipe cannot be opened from here.
  Rung ring(int rank, const PipeAddress& address);

 private:
  base::Descriptor reading_, writing_;
  // By rank: the descriptor + 1 of its pipe's other end; 0: not opened yet.
  std::unique_ptr<std::atomic<int>[]> others_;
  int ranks_;
};

}  // namespace unisono::wait
