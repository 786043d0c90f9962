// SPDX-License-Identifier: BSD-3-Clause
#include "sim/network.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace unisono::sim {

using topology::fat_tree::Ascent;
using topology::fat_tree::Switch;

namespace {

// Shares that differ by less are one bottleneck.
constexpr double kEqual = 1 + 1e-9;

}  // namespace

Network::Network(const topology::fat_tree::Placement& placement, NetworkParameters parameters,
                 std::uint64_t seed)
    : placement_(placement), parameters_(std::move(parameters)), random_(seed) {
  const auto links = static_cast<std::size_t>(placement.tree.directed_links());
  free_.resize(links);
  flows_on_.resize(links);
  load_.resize(links);
  left_.resize(links);
  open_.resize(links);
}

// Adds the costs of the path: far nodes are slower, and each switch takes its time.
Passage Network::lengthened(const Passage& passage) const {
  Passage result = passage;
  const auto node = [&](int rank) { return placement_.leaves[static_cast<std::size_t>(rank)]; };
  const int height = placement_.tree.height(node(passage.source), node(passage.target));
  const auto& far = parameters_.far_ns_per_byte;
  if (!far.empty()) {
    const auto index = std::min(static_cast<std::size_t>(height), far.size() - 1);
    result.duration += to_time(far[index] * static_cast<double>(passage.bytes));
  }
  result.rest += to_time(parameters_.switch_delay_ns * std::max(0, 2 * height - 1));
  return result;
}

// Sets way_; load(link) is what an adaptive switch looks at.
template <typename Load>
void Network::find_way(const Passage& passage, const Load& load) {
  const auto& tree = placement_.tree;
  const int source = placement_.leaves[static_cast<std::size_t>(passage.source)];
  const int target = placement_.leaves[static_cast<std::size_t>(passage.target)];
  way_.clear();
  const auto choose = [&](Switch at) {
    if (parameters_.ascent == Ascent::by_source) return tree.digit(source, at.level);
    if (parameters_.ascent == Ascent::by_target) return tree.digit(target, at.level);
    int best = 0, equals = 0;
    double least = 0;
    for (int port = 0; port < tree.arity(); ++port) {
      const double here = load(tree.up_link(at.level + 1, at.word * tree.arity() + port));
      if (equals > 0 && here > least) continue;
      equals = equals > 0 && here == least ? equals + 1 : 1;
      if (equals == 1 || random_.below(static_cast<std::uint64_t>(equals)) == 0) best = port;
      least = here;
    }
    return best;
  };
  tree.route(source, target, choose, [&](int link) { way_.push_back(link); });
}

Time Network::enter(const Passage& passage) {
  const Passage longer = lengthened(passage);
  if (parameters_.contention == Contention::wormhole) return pass_as_worm(longer);
  if (parameters_.contention == Contention::none || parameters_.link_ns_per_byte <= 0 ||
      longer.duration <= 0) {
    return longer.start + longer.duration + longer.rest;
  }
  add_flow(longer);
  return -1;
}

Time Network::pass_as_worm(const Passage& passage) {
  const auto free = [&](int link) -> Time& { return free_[static_cast<std::size_t>(link)]; };
  // A link that is free now is as good as one that has been free for long.
  find_way(passage, [&](int link) { return std::max(free(link), passage.start); });
  Time head = passage.start;
  for (const int link : way_) head = std::max(head, free(link));
  const Time on_link = to_time(parameters_.link_ns_per_byte * static_cast<double>(passage.bytes));
  const Time finish = head + std::max(passage.duration, on_link);
  for (const int link : way_) free(link) = finish;
  if (head > passage.start) ++held_up_;
  return finish + passage.rest;
}

void Network::add_flow(const Passage& passage) {
  find_way(passage,
           [&](int link) { return double{1} * flows_on_[static_cast<std::size_t>(link)]; });
  Flow flow;
  flow.passage = passage;
  flow.remaining = static_cast<double>(passage.bytes);
  flow.fastest = flow.remaining / passage.duration;
  flow.rate = flow.fastest;
  flow.updated = passage.start;
  flow.finish = passage.start + passage.duration;
  flow.first_link = static_cast<std::uint32_t>(links_.size());
  flow.links = static_cast<std::uint32_t>(way_.size());
  links_.insert(links_.end(), way_.begin(), way_.end());
  for (const int link : way_) ++flows_on_[static_cast<std::size_t>(link)];
  flows_.push_back(flow);
}

