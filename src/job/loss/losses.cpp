// SPDX-License-Identifier: BSD-3-Clause
#include "job/loss/losses.hpp"

#include <algorithm>
#include <cstddef>

#include "job/loss/update_tree.hpp"

namespace unisono::job {

namespace {

// `reports_loss` until the report is written; no rank's.
constexpr std::uint64_t kWritesReport = UINT64_MAX;

// JobHeader::first_lost
constexpr unsigned kStateBit = 32;
std::uint64_t loss_word(int rank, RankState how) {
  return static_cast<std::uint64_t>(how) << kStateBit | static_cast<std::uint32_t>(rank + 1);
}
Losses::Loss loss_of(std::uint64_t word) {
  return {static_cast<int>(static_cast<std::uint32_t>(word)) - 1,
          static_cast<RankState>(word >> kStateBit)};
}

}  // namespace

bool Losses::mark_gone(int rank, RankState how, const std::string& why) {
  // Before there are tables, no rank can have left.
  if (ranks_.has_tables()) {
    note_reason(rank, how, why);  // first: it is there for all who see the state
    if (!ranks_.mark_gone(rank, how)) {
      if (ranks_.is_lost(rank)) record_first(rank, ranks_.state(rank));
      return false;
    }
    if (network_ != nullptr) {
      // The room of packets kept for it is needed to inform the others.
      if (const auto departure = ranks_.departure(rank)) network_->forget(rank, *departure);
      pass_on_once(rank);
    }
  }
  record_first(rank, how);
  return true;
}

void Losses::record_first(int rank, RankState how) {
  std::uint64_t none = 0;
  header_.first_lost.compare_exchange_strong(none, loss_word(rank, how));
}

// A rank reports one loss. Mostly it is the one that causes the others. If threads find losses
// at the same moment, one of them writes.
void Losses::note_reason(int rank, RankState how, const std::string& why) {
  RankHeader& own = ranks_.entry(ranks_.own());
  if (why.empty() || ranks_.is_lost(rank)) return;
  std::uint64_t none = 0;
  if (!own.reports_loss.compare_exchange_strong(none, kWritesReport)) return;
  own.report = notice_text({.error = {base::Code::rank_lost, why}, .rank = rank});
  own.told_loss.store(loss_word(rank, how), std::memory_order_relaxed);
  own.reports_loss.store(loss_word(rank, how), std::memory_order_release);
}

int Losses::reporter_of(int rank) const {
  for (int r = 0; r < ranks_.count(); ++r) {
    const std::uint64_t lost = ranks_.entry(r).reports_loss.load(std::memory_order_acquire);
    if (lost != 0 && lost != kWritesReport && loss_of(lost).rank == rank) return r;
  }
  return -1;
}

std::string Losses::reason(int rank) const {
  if (network_ == nullptr || !ranks_.has_tables()) return {};
  const auto held = network_->hold();  // another host may be writing it once more
  const int reporter = reporter_of(rank);
  return reporter < 0 ? std::string() : std::string(ranks_.entry(reporter).report.text);
}

std::optional<Losses::Loss> Losses::first() const {
  const std::uint64_t word = header_.first_lost.load(std::memory_order_acquire);
  if (word == 0) return std::nullopt;
  return loss_of(word);
}

void Losses::tell_first() const {
  std::uint32_t not_yet = 0;
  if (network_ == nullptr || !header_.first_lost_told.compare_exchange_strong(not_yet, 1)) return;
  for (const int first : ranks_.hosts().firsts_elsewhere()) {
    network_->put({.target = first,
                   .flag = reinterpret_cast<std::uint64_t*>(&header_.first_lost),
                   .flag_value = header_.first_lost.load(std::memory_order_relaxed)});
  }
}

// The reports of other hosts become the state of this one, behind their reasons.
void Losses::take_reports() {
  for (const int reporter : ranks_.hosts().elsewhere()) {
    RankHeader& entry = ranks_.entry(reporter);
    const std::uint64_t told = entry.told_loss.load(std::memory_order_acquire);
    if (told == 0) continue;
    entry.reports_loss.store(told, std::memory_order_release);
    ranks_.mark_gone(loss_of(told).rank, loss_of(told).how);
  }
}

void Losses::take_updates() {
  if (!ranks_.has_tables()) return;  // the rank has left already; checked later
  if (header_.updates.load(std::memory_order_relaxed) == 0 || header_.updates.exchange(0) == 0)
    return;
  take_reports();
  for (int r = 0; r < ranks_.count(); ++r) {
    if (const auto departure = ranks_.departure(r)) network_->forget(r, *departure);
    if (!ranks_.is_lost(r)) continue;
    record_first(r, ranks_.state(r));  // at the start another host may know first
    pass_on_once(r);
  }
  events_.raise();
}

std::vector<int> Losses::neighbours() const {
  const network::Hosts& hosts = ranks_.hosts();
  return update_neighbours(hosts.own(), hosts.count(),
                           [this](int host) { return ranks_.has_living(host); });
}

void Losses::pass_on_once(int rank) {
  std::uint64_t not_yet = 0;
  if (!ranks_.entry(rank).passed_on.compare_exchange_strong(not_yet, 1)) return;
  // A silent rank that answers again learns that the others count it as lost.
  if (ranks_.state(rank) == RankState::silent && !ranks_.hosts().is_here(rank)) {
    put_loss(rank, rank);
  }
  const std::vector<int> now = neighbours();
  for (const int next : now) pass_on_to(next, rank);
  catch_up_neighbours(rank, now);
}

// If the rank was the last one of its host, the hosts behind it may have missed earlier losses.
void Losses::catch_up_neighbours(int rank, const std::vector<int>& neighbours) {
  const network::Hosts& hosts = ranks_.hosts();
  const int host = hosts.of(rank);
  if (host == hosts.own() || ranks_.has_living(host)) return;
  const std::vector<int> before = update_neighbours(hosts.own(), hosts.count(), [&](int other) {
    return other == host || ranks_.has_living(other);
  });
  if (std::ranges::find(before, host) == before.end()) return;
  for (const int next : neighbours) {
    if (std::ranges::find(before, next) != before.end()) continue;
    for (int r = 0; r < ranks_.count(); ++r) {
      if (r != rank && ranks_.is_lost(r)) pass_on_to(next, r);
    }
  }
}

void Losses::pass_on_to(int host, int rank) {
  for (int r = 0; r < ranks_.count(); ++r) {
    if (ranks_.hosts().of(r) != host || ranks_.state(r) != RankState::present) continue;
    put_loss(r, rank);
    network_->confirm(r);
  }
}

// Not along the tree, though it is a packet for each of these ranks. At the end of a job all leave
// at about the same time, and an inner host that has left passes on nothing. A rank that waits for
// this one would then hear of it at the silence limit only. A rank leaves once.
void Losses::tell_leave() {
  for (const int r : ranks_.hosts().elsewhere()) {
    // A rank that has reported to another rank of this host that it leaves may wait until this one
    // has received that, or has left.
    const bool cares = ranks_.state(r) == RankState::present || ranks_.state(r) == RankState::left;
    if (cares) put_state(r, ranks_.own(), RankState::left);
  }
}

// The reason and the state are one message, which the flag follows. In two, the state could
// overtake its reason, and ranks would report the loss without it.
void Losses::put_loss(int target, int rank) {
  const int reporter = ranks_.is_lost(rank) ? reporter_of(rank) : -1;
  if (reporter < 0) return put_state(target, rank, ranks_.state(rank));
  static_assert(offsetof(RankHeader, told_loss) ==
                offsetof(RankHeader, report) + sizeof(FailureNotice::Text));
  RankHeader& entry = ranks_.entry(reporter);
  network_->put({.target = target,
                 .source = reinterpret_cast<const std::byte*>(&entry.report),
                 .place = reinterpret_cast<std::byte*>(&entry.report),
                 .bytes = sizeof entry.report + sizeof entry.told_loss,
                 .flag = reinterpret_cast<std::uint64_t*>(&header_.updates),
                 .flag_value = 1});
}

// In one packet: a rank that receives the state may leave at once, and acknowledge nothing more.
void Losses::put_state(int target, int rank, RankState state) {
  const auto word = static_cast<std::uint64_t>(state);
  network_->put({.target = target,
                 .source = reinterpret_cast<const std::byte*>(&word),
                 .place = reinterpret_cast<std::byte*>(&ranks_.entry(rank).state),
                 .bytes = sizeof word,
                 .flag = reinterpret_cast<std::uint64_t*>(&header_.updates),
                 .flag_value = 1});
}

void Losses::send_update(int rank) {
  network_->put({.target = rank,
                 .flag = reinterpret_cast<std::uint64_t*>(&header_.updates),
                 .flag_value = 1});
}

void Losses::abandon(int rank) {
  const auto departure = ranks_.departure(rank);
  if (!departure) return;
  network_->forget(rank, *departure);
  if (ranks_.state(rank) == RankState::silent) put_state(rank, rank, RankState::silent);
}

void Losses::pass_on(int rank) {
  if (network_ == nullptr || ranks_.state(rank) == RankState::present) return;
  abandon(rank);
  for (const int next : neighbours()) pass_on_to(next, rank);
}

}  // namespace unisono::job
