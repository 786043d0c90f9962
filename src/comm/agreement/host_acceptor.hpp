// SPDX-License-Identifier: BSD-3-Clause
// HostAcceptor: the acceptor of Paxos that the ranks of a host are together. Its promise and its
// acceptance form one word in their memory. So any rank of the host can change both at once, may be
// killed while doing so, and may answer in place of another one. A value; any thread.
#pragma once

#include <atomic>
#include <cstdint>

namespace unisono::comm {

class HostAcceptor {
 public:
  // Ballot b is that of member b - 1; 0: none.
  static std::uint64_t ballot_of(int member) { return static_cast<std::uint64_t>(member) + 1; }

  explicit HostAcceptor(std::atomic<std::uint64_t>& word) : word_(word) {}

  // Promises to accept no lower ballot.
  struct Promise {
    bool given;              // false: a higher ballot has one
    std::uint64_t accepted;  // the ballot accepted before; 0: none
  };
  Promise promise(std::uint64_t ballot) const {
    std::uint64_t seen = word_.load(std::memory_order_acquire);
    while (promised(seen) < ballot &&
           !word_.compare_exchange_weak(seen, word(ballot, accepted(seen)))) {
    }
    return {promised(seen) <= ballot, accepted(seen)};
  }
  // False if a higher ballot has a promise.
  bool accept(std::uint64_t ballot) const {
    std::uint64_t seen = word_.load(std::memory_order_acquire);
    while (promised(seen) <= ballot && !word_.compare_exchange_weak(seen, word(ballot, ballot))) {
    }
    return promised(seen) <= ballot;
  }

 private:
  static constexpr int kAcceptedBits = 32;
  static std::uint64_t word(std::uint64_t promised, std::uint64_t accepted) {
    return promised << kAcceptedBits | accepted;
  }
  static std::uint64_t promised(std::uint64_t word) { return word >> kAcceptedBits; }
  static std::uint64_t accepted(std::uint64_t word) {
    return word & ((std::uint64_t{1} << kAcceptedBits) - 1);
  }

  std::atomic<std::uint64_t>& word_;
};

}  // namespace unisono::comm
