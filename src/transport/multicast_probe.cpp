// SPDX-License-Identifier: BSD-3-Clause
// The probe's rules, and the loop that runs it (multicast_probe.hpp). Control path.
#include "transport/multicast_probe.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>

#include "base/check.hpp"
#include "base/clock.hpp"

namespace unisono::transport {
namespace {

// The first probes follow each other closely, because of losses and late starters. Later ones are
// rare, so that thousands of members do not flood the network.
constexpr std::int64_t kFirstInterval = base::kMillisecond;
constexpr std::int64_t kMostInterval = 64 * base::kMillisecond;
// The last probes of a member ("I have heard all") may be lost, and after it has stopped, the
// others would wait until the deadline. This many copies make that rare.
constexpr int kLastCopies = 3;
constexpr std::size_t kMostNamed = 8;  // ranks in a note
constexpr int kMostBatches = 64;       // per step

}  // namespace

MulticastProbe::MulticastProbe(Datagrams& datagrams, wire::PacketFilter& filter,
                               std::span<const int> members)
    : datagrams_(datagrams), filter_(filter), interval_ns_(kFirstInterval) {
  UNISONO_CHECK(datagrams.limits().multicast, "a probe of multicast that is not there");
  for (const int rank : members) {
    if (rank != datagrams.rank()) members_.push_back({.rank = rank});
  }
  std::sort(members_.begin(), members_.end(),
            [](const Member& a, const Member& b) { return a.rank < b.rank; });
  others_ = members_.size();
}

void MulticastProbe::take(const wire::Header& header) {
  const auto place =
      std::lower_bound(members_.begin(), members_.end(), static_cast<int>(header.sender),
                       [](const Member& member, int rank) { return member.rank < rank; });
  if (place == members_.end() || place->rank != static_cast<int>(header.sender)) return;
  if (!place->heard) {
    place->heard = true;
    if (header.place != wire::kNoPlace) datagrams_.meet_member(place->rank, header.place);
    if (++heard_ == others_) {
      // The others wait for this.
      interval_ns_ = kFirstInterval;
      next_ns_ = 0;
    }
  }
  if (header.value == 1 && !place->satisfied) {
    place->satisfied = true;
    ++satisfied_;
  }
}

bool MulticastProbe::send(std::int64_t now_ns) {
  wire::Header header = filter_.header(wire::Kind::probe, wire::kToGroup, sequence_);
  const bool all_heard = heard_ == others_;
  header.value = all_heard ? 1 : 0;
  const std::uint64_t card = datagrams_.multicast_card();
  if (card != 0) header.place = card;
  const wire::Envelope envelope = filter_.seal(header, {});
  std::array<Outgoing, kLastCopies> copies;
  copies.fill({.target = kGroup, .head = envelope, .body = {}});
  const std::size_t count = all_heard ? copies.size() : 1;
  const bool sent = datagrams_.send(std::span(copies).first(count)) != 0;
  if (sent) {
    ++sequence_;
    reported_all_ = all_heard;
  }
  next_ns_ = now_ns + interval_ns_;
  interval_ns_ = std::min(2 * interval_ns_, kMostInterval);
  return sent;
}

int MulticastProbe::step(std::int64_t now_ns) {
  int work = 0;
  std::array<Incoming, 32> incoming;
  // The limit keeps a flood of forged packets from preventing our own sends.
  for (int batch = 0; batch < kMostBatches; ++batch) {
    const std::size_t count = datagrams_.receive(incoming);
    if (count == 0) break;
    for (const Incoming& one : std::span(incoming).first(count)) {
      const wire::Parsed parsed = filter_.open(one.bytes);
      if (parsed.drop != wire::Drop::none) continue;
      const bool is_probe = parsed.header.kind == static_cast<std::uint8_t>(wire::Kind::probe);
      // A probe to one rank is of a path (reliable/path/paths.hpp) and says nothing of multicast.
      if (is_probe && parsed.header.target == wire::kToGroup) take(parsed.header);
    }
    work += static_cast<int>(count);
  }
  if (now_ns >= next_ns_ && send(now_ns)) ++work;
  return work;
}

std::string MulticastProbe::note() const {
  if (carries()) return fmt::format("multicast carries between {} members", others_ + 1);
  std::string silent;
  std::size_t named = 0;
  for (const Member& member : members_) {
    if (member.heard) continue;
    if (++named <= kMostNamed)
      silent += fmt::format("{}{}", silent.empty() ? "" : ", ", member.rank);
  }
  if (named > kMostNamed) silent += fmt::format(" and {} more", named - kMostNamed);
  if (named != 0) {
    return fmt::format(
        "multicast is not carried: nothing came from rank{} {}; messages to many go one by one",
        named == 1 ? "" : "s", silent);
  }
  return fmt::format(
      "multicast is not carried between all: {} of {} other members have not heard everybody; "
      "messages to many go one by one",
      others_ - satisfied_, others_);
}

MulticastReport probe_multicast(Datagrams& datagrams, wire::PacketFilter& filter,
                                std::span<const int> members, std::int64_t deadline_ns) {
  MulticastProbe probe(datagrams, filter, members);
  while (true) {
    const std::int64_t now = base::now_ns();
    const int work = probe.step(now);
    if (probe.carries() || now >= deadline_ns) {
      return {probe.has_heard_all(), probe.note(), datagrams.has_other_multicast()};
    }
    if (work != 0 || datagrams.descriptor() < 0 || !datagrams.may_sleep(false)) continue;
    pollfd descriptor{.fd = datagrams.descriptor(), .events = POLLIN, .revents = 0};
    poll(&descriptor, 1, base::poll_timeout_ms(std::min(probe.next_ns(), deadline_ns)));
  }
}

}  // namespace unisono::transport
