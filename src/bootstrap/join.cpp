// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/join.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <utility>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "bootstrap/rendezvous/meeting.hpp"
#include "bootstrap/rendezvous/welcome.hpp"
#include "memory/memory_file.hpp"
#include "nic/service/probe.hpp"
#include "transport/fault/fault.hpp"
#include "transport/udp/network_settings.hpp"
#include "transport/udp/udp.hpp"

namespace unisono::bootstrap {
namespace {

using base::Code;
using base::Error;
using base::Result;
using base::Setting;
using base::Status;
using transport::Udp;

// One rank's way to its seat.
class Joining {
 public:
  Joining(const JobDescription& job, const base::Settings& settings, base::Descriptor listener)
      : job_(job),
        settings_(settings),
        listener_(std::move(listener)),
        timeout_ns_(settings.time_ns(Setting::start_timeout)),
        memory_bytes_(static_cast<std::uint64_t>(settings.bytes(Setting::shared_limit))) {}

  Result<Seat> alone() const;
  Result<Seat> with_others();

 private:
  Result<std::unique_ptr<Udp>> open_datagrams() const;
  Meeting meeting_of_job() const;
  Result<Outcome> meet_job();
  Error with_own_trouble(Error error) const;
  Result<Seat> take_seat(Outcome outcome);
  Status meet_peers(const Welcome& welcome, Seat& seat);
  Status join_group(Seat& seat);

