// SPDX-License-Identifier: BSD-3-Clause
// NicPath: the NIC path of a communicator: the group of its ranks there, their neighbours in the
// trees, and the progress words that ranks exchange. A digest of all calls so far goes with each
// contribution. So the communicator's order holds across the NIC path and the host engines
// (decision 22). Used by NicEngine. The functions here are pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/nic/nic_group.hpp"
#include "topology/host_map.hpp"

namespace unisono::comm {

// How far a rank is. In a word, numbers are cut: ranks are never further apart than that.
struct NicProgress {
  std::uint32_t history = 1;    // digest of all its calls so far, in both paths; 24 bits
  std::uint64_t calls = 0;      // so many; 18 bits
  std::uint64_t completed = 0;  // operations in the NIC path, without a gap; 14 bits
  // From those on, so many for which it has sent the contributions of its subtree, and whose calls
  // have returned before their ends; 3 bits.
  std::uint32_t returned = 0;
  // Bit t: on tree t it has sent the contribution of its subtree to its parent; 4 bits. In an
  // allgather: how many pieces of its host's block it has sent, cut to 4 bits. In the multicast of
  // a root, 1 if its host has sent the block.
  std::uint32_t given = 0;
  bool ended = false;  // it needs nothing more from the group

  std::uint64_t word() const;
  static NicProgress of_word(std::uint64_t word);
  bool operator==(const NicProgress&) const = default;
};

// The leave record of a rank, also for ranks still in the path: the number of operations that it
// has completed. It carries the mark of its communicator: the first sequence number of its segment.
std::uint64_t nic_leave_record(std::uint64_t mark, std::uint64_t completed);
// nullopt: none, or an older communicator's.
std::optional<NicProgress> read_leave_record(std::uint64_t mark, std::uint64_t word);

// `own` waits in operation number own.completed of the NIC path. Whether the other rank has made
// another call instead, so that it will never take part.
bool calls_differ(const NicProgress& own, const NicProgress& other);
// Whether it has the operation's result.
bool has_result(const NicProgress& own, const NicProgress& other);
// Whether it has made fewer calls than so many.
bool has_fewer_calls(const NicProgress& other, std::uint64_t calls);
// How many fewer than so many; less than none is a large number.
std::uint64_t calls_behind(std::uint64_t calls, const NicProgress& other);
// Numbers as they are cut in a word.
std::uint64_t nic_calls(std::uint64_t calls);
std::uint64_t nic_completed(std::uint64_t completed);
// Whether it has sent its contribution on a tree.
bool has_given(const NicProgress& own, const NicProgress& other, int tree);
// Whether it has sent the piece of its block that `own` waits for, which has so many pieces of all.
bool has_given_piece(const NicProgress& own, const NicProgress& other, std::uint32_t finished);

struct NicPath {
  struct Neighbour {
    int rank = 0;
    bool here = false;  // on this host; otherwise it leads its own
    // Bit t: in tree t its host is next to this one.
    std::uint32_t above = 0, below = 0;
    // Number of the last request; the first is unlike older communicators'.
    std::uint64_t asked = 0;
  };

  NicPath(std::unique_ptr<engine::NicGroup> joined, std::uint64_t mark, topology::HostMap map,
          int rank);

  int rank_of(const engine::NicRank& rank) const {
    return hosts.members(rank.host)[static_cast<std::size_t>(rank.place)];
  }

  // Whether the first operation that is not done may wait for that rank. It waits for ranks on this
  // host. If it awaits blocks, it also waits for hosts whose block is missing, otherwise for
  // neighbours in the tree. A root may wait for an acknowledgement, so neighbours watch each other.
  bool may_wait_for(const Neighbour& next) const {
    return next.here || lacks_block_of(next) ||
           (waits_on_trees() && (next.above | next.below) != 0);
  }
  bool waits_on_trees() const { return !group->oldest().awaits_blocks() || group->acknowledges(); }
  bool lacks_block_of(const Neighbour& next) const {
    const engine::NicFlight& flight = group->oldest();
    return flight.awaits_blocks() && (flight.missing() >> hosts.of(next.rank) & 1) != 0;
  }
  // Whether that rank may still request something when this rank has the last result. Blocks are
  // requested from the rank that sends them. The other rank may lack those of an operation that was
  // in flight with the last one.
  bool may_be_asked_by(const Neighbour& next) const {
    return next.below != 0 || (group->has_awaited_blocks_lately() && !next.here);
  }

  // Whether that one leaves later than this rank, which it must be able to answer. This rank leads
  // its host.
  bool stays_for(int rank) const {
    const bool all_stay = group->oldest().awaits_blocks();
    return std::ranges::any_of(neighbours, [&](const auto& next) {
      return next.rank == rank && !next.here && (next.above != 0 || all_stay);
    });
  }

  std::unique_ptr<engine::NicGroup> group;
  const std::uint64_t mark;
  const std::uint64_t first_asked;  // before the first request
  const topology::HostMap hosts;
  std::vector<Neighbour> neighbours;
  std::vector<int> awaited;     // for leaders, in the trees: all ranks of the hosts above and below
  std::uint64_t completed = 0;  // operations before the first that is not done
  nic::Preferences preferences;  // of the first host, so that all ranks decide alike

 private:
  Neighbour& neighbour(int rank);  // is made if there is none
};

}  // namespace unisono::comm
