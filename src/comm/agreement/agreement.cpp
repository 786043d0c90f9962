// SPDX-License-Identifier: BSD-3-Clause
#include "comm/agreement/agreement.hpp"

#include <algorithm>
#include <utility>

#include "comm/agreement/host_acceptor.hpp"

namespace unisono::comm {
namespace {

using base::Error;
using base::Result;

// Answers: 0 is none yet; a promise names the ballot accepted before it.
constexpr std::uint64_t kRefused = ~std::uint64_t{0};
constexpr std::uint64_t kAccepted = 1;
std::uint64_t promise_with(std::uint64_t accepted) { return accepted + 1; }

std::uint64_t ballot_of(int member) { return HostAcceptor::ballot_of(member); }

std::uint64_t load(const std::atomic<std::uint64_t>& word) {
  return word.load(std::memory_order_acquire);
}

}  // namespace

Agreement::Agreement(const Members& members, Options options)
    : members_(members),
      electorate_(members, std::move(options.has_ended)),
      table_(options.table, members.size(), options.payload_bytes),
      messages_(members, table_),
      make_payload_(std::move(options.make_payload)),
      promised_(members.job_ranks().size()),
      accepted_(members.job_ranks().size()) {}

base::Status Agreement::join() {
  UNISONO_TRY(table_.commit(members_.job().memory(), own()));
  messages_.tell_all({table_.words(own()).joined, 1}, {});
  return base::success();
}

// ---- the acceptor's part: of any rank of a host, for the host ----------------------------------

// A member that is gone for one of the group is gone for all.
void Agreement::believe(std::span<const std::byte> states) {
  for (int m = 0; m < members_.size(); ++m) {
    const auto how = static_cast<job::RankState>(states[static_cast<std::size_t>(m)]);
    const bool gone = how == job::RankState::dead || how == job::RankState::silent;
    if (gone && members_.lives(m) && members_.job().losses().mark_gone(members_.job_rank(m), how))
      members_.job().events().raise();
  }
}

void Agreement::answer_prepared() {
  for (int p = 0; p < members_.size(); ++p) {
    if (promised_[static_cast<std::size_t>(p)] || load(table_.words(p).prepared) == 0) continue;
    promised_[static_cast<std::size_t>(p)] = true;
    believe(messages_.read(table_.states_text(p)));
    const auto [given, accepted] = HostAcceptor(table_.acceptor()).promise(ballot_of(p));
    messages_.respond(p, table_.answer(p, own()).promise, given ? promise_with(accepted) : kRefused,
                      given ? static_cast<int>(accepted) - 1 : -1);
  }
}

void Agreement::answer_proposed() {
  for (int p = 0; p < members_.size(); ++p) {
    if (accepted_[static_cast<std::size_t>(p)] || load(table_.words(p).proposed) == 0) continue;
    accepted_[static_cast<std::size_t>(p)] = true;
    const bool is_accepted = HostAcceptor(table_.acceptor()).accept(ballot_of(p));
    messages_.respond(p, table_.answer(p, own()).acceptance, is_accepted ? kAccepted : kRefused,
                      -1);
  }
}

// ---- the proposer's part -----------------------------------------------------------------------

bool Agreement::all_joined() const {
  for (int m = 0; m < members_.size(); ++m) {
    if (electorate_.takes_part(m) && load(table_.words(m).joined) == 0) return false;
  }
  return true;
}

bool Agreement::is_refused() const {
  for (int m = 0; m < members_.size(); ++m) {
    const AgreementAnswer& given = table_.answer(own(), m);
    if (load(given.promise) == kRefused || load(given.acceptance) == kRefused) return true;
  }
  return false;
}

void Agreement::lead() {
  const auto promised = [this](int m) { return load(table_.answer(own(), m).promise) != 0; };
  const auto accepted = [this](int m) {
    return load(table_.answer(own(), m).acceptance) == kAccepted;
  };
  switch (phase_) {
    case Phase::joining:
      if (all_joined()) prepare();
      return;
    case Phase::preparing: {
      if (!electorate_.is_quorum(promised)) return;
      std::uint64_t highest = promise_with(0);
      for (int m = 0; m < members_.size(); ++m) {
        highest = std::max(highest, load(table_.answer(own(), m).promise));
      }
      if (highest == kRefused) return;  // the next turn sees it too
      return propose(static_cast<int>(highest - promise_with(0)));
    }
    case Phase::proposing:
      if (electorate_.is_quorum(accepted)) {
        table_.words(own()).chosen.store(ballot_of(own()), std::memory_order_release);
      }
      return;
  }
}

void Agreement::prepare() {
  phase_ = Phase::preparing;
  std::vector<std::byte> states;
  for (int m = 0; m < members_.size(); ++m)
    states.push_back(static_cast<std::byte>(members_.state(m)));
  messages_.tell_all({table_.words(own()).prepared, 1, table_.states_text(own())}, states);
  answer_prepared();
}

// Proposes again a list that an earlier ballot may have decided.
void Agreement::propose(int accepted) {
  phase_ = Phase::proposing;
  std::vector<std::byte> proposal;
  if (accepted != 0) {
    proposal = messages_.read(table_.proposal_text(accepted - 1));
  } else {
    proposal = own_proposal();
  }
  messages_.tell_all({table_.words(own()).proposed, 1, table_.proposal_text(own())}, proposal);
  answer_proposed();
}

std::vector<std::byte> Agreement::own_proposal() const {
  std::vector<int> members;
  std::vector<std::byte> proposal;
  for (int m = 0; m < members_.size(); ++m) {
    const bool is_in = members_.lives(m) && load(table_.words(m).joined) != 0;
    proposal.push_back(std::byte{is_in});
    if (is_in) members.push_back(m);
  }
  const std::vector<std::byte> payload = make_payload_(members);
  proposal.insert(proposal.end(), payload.begin(), payload.end());
  return proposal;
}

// ---- the part of every member ------------------------------------------------------------------

int Agreement::chosen_ballot() const {
  for (int m = 0; m < members_.size(); ++m) {
    const std::uint64_t ballot = load(table_.words(m).chosen);
    if (ballot != 0) return static_cast<int>(ballot);
  }
  return 0;
}

// This rank answers no more proposals. Members that know of fewer losses would wait for it. So it
// passes on all losses that it knows of. Members that were taken for gone by hearsay learn that
// too.
Error Agreement::give_up(Error why) const {
  for (int m = 0; m < members_.size(); ++m) members_.job().losses().pass_on(members_.job_rank(m));
  return why;
}

// A member that knows the decision sends it to all before it goes on, also to those that were
// excluded.
Agreement::Decision Agreement::adopt(int ballot) {
  const std::span<std::byte> text = table_.proposal_text(ballot - 1);
  if (!std::exchange(has_sent_decision_, true)) {
    for (int m = 0; m < members_.size(); ++m) members_.job().losses().abandon(members_.job_rank(m));
    messages_.tell_all_and_silent(
        {table_.words(own()).chosen, static_cast<std::uint64_t>(ballot), text}, text);
  }
  const std::vector<std::byte> proposal = messages_.read(text);
  Decision decision;
  for (int m = 0; m < members_.size(); ++m) {
    if (proposal[static_cast<std::size_t>(m)] != std::byte{0}) decision.members.push_back(m);
  }
  decision.payload.assign(proposal.begin() + members_.size(), proposal.end());
  return decision;
}

Result<std::optional<Agreement::Decision>> Agreement::step() {
  if (const int ballot = chosen_ballot(); ballot != 0) return std::optional(adopt(ballot));
  if (!members_.lives(own())) return give_up(excluded());
  answer_prepared();
  answer_proposed();
  if (is_refused()) {
    // A member with a higher number has taken this rank for gone; then it is gone for all.
    members_.job().losses().mark_gone(members_.job_rank(own()), job::RankState::silent);
    return give_up(excluded());
  }
  if (!electorate_.has_quorum()) return give_up(electorate_.no_quorum());
  if (electorate_.leader() == own()) lead();
  if (const int ballot = chosen_ballot(); ballot != 0) return std::optional(adopt(ballot));
  for (const int member : awaited()) messages_.await(member);
  return std::optional<Decision>();
}

std::vector<int> Agreement::awaited() const {
  if (electorate_.leader() != own()) return {electorate_.leader()};
  std::vector<int> missing;
  for (int m = 0; m < members_.size(); ++m) {
    if (!electorate_.takes_part(m) || m == own()) continue;
    const AgreementAnswer& given = table_.answer(own(), m);
    if ((phase_ == Phase::joining && load(table_.words(m).joined) == 0) ||
        (phase_ == Phase::preparing && load(given.promise) == 0) ||
        (phase_ == Phase::proposing && load(given.acceptance) == 0)) {
      missing.push_back(m);
    }
  }
  return missing;
}

}  // namespace unisono::comm
