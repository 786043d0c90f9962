// SPDX-License-Identifier: BSD-3-Clause
#include "select/pricing.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "schedule/spares.hpp"
#include "select/few_ranks.hpp"
#include "select/select.hpp"

namespace unisono::select {
namespace {

using algorithm::Algorithm;
using algorithm::Parameters;
using schedule::Schedule;
using schedule::Shape;

model::Engine priced_engine(EngineKind engine) {
  switch (engine) {
    case EngineKind::inline_:
      return model::Engine::inline_;
    case EngineKind::helping:
      return model::Engine::helping;
    case EngineKind::nic:
      return model::Engine::nic;
  }
  return model::Engine::any;
}

constexpr std::int64_t kAnySteps = std::numeric_limits<std::int64_t>::max();

std::int64_t steps_of(const Schedule& schedule) {
  return static_cast<std::int64_t>(schedule.ops.size() + schedule.targets.size());
}

// The schedules of a price, and their memory when nobody needs them any more.
class PricedSet {
 public:
  PricedSet() = default;
  PricedSet(const PricedSet&) = delete;
  PricedSet& operator=(const PricedSet&) = delete;
  ~PricedSet() { give_back(); }

  // One where one stands for all. False as soon as there are more than `most` steps.
  bool build(const Algorithm& row, const Parameters& parameters, const Shape& shape,
             std::int64_t most) {
    give_back();
    const int built = one_stands_for_all(row, shape) ? 1 : shape.ranks;
    set_.reserve(static_cast<std::size_t>(built));
    std::int64_t steps = 0;
    for (int rank = 0; rank < built && steps <= most; ++rank) {
      set_.push_back(row.build(shape, parameters, rank));
      steps += steps_of(set_.back());
    }
    return steps <= most;
  }

  const std::vector<Schedule>& schedules() const { return set_; }

 private:
  void give_back() {
    for (Schedule& each : set_) schedule::Spares::give_back(std::move(each));
    set_.clear();
  }

