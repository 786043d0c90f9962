// SPDX-License-Identifier: BSD-3-Clause
// ListDerivation: makes a communicator of some members of another one, without the other members.
// Those on the list reach each other by an exchange of the caller's. All get the communicator, or
// all get an error. The old communicator gives its job and its numbering only, so other threads may
// use it meanwhile.
//
// Two rounds: the first rank of the list has reserved a segment; then each rank says whether it has
// the memory. On one host all have it, so the second round is left out if the exchange never fails
// at some ranks only. Where it may, others may own the communicator by then. A rank without success
// fails it for them if it knows the segment. Such a segment, and that of a first rank that dies
// meanwhile, stay until the job ends.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "bootstrap/exchange/exchange_rounds.hpp"
#include "comm/communicator.hpp"
#include "comm/members.hpp"
#include "comm/segment.hpp"

namespace unisono::comm {

// One call of one rank.
class ListDerivation {
 public:
  using Made = std::unique_ptr<Communicator>;

  // `ranks` are numbers of the parent's, without repetition. The rounds' ranks are places in it.
  ListDerivation(const Members& parent, std::vector<int> ranks, bootstrap::ExchangeRounds& rounds)
      : parent_(parent), ranks_(std::move(ranks)), rounds_(rounds) {}

  // `own`: whether this rank can take part.
  base::Result<Made> make(const base::Status& own);

 private:
  base::Result<std::string> announce(const base::Status& own);
  base::Status learn_grant(const std::vector<std::string>& texts);
  base::Status agree();
  base::Status adopt();
  bool needs_second_round() const;
  Made build() const;
  base::Error give_up(const base::Error& why);
  bool leads() const { return rounds_.rank() == 0; }

  const Members& parent_;
  std::vector<int> ranks_;
  bootstrap::ExchangeRounds& rounds_;
  std::optional<Grant> grant_;  // of the segment, once this rank knows it
};

}  // namespace unisono::comm
