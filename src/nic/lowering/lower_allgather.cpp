// SPDX-License-Identifier: BSD-3-Clause
// A slot's origin is known from the copy that puts its block in place, which may come after the
// block was sent on. So the copies are read first.
#include "nic/lowering/lower_allgather.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "nic/lowering/schedule_reader.hpp"

namespace unisono::nic {
namespace {

using base::Code;
using base::Error;
using base::Status;
using schedule::Memory;
using schedule::Op;
using schedule::OpKind;
using schedule::Range;
using schedule::Schedule;
using schedule::SlotId;

class RoutesReader : ScheduleReader {
 public:
  explicit RoutesReader(const Schedule& schedule)
      : ScheduleReader(schedule), origins_(schedule.slots.size(), -1) {
    routes_.rank = schedule.rank;
    routes_.ranks = schedule.shape.ranks;
  }

  base::Result<Routes> read() {
    UNISONO_TRY(check_allgather());
    routes_.of.resize(static_cast<std::size_t>(routes_.ranks));
    UNISONO_TRY(each_op([this](const Op& op) { return find_origin(op); }));
    UNISONO_TRY(each_op([this](const Op& op) { return send_on(op); }));
    UNISONO_TRY(check_whole());
    return routes_;
  }

 private:
  Status find_origin(const Op& op) {
    if (op.kind == OpKind::reduce || op.kind == OpKind::sum) return refuse("it combines");
    if (op.kind != OpKind::copy) return base::success();
    const int place = block_at(op.target);
    if (place < 0) {
      return refuse(
          fmt::format("it copies {} elements to element {} of {}, which is not one "
                      "rank's block; a NIC neither joins nor splits blocks",
                      op.target.count, op.target.offset, memory_text(op.target)));
    }
    if (op.left.memory == Memory::input) {
      if (is_own(op.left) && place == routes_.rank) return base::success();
      return refuse(fmt::format("it copies its own vector to the place of rank {}", place));
    }
    if (!is_whole_slot(op.left)) return refuse("it copies something other than what came in");
    int& origin = origins_[static_cast<std::size_t>(op.left.slot)];
    if (origin >= 0) return refuse(fmt::format("it copies slot {} to two places", op.left.slot));
    if (place == routes_.rank) return refuse("it overwrites its own block");
    Route& route = route_of(place);
    if (route.from >= 0) return refuse(fmt::format("the block of rank {} comes twice", place));
    route.from = slot(op.left.slot).source;
    origin = place;
    return base::success();
  }

  Status send_on(const Op& op) {
    if (op.kind != OpKind::send && op.kind != OpKind::multicast) return base::success();
    const int origin = origin_of(op.left);
    if (origin < 0) {
      return refuse(
          fmt::format("it sends {} elements of {}, which are not one rank's block; a "
                      "NIC sends blocks on as they come",
                      op.left.count, memory_text(op.left)));
    }
    for (const schedule::Target& target : schedule_.targets_of(op)) {
      route_of(origin).targets.push_back(target.peer);
    }
    return base::success();
  }

  Status check_whole() const {
    for (int origin = 0; origin < routes_.ranks; ++origin) {
      const Route& route = routes_.of[static_cast<std::size_t>(origin)];
      if (origin != routes_.rank && route.from < 0) {
        return refuse(fmt::format("the block of rank {} does not come by itself", origin));
      }
    }
    return base::success();
  }

  // The rank whose block has this range in the output; -1: none.
  int block_at(const Range& range) const {
    if (range.memory != Memory::output) return -1;
    for (int rank = 0; rank < routes_.ranks; ++rank) {
      const schedule::Block block = schedule::block(schedule_.shape, rank);
      if (block.offset == range.offset && block.count == range.count) return rank;
    }
    return -1;
  }
  bool is_own(const Range& range) const {
    return range == schedule::input(0, schedule::block(schedule_.shape, routes_.rank).count);
  }
  bool is_whole_slot(const Range& range) const {
    return range.memory == Memory::slot && range.offset == 0 &&
           range.count == slot(range.slot).count;
  }
  int origin_of(const Range& range) const {
    if (is_own(range)) return routes_.rank;
    if (is_whole_slot(range)) return origins_[static_cast<std::size_t>(range.slot)];
    return block_at(range);
  }
  Route& route_of(int origin) { return routes_.of[static_cast<std::size_t>(origin)]; }

  Routes routes_;
  std::vector<int> origins_;  // by slot: the origin of its block
};

Error misfit(int rank, int origin, std::string_view what) {
  return {
      Code::unsupported,
      fmt::format("no allgather for the NIC: the block of rank {} {} rank {}", origin, what, rank)};
}

const Route& route(std::span<const Routes> all, int rank, int origin) {
  return all[static_cast<std::size_t>(rank)].of[static_cast<std::size_t>(origin)];
}

// Follows the block of `origin` from there on.
Status check_tree_of(std::span<const Routes> all, int origin) {
  std::vector<bool> has(all.size(), false);
  std::vector<int> reached = {origin};
  has[static_cast<std::size_t>(origin)] = true;
  for (std::size_t next = 0; next < reached.size(); ++next) {
    const int rank = reached[next];
    for (const int target : route(all, rank, origin).targets) {
      if (has[static_cast<std::size_t>(target)]) return misfit(target, origin, "comes twice to");
      if (route(all, target, origin).from != rank) {
        return misfit(target, origin, fmt::format("comes from rank {} and unexpectedly to", rank));
      }
      has[static_cast<std::size_t>(target)] = true;
      reached.push_back(target);
    }
  }
  const auto lacking = std::find(has.begin(), has.end(), false);
  if (lacking == has.end()) return base::success();
  return misfit(static_cast<int>(lacking - has.begin()), origin, "never comes to");
}

}  // namespace

base::Result<Routes> lower_allgather(const Schedule& schedule) {
  return RoutesReader(schedule).read();
}

Status check_routes(std::span<const Routes> all) {
  for (int origin = 0; origin < static_cast<int>(all.size()); ++origin) {
    UNISONO_TRY(check_tree_of(all, origin));
  }
  return base::success();
}

}  // namespace unisono::nic
