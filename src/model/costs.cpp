// SPDX-License-Identifier: BSD-3-Clause
#include "model/costs.hpp"

namespace unisono::model {
namespace {

// A curve's value for no bytes is the part that every message has.
Parts split(double at_none, double at_size) {
  return {.latency = at_none, .bytes = at_size - at_none};
}

}  // namespace

Costs::Costs(const Machine& machine, const Work& work, const schedule::Shape& shape)
    : machine_(&machine),
      work_(work),
      map_(shape.hosts),
      has_hosts_(map_.given()),
      ranks_(shape.ranks),
      hosts_(has_hosts_ ? map_.hosts() : (work.apart ? shape.ranks : 1)),
      element_bytes_(static_cast<double>(work.bytes_of_element())) {}

int Costs::cores() const {
  if (hosts_share_cores()) return work_.shared_cores;
  return work_.cores > 0 ? work_.cores : machine_->cores_per_host;
}

int Costs::ranks_of(int set) const {
  if (hosts_share_cores()) return ranks_;
  if (has_hosts_) return static_cast<int>(map_.members(set).size());
  return work_.apart ? 1 : ranks_;
}

bool Costs::shares_cores(int set) const {
  return (has_hosts_ || !work_.apart || hosts_share_cores()) && ranks_of(set) > cores();
}

const PathParameters& Costs::own_path(std::int64_t bytes) const {
  return has_hosts_ || work_.apart ? remote_path(*machine_, work_.engine, bytes)
                                   : local_path(*machine_, work_.engine, bytes);
}

MessageCost Costs::work_out(bool crosses, std::int64_t bytes) const {
  const PathParameters& path = crosses ? remote_path(*machine_, work_.engine, bytes)
                                       : local_path(*machine_, work_.engine, bytes);
  const double m = static_cast<double>(bytes);
  const double latency = path.latency.ns(), overhead = path.overhead.ns();
  const double gap = path.gap.ns(), wire = m * path.gap_per_byte.ns();
  MessageCost cost;
  cost.occupies = {.latency = overhead, .bytes = m * path.overhead_per_byte.ns()};
  cost.gap = {.latency = gap, .bytes = wire};
  cost.flight = {.latency = latency, .bytes = wire};
  cost.reception = split(path.reception.ns(0), path.reception.ns(bytes));
  if (!crosses && helps() && shares_cores(0)) cost.reception.bytes *= share_of_other_cores();
  if (path.staged_per_byte) {
    cost.can_be_staged = true;
    cost.staging = {.bytes = m * path.staging_per_byte->ns()};
    cost.occupies_staged = {.latency = overhead, .bytes = m * path.staged_per_byte->ns()};
    cost.gap_staged = {.latency = gap};
    cost.flight_staged = {.latency = latency};
  }
  if (!crosses && work_.staged_multicast) {
    cost.multicasts = true;
    cost.multicast_flight = cost.flight;
  } else if (path.multicast_latency && (!crosses || work_.multicast_between_hosts)) {
    cost.multicasts = true;
    cost.multicast_flight = {.latency = path.multicast_latency->ns(), .bytes = wire};
  }
  return cost;
}

// Where any awake rank does the steps of others, a message is read on any core alike.
double Costs::share_of_other_cores() const {
  const double number = cores();
  return (number - 1) / number;
}

const MessageCost& Costs::message(bool crosses, std::int64_t elements) {
  return messages_[crosses ? 1 : 0].find(elements,
                                         [&] { return work_out(crosses, bytes_of(elements)); });
}

const Parts& Costs::reduction(std::int64_t elements) {
  return reductions_.find(elements, [&]() -> Parts {
    if (!work_.op || elements == 0) return {};
    const std::int64_t bytes = bytes_of(elements);
    return {.reduction = reduction_ns(own_path(bytes), *work_.op, work_.type, bytes)};
  });
}

const Parts& Costs::copy(std::int64_t elements) {
  return copies_.find(elements, [&]() -> Parts {
    const double bytes = static_cast<double>(elements) * element_bytes_;
    return {.bytes = bytes * own_path(static_cast<std::int64_t>(bytes)).copy_per_byte.ns()};
  });
}

Parts Costs::start_up() const { return {.latency = start_up_ns(own_path(0), work_.op)}; }

Parts Costs::hand_over() const {
  return {.hand_over = machine_->hand_over ? machine_->hand_over->ns() : 0};
}

}  // namespace unisono::model
