// SPDX-License-Identifier: BSD-3-Clause
#include "transport/virtual/datagrams.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.hpp"

namespace unisono::transport {

class VirtualDatagrams final : public Datagrams {
 public:
  VirtualDatagrams(VirtualDatagramNetwork& network, int rank)
      : network_(network), rank_(rank), room_(network.options_.room) {}

  const DatagramLimits& limits() const override { return network_.limits_; }
  int rank() const override { return rank_; }
  bool joins(int /*target*/) const override { return network_.options_.joins; }

  std::size_t send(std::span<const Outgoing> datagrams) override {
    std::size_t taken = 0;
    for (const Outgoing& datagram : datagrams) {
      if (network_.options_.room != 0) {
        if (room_ == 0) {
          ++counts_.short_sends;
          return taken;
        }
        --room_;
      }
      network_.send(rank_, datagram);
      ++counts_.sent;
      ++taken;
    }
    return taken;
  }

  std::size_t receive(std::span<Incoming> datagrams) override {
    room_ = network_.options_.room;
    auto& inbox = network_.inboxes_[static_cast<std::size_t>(rank_)];
    received_.clear();
    while (received_.size() < datagrams.size() && !inbox.empty()) {
      received_.push_back(std::move(inbox.front()));
      inbox.pop_front();
    }
    for (std::size_t i = 0; i < received_.size(); ++i) datagrams[i].bytes = received_[i];
    counts_.received += received_.size();
    return received_.size();
  }

  DatagramCounts counts() const override { return counts_; }

 private:
  VirtualDatagramNetwork& network_;
  int rank_;
  std::size_t room_;
  std::vector<std::vector<std::byte>> received_;
  DatagramCounts counts_;
};

VirtualDatagramNetwork::VirtualDatagramNetwork(int ranks, const VirtualDatagramOptions& options)
    : ranks_(ranks),
      options_(options),
      limits_{.name = "virtual",
              .max_payload = options.max_payload,
              .batch = 32,
              .multicast = options.multicast},
      prng_(options.seed) {
  UNISONO_CHECK(options.delay_min_ns >= 0 && options.delay_max_ns >= options.delay_min_ns,
                "delays of a virtual network");
  const auto n = static_cast<std::size_t>(ranks);
  last_arrival_ns_.resize(n * n);
  cut_.resize(n * n);
  stopped_.resize(n * n);
  doom_.resize(n * n);
  most_bytes_.resize(n * n);
  dead_.resize(n);
  inboxes_.resize(n);
}

std::unique_ptr<Datagrams> VirtualDatagramNetwork::attach(int rank) {
  UNISONO_CHECK(rank >= 0 && rank < ranks_, "rank of a virtual network");
  return std::make_unique<VirtualDatagrams>(*this, rank);
}

void VirtualDatagramNetwork::set_cut(int left, int right, bool value) {
  cut_[link(left, right)] = value;
  cut_[link(right, left)] = value;
}

void VirtualDatagramNetwork::send(int source, const Outgoing& datagram) {
  std::vector<std::byte> bytes(datagram.head.begin(), datagram.head.end());
  bytes.insert(bytes.end(), datagram.body.begin(), datagram.body.end());
  UNISONO_CHECK(!bytes.empty() && bytes.size() <= limits_.max_payload, "length of a datagram");
  ++sent_;
  if (datagram.target != kGroup) {
    UNISONO_CHECK(datagram.target >= 0 && datagram.target < ranks_ && datagram.target != source,
                  "target of a datagram");
    send_to(source, datagram.target, bytes);
    return;
  }
  UNISONO_CHECK(limits_.multicast, "a datagram to the group without multicast");
  for (int target = 0; target < ranks_; ++target) {
    if (target == source) continue;
    if (carries(source, target)) {
      send_to(source, target, bytes);
    } else {
      ++lost_;
    }
  }
}

bool VirtualDatagramNetwork::is_lost(int source, int target, std::size_t bytes) {
  int& doomed = doom_[link(source, target)];
  const bool by_call = doomed > 0;
  if (by_call) --doomed;
  const std::size_t most = most_bytes_[link(source, target)];
  return by_call || (most != 0 && bytes > most) || cut_[link(source, target)] ||
         dead_[static_cast<std::size_t>(source)] || prng_.unit() < options_.loss;
}

void VirtualDatagramNetwork::send_to(int source, int target, const std::vector<std::byte>& bytes) {
  const auto width = static_cast<std::uint64_t>(options_.delay_max_ns - options_.delay_min_ns) + 1;
  const int copies = prng_.unit() < options_.duplicates ? 2 : 1;
  for (int copy = 0; copy < copies; ++copy) {
    std::int64_t arrival =
        now_ns_ + options_.delay_min_ns + static_cast<std::int64_t>(prng_.below(width));
    if (is_lost(source, target, bytes.size())) {
      ++lost_;
      continue;
    }
    std::int64_t& last = last_arrival_ns_[link(source, target)];
    if (!options_.reorder) arrival = std::max(arrival, last + 1);
    last = std::max(last, arrival);
    queue_.push({arrival, number_++, target, bytes});
  }
}

std::int64_t VirtualDatagramNetwork::next_arrival_ns() const {
  return queue_.empty() ? std::numeric_limits<std::int64_t>::max() : queue_.top().arrival_ns;
}

bool VirtualDatagramNetwork::advance() {
  if (queue_.empty()) return false;
  const Message& message = queue_.top();
  now_ns_ = std::max(now_ns_, message.arrival_ns);
  const auto target = static_cast<std::size_t>(message.target);
  if (dead_[target] || inboxes_[target].size() >= options_.inbox) {
    ++lost_;
  } else {
    inboxes_[target].push_back(message.bytes);
    ++delivered_;
  }
  queue_.pop();
  return true;
}

void VirtualDatagramNetwork::advance_to(std::int64_t now_ns) {
  while (next_arrival_ns() <= now_ns) advance();
  now_ns_ = std::max(now_ns_, now_ns);
}

}  // namespace unisono::transport