  std::vector<Schedule> set_;
};

std::optional<model::Price> price_of_at_most(std::int64_t most, const Algorithm& row,
                                             const Parameters& parameters, const Shape& shape,
                                             const Pricing& pricing, model::Pricer& pricer) {
  PricedSet set;
  if (!set.build(row, parameters, shape, most)) return std::nullopt;
  const auto are_alike = [&] { return std::cmp_less(set.schedules().size(), shape.ranks); };
  const model::Calls calls = calls_of(set.schedules(), shape, pricing, are_alike());
  if (calls.segments > 1 &&
      !set.build(row, parameters, segment_of(row, shape, calls.segments), most)) {
    return std::nullopt;
  }
  // A segment may be such that one stands for all.
  return are_alike() ? pricer.price_of_alike(set.schedules().front(), calls)
                     : pricer.price(set.schedules(), calls);
}

model::Pricer pricer_of(const Shape& shape, const Pricing& pricing) {
  return {*pricing.machine, pricing.work, shape};
}

}  // namespace

// The length of the vector, or of a block.
std::int64_t vector_bytes(const Shape& shape, const Pricing& pricing) {
  return shape.count * pricing.work.bytes_of_element();
}

void BufferNeed::add_part(const Schedule& schedule, std::int64_t times) {
  if (pricing_.receive_buffer_bytes <= 0) return;
  if (pricing_.work.staged_multicast) count_multicasts(schedule, times);
  std::int64_t elements = schedule.scratch_count;
  for (const schedule::Slot& slot : schedule.slots) elements += slot.count;
  if (pricing_.work.engine == model::Engine::helping) {
    elements += schedule::input_count(schedule.shape, schedule.rank) +
                schedule::output_count(schedule.shape, schedule.rank);
  }
  elements_[next_] += times * elements;
}

void BufferNeed::count_multicasts(const Schedule& schedule, std::int64_t times) {
  if (schedule.targets.empty()) return;
  for (const schedule::Op& op : schedule.ops) {
    if (op.kind != schedule::OpKind::multicast) continue;
    elements_[next_] += times * op.left.count;
    if (elements_.size() == 1 && !are_alike_) continue;
    for (const schedule::Target& target : schedule.targets_of(op)) {
      // If one schedule stands for all, it also receives what it sends.
      elements_[are_alike_ ? 0 : static_cast<std::size_t>(target.peer)] -= times * op.left.count;
    }
  }
}

model::Calls BufferNeed::calls_of(const Shape& shape) const {
  const auto indexes_of = [&](const Buffers& size) {
    return pricing_.in_row ? size.slot_indexes : 0;
  };
  const Buffers& bulk = pricing_.buffers.back();
  if (pricing_.receive_buffer_bytes <= 0) return {.slot_indexes = indexes_of(bulk)};
  const std::int64_t bytes = std::ranges::max(elements_) * pricing_.work.bytes_of_element();
  for (const Buffers& size : std::span(pricing_.buffers).first<2>()) {
    if (bytes <= size.bytes) return {.slot_indexes = indexes_of(size)};
  }
  model::Calls calls{.slot_indexes = indexes_of(bulk)};
  if (shape.blocks.given() || shape.count <= 1) return calls;
  const auto parts = [](std::int64_t whole, std::int64_t of) { return (whole + of - 1) / of; };
  std::int64_t segments = parts(bytes, pricing_.receive_buffer_bytes);
  if (pricing_.segment_bytes > 0) {
    segments = std::max(segments, parts(vector_bytes(shape, pricing_), pricing_.segment_bytes));
  }
  calls.segments = std::clamp<std::int64_t>(segments, 1, shape.count);
  return calls;
}

model::Calls calls_of(std::span<const Schedule> set, const Shape& shape, const Pricing& pricing,
                      bool are_alike) {
  BufferNeed need(set.size(), pricing, are_alike);
  for (const Schedule& schedule : set) need.add(schedule);
  return need.calls_of(shape);
}

// In equal shares of the ranks: then one schedule may stand for all. Where one stands for all in
// the whole call, it has to in a segment of fewer elements than many ranks, too. Else the schedules
// of all would be built, whose steps grow as the square of the ranks. So each has one element.
Shape segment_of(const Algorithm& row, const Shape& shape, std::int64_t segments) {
  Shape segment = shape;
  segment.count = (shape.count + segments - 1) / segments;
  if (segment.count > shape.ranks) segment.count -= segment.count % shape.ranks;
  if (shape.ranks > kPricedInFull && one_stands_for_all(row, shape) &&
      !one_stands_for_all(row, segment)) {
    segment.count = shape.ranks;
  }
  return segment;
}

bool are_uniform(const Shape& shape) { return !shape.hosts.given() || shape.hosts.are_alone(); }

// A receive buffer holds the caller's data, scratch and a slot for each other rank at most. With
// blocks, it holds not many times all of them.
bool may_need_segments(const Shape& shape, const Pricing& pricing) {
  if (pricing.receive_buffer_bytes <= 0) return false;
  const std::int64_t times =
      schedule::has_blocks(shape.collective) ? 4 * std::int64_t{shape.ranks} : shape.ranks + 3;
  const std::int64_t bytes = vector_bytes(shape, pricing);
  return bytes > pricing.receive_buffer_bytes / times ||
         (pricing.segment_bytes > 0 && bytes > pricing.segment_bytes);
}

bool one_stands_for_all(const Algorithm& row, const Shape& shape) {
  return algorithm::ranks_are_alike(row, shape) &&
         (!shape.hosts.given() || shape.hosts.are_alone());
}

bool has_at_most(std::int64_t most, const Algorithm& row, const Parameters& parameters,
                 const Shape& shape) {
  // Without hosts that are shared, it has the schedules of those that it combines.
  if (row.uses_hosts && are_uniform(shape)) return false;
  // A mock-up has the steps of its parts. Its schedule may take those of all ranks, since it needs
  // the number of their slots. So a part that has to do with all ranks is looked at first.
  for (const algorithm::Part& part : row.parts) {
    const Shape own = algorithm::shape_of_part(part, shape);
    if (shape.ranks > kPricedInFull &&
        !has_at_most(most, algorithm::row_of_part(part, parameters),
                     algorithm::parameters_of_part(part, parameters, own), own)) {
      return false;
    }
  }
  const auto steps = [&](int rank) {
    Schedule schedule = row.build(shape, parameters, rank % shape.ranks);
    const std::int64_t count = steps_of(schedule);
    schedule::Spares::give_back(std::move(schedule));
    return count;
  };
  if (one_stands_for_all(row, shape)) return steps(0) <= most;
  // Where hosts have several ranks each, the first one of a host may act for the others.
  if (!are_uniform(shape)) {
    const int host = shape.hosts.of((shape.root + shape.ranks / 2) % shape.ranks);
    const auto& members = shape.hosts.members(host);
    const std::int64_t of_first = shape.hosts.hosts() * steps(members.front());
    if (of_first > most) return false;
    const std::int64_t of_rest = (shape.ranks - shape.hosts.hosts()) * steps(members.back());
    return of_first + of_rest <= most && steps(shape.root) <= most;
  }
  // Where all have to do with all, the first of them says enough.
  std::int64_t of_others = 0;
  for (const int rank : {shape.root + 1, shape.root + shape.ranks / 2}) {
    of_others = std::max(of_others, (shape.ranks - 1) * steps(rank));
    if (of_others > most) return false;
  }
  return steps(shape.root) + of_others <= most;
}

schedule::Spares::Order order_of(const Pricing& pricing) {
  return pricing.work.engine == model::Engine::helping ? schedule::Spares::Order::needed
                                                       : schedule::Spares::Order::left_out;
}

bool is_priceable(const Algorithm& row, const Parameters& parameters, const Shape& shape) {
  return shape.ranks <= kPricedInFull || has_at_most(kMostSteps, row, parameters, shape);
}

Pricing pricing_of(const Shape& shape, const Circumstances& now, EngineKind engine) {
  Pricing pricing;
  pricing.machine = &machine_of(now);
  pricing.receive_buffer_bytes = now.receive_buffer_bytes;
  pricing.segment_bytes = now.segment_bytes;
  pricing.buffers = now.buffers;
  model::Work& work = pricing.work;
  work.engine = priced_engine(engine);
  work.type = now.type.value_or(arith::Type::byte);
  if (schedule::is_reduction(shape.collective)) work.op = now.op.value_or(arith::Operator::sum);
  work.element_bytes = now.element_bytes;
  work.staged_multicast = now.staged_multicast;
  work.multicast_between_hosts = now.multicast || now.leaders_multicast;
  // Between hosts, all members plan alike, however many cores their hosts have.
  if (!shape.hosts.given()) {
    const int cores = std::max(1, now.cores);
    work.cores = now.oversubscribed ? std::max(1, std::min(cores, shape.ranks - 1)) : shape.ranks;
  }
  if (shape.hosts.given()) work.shared_cores = now.shared_cores;
  return pricing;
}

base::Result<model::Price> price_of(const Algorithm& row, const Parameters& parameters,
                                    const Shape& shape, const Pricing& pricing) {
  if (std::string why = algorithm::why_illegal(row, shape, parameters); !why.empty()) {
    return base::Error{base::Code::argument, std::move(why)};
  }
  model::Pricer pricer = pricer_of(shape, pricing);
  return *price_of_at_most(kAnySteps, row, parameters, shape, pricing, pricer);
}

std::optional<model::Price> price_if_priceable(const Algorithm& row, const Parameters& parameters,
                                               const Shape& shape, const Pricing& pricing) {
  model::Pricer pricer = pricer_of(shape, pricing);
  return price_if_priceable(row, parameters, shape, pricing, pricer);
}

std::optional<model::Price> price_if_priceable(const Algorithm& row, const Parameters& parameters,
                                               const Shape& shape, const Pricing& pricing,
                                               model::Pricer& pricer) {
  if (shape.ranks <= kPricedInFull) {
    return price_of_at_most(kAnySteps, row, parameters, shape, pricing, pricer);
  }
  if (!is_priceable(row, parameters, shape)) return std::nullopt;
  return price_of_at_most(kMostSteps, row, parameters, shape, pricing, pricer);
}

}  // namespace unisono::select
