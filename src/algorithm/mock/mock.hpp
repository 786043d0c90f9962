// SPDX-License-Identifier: BSD-3-Clause
// Mock-up: a collective made of others that do the same one after the other, e.g. an allreduce of a
// reduce and a broadcast. The parts are rows of the table. A rank begins the second part when it is
// through with the first. So a mock-up costs at most what its parts cost, and the guidelines of
// Träff, Gropp and Thakur hold among the prices of all rows, whatever the machine is.
// Only the rows of this folder use it; any thread with its own Mock.
//
// Three parameters a part: its row, and that row's own two; kUsual stands for the usual value.
// Parts are no mock-ups, and look at no hosts.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "algorithm/algorithm.hpp"
#include "algorithm/mock/slot_counts.hpp"
#include "algorithm/two_level.hpp"

namespace unisono::algorithm::mock {

// The schedules of a mock-up's parts, appended one after the other to one Builder.
class Mock {
 public:
  // All outlive it.
  Mock(const Shape& shape, const Parameters& parameters, std::span<const Part> parts, int rank);
  Mock(const Mock&) = delete;
  Mock& operator=(const Mock&) = delete;
  ~Mock();

  Builder& builder() { return b_; }
  // The shape of a part.
  const Shape& shape(std::size_t part) const { return shapes_[part]; }
  // Appends a part; returns its last ops.
  std::vector<OpId> append(std::size_t part, const two_level::InnerBuffers& buffers);
  Schedule take() && { return std::move(b_).take(); }

 private:
  // The slots of all parts are made at once, those of this one first. All ranks agree on it.
  std::size_t part_with_first_slots() const;
  SlotId slots_of(int rank) const;  // of that part
  SlotId first_slot(std::size_t part, int rank) const;

  std::span<const Part> parts_;
  static constexpr std::size_t kMostParts = 2;
  std::array<const Algorithm*, kMostParts> rows_{};
  std::array<Parameters, kMostParts> parameters_;
  std::array<Shape, kMostParts> shapes_;
  std::array<Schedule, kMostParts> own_;
  int rank_;
  std::size_t first_;  // the part with the first slots
  Builder b_;
  SlotCounts own_counts_{SlotCounts::Schedules::dropped};  // where none are in use
  SlotCounts& counts_;
};

// Whether the part that combines, the first one, lets one rank apply the operator: the root of a
// reduce, otherwise rank 0.
bool is_by_one(std::span<const Part> parts, const Shape& shape, const Parameters& parameters);

// Why the parts cannot do it; nullptr if they can.
const char* refuse(std::span<const Part> parts, const Shape& shape, const Parameters& parameters);

}  // namespace unisono::algorithm::mock
