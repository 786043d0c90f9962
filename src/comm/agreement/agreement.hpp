// SPDX-License-Identifier: BSD-3-Clause
// Agreement: the living members of a communicator agree on one list of themselves, with a payload.
// Members may die meanwhile and learn of deaths at different moments. It is single-decree Paxos
// (Lamport, The part-time parliament) whose acceptors are the hosts, in memory that all ranks of a
// host share; decision 14 has the argument.
//
// Every word and text in the table is written once, so puts may overtake each other, and a killed
// rank leaves nothing half done. Any living rank of its host answers in its place. A rank's ballot
// is its number, because only a rank that takes all lower ones for gone makes a proposal. A rank
// that is taken for gone stays gone. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "comm/agreement/agreement_messages.hpp"
#include "comm/agreement/agreement_table.hpp"
#include "comm/agreement/electorate.hpp"
#include "comm/members.hpp"

namespace unisono::comm {

class Agreement {
 public:
  struct Options {
    std::byte* table = nullptr;  // of AgreementTable::bytes()
    std::size_t payload_bytes = 0;
    // Whether a member lives and will never join; a member that has ended stays so.
    std::function<bool(int member)> has_ended;
    // The payload for a list; called at most once, by the member that proposes it.
    std::function<std::vector<std::byte>(const std::vector<int>& members)> make_payload;
  };
  // The same on every rank that gets one.
  struct Decision {
    std::vector<int> members;  // ascending
    std::vector<std::byte> payload;
  };

  // `members` outlives it.
  Agreement(const Members& members, Options options);

  // Informs all members that this rank takes part. They wait for every member that lives and has
  // not ended.
  base::Status join();
  // One turn; empty: no decision yet. An error is final: this rank has been excluded, or too few
  // hosts are left to be sure that the others do not decide otherwise.
  base::Result<std::optional<Decision>> step();
  // Members that this rank cannot go on without hearing of, for messages.
  std::vector<int> awaited() const;
  // The error of a rank that is not in the list.
  base::Error excluded() const { return electorate_.excluded(); }

 private:
  int own() const { return members_.rank(); }
  void believe(std::span<const std::byte> states);
  void answer_prepared();
  void answer_proposed();
  void lead();
  void prepare();
  void propose(int accepted);
  std::vector<std::byte> own_proposal() const;
  bool all_joined() const;
  bool is_refused() const;
  int chosen_ballot() const;
  Decision adopt(int ballot);
  base::Error give_up(base::Error why) const;

  enum class Phase : std::uint8_t { joining, preparing, proposing };

  const Members& members_;
  Electorate electorate_;
  AgreementTable table_;
  AgreementMessages messages_;
  std::function<std::vector<std::byte>(const std::vector<int>& members)> make_payload_;
  Phase phase_ = Phase::joining;
  bool has_sent_decision_ = false;
  std::vector<bool> promised_, accepted_;  // by proposer: whether it was answered
};

}  // namespace unisono::comm
