// SPDX-License-Identifier: BSD-3-Clause
// FailureUpdates: brings a communicator's failure to its members on other hosts. The first rank of
// a host that learns of it informs the neighbours in the tree of the communicator's hosts
// (update_tree.hpp), which do the same. That takes about 4 packets for each rank, however many find
// the failure at the same time. A rank that dies in the middle delays no rank for long. A rank that
// waits for another asks it whether it knows of a failure, and reads that in its host's memory. One
// thread at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "comm/members.hpp"
#include "job/failure_record.hpp"
#include "job/job.hpp"

namespace unisono::comm {

// The answer of a member of another host; in shared memory, of the asking rank.
struct alignas(64) FailureAnswer {
  job::FailureNotice notice;
  std::atomic<std::uint64_t> number;  // number of the request
};

struct FailurePlace {
  job::FailureRecord* record = nullptr;   // of this host
  job::FailureNotice* notices = nullptr;  // by member
  FailureAnswer* answers = nullptr;       // by member; memory is needed only for asked ones
};

class FailureUpdates {
 public:
  // `members` outlive it.
  FailureUpdates(const Members& members, const FailurePlace& place);

  // Call it once this rank knows of the failure. It shows the failure to ranks that ask, and
  // informs the neighbours unless another rank of this host has.
  void pass_on(const job::Failure& failure);
  // After losses: the neighbours may be others now.
  void pass_on_again();

  // The earliest failure: of this host, from a report, or from an answer.
  std::optional<job::Failure> earliest() const;

  // For a member that is waited for: asks it, one request at a time.
  void ask(int member);
  void ask_now_and_then(int member);  // the same, in one of several looks
  std::uint64_t asked() const { return asked_; }

 private:
  bool show(const job::Failure& failure);
  void tell_neighbours();
  void tell_host(int host);
  bool lives(int host) const;
  job::FailureNotice& own() const { return place_.notices[members_.rank()]; }
  const topology::HostMap& hosts() const { return members_.hosts(); }

  const Members& members_;
  job::Job& job_;
  FailurePlace place_;
  int own_host_ = 0;
  std::vector<int> reports_sent_;  // by host: number of reports sent
  int shown_ = 0;                  // reports; as many words of own().ends
  std::uint64_t shown_end_ = 0;
  bool passes_on_ = false;
  int asked_member_ = -1;
  std::uint64_t asked_ = 0;  // requests
  int looks_ = 0;
};

}  // namespace unisono::comm
