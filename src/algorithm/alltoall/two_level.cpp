// SPDX-License-Identifier: BSD-3-Clause
// Two levels: ranks of a host give each other their blocks through shared memory, and their leader
// all those for other hosts; the leaders run an all-to-all in which a pair's block is all that goes
// from one host to the other; then each leader gives its host's ranks what came for them. So two
// hosts of k ranks exchange two messages instead of 2 k^2, but a block is copied up to four times
// more: for short ones.
//
//   P = 5 on hosts 0 1 | 2 3 | 4, inner linear
//   within     0 <> 1, 2 <> 3;  1 -> 0: 1's for 2 3 4, 3 -> 2: 3's for 0 1 4
//   between    0 <> 2: those of 0 1 for 2 3, and back    0 <> 4    2 <> 4
//   within     0 -> 1: those of 2 3 4 for 1, 2 -> 3: those of 0 1 4 for 3
//
// What goes between two hosts is sorted by the rank that sent it, then by that which gets it. Empty
// blocks are sent within hosts, as signals. In place, a block is overwritten once it is sent.
// Steps: 2, and those of the inner all-to-all. Bytes: those of the inner one, and what k ranks have
// for other hosts, or come from there.
// Source: Kielmann, Hofman, Bal, Plaat and Bhoedjang, PPoPP 1999; Bruck et al., IEEE TPDS 8(11),
// 1997, for the combining of blocks.
#include "algorithm/two_level.hpp"
#include "algorithm/alltoall/packing.hpp"

namespace unisono::algorithm::alltoall {

namespace {

class TwoLevel {
 public:
  TwoLevel(const Shape& shape, const Parameters& parameters, int rank)
      : shape_(shape),
        parameters_(parameters),
        rank_(rank),
        levels_(shape),
        host_(levels_.host(rank)),
        size_(levels_.size(host_)),
        b_(shape, rank) {}

  Schedule build() && {
    make_slots();
    const std::vector<OpId> sent = send_within_host();
    if (levels_.hosts() == 1) {
      take_within_host(sent);
    } else if (levels_.leads(rank_)) {
      lead(sent);
    } else {
      follow(sent);
    }
    return std::move(b_).take();
  }

 private:
  // Slots: first one for each other rank of this host. A leader adds one for each of them with its
  // blocks for other hosts, then those among leaders. Other ranks add one for the blocks from other
  // hosts.
  void make_slots() {
    for (int i = 0; i < size_; ++i) {
      const int source = levels_.member(host_, i);
      if (source != rank_) b_.slot(source, schedule::received_block(shape_, source, rank_).count);
    }
    if (levels_.hosts() == 1) return;
    if (!levels_.leads(rank_)) {
      b_.slot(levels_.leader(host_), count_of(received_outside(rank_)));
      return;
    }
    for (int i = 1; i < size_; ++i) {
      const int source = levels_.member(host_, i);
      b_.slot(source, count_of(sent_outside(source)));
    }
  }

  // By place in the host; none for this rank.
  std::vector<OpId> send_within_host() {
    std::vector<OpId> sent;
    for (int i = 0; i < size_; ++i) {
      const int to = levels_.member(host_, i);
      const Range block = input(schedule::sent_block(shape_, rank_, to));
      const SlotId slot = to == rank_ ? -1 : slot_of(levels_.place(rank_), i);
      sent.push_back(to == rank_ ? Builder::kNone : b_.send(to, slot, block));
    }
    return sent;
  }

  void take_within_host(const std::vector<OpId>& sent) {
    for (int i = 0; i < size_; ++i) {
      const int from = levels_.member(host_, i);
      const Range place = output(schedule::received_block(shape_, from, rank_));
      if (from == rank_) {
        b_.copy(place, input(schedule::sent_block(shape_, rank_, rank_)));
        continue;
      }
      const SlotId slot = slot_of(i, levels_.place(rank_));
      const OpId arrived = b_.wait(slot);
      // In place, the block to send to `from` lies where the block of `from` belongs.
      b_.copy(place, b_.of(slot), {arrived, sent[static_cast<std::size_t>(i)]});
    }
  }

  void follow(const std::vector<OpId>& sent) {
    const Value outside = packed(b_, inputs_of(sent_outside(rank_)), {});
    const OpId given = b_.send(levels_.leader(host_), size_ - 1 + levels_.place(rank_) - 1,
                               outside.range, {outside.ready});
    take_within_host(sent);
    const SlotId slot = size_ - 1;
    const OpId arrived = b_.wait(slot);
    std::vector<Range> sources;
    Range rest = b_.of(slot);
    for (const schedule::Block& block : received_outside(rank_)) {
      sources.push_back(first_of(rest, block.count));
      rest = behind(rest, block.count);
    }
    take(sources, {arrived, given});
  }