  const JobDescription& job_;
  const base::Settings& settings_;
  base::Descriptor listener_;  // at the job's address, until rank 0 hosts there
  std::int64_t timeout_ns_;
  std::uint64_t memory_bytes_;
  std::unique_ptr<Udp> udp_;  // should there be several hosts
  std::string udp_trouble_;   // why there is none
};

Result<Seat> Joining::alone() const {
  Seat seat;
  seat.rank = job_.rank;
  seat.ranks = job_.ranks;
  seat.job = fmt::format("unisono-{}-pid-{}", geteuid(), getpid());
  seat.memory_bytes = memory_bytes_;
  seat.members.push_back(Member{.pid = getpid(), .host = 0});
  UNISONO_ASSIGN(seat.memory, memory::create_memory(memory_bytes_));
  return seat;
}

// From the address that leads to the rendezvous: there the other hosts' ranks, or their hosts, are
// reached. At its own host the route to it starts at that very address.
Result<std::unique_ptr<Udp>> Joining::open_datagrams() const {
  UNISONO_ASSIGN(const transport::IpAddress meeting_place, ip_of(job_.address));
  const std::array peers{meeting_place};
  UNISONO_ASSIGN(transport::NetworkSettings network, transport::network_settings(settings_));
  // A group needs the job's identity, which is not there yet: join_group().
  network.multicast = base::Toggle::off;
  UNISONO_ASSIGN(const transport::UdpOptions options,
                 transport::udp_options(network, 0, job_.rank, peers));
  return Udp::open(options);
}

Meeting Joining::meeting_of_job() const {
  Meeting meeting;
  meeting.rank = job_.rank;
  meeting.ranks = job_.ranks;
  meeting.server = job_.address_given ? "the launcher or rank 0" : "rank 0";
  meeting.address = job_.address;
  meeting.key = job_.key;
  meeting.timeout_ns = timeout_ns_;
  meeting.memory_bytes = memory_bytes_;
  meeting.memory_layout = job_.memory_layout;
  if (udp_ != nullptr) {
    meeting.endpoint = udp_->endpoint();
    meeting.max_payload = static_cast<std::uint32_t>(udp_->limits().max_payload);
  }
  return meeting;
}

Result<Outcome> Joining::meet_job() {
  const Meeting meeting = meeting_of_job();
  if (job_.rank != 0) return attend(meeting);
  // At an address that was given, a launcher may listen already.
  return job_.address_given ? attend_or_host(meeting) : host(meeting, std::move(listener_));
}

// What others complain of may have its reason here.
Error Joining::with_own_trouble(Error error) const {
  if (!udp_trouble_.empty() && udp_trouble_ != error.message) {
    error.message +=
        fmt::format("; rank {} has no address for datagrams: {}", job_.rank, udp_trouble_);
  }
  return error;
}

Result<Seat> Joining::with_others() {
  if (job_.address.kind == Address::Kind::tcp && job_.ranks > 1) {
    Result<std::unique_ptr<Udp>> opened = open_datagrams();
    // Not wanted if all ranks turn out to be on one host, so not yet an error.
    if (opened.ok()) {
      udp_ = std::move(*opened);
    } else {
      udp_trouble_ = opened.error().message;
    }
  }
  Result<Outcome> outcome = meet_job();
  if (!outcome.ok()) return with_own_trouble(outcome.error());
  return take_seat(std::move(*outcome));
}

Result<Seat> Joining::take_seat(Outcome outcome) {
  const Welcome& welcome = outcome.welcome;
  Seat seat;
  seat.rank = job_.rank;
  seat.ranks = job_.ranks;
  seat.hosts = static_cast<int>(welcome.hosts);
  seat.job = welcome.job;
  seat.memory_bytes = welcome.memory_bytes;
  seat.key = packet_key(wire::key_of(job_.key), welcome.job_id);
  seat.memory = std::move(outcome.memory);
  seat.channel = std::move(outcome.channel);
  seat.hosted = std::move(outcome.hosted);
  const WelcomePlace& own = welcome.places[static_cast<std::size_t>(job_.rank)];
  const std::uint32_t own_host = own.host;
  seat.address = own.endpoint.address;
  for (const WelcomePlace& place : welcome.places) {
    Member member{.pid = static_cast<pid_t>(place.pid), .host = static_cast<int>(place.host)};
    if (welcome.hosts > 1) member.address = place.endpoint.address;
    seat.members.push_back(member);
  }
  base::log(base::LogLevel::info, "bootstrap", "job {}: host {} of {}", seat.job, own_host,
            seat.hosts);
  if (welcome.hosts > 1) UNISONO_TRY(meet_peers(welcome, seat));
  return seat;
}

Status Joining::meet_peers(const Welcome& welcome, Seat& seat) {
  if (udp_ == nullptr) {
    return with_own_trouble({Code::state, "the rendezvous let several hosts start"});
  }
  std::vector<transport::Endpoint> endpoints;
  for (const WelcomePlace& place : welcome.places) endpoints.push_back(place.endpoint);
  UNISONO_TRY(udp_->meet(endpoints, welcome.max_payload));
  UNISONO_TRY(join_group(seat));
  seat.datagrams = std::move(udp_);
  const std::string& fault = settings_.text(Setting::fault);
  if (fault.empty()) return base::success();
  Result<transport::FaultOptions> parsed = transport::parse_fault(fault);
  if (!parsed.ok()) {
    return Error{parsed.error().code,
                 fmt::format("UNISONO_FAULT={}: {}", fault, parsed.error().message)};
  }
  transport::FaultOptions options = *parsed;
  options.seed += static_cast<std::uint64_t>(seat.rank);
  seat.datagrams = std::make_unique<transport::FaultyDatagrams>(std::move(seat.datagrams), options,
                                                                base::now_ns);
  return base::success();
}

// One rank of each host: what it hears is in the host's memory, for all.
Status Joining::join_group(Seat& seat) {
  constexpr int kLeastHosts = 3;  // a message to one other host needs no multicast
  if (seat.hosts < kLeastHosts) return base::success();
  UNISONO_ASSIGN(const transport::NetworkSettings network, transport::network_settings(settings_));
  seat.multicast = network.multicast;
  const int host = seat.members[static_cast<std::size_t>(seat.rank)].host;
  const auto first = std::ranges::find(seat.members, host, &Member::host);
  if (first - seat.members.begin() != seat.rank) return base::success();
  UNISONO_ASSIGN(const auto group, transport::multicast_group(network, wire::job_of(seat.key),
                                                              udp_->endpoint().address));
  if (!group) return base::success();
  transport::MulticastGroup chosen = *group;
  chosen.local = false;  // nobody else of this host is in it
  return udp_->join(chosen);
}

}  // namespace

Result<Seat> join(const JobDescription& job, const base::Settings& settings,
                  base::Descriptor listener) {
  Joining joining(job, settings, std::move(listener));
  return job.address.name.empty() ? joining.alone() : joining.with_others();
}

}  // namespace unisono::bootstrap
