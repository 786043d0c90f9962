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

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "job/job.hpp"

namespace unisono::comm {

class Agreement {
 public:
  struct Options {
    std::vector<int> job_ranks;  // of the members
    int rank = 0;                // this one's, among them
    std::byte* table = nullptr;  // in the host's shared memory, zero at first, same layout on all
                                 // hosts
    std::size_t payload_bytes = 0;
    // Whether a member lives and will never join; a member that has ended stays so.
    std::function<bool(int member)> has_ended;
    // The payload for a list; called at most once, by the member that proposes it.
    std::function<std::vector<std::byte>(const std::vector<int>& members)> offer;
  };
  // The same on every rank that gets one.
  struct Decision {
    std::vector<int> members;  // ascending
    std::vector<std::byte> payload;
  };
  static std::int64_t table_bytes(int members, std::size_t payload_bytes);

  Agreement(job::Job& job, Options options);

  // Informs all members that this rank takes part. They wait for every member that lives and has
  // not ended.
  base::Status join();
  // One turn; empty: no decision yet. An error is final: this rank has been excluded, or too few
  // hosts are left to be sure that the others do not decide otherwise.
  base::Result<std::optional<Decision>> step();
  // Members that this rank cannot go on without hearing of, for messages.
  std::vector<int> awaited() const;
  // The error of a rank that is not in the list.
  base::Error excluded() const;

 private:
  struct alignas(64) Words {
    std::atomic<std::uint64_t> joined, prepared, proposed, chosen;
  };
  // An answer to a proposer.
  struct Answer {
    std::atomic<std::uint64_t> promise, acceptance;
  };

  int size() const { return static_cast<int>(options_.job_ranks.size()); }
  int job_rank(int member) const { return options_.job_ranks[static_cast<std::size_t>(member)]; }
  job::RankState state(int member) const { return job_.ranks().state(job_rank(member)); }
  bool lives(int member) const { return state(member) == job::RankState::present; }
  bool takes_part(int member) const { return lives(member) && !options_.has_ended(member); }
  bool is_here(int member) const { return job_.hosts().is_here(job_rank(member)); }

  base::Status prepare_memory() const;
  std::atomic<std::uint64_t>& acceptor() const;
  Words& words(int member) const;
  Answer& answer(int proposer, int member) const;
  std::span<std::byte> states_text(int member) const;
  std::span<std::byte> proposal_text(int member) const;
  std::int64_t proposal_bytes() const;

  void put(int member, std::atomic<std::uint64_t>& word, std::uint64_t value,
           std::span<const std::byte> text, std::span<std::byte> place) const;
  void tell_all(std::atomic<std::uint64_t>& word, std::uint64_t value,
                std::span<const std::byte> text, std::span<std::byte> place, bool also_silent);
  void respond(int proposer, std::atomic<std::uint64_t>& word, std::uint64_t value, int proposal);

  std::vector<std::byte> read(std::span<const std::byte> text) const;
  void believe(std::span<const std::byte> states);
  void answer_prepared();
  void answer_proposed();
  void lead();
  void prepare();
  void propose(int accepted);
  std::vector<std::byte> own_proposal() const;
  int leader() const;
  bool all_joined() const;
  template <class Says>
  bool has_quorum(const Says& says) const;
  bool is_refused() const;
  int chosen_ballot() const;
  Decision adopt(int ballot);
  base::Error no_quorum() const;
  base::Error give_up(base::Error why) const;
  void await_others() const;

  enum class Phase : std::uint8_t { joining, preparing, proposing };

  job::Job& job_;
  Options options_;
  Phase phase_ = Phase::joining;
  bool told_ = false;                      // the decision
  std::vector<bool> promised_, accepted_;  // by proposer: whether it was answered
};

}  // namespace unisono::comm
