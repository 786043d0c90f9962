// SPDX-License-Identifier: BSD-3-Clause
#include "engine/nic/nic_flight.hpp"

#include <utility>

#include "base/check.hpp"

namespace unisono::engine {

NicFlight::NicFlight(std::unique_ptr<NicReduction> reduction, NicAllgather* allgather,
                     NicBroadcast* broadcast)
    : reduction_(std::move(reduction)) {
  if (allgather != nullptr) gathering_.emplace(*allgather);
  if (broadcast != nullptr) casting_.emplace(*broadcast);
}

bool NicFlight::has_room(const plan::NicCall& call) const {
  if (call.sender >= 0) return casting_->has_room(call);
  return call.gathers ? gathering_->has_room(call.joins) : reduction_->has_room(call);
}

base::Status NicFlight::start(const plan::NicCall& call, const void* input, void* output,
                              int ranks) {
  UNISONO_CHECK(!call.gathers || gathering_, "NicFlight::start of an allgather it does not do");
  is_under_way_ = true;
  if (call.sender >= 0) {
    way_ = Way::from_root;
    return casting_->start(call, input, output);
  }
  way_ = call.gathers ? Way::singly : Way::trees;
  if (!call.gathers) return reduction_->start(call, input, output);
  const auto all_bytes = call.bytes * static_cast<std::size_t>(ranks);
  return gathering_->start(number_, call.joins, {static_cast<const std::byte*>(input), call.bytes},
                           {static_cast<std::byte*>(output), all_bytes}, call.combine);
}

base::Status NicFlight::take() {
  if (way_ == Way::from_root) return casting_->take();
  return way_ == Way::trees ? reduction_->take() : base::success();
}

std::optional<NicRank> NicFlight::mismatching_rank() const {
  return by_way(
      *this, [](const auto& trees) { return trees.mismatching_rank(); },
      [](const auto& blocks) -> std::optional<NicRank> {
        if (blocks.mismatching_host() < 0) return std::nullopt;
        return NicRank{blocks.mismatching_host(), blocks.mismatching_place()};
      });
}

std::string NicFlight::describe() const {
  const auto ask = [](const auto& part) { return part.describe(); };
  return by_way(*this, ask, ask);
}

}  // namespace unisono::engine
