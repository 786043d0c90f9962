// SPDX-License-Identifier: BSD-3-Clause
// WakePipes: wakes a rank that sleeps on descriptors, such as its sockets, where it cannot wait on
// a futex. Each rank has a pipe and publishes its number in shared memory. Another rank wakes it by
// opening that pipe through /proc/PROCESS/fd, which the kernel allows to processes of the same
// user. No name in any directory is left behind. Linux only. Any thread.
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

  // Makes this rank's pipe and publishes its address.
  base::Status make(PipeAddress& address);
  // The end that becomes readable when the pipe is rung; -1: there is none.
  int descriptor() const { return reading_.get(); }
  // Empties the pipe before the next sleep.
  void drain();

  enum class Rung : std::uint8_t { yes, nobody, unreachable };
  // nobody: the process has ended. unreachable: its pipe cannot be opened from here.
  Rung ring(int rank, const PipeAddress& address);

 private:
  base::Descriptor reading_, writing_;
  // By rank: the descriptor of the writing end + 1; 0: not opened yet.
  std::unique_ptr<std::atomic<int>[]> others_;
  int ranks_;
};

}  // namespace unisono::wait
