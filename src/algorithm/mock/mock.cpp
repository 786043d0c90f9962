// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/mock/mock.hpp"

#include <utility>

#include "algorithm/pattern/blocks.hpp"
#include "base/check.hpp"
#include "schedule/spares.hpp"

namespace unisono::algorithm {

namespace {

// The vector of a part: that of the whole call.
std::int64_t vector_count(const Shape& shape) {
  return schedule::has_blocks(shape.collective) ? schedule::whole_count(shape) : shape.count;
}

// Equal shares of the vector, or nearly so.
void share(std::int64_t count, Shape& part) {
  if (count % part.ranks == 0) {
    part.count = count / part.ranks;
    return;
  }
  const pattern::Blocks shares(count, part.ranks);
  std::vector<std::int64_t> counts;
  for (int rank = 0; rank < part.ranks; ++rank) counts.push_back(shares.count(rank));
  auto blocks = schedule::Blocks::of_ranks(counts);
  UNISONO_CHECK(blocks.ok(), "shares of a legal vector");
  part.blocks = std::move(*blocks);
}

}  // namespace

Shape shape_of_part(const Part& part, const Shape& whole) {
  Shape shape{.collective = part.collective, .ranks = whole.ranks};
  if (schedule::is_rooted(part.collective) && schedule::is_rooted(whole.collective)) {
    shape.root = whole.root;
  }
  shape.ordered = whole.ordered && schedule::is_reduction(part.collective);
  switch (part.extent) {
    case Extent::vector:
      shape.count = vector_count(whole);
      break;
    case Extent::blocks:
      shape.count = whole.count;
      shape.blocks = whole.blocks;
      break;
    case Extent::shares:
      share(vector_count(whole), shape);
      break;
  }
  return shape;
}

const Algorithm& row_of_part(const Part& part, const Parameters& parameters) {
  const Algorithm* row =
      find(part.collective, part.rows[static_cast<std::size_t>(parameters.values[part.first])]);
  UNISONO_CHECK(row != nullptr, "a part that the table does not have");
  return *row;
}

Parameters parameters_of_part(const Part& part, const Parameters& parameters, const Shape& shape) {
  const Algorithm& row = row_of_part(part, parameters);
  Parameters own = default_parameters(row, shape);
  for (std::size_t i = 0; i < row.parameters.size(); ++i) {
    const int value = parameters.values[part.first + 1 + i];
    if (value != kUsual) own.values[i] = value;
  }
  return own;
}

void set_part(const Part& part, std::size_t row, const Parameters& own, Parameters& parameters) {
  const Algorithm* of = find(part.collective, part.rows[row]);
  UNISONO_CHECK(of != nullptr, "a part that the table does not have");
  parameters.values[part.first] = static_cast<int>(row);
  for (std::size_t i = 0; i < kParametersOfPart; ++i) {
    parameters.values[part.first + 1 + i] = i < of->parameters.size() ? own.values[i] : kUsual;
  }
}

namespace mock {

Mock::Mock(const Shape& shape, const Parameters& parameters, std::span<const Part> parts, int rank)
    : parts_(parts),
      rank_(rank),
      b_(shape, rank),
      counts_(SlotCounts::Use::current() != nullptr ? *SlotCounts::Use::current() : own_counts_) {
  UNISONO_CHECK(parts.size() <= kMostParts, "a mock-up of more parts");
  for (std::size_t i = 0; i < parts.size(); ++i) {
    shapes_[i] = shape_of_part(parts[i], shape);
    rows_[i] = &row_of_part(parts[i], parameters);
    parameters_[i] = parameters_of_part(parts[i], parameters, shapes_[i]);
  }
  first_ = part_with_first_slots();
  const bool are_counted = !ranks_are_alike(*rows_[first_], shapes_[first_]);
  if (are_counted) counts_.begin(*rows_[first_], parameters_[first_], shapes_[first_]);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto build = [&] { return rows_[i]->build(shapes_[i], parameters_[i], rank); };
    own_[i] = are_counted && i == first_ ? counts_.take(rank, build) : build();
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::size_t part = i == 0 ? first_ : parts.size() - 1 - first_;
    for (const schedule::Slot& slot : own_[part].slots) b_.slot(slot.source, slot.count);
  }
}

Mock::~Mock() {
  for (std::size_t i = 0; i < parts_.size(); ++i) schedule::Spares::give_back(std::move(own_[i]));
}

// A sender of the other part needs to know how many slots come first. Where ranks are alike, they
// are as many as its own. A part with a root has few messages, so that few ranks need to be asked.
std::size_t Mock::part_with_first_slots() const {
  if (parts_.size() == 1) return 0;
  for (const std::size_t part : {std::size_t{1}, std::size_t{0}}) {
    if (ranks_are_alike(*rows_[part], shapes_[part])) return part;
  }
  return schedule::is_rooted(parts_[1].collective) ? 0 : 1;
}

SlotId Mock::slots_of(int rank) const {
  if (rank == rank_ || ranks_are_alike(*rows_[first_], shapes_[first_])) {
    return static_cast<SlotId>(own_[first_].slots.size());
  }
  if (counts_.of(rank) < 0) {
    counts_.keep(rank, rows_[first_]->build(shapes_[first_], parameters_[first_], rank));
  }
  return counts_.of(rank);
}

SlotId Mock::first_slot(std::size_t part, int rank) const {
  return part == first_ ? 0 : slots_of(rank);
}

std::vector<OpId> Mock::append(std::size_t part, const two_level::InnerBuffers& buffers) {
  return two_level::embed(b_, own_[part], buffers,
                          {.rank = [](int rank) { return rank; },
                           .first_slot = [&](int rank) { return first_slot(part, rank); },
                           .has_slots = true});
}

bool is_by_one(std::span<const Part> parts, const Shape& shape, const Parameters& parameters) {
  const Part& part = parts.front();
  const Algorithm& row = row_of_part(part, parameters);
  if (row.by_one == nullptr) return false;
  const Shape own = shape_of_part(part, shape);
  return row.by_one(own, parameters_of_part(part, parameters, own));
}

const char* refuse(std::span<const Part> parts, const Shape& shape, const Parameters& parameters) {
  for (const Part& part : parts) {
    const Shape own = shape_of_part(part, shape);
    const Algorithm& row = row_of_part(part, parameters);
    for (std::size_t i = row.parameters.size(); i < kParametersOfPart; ++i) {
      if (parameters.values[part.first + 1 + i] != kUsual) return "a part has fewer parameters";
    }
    if (!is_legal(row, own, parameters_of_part(part, parameters, own))) {
      return "a part cannot do it, or not with these parameters";
    }
  }
  return nullptr;
}

}  // namespace mock
}  // namespace unisono::algorithm
