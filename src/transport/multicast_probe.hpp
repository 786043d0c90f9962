// SPDX-License-Identifier: BSD-3-Clause
// MulticastProbe: tests whether multicasts of each member reach all others. Every member multicasts
// probes, at growing intervals. A probe says whether its sender has heard all other members. A
// member that has heard this from all knows that multicast works between all of them. Members may
// get different answers if packets are lost near the deadline. So the job must combine the answers:
// all members use multicast or none. Works over any Datagrams; time is a parameter. One thread at a
// time.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "transport/datagrams.hpp"
#include "wire/packet_filter.hpp"

namespace unisono::transport {

class MulticastProbe {
 public:
  // A probe between the ranks `members` of the job; datagrams.rank() is one of them. Both
  // references outlive the probe.
  MulticastProbe(Datagrams& datagrams, wire::PacketFilter& filter, std::span<const int> members);

  // Sends and receives; returns the amount of work done. It drops packets that are no probes: none
  // are expected before the probe is over.
  int step(std::int64_t now_ns);
  // When step() has to send again, even if nothing arrives.
  std::int64_t next_ns() const { return next_ns_; }

  // All members have said that they have heard all, and this one has said so too.
  bool carries() const { return satisfied_ == others_ && reported_all_; }
  // This member has heard all others. If that is so for each, multicast carries between all, even
  // if the probes that say so were lost.
  bool has_heard_all() const { return heard_ == others_; }
  // For people: "multicast carries between 8 members", "nothing heard from rank 3; ...".
  std::string note() const;

 private:
  struct Member {
    int rank = -1;
    bool heard = false;
    bool satisfied = false;  // has reported that it has heard all
  };

  void take(const wire::Header& header);
  bool send(std::int64_t now_ns);

  Datagrams& datagrams_;
  wire::PacketFilter& filter_;
  std::vector<Member> members_;  // the others, by rank
  std::size_t others_ = 0;
  std::size_t heard_ = 0;
  std::size_t satisfied_ = 0;
  bool reported_all_ = false;  // our last probe reported that we have heard all
  std::uint64_t sequence_ = 0;
  std::int64_t interval_ns_ = 0;
  std::int64_t next_ns_ = 0;
};

struct MulticastReport {
  bool hears_all = false;
  std::string note{};
  bool has_other = false;  // the datagrams have another carrier of multicasts, which may be tried
};

// Runs a probe until it knows that multicast carries between all, or the deadline. Sleeps in
// between, if there is something to sleep on. To be called by all members at about the same time.
MulticastReport probe_multicast(Datagrams& datagrams, wire::PacketFilter& filter,
                                std::span<const int> members, std::int64_t deadline_ns);

}  // namespace unisono::transport
