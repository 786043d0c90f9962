// SPDX-License-Identifier: BSD-3-Clause
// Costs: a machine's parameters for one kind of operation, as plain numbers of nanoseconds that add
// up. What prices and simulations have in common. Remembers what it has worked out, so one thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "arith/type.hpp"
#include "model/machine.hpp"
#include "schedule/shape.hpp"

namespace unisono::model {

// The setting in which schedules are priced. The element type also gives the size of elements.
struct Work {
  Engine engine = Engine::any;
  arith::Type type = arith::Type::byte;
  std::optional<arith::Operator> op = std::nullopt;
  // Where a shape has no host map: each rank on a host of its own, or all on one.
  bool apart = false;
  // Within a host, a multicast is written once, where all its targets read it.
  bool staged_multicast = false;
  // Whether the network between hosts carries multicast, if the machine has it.
  bool multicast_between_hosts = true;
  int cores = 0;                   // of a host; 0: those of the machine
  int shared_cores = 0;            // of several hosts that are on one machine; 0: each has its own
  std::int64_t element_bytes = 0;  // 0: those of the type

  std::int64_t bytes_of_element() const {
    return element_bytes > 0 ? element_bytes : static_cast<std::int64_t>(arith::type_size(type));
  }
};

// A time by what it is spent on.
struct Parts {
  double latency = 0;    // L, o, g, r(0), C: what a message or operation costs at any size
  double bytes = 0;      // what grows with the size; copies
  double reduction = 0;  // c
  double hand_over = 0;  // waiting for a core

  double sum() const { return latency + bytes + reduction + hand_over; }
  Parts& operator+=(const Parts& other) {
    latency += other.latency;
    bytes += other.bytes;
    reduction += other.reduction;
    hand_over += other.hand_over;
    return *this;
  }
  bool operator==(const Parts&) const = default;
};

struct MessageCost {
  Parts occupies;   // the sender: o + O m
  Parts gap;        // until the sender's next message may leave: g + G m
  Parts flight;     // from its leaving to its arrival: L + G m
  Parts reception;  // the receiver: r(m)
  // A message that is staged (Machine): copied once, then this instead of `occupies` and no G.
  bool can_be_staged = false;
  Parts staging;          // delta m
  Parts occupies_staged;  // o + staged m
  Parts gap_staged;       // g
  Parts flight_staged;    // L
  // Whether one send reaches any number of targets, and how long it flies then.
  bool multicasts = false;
  Parts multicast_flight;
};

// The values of some numbers of elements. Most schedules have few numbers.
template <class Value>
class BySize {
 public:
  // make(): the value of a number that is not known yet. References stay valid.
  template <class Make>
  const Value& find(std::int64_t elements, const Make& make) {
    for (std::size_t place = place_of(elements);; place = (place + 1) & (places_.size() - 1)) {
      Place& at = places_[place];
      if (at.elements == elements) return *at.value;
      if (at.value != nullptr) continue;
      at = {elements, &keep(make())};
      const Value& value = *at.value;
      if (++count_ * 2 > places_.size()) grow();
      return value;
    }
  }

 private:
  struct Place {
    std::int64_t elements = -1;
    const Value* value = nullptr;
  };

  // The first bits of a product, since numbers of elements are often multiples of a power of two.
  std::size_t place_of(std::int64_t elements) const {
    return static_cast<std::size_t>((static_cast<std::uint64_t>(elements) * 0x9e3779b97f4a7c15U) >>
                                    (64 - bits_));
  }
  const Value& keep(const Value& value) {
    if (count_ % kOfChunk == 0) chunks_.push_back(std::make_unique<Chunk>());
    return (*chunks_.back())[count_ % kOfChunk] = value;
  }
  void grow() {
    ++bits_;
    std::vector<Place> before(std::size_t{1} << bits_);
    before.swap(places_);
    for (const Place& each : before) {
      if (each.value == nullptr) continue;
      std::size_t place = place_of(each.elements);
      while (places_[place].value != nullptr) place = (place + 1) & (places_.size() - 1);
      places_[place] = each;
    }
  }

  static constexpr std::size_t kOfChunk = 8;
  using Chunk = std::array<Value, kOfChunk>;

  int bits_ = 4;
  std::vector<Place> places_{std::size_t{1} << bits_};
  std::size_t count_ = 0;
  std::vector<std::unique_ptr<Chunk>> chunks_;
};

class Costs {
 public:
  // `machine` must outlive it. Only the shape's ranks and hosts count.
  Costs(const Machine& machine, const Work& work, const schedule::Shape& shape);
  Costs(const Costs&) = delete;
  Costs& operator=(const Costs&) = delete;

  // Whether a message between two ranks leaves the host.
  bool crosses_hosts(int a, int b) const {
    return has_hosts_ ? map_.of(a) != map_.of(b) : work_.apart;
  }
  int hosts() const { return hosts_; }
  // Ranks that run on the same cores: those of a host, or all if the hosts share a machine's.
  int core_set(int rank) const {  // 0 .. core_sets() - 1
    if (hosts_share_cores()) return 0;
    if (has_hosts_) return map_.of(rank);
    return work_.apart ? rank : 0;
  }
  int core_sets() const { return hosts_share_cores() ? 1 : hosts_; }
  // Whether each rank has cores of its own.
  bool ranks_are_apart() const { return work_.apart && core_sets() != 1; }
  // Whether a set has more ranks than cores: a wait that blocks passes the core on.
  bool shares_cores(int set) const;
  int cores() const;
  int ranks_of(int set) const;
  // Whether waiting ranks have their steps done by any rank that is awake.
  bool helps() const { return work_.engine == Engine::helping; }

  const MessageCost& message(bool crosses, std::int64_t elements);
  const Parts& reduction(std::int64_t elements);
  const Parts& copy(std::int64_t elements);
  Parts start_up() const;
  Parts hand_over() const;

 private:
  bool hosts_share_cores() const { return work_.shared_cores > 0 && hosts_ > 1; }
  // Between hosts the path between them says what ranks do on their own, too.
  const PathParameters& own_path(std::int64_t bytes) const;
  // The share of the messages that one core writes and another one reads.
  double share_of_other_cores() const;
  MessageCost work_out(bool crosses, std::int64_t bytes) const;
  std::int64_t bytes_of(std::int64_t elements) const {
    return static_cast<std::int64_t>(static_cast<double>(elements) * element_bytes_);
  }

  const Machine* machine_;
  Work work_;
  topology::HostMap map_;
  bool has_hosts_;
  int ranks_, hosts_;
  double element_bytes_;
  std::array<BySize<MessageCost>, 2> messages_;
  BySize<Parts> reductions_, copies_;
};

}  // namespace unisono::model
