// SPDX-License-Identifier: BSD-3-Clause
// Executes a schedule with symbols instead of elements: each place holds element e of the own block
// or of a slot. The final position of a slot's elements in the result shows their origin. That may
// be known only after they were sent on, so the schedule is read twice.
#include "nic/lowering/lower_doubling.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>

#include "nic/lowering/schedule_reader.hpp"
#include "nic/program/tables.h"

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

constexpr SlotId kNothing = -2;
constexpr SlotId kOwn = -1;

// The symbolic contents of an element of memory.
struct Symbol {
  SlotId slot = kNothing;   // the slot in which it arrived
  std::int64_t offset = 0;  // in the slot or the own block
};

class DoublingReader : ScheduleReader {
 public:
  explicit DoublingReader(const Schedule& schedule) : ScheduleReader(schedule) {
    doubling_.rank = schedule.rank;
    doubling_.ranks = schedule.shape.ranks;
  }

  base::Result<Doubling> read() {
    UNISONO_TRY(check_allgather());
    forget();
    UNISONO_TRY(each_op([this](const Op& op) { return copy(op); }));
    UNISONO_TRY(name_slots());
    UNISONO_TRY(find_takes());
    forget();
    UNISONO_TRY(
        each_op([this](const Op& op) { return op.kind == OpKind::copy ? copy(op) : give(op); }));
    UNISONO_TRY(check_room("sends", doubling_.gives.size()));
    UNISONO_TRY(check_room("receives", doubling_.takes.size()));
    return doubling_;
  }

 private:
  void forget() {
    output_.assign(static_cast<std::size_t>(schedule::whole_count(schedule_.shape)), {});
    scratch_.assign(static_cast<std::size_t>(schedule_.scratch_count), {});
  }

  Status copy(const Op& op) {
    if (op.kind == OpKind::reduce || op.kind == OpKind::sum) return refuse("it combines");
    if (op.kind != OpKind::copy) return base::success();
    const bool to_output = op.target.memory == Memory::output;
    if (!to_output && op.target.memory != Memory::scratch) {
      return refuse("it copies to other memory than the result and scratch");
    }
    const std::vector<Symbol> symbols = read_range(op.left);
    std::ranges::copy(symbols, (to_output ? output_ : scratch_).begin() +
                                   static_cast<std::ptrdiff_t>(op.target.offset));
    return base::success();
  }

  std::vector<Symbol> read_range(const Range& range) const {
    const auto first = static_cast<std::ptrdiff_t>(range.offset);
    const auto last = first + static_cast<std::ptrdiff_t>(range.count);
    if (range.memory == Memory::output) return {output_.begin() + first, output_.begin() + last};
    if (range.memory == Memory::scratch) return {scratch_.begin() + first, scratch_.begin() + last};
    std::vector<Symbol> symbols;
    for (std::int64_t i = 0; i < range.count; ++i) {
      symbols.push_back({range.memory == Memory::slot ? range.slot : kOwn, range.offset + i});
    }
    return symbols;
  }

  // By their final positions in the result.
  Status name_slots() {
    for (const schedule::Slot& each : schedule_.slots) {
      places_.emplace_back(static_cast<std::size_t>(each.count), -1);
    }
    for (int origin = 0; origin < doubling_.ranks; ++origin) {
      const schedule::Block block = schedule::block(schedule_.shape, origin);
      for (std::int64_t i = 0; i < block.count; ++i) {
        UNISONO_TRY(name(origin, block.offset + i));
      }
    }
    return base::success();
  }

  Status name(int origin, std::int64_t at) {
    const Symbol& found = output_[static_cast<std::size_t>(at)];
    if (found.slot == kNothing) {
      return refuse(fmt::format("the block of rank {} does not come", origin));
    }
    if (origin == doubling_.rank && found.slot != kOwn) {
      return refuse("its own block comes back to it");
    }
    if (found.slot == kOwn) {
      if (place(found) == at) return base::success();
      return refuse(fmt::format("it copies its own vector to the place of rank {}", origin));
    }
    std::int64_t& place =
        places_[static_cast<std::size_t>(found.slot)][static_cast<std::size_t>(found.offset)];
    if (place >= 0) return refuse(fmt::format("it copies slot {} to two places", found.slot));
    place = at;
    return base::success();
  }

  Status find_takes() {
    for (SlotId number = 0; number < static_cast<SlotId>(schedule_.slots.size()); ++number) {
      const auto blocks =
          whole_blocks(read_range(schedule::slot_range(number, 0, slot(number).count)));
      if (!blocks) {
        return refuse(fmt::format(
            "not all that comes by slot {} is blocks of the result, whole and once", number));
      }
      doubling_.takes.push_back({slot(number).source, number, *blocks});
    }
    return base::success();
  }

  Status give(const Op& op) {
    if (op.kind != OpKind::send && op.kind != OpKind::multicast) return base::success();
    const auto blocks = whole_blocks(read_range(op.left));
    if (!blocks) {
      return refuse(fmt::format("the {} elements of {} that it sends are not whole blocks",
                                op.left.count, memory_text(op.left)));
    }
    if ((*blocks >> doubling_.rank & 1) == 0) {
      return refuse(
          "it sends others' blocks without its own; a NIC sends a message when the own "
          "process has come");
    }
    for (const schedule::Target& target : schedule_.targets_of(op)) {
      doubling_.gives.push_back({target.peer, target.slot, *blocks});
    }
    return base::success();
  }

