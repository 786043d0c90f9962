// SPDX-License-Identifier: BSD-3-Clause
// What a rank keeps for each of the others, on P hosts of a rank each, for a barrier, an allreduce
// and a broadcast of one element: links are made when a schedule first names a peer, so there are
// about log P of them, and all else costs a few bytes a rank. What a communicator has of shared
// memory is in proportion to P. The figures are printed, and stand in
// docs/explanation/reliability.md. Counts what is allocated, so it is a program of its own.
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <set>
#include <vector>

#include "algorithm/algorithm.hpp"
#include "base/settings/settings.hpp"
#include "comm/communicator.hpp"
#include "reliable/reliable.hpp"
#include "select/select.hpp"
#include "transport/virtual/datagrams.hpp"

namespace {
std::int64_t allocated = 0;  // bytes that are in use now; of the one thread
}

void* operator new(std::size_t bytes) {
  void* const place = std::malloc(bytes);
  if (place == nullptr) throw std::bad_alloc();
  allocated += static_cast<std::int64_t>(malloc_usable_size(place));
  return place;
}
void operator delete(void* place) noexcept {
  if (place == nullptr) return;
  allocated -= static_cast<std::int64_t>(malloc_usable_size(place));
  std::free(place);
}
void operator delete(void* place, std::size_t) noexcept { operator delete(place); }

namespace unisono::test::state_test {
namespace {

using schedule::Collective;

// Whom the rank's schedules send to or hear from.
std::set<int> peers_of(int rank, int ranks) {
  std::vector<int> hosts(static_cast<std::size_t>(ranks));
  for (int r = 0; r < ranks; ++r) hosts[static_cast<std::size_t>(r)] = r;
  std::set<int> peers;
  for (const Collective collective :
       {Collective::barrier, Collective::allreduce, Collective::broadcast}) {
    const schedule::Shape shape{.collective = collective,
                                .ranks = ranks,
                                .count = collective == Collective::barrier ? 0 : 1,
                                .hosts = topology::HostMap::of_labels(hosts)};
    const select::Choice choice = select::choose(shape, {.element_bytes = 8}, {});
    const auto schedule = algorithm::build(*choice.algorithm, shape, choice.parameters, rank);
    EXPECT_TRUE(schedule.ok());
    for (const schedule::Target& target : schedule->targets) peers.insert(target.peer);
    for (const schedule::Slot& slot : schedule->slots) peers.insert(slot.source);
  }
  peers.erase(rank);
  return peers;
}

struct State {
  std::int64_t peers = 0;                         // of the rank of these three that has most
  std::int64_t made = 0;                          // bytes of its endpoint, new
  std::int64_t used = 0;                          // that it gets more by dealing with all of them
  std::int64_t control = 0, receive_buffers = 0;  // of a communicator, in the host's shared memory
};

State measure(int ranks) {
  State state;
  std::set<int> peers;
  int busiest = 0;
  for (const int rank : {0, ranks / 2, ranks - 1}) {
    const std::set<int> some = peers_of(rank, ranks);
    if (some.size() <= peers.size()) continue;
    peers = some;
    busiest = rank;
  }
  state.peers = std::ssize(peers);
  std::vector<std::uint64_t> region(64);
  transport::VirtualDatagramNetwork network(ranks, {});
  reliable::ReliableOptions options;
  options.ranks = ranks;
  options.region = reinterpret_cast<std::byte*>(region.data());
  options.region_bytes = region.size() * sizeof region[0];
  options.now_ns = [&network] { return network.now_ns(); };
  auto datagrams = network.attach(busiest);
  const std::int64_t before = allocated;
  reliable::Reliable endpoint(std::move(datagrams), options);
  state.made = allocated - before;
  for (const int peer : peers) endpoint.awaits(peer);
  state.used = allocated - before - state.made;
  const comm::SegmentLayout layout =
      comm::plan_segment(ranks, base::Settings(), comm::Links::datagrams);
  state.control = layout.queue_buffers[plan::SizeClass::small];
  state.receive_buffers = layout.receive_buffers[plan::SizeClass::small].rank_stride();
  return state;
}

TEST(StateOfARank, LinksGrowWithTheLogarithmOfTheRanks) {
  std::printf(
      "ranks  peers  endpoint, new   and its links   communicator: control, small buffers\n");
  const State least = measure(2);
  for (int ranks = 2; ranks <= 1024; ranks *= 2) {
    const State state = measure(ranks);
    std::printf("%5d %6lld %12lld B %13lld B %14lld KiB %10lld KiB\n", ranks,
                static_cast<long long>(state.peers), static_cast<long long>(state.made),
                static_cast<long long>(state.used), static_cast<long long>(state.control / 1024),
                static_cast<long long>(state.receive_buffers / 1024));
    const int log2 = std::bit_width(static_cast<unsigned>(ranks)) - 1;
    EXPECT_LE(state.peers, 4 * log2);
    constexpr std::int64_t kLinkBytes = 6 * 1024;
    EXPECT_LE(state.used, state.peers * kLinkBytes);
    // Pointers to what is not there yet, numbers, its host and the state of the path to it.
    constexpr std::int64_t kBytesOfARank = 32;
    constexpr std::int64_t kRounding = 512;  // an allocator gives a bit more than is asked for
    EXPECT_LE(state.made - least.made, ranks * kBytesOfARank + kRounding);
  }
}

}  // namespace
}  // namespace unisono::test::state_test
