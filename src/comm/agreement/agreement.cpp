// SPDX-License-Identifier: BSD-3-Clause
#include "comm/agreement/agreement.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "base/text.hpp"

namespace unisono::comm {
namespace {

using base::Code;
using base::Error;
using base::Result;

constexpr std::int64_t kLine = 64;

std::int64_t round_up(std::int64_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

// Ballot b is that of member b - 1; 0: none. A host's promise and acceptance form one word. So any
// rank of the host can change both at once, and may be killed while doing so.
constexpr int kAcceptedBits = 32;
std::uint64_t acceptor_word(std::uint64_t promised, std::uint64_t accepted) {
  return promised << kAcceptedBits | accepted;
}
std::uint64_t promised_of(std::uint64_t word) { return word >> kAcceptedBits; }
std::uint64_t accepted_of(std::uint64_t word) {
  return word & ((std::uint64_t{1} << kAcceptedBits) - 1);
}
std::uint64_t ballot_of(int member) { return static_cast<std::uint64_t>(member) + 1; }

// Answers: 0 is none yet; a promise names the ballot accepted before it.
constexpr std::uint64_t kRefused = ~std::uint64_t{0};
constexpr std::uint64_t kAccepted = 1;
std::uint64_t promise_with(std::uint64_t accepted) { return accepted + 1; }

std::uint64_t load(const std::atomic<std::uint64_t>& word) {
  return word.load(std::memory_order_acquire);
}

}  // namespace

// The layout: the acceptor; words by member; answers by proposer and member; then the texts of each
// member. These are the states it has seen and its proposal (a byte for each member: whether it is
// in the list; then the payload).
std::int64_t Agreement::table_bytes(int members, std::size_t payload_bytes) {
  const std::int64_t texts =
      round_up(members) + round_up(members + static_cast<std::int64_t>(payload_bytes));
  return kLine + members * static_cast<std::int64_t>(sizeof(Words)) +
         round_up(std::int64_t{members} * members * static_cast<std::int64_t>(sizeof(Answer))) +
         members * texts;
}

Agreement::Agreement(job::Job& job, Options options)
    : job_(job),
      options_(std::move(options)),
      promised_(options_.job_ranks.size()),
      accepted_(options_.job_ranks.size()) {}

std::atomic<std::uint64_t>& Agreement::acceptor() const {
  return *reinterpret_cast<std::atomic<std::uint64_t>*>(options_.table);
}

Agreement::Words& Agreement::words(int member) const {
  return reinterpret_cast<Words*>(options_.table + kLine)[member];
}

Agreement::Answer& Agreement::answer(int proposer, int member) const {
  std::byte* const begin =
      options_.table + kLine + size() * static_cast<std::int64_t>(sizeof(Words));
  return reinterpret_cast<Answer*>(begin)[std::int64_t{proposer} * size() + member];
}

std::span<std::byte> Agreement::states_text(int member) const {
  const std::int64_t texts = table_bytes(size(), options_.payload_bytes) -
                             size() * (round_up(size()) + round_up(proposal_bytes()));
  return {options_.table + texts + member * (round_up(size()) + round_up(proposal_bytes())),
          static_cast<std::size_t>(size())};
}

std::span<std::byte> Agreement::proposal_text(int member) const {
  return {states_text(member).data() + round_up(size()),
          static_cast<std::size_t>(proposal_bytes())};
}

std::int64_t Agreement::proposal_bytes() const {
  return size() + static_cast<std::int64_t>(options_.payload_bytes);
}

// ---- telling -----------------------------------------------------------------------------------

// Sent to every rank of a host, since it is unknown which of them will live.
void Agreement::put(int member, std::atomic<std::uint64_t>& word, std::uint64_t value,
                    std::span<const std::byte> text, std::span<std::byte> place) const {
  job_.network()->put({.target = job_rank(member),
                       .source = text.data(),
                       .place = place.data(),
                       .bytes = text.size(),
                       .flag = reinterpret_cast<std::uint64_t*>(&word),
                       .flag_value = value});
}

// Several tell the same text, each writing it once more.
std::vector<std::byte> Agreement::read(std::span<const std::byte> text) const {
  std::unique_lock<std::mutex> held;
  if (job_.network() != nullptr) held = job_.network()->hold();
  return {text.begin(), text.end()};
}

void Agreement::tell_all(std::atomic<std::uint64_t>& word, std::uint64_t value,
                         std::span<const std::byte> text, std::span<std::byte> place,
                         bool also_silent) {
  if (!text.empty() && text.data() != place.data()) {
    std::memcpy(place.data(), text.data(), text.size());
  }
  word.store(value, std::memory_order_release);
  job_.events().raise();
  for (int m = 0; m < size(); ++m) {
    if (is_here(m)) continue;
    if (lives(m) || (also_silent && state(m) == job::RankState::silent)) {
      put(m, word, value, text, place);
    }
  }
}

// `proposal`: the proposer has to know it to understand the answer; -1: none.
void Agreement::respond(int proposer, std::atomic<std::uint64_t>& word, std::uint64_t value,
                        int proposal) {
  if (is_here(proposer)) {
    word.store(value, std::memory_order_release);
    job_.events().raise();
  } else if (proposal < 0) {
    put(proposer, word, value, {}, {});
  } else {
    put(proposer, word, value, proposal_text(proposal), proposal_text(proposal));
  }
}

// Memory for this rank's own entries.
base::Status Agreement::prepare_memory() const {
  const auto commit = [this](const void* begin, std::int64_t bytes) {
    return job_.memory().commit(static_cast<const std::byte*>(begin) - job_.memory().at(0), bytes,
                                "the agreement on who is left");
  };
  UNISONO_TRY(commit(options_.table, kLine + size() * static_cast<std::int64_t>(sizeof(Words))));
  UNISONO_TRY(
      commit(&answer(options_.rank, 0), size() * static_cast<std::int64_t>(sizeof(Answer))));
  return commit(states_text(options_.rank).data(), round_up(size()) + proposal_bytes());
}

base::Status Agreement::join() {
  UNISONO_TRY(prepare_memory());
  tell_all(words(options_.rank).joined, 1, {}, {}, false);
  return base::success();
}

// ---- the acceptor's part: of any rank of a host, for the host ----------------------------------

// A member that is gone for one of the group is gone for all.
void Agreement::believe(std::span<const std::byte> states) {
  for (int m = 0; m < size(); ++m) {
    const auto how = static_cast<job::RankState>(states[static_cast<std::size_t>(m)]);
    const bool gone = how == job::RankState::dead || how == job::RankState::silent;
    if (gone && lives(m) && job_.losses().mark_gone(job_rank(m), how)) job_.events().raise();
  }
}

void Agreement::answer_prepared() {
  for (int p = 0; p < size(); ++p) {
    if (promised_[static_cast<std::size_t>(p)] || load(words(p).prepared) == 0) continue;
    promised_[static_cast<std::size_t>(p)] = true;
    believe(read(states_text(p)));
    const std::uint64_t ballot = ballot_of(p);
    std::uint64_t seen = load(acceptor());
    while (promised_of(seen) < ballot &&
           !acceptor().compare_exchange_weak(seen, acceptor_word(ballot, accepted_of(seen)))) {
    }
    const bool refused = promised_of(seen) > ballot;
    const auto accepted = static_cast<int>(accepted_of(seen));
    respond(p, answer(p, options_.rank).promise,
            refused ? kRefused : promise_with(accepted_of(seen)), refused ? -1 : accepted - 1);
  }
}

void Agreement::answer_proposed() {
  for (int p = 0; p < size(); ++p) {
    if (accepted_[static_cast<std::size_t>(p)] || load(words(p).proposed) == 0) continue;
    accepted_[static_cast<std::size_t>(p)] = true;
    const std::uint64_t ballot = ballot_of(p);
    std::uint64_t seen = load(acceptor());
    while (promised_of(seen) <= ballot &&
           !acceptor().compare_exchange_weak(seen, acceptor_word(ballot, ballot))) {
    }
    respond(p, answer(p, options_.rank).acceptance,
            promised_of(seen) > ballot ? kRefused : kAccepted, -1);
  }
}

// ---- the proposer's part -----------------------------------------------------------------------

int Agreement::leader() const {
  int first = 0;
  while (first < size() && !takes_part(first)) ++first;
  return first;
}

bool Agreement::all_joined() const {
  for (int m = 0; m < size(); ++m) {
    if (takes_part(m) && load(words(m).joined) == 0) return false;
  }
  return true;
}

// More than half of the communicator's hosts, or half of them with the first. Any two such sets
// have a host in common. says(m): member m speaks for its host.
template <class Says>
bool Agreement::has_quorum(const Says& says) const {
  std::set<int> all;
  std::set<int> saying;
  for (int m = 0; m < size(); ++m) {
    const int host = job_.hosts().of(job_rank(m));
    all.insert(host);
    if (says(m)) saying.insert(host);
  }
  if (saying.size() * 2 == all.size()) return saying.contains(job_.hosts().of(job_rank(0)));
  return saying.size() * 2 > all.size();
}

bool Agreement::is_refused() const {
  for (int m = 0; m < size(); ++m) {
    const Answer& given = answer(options_.rank, m);
    if (load(given.promise) == kRefused || load(given.acceptance) == kRefused) return true;
  }
  return false;
}

void Agreement::lead() {
  const auto promised = [this](int m) { return load(answer(options_.rank, m).promise) != 0; };
  const auto accepted = [this](int m) {
    return load(answer(options_.rank, m).acceptance) == kAccepted;
  };
  switch (phase_) {
    case Phase::joining:
      if (all_joined()) prepare();
      return;
    case Phase::preparing: {
      if (!has_quorum(promised)) return;
      std::uint64_t highest = promise_with(0);
      for (int m = 0; m < size(); ++m) {
        highest = std::max(highest, load(answer(options_.rank, m).promise));
      }
      if (highest == kRefused) return;  // the next turn sees it too
      return propose(static_cast<int>(highest - promise_with(0)));
    }
    case Phase::proposing:
      if (has_quorum(accepted)) {
        words(options_.rank).chosen.store(ballot_of(options_.rank), std::memory_order_release);
      }
      return;
  }
}

void Agreement::prepare() {
  phase_ = Phase::preparing;
  std::vector<std::byte> states;
  for (int m = 0; m < size(); ++m) states.push_back(static_cast<std::byte>(state(m)));
  tell_all(words(options_.rank).prepared, 1, states, states_text(options_.rank), false);
  answer_prepared();
}

// Proposes again a list that an earlier ballot may have decided.
void Agreement::propose(int accepted) {
  phase_ = Phase::proposing;
  std::vector<std::byte> proposal;
  if (accepted != 0) {
    proposal = read(proposal_text(accepted - 1));
  } else {
    proposal = own_proposal();
  }
  tell_all(words(options_.rank).proposed, 1, proposal, proposal_text(options_.rank), false);
  answer_proposed();
}

std::vector<std::byte> Agreement::own_proposal() const {
  std::vector<int> members;
  std::vector<std::byte> proposal;
  for (int m = 0; m < size(); ++m) {
    const bool is_in = lives(m) && load(words(m).joined) != 0;
    proposal.push_back(std::byte{is_in});
    if (is_in) members.push_back(m);
  }
  const std::vector<std::byte> payload = options_.offer(members);
  proposal.insert(proposal.end(), payload.begin(), payload.end());
  return proposal;
}

// ---- the part of every member ------------------------------------------------------------------

int Agreement::chosen_ballot() const {
  for (int m = 0; m < size(); ++m) {
    const std::uint64_t ballot = load(words(m).chosen);
    if (ballot != 0) return static_cast<int>(ballot);
  }
  return 0;
}

// This rank answers no more proposals. Members that know of fewer losses would wait for it. So it
// passes on all losses that it knows of. Members that were taken for gone by hearsay learn that
// too.
Error Agreement::give_up(Error why) const {
  for (int m = 0; m < size(); ++m) job_.losses().pass_on(job_rank(m));
  return why;
}

// A member that knows the decision sends it to all before it goes on, also to those that were
// excluded.
Agreement::Decision Agreement::adopt(int ballot) {
  const std::span<std::byte> text = proposal_text(ballot - 1);
  if (!told_) {
    told_ = true;
    for (int m = 0; m < size(); ++m) job_.losses().abandon(job_rank(m));
    tell_all(words(options_.rank).chosen, static_cast<std::uint64_t>(ballot), text, text, true);
  }
  const std::vector<std::byte> proposal = read(text);
  Decision decision;
  for (int m = 0; m < size(); ++m) {
    if (proposal[static_cast<std::size_t>(m)] != std::byte{0}) decision.members.push_back(m);
  }
  decision.payload.assign(proposal.begin() + size(), proposal.end());
  return decision;
}

Result<std::optional<Agreement::Decision>> Agreement::step() {
  if (const int ballot = chosen_ballot(); ballot != 0) return std::optional(adopt(ballot));
  if (!lives(options_.rank)) return give_up(excluded());
  answer_prepared();
  answer_proposed();
  if (is_refused()) {
    // A member with a higher number has taken this rank for gone; then it is gone for all.
    job_.losses().mark_gone(job_rank(options_.rank), job::RankState::silent);
    return give_up(excluded());
  }
  if (!has_quorum([this](int m) { return takes_part(m); })) return give_up(no_quorum());
  if (leader() == options_.rank) lead();
  if (const int ballot = chosen_ballot(); ballot != 0) return std::optional(adopt(ballot));
  await_others();
  return std::optional<Decision>();
}

std::vector<int> Agreement::awaited() const {
  if (leader() != options_.rank) return {leader()};
  std::vector<int> missing;
  for (int m = 0; m < size(); ++m) {
    if (!takes_part(m) || m == options_.rank) continue;
    const Answer& given = answer(options_.rank, m);
    if ((phase_ == Phase::joining && load(words(m).joined) == 0) ||
        (phase_ == Phase::preparing && load(given.promise) == 0) ||
        (phase_ == Phase::proposing && load(given.acceptance) == 0)) {
      missing.push_back(m);
    }
  }
  return missing;
}

// Waiting makes the transport repeat their packets, and notice their silence or stop.
void Agreement::await_others() const {
  for (const int member : awaited()) {
    if (is_here(member)) {
      job_.watch().is_stopped(job_rank(member));
    } else {
      job_.network()->awaits(job_rank(member));
    }
  }
}

Error Agreement::excluded() const {
  const auto limit_of = [this](base::Setting setting) {
    return base::format_time_ns(job_.settings().time_ns(setting));
  };
  std::string limits =
      fmt::format("{} (UNISONO_DETECT_TIMEOUT)", limit_of(base::Setting::detect_timeout));
  if (job_.hosts().count() > 1) {
    limits = fmt::format("{} (UNISONO_DETECT_TIMEOUT_HOSTS), or saw it stopped for {}",
                         limit_of(base::Setting::detect_timeout_hosts), limits);
  }
  return {
      Code::rank_lost,
      fmt::format("this rank was taken for lost by the others, which did not hear of it for {}. "
                  "They go on without it, and it cannot come back; end it",
                  limits)};
}

Error Agreement::no_quorum() const {
  std::vector<std::string> gone;
  for (int m = 0; m < size(); ++m) {
    if (takes_part(m)) continue;
    const std::string place = job_.hosts().place_of(job_rank(m));
    gone.push_back(place.empty() ? fmt::format("{}", m) : fmt::format("{} ({})", m, place));
  }
  return {Code::rank_lost,
          fmt::format(
              "ranks {} are lost, or have freed the communicator, and with them too many "
              "hosts. The others "
              "cannot know whether the missing ones go on without them. It takes more than half "
              "of the communicator's hosts, or half of them with that of rank 0",
              fmt::join(gone, ", "))};
}

}  // namespace unisono::comm