  void lead(const std::vector<OpId>& sent) {
    const Value out = collect();
    const Shape inner = among_leaders();
    const std::int64_t in_count = inner.blocks.received_total(host_);
    const Range in = b_.scratch(in_count);
    const auto schedule = two_level::inner_schedule(shape_, parameters_, levels_, inner, host_);
    const auto done = two_level::embed(
        b_, schedule, {out.range, in, {out.ready}}, levels_,
        [&](int host) { return static_cast<SlotId>(2 * (levels_.size(host) - 1)); });
    take_within_host(sent);
    const auto parts = parts_by_place(in);
    for (int i = 1; i < size_; ++i) {
      const int member = levels_.member(host_, i);
      const Value message = packed(b_, parts[static_cast<std::size_t>(i)], done);
      b_.send(member, size_ - 1, message.range, {message.ready});
    }
    take(parts[0], done);
  }

  // The blocks of this host's ranks for other hosts, by host, and by rank of this one.
  Value collect() {
    std::vector<OpId> arrived;
    std::vector<std::vector<Range>> of_rank = {inputs_of(sent_outside(rank_))};
    for (int i = 1; i < size_; ++i) {
      const SlotId slot = size_ - 1 + i - 1;
      arrived.push_back(b_.wait(slot));
      std::vector<Range>& parts = of_rank.emplace_back();
      Range rest = b_.of(slot);
      for (const schedule::Block& block : sent_outside(levels_.member(host_, i))) {
        parts.push_back(first_of(rest, block.count));
        rest = behind(rest, block.count);
      }
    }
    std::vector<Range> sources;
    std::size_t next = 0;
    for (int host = 0; host < levels_.hosts(); ++host) {
      if (host == host_) continue;
      const auto there = static_cast<std::size_t>(levels_.size(host));
      for (const std::vector<Range>& parts : of_rank) {
        const auto first = parts.begin() + static_cast<std::ptrdiff_t>(next);
        sources.insert(sources.end(), first, first + static_cast<std::ptrdiff_t>(there));
      }
      next += there;
    }
    return packed(b_, sources, arrived);
  }

  // The exchange among the leaders, with the counts that this one knows.
  Shape among_leaders() const {
    const auto hosts = static_cast<std::size_t>(levels_.hosts());
    std::vector<std::int64_t> sent(hosts), received(hosts);
    for (int i = 0; i < size_; ++i) {
      const int member = levels_.member(host_, i);
      for (int peer = 0; peer < shape_.ranks; ++peer) {
        if (levels_.host(peer) == host_) continue;
        const auto host = static_cast<std::size_t>(levels_.host(peer));
        sent[host] += schedule::sent_block(shape_, member, peer).count;
        received[host] += schedule::received_block(shape_, peer, member).count;
      }
    }
    return {.blocks = *schedule::Blocks::of_pairs_of(host_, sent, received)};
  }

  // The blocks from other hosts, by the place of their receiver in this host.
  std::vector<std::vector<Range>> parts_by_place(Range in) const {
    std::vector<std::vector<Range>> parts(static_cast<std::size_t>(size_));
    for (int host = 0; host < levels_.hosts(); ++host) {
      if (host == host_) continue;
      for (int i = 0; i < levels_.size(host); ++i) {
        const int source = levels_.member(host, i);
        for (int place = 0; place < size_; ++place) {
          const int target = levels_.member(host_, place);
          const Range block = first_of(in, schedule::received_block(shape_, source, target).count);
          parts[static_cast<std::size_t>(place)].push_back(block);
          in = behind(in, block.count);
        }
      }
    }
    return parts;
  }

  // Copies the blocks from ranks of other hosts, in their order, to the output.
  void take(const std::vector<Range>& sources, const std::vector<OpId>& after) {
    std::vector<Move> moves;
    for (std::size_t i = 0; const schedule::Block& block : received_outside(rank_)) {
      moves.push_back({output(block), sources[i++]});
    }
    copy_all(b_, moves, after);
  }

  // A rank's blocks for those of other hosts, and from them, in the order of hosts.
  std::vector<schedule::Block> sent_outside(int rank) const {
    return outside([&](int peer) { return schedule::sent_block(shape_, rank, peer); });
  }
  std::vector<schedule::Block> received_outside(int rank) const {
    return outside([&](int peer) { return schedule::received_block(shape_, peer, rank); });
  }
  template <typename BlockOf>
  std::vector<schedule::Block> outside(const BlockOf& block_of) const {
    std::vector<schedule::Block> blocks;
    for (int host = 0; host < levels_.hosts(); ++host) {
      if (host == host_) continue;
      for (int i = 0; i < levels_.size(host); ++i) {
        blocks.push_back(block_of(levels_.member(host, i)));
      }
    }
    return blocks;
  }

  static std::vector<Range> inputs_of(const std::vector<schedule::Block>& blocks) {
    std::vector<Range> ranges;
    for (const schedule::Block& block : blocks) ranges.push_back(input(block));
    return ranges;
  }
  static std::int64_t count_of(const std::vector<schedule::Block>& blocks) {
    std::int64_t count = 0;
    for (const schedule::Block& block : blocks) count += block.count;
    return count;
  }

  const Shape& shape_;
  const Parameters& parameters_;
  int rank_;
  two_level::Levels levels_;
  int host_, size_;
  Builder b_;
};

}  // namespace

Schedule two_level(const Shape& shape, const Parameters& parameters, int rank) {
  return TwoLevel(shape, parameters, rank).build();
}

}  // namespace unisono::algorithm::alltoall
