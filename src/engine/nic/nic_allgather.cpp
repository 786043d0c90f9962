// SPDX-License-Identifier: BSD-3-Clause
// Each rank multicasts its block where the network carries that: one packet beats log2 P steps.
// Elsewhere hosts forward blocks to one another (make_block_row).
#include "engine/nic/nic_allgather.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "base/clock.hpp"
#include "engine/nic/nic_patience.hpp"

namespace unisono::engine {

using base::Status;

base::Result<std::unique_ptr<NicAllgather::Way>> NicAllgather::join_way(
    nic::ServiceClient& client, const unisono_nic_row& asked, const Rank& rank) {
  UNISONO_ASSIGN(NicBlocks blocks, NicBlocks::join(client, asked, rank.place));
  return std::make_unique<Way>(std::move(blocks), rank);
}

std::unique_ptr<nic::HostBlocks> NicAllgather::blocks_of_host(const Rank& rank) {
  const auto places = static_cast<int>(rank.ranks.members(rank.host).size());
  if (places == 1) return nullptr;
  return std::make_unique<nic::HostBlocks>(rank.memory, rank.place, places);
}

base::Result<std::unique_ptr<NicAllgather>> NicAllgather::join(nic::ServiceClient& client,
                                                               const nic::GroupAddresses& group,
                                                               const Rank& rank, bool joins) {
  UNISONO_ASSIGN(const unisono_nic_row singly, make_block_row(rank.host, group, NicWay::singly));
  UNISONO_ASSIGN(auto one_by_one, join_way(client, singly, rank));
  std::unique_ptr<Way> by_doubling;
  if (joins) {
    UNISONO_ASSIGN(const unisono_nic_row joined, make_joined_row(rank.host, group));
    UNISONO_ASSIGN(by_doubling, join_way(client, joined, rank));
  }
  return std::unique_ptr<NicAllgather>(
      new NicAllgather(std::move(one_by_one), std::move(by_doubling)));
}

NicAllgather::Way::Way(NicBlocks blocks, const Rank& rank)
    : NicBlocks(std::move(blocks)), together(blocks_of_host(rank)) {
  for (auto& each : segments) each.emplace(*port, rank.ranks, rank.place, together.get());
}

Status NicAllgather::repair() {
  int asked = 0;
  for (Way* const way : {singly_.get(), joined_.get()}) {
    if (way == nullptr) continue;
    UNISONO_ASSIGN(const int of_way, way->port->repair(base::now_ns(), delay_.ns()));
    asked += of_way;
  }
  if (asked != 0) delay_.lengthen();
  return base::success();
}

bool NicGathering::has_room(bool joins) const {
  const nic::AllgatherSegments* const last = calls_.way_of(joins).last;
  return last == nullptr || last->has_posted();
}

Status NicGathering::start(std::uint64_t number, bool joins, std::span<const std::byte> block,
                           std::span<std::byte> result, std::uint32_t mark) {
  calls_.delay_.restart();
  way_ = &calls_.way_of(joins);
  segments_ = &*way_->segments[number % nic::kInFlightMax];
  way_->last = segments_;
  segments_->begin(block, result, mark, number);
  const auto given = poll();
  return given.ok() ? base::success() : Status(given.error());
}

std::uint64_t NicGathering::missing() const {
  return (~std::uint64_t{0} >> (64 - way_->port->ranks())) & ~segments_->arrived();
}

bool NicGathering::arm() {
  armed_ = segments_->last_awaited();
  return way_->port->arm(*way_->wakes, armed_);
}

void NicGathering::sleep(std::int64_t limit_ns) {
  if (arm()) way_->wakes->sleep(limit_ns);
  disarm();
}

std::string NicGathering::describe() const {
  std::string text = fmt::format("an allgather on host {} ", way_->port->rank());
  if (!is_host_complete()) return text + "waits for other ranks of this host";
  text += "lacks the blocks of hosts";
  for (int host = 0; host < way_->port->ranks(); ++host) {
    if ((missing() >> host & 1) != 0) text += fmt::format(" {}", host);
  }
  if (way_ == calls_.joined_.get()) text += ", which may wait for each other";
  return text;
}

}  // namespace unisono::engine