  // The origins of the blocks that the elements are; nullopt if one is not whole or not there.
  std::optional<std::uint64_t> whole_blocks(std::span<const Symbol> symbols) const {
    std::vector<bool> seen(output_.size(), false);
    for (const Symbol& symbol : symbols) {
      const std::int64_t at = place(symbol);
      if (at < 0 || seen[static_cast<std::size_t>(at)]) return std::nullopt;
      seen[static_cast<std::size_t>(at)] = true;
    }
    std::uint64_t blocks = 0;
    for (int origin = 0; origin < doubling_.ranks; ++origin) {
      const schedule::Block block = schedule::block(schedule_.shape, origin);
      const auto first = seen.begin() + static_cast<std::ptrdiff_t>(block.offset);
      const auto there = std::count(first, first + static_cast<std::ptrdiff_t>(block.count), true);
      if (there != 0 && there != block.count) return std::nullopt;
      if (there != 0) blocks |= std::uint64_t{1} << origin;
    }
    return blocks == 0 ? std::nullopt : std::optional(blocks);
  }

  // Where an element is in the result; -1: nowhere.
  std::int64_t place(const Symbol& symbol) const {
    if (symbol.slot == kNothing) return -1;
    if (symbol.slot == kOwn) {
      return schedule::block(schedule_.shape, doubling_.rank).offset + symbol.offset;
    }
    return places_[static_cast<std::size_t>(symbol.slot)][static_cast<std::size_t>(symbol.offset)];
  }

  Status check_room(std::string_view does, std::size_t messages) const {
    if (messages <= UNISONO_NIC_MESSAGES_MAX) return base::success();
    return refuse(fmt::format("it {} {} messages, and the NIC's table has room for {}", does,
                              messages, UNISONO_NIC_MESSAGES_MAX));
  }

  Doubling doubling_;
  std::vector<Symbol> output_, scratch_;
  std::vector<std::vector<std::int64_t>> places_;  // by slot and element: position in the result
};

Error doubling_misfit(int rank, std::string_view what) {
  return {Code::unsupported, fmt::format("no allgather for the NIC: rank {} {}", rank, what)};
}

const BlockMessage* find_take(std::span<const Doubling> all, int giver, const BlockMessage& give) {
  const auto& takes = all[static_cast<std::size_t>(give.peer)].takes;
  if (give.slot < 0 || give.slot >= static_cast<SlotId>(takes.size())) return nullptr;
  const BlockMessage& take = takes[static_cast<std::size_t>(give.slot)];
  return take.peer == giver && take.blocks == give.blocks ? &take : nullptr;
}

// Each message is sent once, and its receiver expects it.
Status check_pairs(std::span<const Doubling> all) {
  for (const Doubling& giver : all) {
    for (const BlockMessage& give : giver.gives) {
      if (find_take(all, giver.rank, give) != nullptr) continue;
      return doubling_misfit(
          giver.rank,
          fmt::format("gives what slot {} of rank {} does not expect", give.slot, give.peer));
    }
  }
  for (const Doubling& taker : all) {
    for (const BlockMessage& take : taker.takes) {
      const auto& gives = all[static_cast<std::size_t>(take.peer)].gives;
      const auto given = std::ranges::count_if(gives, [&](const BlockMessage& give) {
        return give.peer == taker.rank && give.slot == take.slot;
      });
      if (given == 1) continue;
      return doubling_misfit(
          taker.rank, fmt::format("expects one message in slot {}, and rank {} gives {}", take.slot,
                                  take.peer, given));
    }
  }
  return base::success();
}

// Sends all complete messages until nothing changes.
Status check_progress(std::span<const Doubling> all) {
  std::vector<std::uint64_t> has;
  for (const Doubling& each : all) has.push_back(std::uint64_t{1} << each.rank);
  for (bool changed = true; changed;) {
    changed = false;
    for (const Doubling& giver : all) {
      for (const BlockMessage& give : giver.gives) {
        if ((give.blocks & ~has[static_cast<std::size_t>(giver.rank)]) != 0) continue;
        std::uint64_t& taken = has[static_cast<std::size_t>(give.peer)];
        changed |= (give.blocks & ~taken) != 0;
        taken |= give.blocks;
      }
    }
  }
  const std::uint64_t everything = ~std::uint64_t{0} >> (64 - all.size());
  for (const Doubling& each : all) {
    const std::uint64_t lacking = everything & ~has[static_cast<std::size_t>(each.rank)];
    if (lacking == 0) continue;
    return doubling_misfit(
        each.rank, fmt::format("never gets the block of rank {}", std::countr_zero(lacking)));
  }
  return base::success();
}

}  // namespace

base::Result<Doubling> lower_doubling(const Schedule& schedule) {
  return DoublingReader(schedule).read();
}

int largest_message(const Doubling& doubling) {
  int largest = 0;
  for (const auto& messages : {doubling.gives, doubling.takes}) {
    for (const BlockMessage& each : messages)
      largest = std::max(largest, std::popcount(each.blocks));
  }
  return largest;
}

Status check_doubling(std::span<const Doubling> all) {
  UNISONO_TRY(check_pairs(all));
  UNISONO_TRY(check_progress(all));
  for (const Doubling& each : all) {
    if (largest_message(each) == largest_message(all[0])) continue;
    return doubling_misfit(each.rank,
                           fmt::format("has messages of {} blocks at most, and rank 0 of {}; "
                                       "frames do not grow",
                                       largest_message(each), largest_message(all[0])));
  }
  return base::success();
}

}  // namespace unisono::nic
