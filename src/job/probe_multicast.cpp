// SPDX-License-Identifier: BSD-3-Clause
// How a job finds out whether the network carries multicast between its hosts. The first rank of
// each host tries, and sends its result to the job's first rank. That one announces the decision:
// all use multicast or none. If the network later stops carrying it, the job goes on by unicast
// (reliable/group.hpp), and its first rank logs that once.
#include <fmt/format.h>

#include <algorithm>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "job/job.hpp"

namespace unisono::job {
namespace {

using base::Code;
using base::Error;

// If multicast works, the probe is over as soon as all have sent.
constexpr std::int64_t kProbeNs = 500 * base::kMillisecond;
constexpr int kJudge = 0;

std::uint64_t word(Verdict verdict) { return static_cast<std::uint64_t>(verdict); }
Verdict verdict_of(const std::atomic<std::uint64_t>& word) {
  return static_cast<Verdict>(word.load(std::memory_order_acquire));
}

}  // namespace

base::Status Job::judge_multicast(std::optional<base::Toggle> wish) {
  if (network_ == nullptr || !wish) return base::success();
  const bool is_first = rank_ == hosts_.first_here();
  std::string note = "this host's first rank says why";
  if (is_first) {
    const transport::MulticastReport report = network_->probe_multicast(base::now_ns() + kProbeNs);
    note =
        report.carries ? "multicast is not carried: another host does not hear all" : report.note;
    auto& own = rank_headers_[rank_].hears_multicast;
    own.store(word(report.carries ? Verdict::yes : Verdict::no));
    if (rank_ != kJudge) {
      network_->put({.target = kJudge,
                     .flag = reinterpret_cast<std::uint64_t*>(&own),
                     .flag_value = own.load()});
    }
  }
  if (rank_ == kJudge) UNISONO_TRY(hear_verdicts());
  const auto told = [&] {
    if (is_first && rank_ != kJudge) network_->awaits(kJudge);
    return verdict_of(header_->multicast) != Verdict::unknown;
  };
  UNISONO_TRY(await(told, [] { return "rank 0 did not say whether there is multicast"; }));
  if (verdict_of(header_->multicast) == Verdict::yes) {
    network_->allow_multicast();
    return base::success();
  }
  network_->give_up_multicast(note);
  if (is_first) base::log(base::LogLevel::info, "job", "{}", note);
  if (*wish != base::Toggle::on) return base::success();
  return Error{Code::unsupported,
               fmt::format("rank {}: UNISONO_MULTICAST is on, but not all hosts hear each other's "
                           "({}); leave it at auto to go without",
                           rank_, note)};
}

// Under watch_mutex_.
void Job::watch_multicast() {
  if (!network_->multicasts()) return;
  if (rank_ == hosts_.first_here()) {
    auto& own = rank_headers_[rank_].hears_multicast;
    const int origin = network_->unreached_by();
    if (origin >= 0 && verdict_of(own) == Verdict::yes) {
      base::log(base::LogLevel::info, "job",
                "rank {}: multicasts of rank {} ({}) do not arrive any more", rank_, origin,
                hosts_.place_of(origin));
      own.store(word(Verdict::no));
      if (rank_ != kJudge) {
        network_->put({.target = kJudge,
                       .flag = reinterpret_cast<std::uint64_t*>(&own),
                       .flag_value = own.load()});
      }
    }
  }
  if (rank_ != kJudge || has_warned_of_multicast_) return;
  const auto is_unreached = [this](int first) {
    return verdict_of(rank_headers_[first].hears_multicast) == Verdict::no;
  };
  const auto first = std::ranges::find_if(hosts_.firsts(), is_unreached);
  if (first == hosts_.firsts().end()) return;
  has_warned_of_multicast_ = true;
  base::log(
      base::LogLevel::warn, "job",
      "the network has ceased to carry multicast: rank {} ({}) hears nothing of it any more. "
      "Messages to many now go to it one by one, which is slower. A switch with IGMP snooping "
      "does that if there is no IGMP querier: enable a querier, or turn snooping off. With "
      "UNISONO_MULTICAST=off a job does without multicast from its start",
      *first, hosts_.place_of(*first));
}

base::Status Job::hear_verdicts() {
  Verdict verdict = Verdict::unknown;
  const auto heard_all = [&] {
    verdict = Verdict::yes;
    for (const int first : hosts_.firsts()) {
      const Verdict said = verdict_of(rank_headers_[first].hears_multicast);
      if (said == Verdict::unknown) {
        network_->awaits(first);
        return false;
      }
      if (said == Verdict::no) verdict = Verdict::no;
    }
    return true;
  };
  UNISONO_TRY(await(heard_all, [] { return "not every host has tried multicast"; }));
  header_->multicast.store(word(verdict), std::memory_order_release);
  for (const int first : hosts_.firsts()) {
    if (first == rank_) continue;
    network_->put({.target = first,
                   .flag = reinterpret_cast<std::uint64_t*>(&header_->multicast),
                   .flag_value = word(verdict)});
  }
  return base::success();
}

}  // namespace unisono::job
