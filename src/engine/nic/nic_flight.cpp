// SPDX-License-Identifier: BSD-3-Clause
#include "engine/nic/nic_flight.hpp"

#include <utility>

#include "base/check.hpp"

namespace unisono::engine {

NicFlight::NicFlight(std::unique_ptr<NicReduction> reduction, NicAllgather* allgather)
    : reduction_(std::move(reduction)) {
  if (allgather != nullptr) gathering_.emplace(*allgather);
}

bool NicFlight::has_room(const plan::NicCall& call) const {
  return call.gathers ? gathering_->has_room(call.joins) : reduction_->has_room(call);
}

base::Status NicFlight::start(std::uint64_t number, const plan::NicCall& call, const void* input,
                              void* output, int ranks) {
  UNISONO_CHECK(!call.gathers || gathering_, "NicFlight::start of an allgather it does not do");
  number_ = number;
  is_gathering_ = call.gathers;
  is_under_way_ = true;
  if (!is_gathering_) return reduction_->start(call, input, output);
  const auto all_bytes = call.bytes * static_cast<std::size_t>(ranks);
  return gathering_->start(number, call.joins, {static_cast<const std::byte*>(input), call.bytes},
                           {static_cast<std::byte*>(output), all_bytes}, call.combine);
}

std::optional<NicRank> NicFlight::mismatching_rank() const {
  if (!is_gathering_) return reduction_->mismatching_rank();
  if (gathering_->mismatching_host() < 0) return std::nullopt;
  return NicRank{gathering_->mismatching_host(), gathering_->mismatching_place()};
}

std::string NicFlight::describe() const {
  return is_gathering_ ? gathering_->describe() : reduction_->describe();
}

}  // namespace unisono::engine
