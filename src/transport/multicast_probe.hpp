// SPDX-License-Identifier: BSD-3-Clause
// MulticastProbe: does what one member sends to the group reach all others? Every member sends
// probes, at growing distances, that say whether it has heard all the others; whoever has heard
// that from everybody knows that multicast carries between all of them. Members may find different
// answers when packets are lost near the deadline, so they have to be combined (all or nobody)
// where the job agrees on things. Works over any Datagrams; time is a parameter. One thread at a
// time.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "transport/datagrams.hpp"
#include "wire/gate.hpp"

namespace unisono::transport {

class MulticastProbe {
 public:
  // Between the ranks `members` of the job, of which datagrams.rank() is one. Both references
  // outlive the probe.
  MulticastProbe(Datagrams& datagrams, wire::Gate& gate, std::span<const int> members);

  // Sends and receives what is due; returns the amount of work done. Packets that are no probes are
  // dropped: none are expected before the probe is over.
  int step(std::int64_t now_ns);
  // When step() has something to do even if nothing comes.
  std::int64_t next_ns() const { return next_ns_; }

  // All have said that they have heard all; this one has said so as well.
  bool carries() const { return satisfied_ == others_ && told_; }
  // For people: "multicast carries between 8 members", "nothing heard from rank 3; ...".
  std::string note() const;

 private:
  struct Member {
    int rank = -1;
    bool heard = false;
    bool satisfied = false;  // has said that it has heard all
  };

  void take(const wire::Header& header);
  bool send(std::int64_t now_ns);

  Datagrams& datagrams_;
  wire::Gate& gate_;
  std::vector<Member> members_;  // the others, by rank
  std::size_t others_ = 0;
  std::size_t heard_ = 0;
  std::size_t satisfied_ = 0;
  bool told_ = false;  // our last probe said that we have heard all
  std::uint64_t sequence_ = 0;
  std::int64_t interval_ns_ = 0;
  std::int64_t next_ns_ = 0;
};

struct MulticastReport {
  bool carries = false;
  std::string note;
};

// Runs a probe until it knows that multicast carries, or the deadline. Sleeps in between, if there
// is something to sleep on. To be called by all members at about the same time.
MulticastReport probe_multicast(Datagrams& datagrams, wire::Gate& gate,
                                std::span<const int> members, std::int64_t deadline_ns);

}  // namespace unisono::transport
