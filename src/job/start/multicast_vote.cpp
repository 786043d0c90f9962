// SPDX-License-Identifier: BSD-3-Clause
#include "job/start/multicast_vote.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "job/start/start_up.hpp"

namespace unisono::job {
namespace {

// If multicast works, the probe is over as soon as all have sent.
constexpr std::int64_t kProbeNs = 500 * base::kMillisecond;
constexpr int kDecider = 0;
// With UNISONO_MULTICAST=on: on a carrier that some host does not hear. Lost packets, or a host
// that is late, are no reason to refuse the job.
constexpr int kMostTries = 4;

constexpr std::uint64_t kVotes = 5;

std::uint64_t word(CarrierVote vote, std::uint64_t round) {
  return static_cast<std::uint64_t>(vote) + kVotes * round;
}
// Unknown, if the word is of an earlier round.
CarrierVote vote_in(const std::atomic<std::uint64_t>& word, std::uint64_t round) {
  const std::uint64_t value = word.load(std::memory_order_acquire);
  return value / kVotes < round ? CarrierVote::unknown : static_cast<CarrierVote>(value % kVotes);
}

}  // namespace

CarrierVote MulticastVote::vote_of(int first) const {
  return vote_in(ranks_.entry(first).hears_multicast, round_);
}

base::Status MulticastVote::decide(StartUp& start, std::optional<base::Toggle> wish) {
  if (network_ == nullptr || !wish) return base::success();
  const bool is_first = ranks_.is_first_here();
  std::string note = "this host's first rank says why";
  // The others of a host see only the last decision: the first goes on without them.
  const auto decision = [this] { return vote_in(header_.multicast, round_); };
  const auto goes_on = [&] {
    return decision() == CarrierVote::again || decision() == CarrierVote::retry;
  };
  const auto is_decided = [&] {
    if (is_first && ranks_.own() != kDecider) network_->awaits(kDecider);
    return decision() != CarrierVote::unknown && (is_first || !goes_on());
  };
  for (int tries = 1;; ++round_, ++tries) {
    if (is_first) note = probe();
    const bool may_retry = *wish == base::Toggle::on && tries < kMostTries;
    if (ranks_.own() == kDecider) UNISONO_TRY(collect_votes(start, may_retry));
    UNISONO_TRY(
        start.await(is_decided, [] { return "rank 0 did not say whether there is multicast"; }));
    if (!goes_on()) break;
    const bool takes_other = decision() == CarrierVote::again;
    base::log(base::LogLevel::info, "job", "rank {}: {}; {}", ranks_.own(), note,
              takes_other ? "another carrier is tried" : "it is tried once more");
    if (!takes_other) continue;
    network_->take_other_multicast();
    tries = 0;
  }
  if (decision() == CarrierVote::yes) {
    network_->allow_multicast();
    return base::success();
  }
  network_->give_up_multicast(note);
  if (is_first) base::log(base::LogLevel::info, "job", "{}", note);
  if (*wish != base::Toggle::on) return base::success();
  return base::Error{base::Code::unsupported,
                     fmt::format("rank {}: UNISONO_MULTICAST is on, but not all hosts hear each "
                                 "other's ({}); leave it at auto to go without",
                                 ranks_.own(), note)};
}

// Sends this host's vote. Returns why the job may have to go without multicast.
std::string MulticastVote::probe() {
  const transport::MulticastReport report = network_->probe_multicast(base::now_ns() + kProbeNs);
  auto& own = ranks_.entry(ranks_.own()).hears_multicast;
  const CarrierVote if_not = report.has_other ? CarrierVote::again : CarrierVote::no;
  own.store(word(report.hears_all ? CarrierVote::yes : if_not, round_));
  if (ranks_.own() != kDecider) {
    network_->put({.target = kDecider,
                   .flag = reinterpret_cast<std::uint64_t*>(&own),
                   .flag_value = own.load()});
  }
  return report.hears_all ? "multicast is not carried: another host does not hear all"
                          : report.note;
}

base::Status MulticastVote::collect_votes(StartUp& start, bool may_retry) {
  CarrierVote decision = CarrierVote::unknown;
  const auto all_voted = [&] {
    decision = CarrierVote::yes;
    bool has_other = false;
    for (const int first : ranks_.hosts().firsts()) {
      const CarrierVote vote = vote_of(first);
      if (vote == CarrierVote::unknown) {
        network_->awaits(first);
        return false;
      }
      has_other |= vote == CarrierVote::again;
      if (vote != CarrierVote::yes) decision = CarrierVote::no;
    }
    if (decision == CarrierVote::no && may_retry) decision = CarrierVote::retry;
    if (decision != CarrierVote::yes && has_other) decision = CarrierVote::again;
    return true;
  };
  UNISONO_TRY(start.await(all_voted, [this] {
    return "the hosts of these have not tried multicast: " +
           ranks_.names_of_late(ranks_.hosts().firsts(), [this](int first) {
             return vote_of(first) != CarrierVote::unknown;
           });
  }));
  header_.multicast.store(word(decision, round_), std::memory_order_release);
  for (const int first : ranks_.hosts().firsts()) {
    if (first == ranks_.own()) continue;
    network_->put({.target = first,
                   .flag = reinterpret_cast<std::uint64_t*>(&header_.multicast),
                   .flag_value = word(decision, round_)});
  }
  return base::success();
}

void MulticastVote::watch() {
  if (!network_->multicasts()) return;
  if (ranks_.is_first_here()) tell_loss_of_multicast();
  if (ranks_.own() == kDecider && !has_warned_) log_loss_of_multicast();
}

void MulticastVote::tell_loss_of_multicast() {
  const int origin = network_->unreached_by();
  if (origin < 0 || vote_of(ranks_.own()) != CarrierVote::yes) return;
  base::log(base::LogLevel::info, "job",
            "rank {}: multicasts of rank {} ({}) do not arrive any more", ranks_.own(), origin,
            ranks_.hosts().place_of(origin));
  auto& own = ranks_.entry(ranks_.own()).hears_multicast;
  own.store(word(CarrierVote::no, round_));
  if (ranks_.own() == kDecider) return;
  network_->put({.target = kDecider,
                 .flag = reinterpret_cast<std::uint64_t*>(&own),
                 .flag_value = own.load()});
}

void MulticastVote::log_loss_of_multicast() {
  const auto firsts = ranks_.hosts().firsts();
  const auto first =
      std::ranges::find_if(firsts, [this](int rank) { return vote_of(rank) == CarrierVote::no; });
  if (first == firsts.end()) return;
  has_warned_ = true;
  base::log(
      base::LogLevel::warn, "job",
      "the network has ceased to carry multicast: rank {} ({}) hears nothing of it any more. "
      "Messages to many now go to it one by one, which is slower. A switch with IGMP snooping "
      "does that if there is no IGMP querier: enable a querier, or turn snooping off. With "
      "UNISONO_MULTICAST=off a job does without multicast from its start",
      *first, ranks_.hosts().place_of(*first));
}

}  // namespace unisono::job