// Progressive filling: all rates grow alike until a link is full or a sender can give no more.
void Network::share() {
  const double capacity = 1 / (parameters_.link_ns_per_byte * 1e3);
  const auto links_of = [&](const Flow& flow) {
    return std::span(links_).subspan(flow.first_link, flow.links);
  };
  std::size_t open = 0;
  for (Flow& flow : flows_) {
    for (const int link : links_of(flow)) load_[static_cast<std::size_t>(link)] += flow.fastest;
  }
  for (Flow& flow : flows_) {
    bool congested = false;
    for (const int link : links_of(flow)) {
      congested |= load_[static_cast<std::size_t>(link)] > capacity * kEqual;
    }
    flow.next_rate = congested ? -1 : flow.fastest;
    open += congested ? 1 : 0;
  }
  while (open > 0) {
    for (const Flow& flow : flows_) {
      for (const int link : links_of(flow)) {
        left_[static_cast<std::size_t>(link)] = capacity;
        open_[static_cast<std::size_t>(link)] = 0;
      }
    }
    for (const Flow& flow : flows_) {
      for (const int link : links_of(flow)) {
        if (flow.next_rate < 0) {
          ++open_[static_cast<std::size_t>(link)];
        } else {
          left_[static_cast<std::size_t>(link)] -= flow.next_rate;
        }
      }
    }
    const auto share_of = [&](const Flow& flow) {
      double share = flow.fastest;
      for (const int link : links_of(flow)) {
        const auto index = static_cast<std::size_t>(link);
        share = std::min(share, std::max(0.0, left_[index]) / open_[index]);
      }
      return share;
    };
    double least = std::numeric_limits<double>::max();
    for (const Flow& flow : flows_) {
      if (flow.next_rate < 0) least = std::min(least, share_of(flow));
    }
    std::vector<std::size_t> fixed;
    for (std::size_t i = 0; i < flows_.size(); ++i) {
      if (flows_[i].next_rate < 0 && share_of(flows_[i]) <= least * kEqual) fixed.push_back(i);
    }
    for (const std::size_t i : fixed) flows_[i].next_rate = least;
    open -= fixed.size();
  }
  for (const Flow& flow : flows_) {
    for (const int link : links_of(flow)) load_[static_cast<std::size_t>(link)] = 0;
  }
}

Time Network::settle(Time now, const std::function<void(const Passage&, Time)>& arrive) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < flows_.size(); ++i) {
    const Flow flow = flows_[i];
    if (flow.finish > now) {
      flows_[kept++] = flow;
      continue;
    }
    for (const int link : std::span(links_).subspan(flow.first_link, flow.links)) {
      --flows_on_[static_cast<std::size_t>(link)];
    }
    held_up_ += flow.slowed ? 1 : 0;
    arrive(flow.passage, flow.finish + flow.passage.rest);
  }
  flows_.resize(kept);
  compact();
  share();
  Time next = -1;
  for (Flow& flow : flows_) {
    if (flow.next_rate != flow.rate) {
      flow.remaining -= flow.rate * (now - flow.updated);
      flow.updated = now;
      flow.rate = flow.next_rate;
      flow.finish = now + std::max(1.0, std::ceil(flow.remaining / flow.rate));
      flow.slowed = true;
    }
    if (next < 0 || flow.finish < next) next = flow.finish;
  }
  return next;
}

// Drops the links of messages that have passed.
void Network::compact() {
  std::vector<int> links;
  for (Flow& flow : flows_) {
    const auto way = std::span(links_).subspan(flow.first_link, flow.links);
    flow.first_link = static_cast<std::uint32_t>(links.size());
    links.insert(links.end(), way.begin(), way.end());
  }
  links_ = std::move(links);
}

}  // namespace unisono::sim
