// SPDX-License-Identifier: BSD-3-Clause
// The right schedules that tests prove and break: those written by hand and small ones of every
// algorithm of the table.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "algorithm/algorithm.hpp"
#include "hand_written.hpp"
#include "harness/unequal_blocks.hpp"
#include "schedule/text.hpp"

namespace unisono::check {

struct Base {
  std::string name;
  std::vector<schedule::Schedule> set;
};

inline std::vector<schedule::Schedule> parsed(std::string_view text) {
  auto set = schedule::parse(text);
  if (!set.ok()) {
    ADD_FAILURE() << set.error().message;
    return {};
  }
  return std::move(set).value();
}

inline std::vector<Base> hand_written_bases() {
  std::vector<Base> bases;
  for (const auto& [name, text] : kHandWritten) bases.push_back({std::string(name), parsed(text)});
  return bases;
}

inline std::vector<schedule::Schedule> built(const algorithm::Algorithm& row,
                                             const schedule::Shape& shape) {
  std::vector<schedule::Schedule> set;
  const auto parameters = algorithm::default_parameters(row, shape);
  for (int rank = 0; rank < shape.ranks; ++rank) {
    auto schedule = algorithm::build(row, shape, parameters, rank);
    if (!schedule.ok()) {
      ADD_FAILURE() << row.name << ": " << schedule.error().message;
      return {};
    }
    set.push_back(std::move(schedule).value());
  }
  return set;
}

// Two ranks on each host.
inline topology::HostMap pairs_on_hosts(int ranks) {
  std::vector<int> hosts;
  for (int rank = 0; rank < ranks; ++rank) hosts.push_back(rank / 2);
  return topology::HostMap::of_labels(hosts);
}

// Shapes that an algorithm refuses (why_illegal) are not bases.
inline std::vector<Base> table_bases(std::initializer_list<int> rank_counts, std::int64_t count) {
  std::vector<Base> bases;
  for (const auto& row : algorithm::table()) {
    for (const int ranks : rank_counts) {
      schedule::Shape shape;
      shape.collective = row.collective;
      shape.ranks = ranks;
      shape.root = schedule::is_rooted(row.collective) ? ranks / 2 : 0;
      shape.count = row.collective == schedule::Collective::barrier ? 0 : count;
      shape.ordered = schedule::is_reduction(row.collective) && row.keeps_order;
      shape.exact = row.sums_exactly;
      if (row.uses_hosts) shape.hosts = pairs_on_hosts(ranks);
      const auto parameters = algorithm::default_parameters(row, shape);
      if (!algorithm::why_illegal(row, shape, parameters).empty()) continue;
      bases.push_back({std::string(schedule::collective_name(row.collective)) + " " +
                           std::string(row.name) + ", " + std::to_string(ranks) + " ranks",
                       built(row, shape)});
    }
  }
  return bases;
}

// Blocks of unequal lengths, some empty, where a collective and an algorithm have them.
inline std::vector<Base> unequal_bases(std::initializer_list<int> rank_counts) {
  std::vector<Base> bases;
  for (const auto& row : algorithm::table()) {
    if (!schedule::has_blocks(row.collective) || !row.unequal_blocks) continue;
    for (const int ranks : rank_counts) {
      for (const bool symmetric : {false, true}) {
        if (symmetric && !schedule::has_pairs(row.collective)) continue;
        schedule::Shape shape;
        shape.collective = row.collective;
        shape.ranks = ranks;
        shape.root = schedule::is_rooted(row.collective) ? ranks / 2 : 0;
        shape.ordered = schedule::is_reduction(row.collective) && row.keeps_order;
        shape.blocks = test::unequal_blocks(row.collective, ranks, 7, symmetric);
        const auto parameters = algorithm::default_parameters(row, shape);
        if (!algorithm::why_illegal(row, shape, parameters).empty()) continue;
        bases.push_back({std::string(schedule::collective_name(row.collective)) + " " +
                             std::string(row.name) + ", " + std::to_string(ranks) + " ranks, " +
                             schedule::print_counts(shape),
                         built(row, shape)});
      }
    }
  }
  return bases;
}

// The set that one rank proves with local counts: the part of the exchange in which it sends or
// receives. At the root of a gather or scatter that is all of it.
inline std::vector<Base> local_bases(std::initializer_list<int> rank_counts) {
  std::vector<Base> bases;
  for (const auto& row : algorithm::table()) {
    if (!row.local_counts) continue;
    for (const int ranks : rank_counts) {
      for (const bool symmetric : {false, true}) {
        if (symmetric && !schedule::has_pairs(row.collective)) continue;
        schedule::Shape shape;
        shape.collective = row.collective;
        shape.ranks = ranks;
        shape.root = schedule::is_rooted(row.collective) ? ranks / 2 : 0;
        const auto all = test::unequal_blocks(row.collective, ranks, 7, symmetric);
        for (int knower = 0; knower < ranks; ++knower) {
          shape.blocks = all;
          shape.blocks = test::blocks_known_to(shape, knower);
          bases.push_back({std::string(schedule::collective_name(row.collective)) + " " +
                               std::string(row.name) + ", what rank " + std::to_string(knower) +
                               " of " + std::to_string(ranks) + " knows, " +
                               schedule::print_counts(shape),
                           built(row, shape)});
        }
      }
    }
  }
  return bases;
}

inline std::vector<Base> all_bases() {
  auto bases = hand_written_bases();
  for (auto& base : table_bases({2, 3, 5, 8}, 10)) bases.push_back(std::move(base));
  for (auto& base : unequal_bases({3, 5})) bases.push_back(std::move(base));
  for (auto& base : local_bases({4})) bases.push_back(std::move(base));
  return bases;
}

}  // namespace unisono::check
