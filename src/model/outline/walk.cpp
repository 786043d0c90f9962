// SPDX-License-Identifier: BSD-3-Clause
#include "model/outline/walk.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include "base/check.hpp"
#include "base/index.hpp"

namespace unisono::model {

std::optional<double> OutlineWalk::ns_below(double most_ns, const Outline& outline,
                                            std::int64_t segments) {
  outline_ = &outline;
  scale_ = {};
  work_out_sizes(0);
  most_ns_ = most_ns;
  segments_ = segments;
  first_.reset();
  begin();
  if (!walk()) return std::nullopt;
  double end = last_ns();
  std::array<double, 1> busy{busy_};
  if (segments > 1) {
    first_ = {.end = end, .busy = busy_};
    begin_again();
    if (!walk()) return std::nullopt;
    end = of_segments(end, last_ns(), segments);
    busy.front() *= static_cast<double>(segments);
  }
  const double ns = clock_.end_of(end, busy, segments).ns;
  if (ns >= most_ns) return std::nullopt;
  return ns;
}

double OutlineWalk::work_of(const Outline& outline, int rank, const Scale& scale) {
  const bool is_new = outline_ != &outline || rank == 0 || scale != scale_;
  outline_ = &outline;
  scale_ = scale;
  work_out_sizes(is_new ? 0 : sizes_.size());
  double work = costs_.start_up().sum() + staging_of(rank);
  for (const Outline::Step& step : outline.steps_of(rank)) {
    const OfSize& cost = sizes_[base::index(step.size)];
    switch (step.kind) {
      case Outline::Kind::send:
        work += cost.occupies;
        break;
      case Outline::Kind::multicast:
        work += cost.multicasts ? cost.occupies : cost.occupies * step.peer;
        break;
      case Outline::Kind::wait:
        work += cost.reception;
        break;
      case Outline::Kind::reduce:
        work += cost.reduction * step.peer;
        break;
      case Outline::Kind::copy:
        work += cost.copy;
        break;
    }
  }
  return work;
}

void OutlineWalk::work_out_sizes(std::size_t known) {
  sizes_.resize(known);
  for (const std::int64_t of_outline : outline_->sizes().subspan(known)) {
    const std::int64_t elements = scale_.of(of_outline);
    sizes_.push_back(known_.find(elements, [&] { return of_size(elements); }));
  }
}

OutlineWalk::OfSize OutlineWalk::of_size(std::int64_t elements) {
  const MessageCost& message = costs_.message(false, elements);
  return {.occupies = message.occupies.sum(),
          .gap = message.gap.sum(),
          .flight = message.flight.sum(),
          .multicast_flight = message.multicast_flight.sum(),
          .reception = message.reception.sum(),
          .reduction = costs_.reduction(elements).sum(),
          .copy = costs_.copy(elements).sum(),
          .staging = message.occupies.bytes,
          .multicasts = message.multicasts};
}

void OutlineWalk::begin() {
  const auto ranks = static_cast<std::size_t>(outline_->ranks());
  const double start_up = costs_.start_up().sum();
  busy_ = 0;
  ranks_.assign(ranks, {});
  for (std::size_t r = 0; r < ranks; ++r) {
    const double staging = staging_of(static_cast<int>(r));
    ranks_[r].now = start_up + staging;
    busy_ += start_up;
    busy_ += staging;
  }
  ready_.resize(ranks);
  std::iota(ready_.begin(), ready_.end(), 0);
  arrivals_.assign(outline_->slots(), kNotThere);
}

void OutlineWalk::begin_again() {
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    const double staging = staging_of(static_cast<int>(r));
    ranks_[r].now += staging;
    busy_ += staging;
    ranks_[r].next = 0;
  }
  ready_.resize(ranks_.size());
  std::iota(ready_.begin(), ready_.end(), 0);
  arrivals_.assign(outline_->slots(), kNotThere);
}

double OutlineWalk::staging_of(int rank) const {
  return costs_.helps() ? sizes_[base::index(outline_->staged_by(rank))].staging : 0;
}

bool OutlineWalk::walk() {
  while (!ready_.empty()) {
    const int rank = ready_.back();
    ready_.pop_back();
    advance(rank);
    if (is_too_dear(ranks_[base::index(rank)].now)) return false;
  }
  return true;
}

// No clock goes back, and work does not become less. The further segments take what the second one
// adds to the first.
bool OutlineWalk::is_too_dear(double now) const {
  if (most_ns_ == kAnyPrice) return false;
  const double ns = first_ ? of_segments(first_->end, now, segments_) : now;
  const double busy = first_ ? first_->busy : busy_;
  return clock_.least_price(ns, shares_ ? busy : 0, segments_) >= most_ns_;
}

double OutlineWalk::last_ns() const {
  double last = 0;
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    UNISONO_CHECK(ranks_[r].next == outline_->steps_of(static_cast<int>(r)).size(),
                  "the price of schedules that deadlock");
    last = std::max(last, ranks_[r].now);
  }
  return last;
}

void OutlineWalk::advance(int number) {
  const std::span<const Outline::Step> steps = outline_->steps_of(number);
  const double* const arrivals = arrivals_.data() + outline_->first_slot_of(number);
  Rank& rank = ranks_[base::index(number)];
  double now = rank.now, port = rank.port, busy = busy_;
  std::size_t next = rank.next;
  const auto spend = [&](double ns) {
    now += ns;
    busy += ns;
  };
  // When the message has left; `flight` later it arrives.
  const auto leave = [&](const OfSize& cost) {
    spend(cost.occupies);
    const double left = std::max(now, port);
    port = left + cost.gap;
    return left;
  };
  for (; next < steps.size(); ++next) {
    const Outline::Step& step = steps[next];
    const OfSize& cost = sizes_[base::index(step.size)];
    switch (step.kind) {
      case Outline::Kind::send:
        fill(step.peer, step.slot, leave(cost) + cost.flight);
        break;
      case Outline::Kind::multicast: {
        std::optional<double> of_all;
        for (const schedule::Target& target : outline_->targets_of(step)) {
          if (of_all) {
            fill(target.peer, target.slot, *of_all);
            continue;
          }
          const double left = leave(cost);
          const double at = left + (cost.multicasts ? cost.multicast_flight : cost.flight);
          if (cost.multicasts) of_all = at;
          fill(target.peer, target.slot, at);
        }
        break;
      }
      case Outline::Kind::wait: {
        const double at = arrivals[step.slot];
        if (at == kNotThere) {
          rank = {.now = now, .port = port, .next = next, .awaited = step.slot};
          busy_ = busy;
          return;
        }
        if (at > now) {
          now = at;
          spend(hand_over_);
        }
        spend(cost.reception);
        break;
      }
      case Outline::Kind::reduce:
        for (std::int32_t i = 0; i < step.peer; ++i) spend(cost.reduction);
        break;
      case Outline::Kind::copy:
        spend(cost.copy);
        break;
    }
  }
  rank = {.now = now, .port = port, .next = next, .awaited = -1};
  busy_ = busy;
}

void OutlineWalk::fill(std::int32_t peer, schedule::SlotId slot, double at) {
  arrivals_[outline_->first_slot_of(peer) + base::index(slot)] = at;
  Rank& rank = ranks_[base::index(peer)];
  if (rank.awaited != slot) return;
  rank.awaited = -1;
  ready_.push_back(peer);
}

}  // namespace unisono::model
