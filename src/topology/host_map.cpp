// SPDX-License-Identifier: BSD-3-Clause
#include "topology/host_map.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace unisono::topology {
namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }

constexpr std::int32_t kZero = 0;

}  // namespace

// If each rank has a host of its own, `host` counts from 0 and serves for the other lists, which
// are then empty. So a job of many hosts keeps one number for each rank.
struct HostMap::Numbers {
  std::vector<std::int32_t> host;     // by rank
  std::vector<std::int32_t> place;    // by rank
  std::vector<std::int32_t> first;    // by host: its lowest rank
  std::vector<std::int32_t> by_host;  // all ranks, those of host 0 first
  std::vector<std::int32_t> begin;    // where each host's ranks begin in by_host; then the number
                                      // of ranks
  bool apart = false;
  bool neighbours = true;
};

HostMap::HostMap(Numbers numbers)
    : numbers_(std::make_shared<const Numbers>(std::move(numbers))), host_(numbers_->host.data()) {}

HostMap HostMap::of_labels(std::span<const int> labels) {
  if (labels.empty()) return {};
  Numbers numbers;
  std::map<int, std::int32_t> number_of;
  std::vector<std::int32_t> sizes;
  for (std::size_t r = 0; r < labels.size(); ++r) {
    const auto next = static_cast<std::int32_t>(number_of.size());
    const std::int32_t host = number_of.try_emplace(labels[r], next).first->second;
    if (host == next) {
      sizes.push_back(0);
      numbers.first.push_back(static_cast<std::int32_t>(r));
    }
    numbers.host.push_back(host);
    numbers.place.push_back(sizes[at(host)]++);
  }
  if (sizes.size() == labels.size()) return apart(static_cast<int>(labels.size()));
  numbers.begin.push_back(0);
  for (const std::int32_t size : sizes) numbers.begin.push_back(numbers.begin.back() + size);
  numbers.by_host.resize(labels.size());
  for (std::size_t r = 0; r < labels.size(); ++r) {
    const std::int32_t begin = numbers.begin[at(numbers.host[r])];
    numbers.by_host[at(begin + numbers.place[r])] = static_cast<std::int32_t>(r);
  }
  numbers.neighbours = std::ranges::is_sorted(numbers.by_host);
  return HostMap(std::move(numbers));
}

HostMap HostMap::together(int ranks) { return of_labels(std::vector<int>(at(ranks))); }

HostMap HostMap::apart(int ranks) {
  Numbers numbers;
  numbers.host.resize(at(ranks));
  numbers.apart = true;
  std::iota(numbers.host.begin(), numbers.host.end(), 0);
  return HostMap(std::move(numbers));
}

int HostMap::ranks() const {
  return numbers_ == nullptr ? 0 : static_cast<int>(numbers_->host.size());
}

int HostMap::hosts() const { return numbers_ == nullptr ? 1 : static_cast<int>(firsts().size()); }

int HostMap::place(int rank) const {
  if (numbers_ == nullptr) return rank;
  return numbers_->apart ? 0 : numbers_->place[at(rank)];
}

std::span<const std::int32_t> HostMap::firsts() const {
  if (numbers_ == nullptr) return {&kZero, 1};
  return numbers_->apart ? numbers_->host : numbers_->first;
}

int HostMap::first(int host) const { return firsts()[at(host)]; }

std::span<const std::int32_t> HostMap::members(int host) const {
  if (numbers_->apart) return std::span(numbers_->host).subspan(at(host), 1);
  const auto& begin = numbers_->begin;
  return std::span(numbers_->by_host)
      .subspan(at(begin[at(host)]), at(begin[at(host + 1)] - begin[at(host)]));
}

bool HostMap::are_neighbours() const { return numbers_ == nullptr || numbers_->neighbours; }

bool operator==(const HostMap& a, const HostMap& b) {
  if (a.numbers_ == b.numbers_) return true;
  if (!a.given() || !b.given()) return a.given() == b.given();
  return a.numbers_->host == b.numbers_->host;
}

}  // namespace unisono::topology
