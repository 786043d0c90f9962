// SPDX-License-Identifier: BSD-3-Clause
// MulticastReceiver: the multicasts of other ranks. A rank that lacks a packet asks its parent in
// the origin's repair tree. It keeps packets for its children, and passes on what they have asked
// for while it lacked it too. It answers an origin's question for itself and all below it. Children
// that multicast does not reach get everything by unicast. One thread at a time.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "reliable/group/answers.hpp"
#include "reliable/group/group_context.hpp"
#include "reliable/group/multicast_watch.hpp"
#include "reliable/link/link.hpp"

namespace unisono::reliable {

class MulticastReceiver {
 public:
  // `context` outlives it.
  explicit MulticastReceiver(GroupContext& context)
      : context_(context), streams_(static_cast<std::size_t>(context.options.ranks)) {}

  // A put of another rank to the group, or its repetition: whether it is new, and the flag that may
  // be raised with it.
  struct Taken {
    bool fresh = false;
    const WaitingFlag* flag = nullptr;
  };
  Taken take_put(const wire::Parsed& packet, std::int64_t now_ns);
  void take_query(const wire::Header& query, std::int64_t now_ns);
  // A child's request. Returns whether it had packets with a payload to repeat.
  bool take_request(const wire::Header& request, std::int64_t now_ns);
  // A child's answer to a question of another rank.
  void take_answer(const wire::Header& answer);

  // This rank waits for a multicast of `origin`.
  void awaits(int origin, std::int64_t now_ns);
  // The first origin whose multicasts were found not to reach this rank; -1: there is none.
  int unreached_by() const { return unreached_by_; }

  // Asks if it is time.
  void look_at_timers(std::int64_t now_ns);
  std::int64_t next_deadline_ns() const;

 private:
  // A packet of which a child waits, and this rank lacks it.
  struct Wanted {
    std::uint64_t number;
    int child;
    std::int64_t expires_ns;
  };
  // This rank's knowledge of one origin's packets.
  struct Stream {
    explicit Stream(const GroupOptions& options)
        : kept(options.repair_packets, options.payload_bytes) {}
    ReceivingSide receiving;
    KeptPackets kept;
    std::vector<Wanted> wanted;
    std::int64_t passed_up_ns = std::numeric_limits<std::int64_t>::min() / 2;
    // The origin's latest question, and the answers of the children.
    std::uint64_t query = 0;
    std::uint64_t known_lost = 0;  // RepairTree::lost_set() at the origin, when it asked
    bool asked = true;             // this rank has heard it, not only of it
    bool answered = true;
    Answers answers;
    std::int64_t passed_down_ns = std::numeric_limits<std::int64_t>::min() / 2;
    MulticastWatch watch;
    std::vector<int> unreached;  // children that the origin's multicasts do not reach
    bool watched = false;        // its timer runs
  };

  Stream& stream_of(int origin);
  void pass_on(Stream& stream, const wire::Parsed& packet, bool fresh);
  void pass_down(Stream& stream, const wire::Header& query, bool fresh, std::int64_t now_ns);
  void note_way(Stream& stream, const wire::Header& header, bool fresh, std::int64_t now_ns);
  static void note_child(Stream& stream, const wire::Header& header);
  static void forget_expired(Stream& stream, std::int64_t now_ns);
  bool want(Stream& stream, std::uint64_t number, int child, std::int64_t now_ns) const;
  void note_gap(Stream& stream, int origin, bool moved, std::int64_t now_ns);
  void watch(Stream& stream, int origin);
  bool look_at(Stream& stream, int origin, std::int64_t now_ns);
  void ask(const Stream& stream, int origin);
  void ask_for(const Stream& stream, int origin, std::uint64_t place, std::uint64_t mask);
  bool passes_over(const Stream& stream, int origin, int rank) const;
  void answer_if_complete(Stream& stream, int origin);

  GroupContext& context_;
  std::vector<std::unique_ptr<Stream>> streams_;  // by origin; made when first used
  std::vector<int> watched_;                      // origins whose streams have a timer that runs
  int unreached_by_ = -1;
};

}  // namespace unisono::reliable
