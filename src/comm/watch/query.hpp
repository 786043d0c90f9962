// SPDX-License-Identifier: BSD-3-Clause
// Query: whether a comparison holds for the word that every member of a communicator has published.
// The members take no part: a word is read from the host's memory, or sent by its rank's agent. It
// is the global comparison of the ASCI Q's network (Petrini et al., HotI'03, table 1: heartbeats,
// fault detection), where the worst of all answers wins (section 4.1). Here a lost member is worse
// than a false comparison. One thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.hpp"
#include "comm/early_end.hpp"
#include "comm/member_record.hpp"
#include "comm/members.hpp"
#include "comm/segment.hpp"

namespace unisono::comm {

// In the order of the C API.
enum class Comparison : std::uint8_t { equal, not_equal, less, less_equal, greater, greater_equal };
inline constexpr int kComparisonCount = 6;

constexpr bool compare(std::uint64_t word, Comparison how, std::uint64_t value) {
  switch (how) {
    case Comparison::equal:
      return word == value;
    case Comparison::not_equal:
      return word != value;
    case Comparison::less:
      return word < value;
    case Comparison::less_equal:
      return word <= value;
    case Comparison::greater:
      return word > value;
    case Comparison::greater_equal:
      return word >= value;
  }
  return false;
}

class Query {
 public:
  // These outlive it.
  Query(const Members& members, const Segment& segment) : members_(members), segment_(segment) {}

  // The word of this rank that the others' queries see; 0 before the first call.
  void publish(std::uint64_t value);
  // A query in turns: begin(), then step() until it says whether `word how value` holds for the
  // word that each member has, at some time since begin(). rank_lost if a member is gone.
  base::Status begin();
  base::Result<std::optional<bool>> step(Comparison how, std::uint64_t value);
  // For a query that ended before that.
  base::Error unanswered(const EarlyEnd& end) const;
  // Asks a member of another host for a sign, so that its silence is noticed; does not wait for it.
  base::Status ask_for_sign(int member);

 private:
  // There is one request to a member at a time, because answers may overtake each other. A member
  // that was asked by a failed query is asked again when that answer is there.
  struct Asked {
    std::uint64_t last = 0;    // the number of the last request
    std::uint64_t needed = 0;  // the request that this query uses
  };
  QueryAnswer& answer(int member) const;
  void ask();
  void ask(int member, Asked& asked);
  std::optional<base::Error> lost_member() const;

  const Members& members_;
  const Segment& segment_;
  std::vector<Asked> asked_;  // members on other hosts; by position in Members::remote()
};

}  // namespace unisono::comm
