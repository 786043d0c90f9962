// SPDX-License-Identifier: BSD-3-Clause
// The parts of a Reliable below its receiving side, for tests of single parts. Rank 0 sends over a
// virtual network; the test looks at what arrives at the others. In one thread.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "reliable/group/group_context.hpp"
#include "reliable/link/deliveries.hpp"
#include "transport/virtual/datagrams.hpp"
#include "unit/reliable/ranks.hpp"

namespace unisono::reliable {

class Parts {
 public:
  explicit Parts(int ranks, std::size_t pool_packets = 4, bool multicast = true)
      : network_(ranks, network_options(multicast)),
        now_ns_(kMillisecond),
        datagrams(network_.attach(0)),
        context(options(ranks, pool_packets), 0),
        links(ranks),
        sizes(*datagrams,
              {.hosts = context.options.hosts,
               .full_bytes = datagrams->limits().max_payload,
               .apart = context.options.gap,
               .ask = context.options.ask},
              [this](int rank, std::size_t most) { narrowed.emplace_back(rank, most); }),
        outbox(context, *datagrams, sizes),
        control(context, links, outbox),
        narrow(context, links, outbox, control, sizes, *datagrams),
        group{.options = {.ranks = ranks,
                          .tree = {context.options.hosts, 2},
                          .gap = context.options.gap,
                          .await = context.options.await,
                          .ask = context.options.ask,
                          .linger_ns = context.options.linger_ns,
                          .payload_bytes = DatagramSizes::full_payload(datagrams->limits())},
              .filter = context.filter,
              .packets = {narrow, outbox, control},
              .prng = base::Prng(1)} {
    for (int rank = 1; rank < ranks; ++rank) {
      others_.push_back(network_.attach(rank));
      filters_.push_back(std::make_unique<wire::PacketFilter>(context.options.key, rank, ranks));
    }
  }

  // Everything leaves. Returns the headers of the packets that arrive at that rank.
  std::vector<wire::Header> arrivals_at(int rank) {
    outbox.flush();
    network_.advance_to(network_.now_ns() + kMillisecond);
    const auto other = static_cast<std::size_t>(rank - 1);
    std::array<transport::Incoming, 64> batch;
    std::vector<wire::Header> headers;
    const std::size_t count = others_[other]->receive(batch);
    for (std::size_t i = 0; i < count; ++i) {
      const wire::Parsed packet = filters_[other]->open(batch[i].bytes);
      EXPECT_EQ(packet.drop, wire::Drop::none);
      headers.push_back(packet.header);
    }
    return headers;
  }
  // The packet filter of another rank, which makes the headers of its packets.
  const wire::PacketFilter& filter_of(int rank) const {
    return *filters_[static_cast<std::size_t>(rank - 1)];
  }
  void pass_ns(std::int64_t time_ns) { context.now_ns += time_ns; }

 private:
  static transport::VirtualDatagramOptions network_options(bool multicast) {
    transport::VirtualDatagramOptions network = steady();
    network.multicast = multicast;
    return network;
  }
  ReliableOptions options(int ranks, std::size_t pool_packets) const {
    ReliableOptions all;
    all.key = wire::key_of("test");
    all.ranks = ranks;
    all.pool_packets = pool_packets;
    all.hosts = topology::HostMap::apart(ranks);
    all.now_ns = [this] { return now_ns_; };
    return all;
  }

  transport::VirtualDatagramNetwork network_;
  std::int64_t now_ns_;
  std::vector<std::unique_ptr<transport::Datagrams>> others_;
  std::vector<std::unique_ptr<wire::PacketFilter>> filters_;

 public:
  std::vector<std::pair<int, std::size_t>> narrowed;
  std::unique_ptr<transport::Datagrams> datagrams;
  Context context;
  Links links;
  DatagramSizes sizes;
  Outbox outbox;
  Control control;
  NarrowPaths narrow;
  GroupContext group;
};

}  // namespace unisono::reliable
