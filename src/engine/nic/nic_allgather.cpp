// SPDX-License-Identifier: BSD-3-Clause
// Each rank multicasts its block: a tree of ranks, which sends results by multicast, is there only
// where the network carries it, and one hop beats log2 P of them.
#include "engine/nic/nic_allgather.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <thread>

#include "algorithm/algorithm.hpp"
#include "base/check.hpp"
#include "base/clock.hpp"
#include "engine/nic/nic_patience.hpp"
#include "nic/lower_allgather.hpp"

namespace unisono::engine {
namespace {

using base::Code;
using base::Error;
using base::Status;
using namespace nic_patience;

// The group has a tree as well, and both are in the program's tables.
constexpr std::uint32_t kNotTheTree = 1U << 31;

base::Result<nic::Routes> direct_routes(int rank, int ranks) {
  schedule::Shape shape;
  shape.collective = schedule::Collective::allgather;
  shape.ranks = ranks;
  shape.count = 1;
  const algorithm::Algorithm* direct = algorithm::find(shape.collective, "direct");
  UNISONO_ASSIGN(const auto schedule, algorithm::build(*direct, shape, {}, rank));
  return nic::lower_allgather(schedule);
}

}  // namespace

base::Result<std::unique_ptr<NicAllgather>> NicAllgather::join(nic::ServiceClient& client,
                                                               const nic::GroupAddresses& group,
                                                               int rank) {
  UNISONO_ASSIGN(const nic::Routes routes,
                 direct_routes(rank, static_cast<int>(group.ranks.size())));
  nic::GroupAddresses own = group;
  own.id.communicator ^= kNotTheTree;
  UNISONO_ASSIGN(const unisono_nic_row row, nic::make_row(routes, own));
  UNISONO_ASSIGN(auto member, client.join(row));
  UNISONO_ASSIGN(auto wakes, nic::WakeRing::open(std::move(member->wakes.at(0)), 0));
  UNISONO_ASSIGN(auto port, nic::AllgatherPort::open(member->row, member->mapping.memory()));
  return std::unique_ptr<NicAllgather>(
      new NicAllgather(client, std::move(member), std::move(wakes), std::move(port)));
}

void NicAllgather::start(std::span<const std::byte> block, std::span<std::byte> result,
                         std::uint32_t mark) {
  patience_ns_ = random_patience(kFirstPatience);
  segments_.begin(block, result, mark);
}

// Ranks that lack the same should not all ask at once, so how long one waits is random.
Status NicAllgather::look_around() {
  if (const auto lost = client_.lost()) return *lost;
  UNISONO_ASSIGN(const int asked, port_->repair(base::now_ns(), patience_ns_));
  if (asked != 0) patience_ns_ = random_patience(std::min(2 * patience_ns_, kLongestPatience));
  return base::success();
}

std::uint64_t NicAllgather::missing() const {
  return (~std::uint64_t{0} >> (64 - port_->ranks())) & ~segments_.arrived();
}

Status NicAllgather::run(std::span<const std::byte> block, std::span<std::byte> result,
                         std::int64_t deadline_ns, std::uint32_t mark) {
  start(block, result, mark);
  std::int64_t sleep_ns = kFirstSleep;
  for (int turn = 0;; ++turn) {
    UNISONO_ASSIGN(const bool done, poll());
    if (done) return base::success();
    if (turn < kSpins) continue;
    if (turn < kSpins + kYields) {
      std::this_thread::yield();
      continue;
    }
    UNISONO_TRY(look_around());
    const std::int64_t now = base::now_ns();
    if (now >= deadline_ns) return too_late();
    sleep(std::min(sleep_ns, deadline_ns - now));
    sleep_ns = std::min(2 * sleep_ns, kLongestSleep);
  }
}

void NicAllgather::sleep(std::int64_t limit_ns) {
  if (arm()) wakes_->sleep(limit_ns);
  disarm();
}

std::int64_t NicAllgather::random_patience(std::int64_t least_ns) {
  return least_ns + static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(least_ns)));
}

Error NicAllgather::too_late() const {
  std::string ranks;
  for (int rank = 0; rank < port_->ranks(); ++rank) {
    if ((missing() >> rank & 1) != 0) ranks += fmt::format(" {}", rank);
  }
  return {Code::timeout,
          fmt::format("NIC path: an allgather of rank {} lacks the blocks of ranks{} "
                      "in time: they did not take part",
                      port_->rank(), ranks)};
}

}  // namespace unisono::engine
