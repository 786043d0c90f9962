// SPDX-License-Identifier: BSD-3-Clause
// Several leaders: as in two levels, one message goes from each host to each other, with the blocks
// of all pairs of their ranks. But each rank of a host leads for some of the other hosts, so that
// the ranks of a host share the packing and the sending. A host's leader for another one gets what
// goes there from its host's ranks, and gives them what comes from there. The hosts that follow a
// host take its ranks in turn: the leader at host h for host g is at place (g - h - 1) mod k of k.
//
//   P = 6 on hosts 0 1 | 2 3 | 4 5
//   within     all blocks of a host's pairs; 1 -> 0: 1's for 2 3;  0 -> 1: 0's for 4 5; ...
//   between    0 <> 3: those of 0 1 for 2 3, and back    1 <> 4    2 <> 5
//   within     0 -> 1: those of 2 3 for 1;  1 -> 0: those of 4 5 for 0; ...
//
// What goes between two hosts is sorted by the rank that sent it, then by that which gets it. Empty
// messages are sent as signals. In place, a block is overwritten once it is sent.
// Steps: 3. Bytes: (P-1) m; of each block between hosts up to two more within them.
// Source: several leaders a host: Kandalla, Subramoni, Santhanaraman, Koop and Panda, Designing
// multi-leader-based allgather algorithms for multi-core clusters, IPDPS Workshops 2009.
#include "algorithm/alltoall/packing.hpp"
#include "algorithm/two_level.hpp"

namespace unisono::algorithm::alltoall {

namespace {

class MultiLeader {
 public:
  MultiLeader(const Shape& shape, int rank)
      : shape_(shape),
        rank_(rank),
        levels_(shape),
        host_(levels_.host(rank)),
        place_(levels_.place(rank)),
        size_(levels_.size(host_)),
        led_(led_at(place_)),
        b_(shape, rank) {}

  Schedule build() && {
    make_slots();
    send_within_host();
    give_to_leaders();
    send_to_hosts();
    take_within_host();
    give_to_members();
    take_from_leaders();
    return std::move(b_).take();
  }

 private:
  using Blocks = std::vector<schedule::Block>;

  // The place of the leader at a host for another one.
  int leading_place(int host, int other) const {
    const int hosts = levels_.hosts();
    return ((other - host + hosts) % hosts - 1) % levels_.size(host);
  }
  // The other hosts for which a rank of this host leads.
  std::vector<int> led_at(int place) const {
    std::vector<int> led;
    for (int other = 0; other < levels_.hosts(); ++other) {
      if (other != host_ && leading_place(host_, other) == place) led.push_back(other);
    }
    return led;
  }

  // Slots, in this order: blocks of the other ranks of this host. Their messages for the hosts that
  // this rank leads for. The messages of these hosts. Those of the other leaders.
  void make_slots() {
    for (int i = 0; i < size_; ++i) {
      const int source = levels_.member(host_, i);
      if (i != place_) b_.slot(source, schedule::received_block(shape_, source, rank_).count);
    }
    for (int i = 0; i < size_ && !led_.empty(); ++i) {
      if (i != place_) b_.slot(levels_.member(host_, i), count_of(blocks_for(i, led_)));
    }
    for (const int other : led_) {
      const int source = levels_.member(other, leading_place(other, host_));
      b_.slot(source, count_between(other));
    }
    for (int i = 0; i < size_; ++i) {
      const std::vector<int> theirs = led_at(i);
      if (i == place_ || theirs.empty()) continue;
      b_.slot(levels_.member(host_, i), count_of(blocks_from(theirs, place_)));
    }
  }
  // The first slot of messages from hosts, at a rank of any host.
  static SlotId first_from_hosts(int size) { return 2 * (size - 1); }
  // Where this rank, as a leader, puts blocks from other hosts at another rank of its host.
  SlotId slot_of_led(int place) const {
    const auto its_own = static_cast<int>(led_at(place).size());
    SlotId slot = size_ - 1 + (its_own == 0 ? 0 : size_ - 1 + its_own);
    for (int i = 0; i < place_; ++i) slot += i != place && !led_at(i).empty() ? 1 : 0;
    return slot;
  }

  void send_within_host() {
    for (int i = 0; i < size_; ++i) {
      const int to = levels_.member(host_, i);
      const Range block = input(schedule::sent_block(shape_, rank_, to));
      sent_.push_back(i == place_ ? Builder::kNone : b_.send(to, slot_of(place_, i), block));
    }
  }

  void give_to_leaders() {
    for (int i = 0; i < size_; ++i) {
      const std::vector<int> theirs = led_at(i);
      given_.push_back(Builder::kNone);
      if (i == place_ || theirs.empty()) continue;
      const Value message = packed(b_, inputs_of(blocks_for(place_, theirs)), {});
      const SlotId slot = size_ - 1 + slot_of(place_, i);
      given_.back() = b_.send(levels_.member(host_, i), slot, message.range, {message.ready});
    }
  }

  // To each host for which this rank leads: the blocks of all ranks of this host for it.
  void send_to_hosts() {
    std::vector<OpId> arrived;
    std::vector<Range> rests;  // of what each rank has for these hosts
    for (int i = 0; i < size_ && !led_.empty(); ++i) {
      rests.emplace_back();
      if (i == place_) continue;
      const SlotId slot = size_ - 1 + slot_of(i, place_);
      arrived.push_back(b_.wait(slot));
      rests.back() = b_.of(slot);
    }
    for (const int other : led_) {
      std::vector<Range> sources;
      for (int i = 0; i < size_; ++i) {
        for (const schedule::Block& block : blocks_for(i, {other})) {
          Range& rest = rests[static_cast<std::size_t>(i)];
          sources.push_back(i == place_ ? input(block) : first_of(rest, block.count));
          if (i != place_) rest = behind(rest, block.count);
        }
      }
      const Value message = packed(b_, sources, arrived);
      const int to = leading_place(other, host_);
      const int its_size = levels_.size(other);
      SlotId slot = first_from_hosts(its_size);
      for (int host = 0; host < host_; ++host) {
        slot += host != other && leading_place(other, host) == to ? 1 : 0;
      }
      sent_to_host_.push_back(
          b_.send(levels_.member(other, to), slot, message.range, {message.ready}));
    }
  }

