// SPDX-License-Identifier: BSD-3-Clause
// PriceBook: the prices that one choice has worked out. Candidates share what messages cost, parts
// of several mock-ups are the same, and prices of few ranks serve twice. It knows nanoseconds only.
// One thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "algorithm/algorithm.hpp"
#include "algorithm/mock/slot_counts.hpp"
#include "algorithm/pattern/circulant_turns.hpp"
#include "model/outline/outline.hpp"
#include "model/price.hpp"
#include "schedule/spares.hpp"
#include "select/pricing.hpp"

namespace unisono::select {

// All calls are for one shape, shapes that stand for it with fewer ranks, and parts of it without
// hosts. So a candidate is known by its numbers: the map of the hosts and whether order is kept are
// those of the choice.
class PriceBook {
 public:
  // It holds prices by `pricing`, or by others that differ from it in the cores only.
  explicit PriceBook(const Pricing& pricing)
      : is_kept_(!pricing.in_full), order_(order_of(pricing)) {}
  PriceBook(const PriceBook&) = delete;
  PriceBook& operator=(const PriceBook&) = delete;

  // As has_at_most() of pricing.hpp, with the memory of schedules that are not needed any more.
  bool has_at_most(std::int64_t most, const algorithm::Algorithm& row,
                   const algorithm::Parameters& parameters, const schedule::Shape& shape);
  // The steps of the lowest rank. It keeps the schedule for the price.
  std::size_t steps_of_one(const algorithm::Algorithm& row, const algorithm::Parameters& parameters,
                           const schedule::Shape& shape);
  // Whether what one rank has to do by itself, the root if there is one, takes so long already.
  // This spares the schedules of the others. Many candidates cut the data into more pieces than
  // pay, and end here. The candidate has to be legal, here and below.
  bool costs_at_least(double ns, const algorithm::Algorithm& row,
                      const algorithm::Parameters& parameters, const schedule::Shape& shape,
                      const Pricing& pricing);
  // The nanoseconds of price_of(), if they are below so many.
  std::optional<double> ns_below(double most_ns, const algorithm::Algorithm& row,
                                 const algorithm::Parameters& parameters,
                                 const schedule::Shape& shape, const Pricing& pricing);

 private:
  // A candidate. The blocks are those of a part: equal shares of so many elements, or nearly so.
  struct Candidate {
    const algorithm::Algorithm* row = nullptr;
    algorithm::Parameters parameters;
    std::int64_t count = 0, of_blocks = -1;
    int ranks = 0, root = 0, hosts = 0;

    bool operator==(const Candidate&) const = default;
  };
  struct Key {
    Candidate candidate;
    int cores = 0, shared_cores = 0;

    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };
  struct Known {
    double least_ns = -1;     // of one rank; negative: not known
    double ns = -1;           // the price; negative: not known
    double at_least_ns = -1;  // what it reaches
  };
  // One schedule where ranks are alike. Else the outline of all, or all of them if there are hosts.
  struct Set {
    Candidate candidate;
    std::uint64_t last_use = 0;
    model::Calls calls;
    bool are_alike = false, is_outlined = false;
    bool is_partial = false;  // the outline has the first ranks only
    std::vector<schedule::Schedule> schedules;
    model::Outline outline;
  };
  struct PricerOfCores {
    int ranks = 0, hosts = 0, cores = 0, shared_cores = 0;
    model::Pricer pricer;
  };

  static Candidate candidate_of(const algorithm::Algorithm& row,
                                const algorithm::Parameters& parameters,
                                const schedule::Shape& shape);
  static Key key_of(const Candidate& candidate, const schedule::Shape& shape,
                    const Pricing& pricing);
  double least_ns(const algorithm::Algorithm& row, const algorithm::Parameters& parameters,
                  const schedule::Shape& shape, const Pricing& pricing);
  std::optional<double> least_ns_by_outline(const schedule::Schedule& one,
                                            const algorithm::Algorithm& row,
                                            const schedule::Shape& shape, const Pricing& pricing,
                                            const model::Calls& calls, model::Segments segments);
  // Null if it noticed that the price is `most_ns` or more.
  const Set* set_of(const Candidate& candidate, const schedule::Shape& shape,
                    const Pricing& pricing, double most_ns);
  // Puts the schedules of a candidate into the set, or those of one of so many segments; how calls
  // go by them. nullopt if it noticed that the price is `most_ns` or more.
  std::optional<model::Calls> build(const Candidate& candidate, const schedule::Shape& shape,
                                    const Pricing& pricing, double most_ns, std::int64_t segments,
                                    Set& set);
  model::Calls build_repeated(const Candidate& candidate, const schedule::Shape& shape,
                              const Pricing& pricing, Set& set);
  // Makes the set that of a segment, if its calls have several; false as build() returns nullopt.
  bool cut(const Candidate& candidate, const schedule::Shape& shape, const Pricing& pricing,
           double most_ns, Set& set);
  model::Pricer& pricer_of(const schedule::Shape& shape, const Pricing& pricing);

  void keep_root(const Candidate& candidate, schedule::Schedule&& schedule);
  void give_back(std::vector<schedule::Schedule>& set);

  // While it lives, schedules are built with what the book keeps for them.
  struct Building {
    explicit Building(PriceBook& book)
        : spares(book.spares_, book.order_), turns(book.turns_), slots(book.slots_) {}

    schedule::Spares::Use spares;
    algorithm::pattern::CirculantTurns::Use turns;
    algorithm::mock::SlotCounts::Use slots;
  };

  bool is_kept_;
  schedule::Spares::Order order_;
  schedule::Spares spares_;
  algorithm::pattern::CirculantTurns turns_;
  algorithm::mock::SlotCounts slots_;
  std::unordered_map<Key, Known, Hash> known_;
  // The schedule of one rank that was built last, the root if there is one; or none.
  Candidate root_of_;
  std::optional<schedule::Schedule> root_;
  model::Outline outline_of_root_, longer_, shorter_;  // of the root, and of pieces
  // Those used last: a few ranks are priced on their own cores, and then on one.
  std::array<Set, 6> sets_;
  std::uint64_t uses_ = 0;
  std::vector<PricerOfCores> pricers_;
};

}  // namespace unisono::select
