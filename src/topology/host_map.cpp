// SPDX-License-Identifier: BSD-3-Clause
#include "topology/host_map.hpp"

#include <algorithm>
#include <map>

namespace unisono::topology {
namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }

}  // namespace

struct HostMap::Numbers {
  std::vector<std::int32_t> host, place;  // by rank
  std::vector<std::int32_t> by_host;      // all ranks, those of host 0 first
  std::vector<std::int32_t> begin;        // where each host's ranks begin in by_host; then the
                                          // number of ranks
  bool neighbours = false;
};

HostMap HostMap::of_labels(std::span<const int> labels) {
  Numbers numbers;
  std::map<int, std::int32_t> number_of;
  std::vector<std::int32_t> sizes;
  for (const int label : labels) {
    const auto next = static_cast<std::int32_t>(number_of.size());
    const std::int32_t host = number_of.try_emplace(label, next).first->second;
    if (host == next) sizes.push_back(0);
    numbers.host.push_back(host);
    numbers.place.push_back(sizes[at(host)]++);
  }
  if (sizes.size() < 2) return {};
  numbers.begin.push_back(0);
  for (const std::int32_t size : sizes) numbers.begin.push_back(numbers.begin.back() + size);
  numbers.by_host.resize(labels.size());
  for (std::size_t r = 0; r < labels.size(); ++r) {
    const std::int32_t first = numbers.begin[at(numbers.host[r])];
    numbers.by_host[at(first + numbers.place[r])] = static_cast<std::int32_t>(r);
  }
  numbers.neighbours = std::ranges::is_sorted(numbers.by_host);
  HostMap map;
  map.numbers_ = std::make_shared<const Numbers>(std::move(numbers));
  return map;
}

int HostMap::ranks() const { return static_cast<int>(numbers_->host.size()); }
int HostMap::hosts() const { return static_cast<int>(numbers_->begin.size()) - 1; }
int HostMap::of(int rank) const { return numbers_->host[at(rank)]; }
int HostMap::place(int rank) const { return numbers_->place[at(rank)]; }

std::span<const std::int32_t> HostMap::members(int host) const {
  const auto& begin = numbers_->begin;
  return std::span(numbers_->by_host)
      .subspan(at(begin[at(host)]), at(begin[at(host + 1)] - begin[at(host)]));
}

bool HostMap::are_neighbours() const { return numbers_->neighbours; }

bool operator==(const HostMap& a, const HostMap& b) {
  if (a.numbers_ == b.numbers_) return true;
  return a.given() && b.given() && a.numbers_->host == b.numbers_->host;
}

}  // namespace unisono::topology