  void take_within_host() {
    for (int i = 0; i < size_; ++i) {
      const int from = levels_.member(host_, i);
      const Range place = output(schedule::received_block(shape_, from, rank_));
      if (i == place_) {
        b_.copy(place, input(schedule::sent_block(shape_, rank_, rank_)));
        continue;
      }
      const SlotId slot = slot_of(i, place_);
      const OpId arrived = b_.wait(slot);
      // In place, the block to send to `from` lies where the block of `from` belongs.
      b_.copy(place, b_.of(slot), {arrived, sent_[static_cast<std::size_t>(i)]});
    }
  }

  // Passes on the messages of hosts for which this rank leads, and takes its own part.
  void give_to_members() {
    std::vector<OpId> arrived;
    std::vector<std::vector<Range>> parts(static_cast<std::size_t>(size_));
    SlotId slot = first_from_hosts(size_);
    for (const int other : led_) {
      arrived.push_back(b_.wait(slot));
      Range rest = b_.of(slot++);
      for (int i = 0; i < levels_.size(other); ++i) {
        for (int place = 0; place < size_; ++place) {
          const auto count = schedule::received_block(shape_, levels_.member(other, i),
                                                      levels_.member(host_, place))
                                 .count;
          parts[static_cast<std::size_t>(place)].push_back(first_of(rest, count));
          rest = behind(rest, count);
        }
      }
    }
    for (int place = 0; place < size_ && !led_.empty(); ++place) {
      if (place == place_) continue;
      const Value message = packed(b_, parts[static_cast<std::size_t>(place)], arrived);
      b_.send(levels_.member(host_, place), slot_of_led(place), message.range, {message.ready});
    }
    std::vector<OpId> after = arrived;
    after.insert(after.end(), sent_to_host_.begin(), sent_to_host_.end());
    take(led_, parts[static_cast<std::size_t>(place_)], after);
  }

  void take_from_leaders() {
    SlotId slot = size_ - 1;
    if (!led_.empty()) slot += size_ - 1 + static_cast<SlotId>(led_.size());
    for (int i = 0; i < size_; ++i) {
      const std::vector<int> theirs = led_at(i);
      if (i == place_ || theirs.empty()) continue;
      const OpId arrived = b_.wait(slot);
      std::vector<Range> sources;
      Range rest = b_.of(slot++);
      for (const schedule::Block& block : blocks_from(theirs, place_)) {
        sources.push_back(first_of(rest, block.count));
        rest = behind(rest, block.count);
      }
      take(theirs, sources, {arrived, given_[static_cast<std::size_t>(i)]});
    }
  }

  // Copies the blocks from these hosts, in their order, to the output.
  void take(const std::vector<int>& hosts, const std::vector<Range>& sources,
            const std::vector<OpId>& after) {
    std::vector<Move> moves;
    for (std::size_t i = 0; const schedule::Block& block : blocks_from(hosts, place_)) {
      moves.push_back({output(block), sources[i++]});
    }
    copy_all(b_, moves, after);
  }

  // The blocks of a rank of this host, by its place, for hosts, and from hosts for it.
  Blocks blocks_for(int place, const std::vector<int>& hosts) const {
    const int rank = levels_.member(host_, place);
    return of_hosts(hosts, [&](int peer) { return schedule::sent_block(shape_, rank, peer); });
  }
  Blocks blocks_from(const std::vector<int>& hosts, int place) const {
    const int rank = levels_.member(host_, place);
    return of_hosts(hosts, [&](int peer) { return schedule::received_block(shape_, peer, rank); });
  }
  template <typename BlockOf>
  Blocks of_hosts(const std::vector<int>& hosts, const BlockOf& block_of) const {
    Blocks blocks;
    for (const int host : hosts) {
      for (int i = 0; i < levels_.size(host); ++i) {
        blocks.push_back(block_of(levels_.member(host, i)));
      }
    }
    return blocks;
  }
  std::int64_t count_between(int other) const {
    std::int64_t count = 0;
    for (int place = 0; place < size_; ++place) count += count_of(blocks_from({other}, place));
    return count;
  }

  static std::vector<Range> inputs_of(const Blocks& blocks) {
    std::vector<Range> ranges;
    for (const schedule::Block& block : blocks) ranges.push_back(input(block));
    return ranges;
  }
  static std::int64_t count_of(const Blocks& blocks) {
    std::int64_t count = 0;
    for (const schedule::Block& block : blocks) count += block.count;
    return count;
  }

  const Shape& shape_;
  int rank_;
  two_level::Levels levels_;
  int host_, place_, size_;
  std::vector<int> led_;
  Builder b_;
  std::vector<OpId> sent_;          // to ranks of this host, by place
  std::vector<OpId> given_;         // to leaders of this host, by place
  std::vector<OpId> sent_to_host_;  // to the hosts of led_
};

}  // namespace

Schedule multi_leader(const Shape& shape, const Parameters&, int rank) {
  return MultiLeader(shape, rank).build();
}

}  // namespace unisono::algorithm::alltoall
