// SPDX-License-Identifier: BSD-3-Clause
// Receive layout: the positions of the slots, outboxes, scratch and staging of a schedule set in
// every rank's receive buffer, as offsets in Space::receive_buffers and Space::data. All ranks
// compute the same from the same set. Control path; it refers to the set and the options it was
// made of.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/bind/bind.hpp"
#include "plan/bind/pulls.hpp"
#include "schedule/step_order.hpp"

namespace unisono::plan {

// The position of a message: payload and flag. A pulled message's payload is its advertisement. Its
// receiver raises `taken` at the sender when it no longer needs the source.
struct MessagePlace {
  std::int64_t payload = -1;
  std::int64_t flag = -1;
  std::int64_t taken = -1;
};

class ReceiveLayout {
 public:
  ReceiveLayout(std::span<const schedule::Schedule> set, const BindOptions& options);
  ReceiveLayout(const ReceiveLayout&) = delete;
  ReceiveLayout& operator=(const ReceiveLayout&) = delete;

  // The same in buffers of another size.
  void place_in(const ReceiveGeometry& geometry);
  const ReceiveGeometry& geometry() const { return geometry_; }

  const MessagePlace& slot(int rank, schedule::SlotId id) const {
    return at(rank).slots[static_cast<std::size_t>(id)];
  }
  const MessagePlace& outbox(int rank, schedule::OpId op) const {
    return at(rank).outboxes[static_cast<std::size_t>(op)];
  }
  // Whether a multicast is written once, in the outbox, where its receivers read it: those on other
  // hosts in their own copy of that outbox.
  bool is_staged(int rank, const schedule::Op& op) const;
  // Whether each message lies in its receiver's buffers, and no rank writes back to its sender.
  bool only_owners_read() const;
  const Pulls& pulls() const { return pulls_; }
  // The steps that other ranks may do; none without helping.
  const schedule::Helpable& helpable(int rank) const {
    return helpable_[static_cast<std::size_t>(rank)];
  }
  // Pulled data that is to be reduced goes through `bounce`, so many elements at a time; one for
  // each pulled operand of an op.
  std::int64_t bounce(int rank, int operand) const;
  std::int64_t bounce_count(int rank) const;
  std::int64_t scratch(int rank) const { return at(rank).scratch; }
  std::int64_t staged_input(int rank) const { return at(rank).staged_input; }
  std::int64_t staged_output(int rank) const { return at(rank).staged_output; }
  ReceiveNeed need() const;

 private:
  struct RankLayout {
    std::vector<MessagePlace> slots;
    std::vector<MessagePlace> outboxes;  // by op; multicasts only. Empty if there are none
    std::int64_t scratch = 0, bounce = 0, staged_input = 0, staged_output = 0;
    std::int64_t lines = 0, data_bytes = 0, multicast_bytes = -1;
    int bounces = 0;
  };

  const RankLayout& at(int rank) const { return ranks_[static_cast<std::size_t>(rank)]; }
  RankLayout& at(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  const schedule::Schedule& schedule_of(int rank) const {
    return set_[static_cast<std::size_t>(rank)];
  }
  std::int64_t bytes(std::int64_t count) const { return count * options_.element_bytes; }
  std::int64_t take_data(int rank, std::int64_t bytes);
  MessagePlace take_message(int rank, std::int64_t bytes);
  void place();
  void place_outboxes(int rank);
  bool gathers_at_senders() const;
  void place_long_sends(int rank);
  void place_rank(int rank);
  void place_taken(int rank);
  int most_pulled(int rank) const;

  std::span<const schedule::Schedule> set_;
  const BindOptions& options_;
  ReceiveGeometry geometry_;
  Pulls pulls_;
  std::vector<schedule::Helpable> helpable_;
  std::vector<RankLayout> ranks_;
};

}  // namespace unisono::plan
