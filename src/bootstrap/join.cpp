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

// One rank's way from a job's description to its JobInfo.
class Joining {
 public:
  Joining(const JobDescription& job, const base::Settings& settings, base::Descriptor listener)
      : job_(job),
        settings_(settings),
        listener_(std::move(listener)),
        timeout_ns_(settings.time_ns(Setting::start_timeout)),
        memory_bytes_(static_cast<std::uint64_t>(settings.bytes(Setting::shared_limit))) {}

  Result<JobInfo> alone() const;
  Result<JobInfo> with_others();

 private:
  Result<std::unique_ptr<Udp>> open_datagrams() const;
  Meeting meeting_of_job() const;
  Result<Outcome> meet_job();
  Error with_own_trouble(Error error) const;
  Result<JobInfo> job_info_of(Outcome outcome);
  Status meet_peers(const Welcome& welcome, JobInfo& info);
  Status join_group(JobInfo& info);

  const JobDescription& job_;
  const base::Settings& settings_;
  base::Descriptor listener_;  // at the job's address, until rank 0 hosts there
  std::int64_t timeout_ns_;
  std::uint64_t memory_bytes_;
  std::unique_ptr<Udp> udp_;  // should there be several hosts
  std::string udp_trouble_;   // why there is none
};

Result<JobInfo> Joining::alone() const {
  JobInfo info;
  info.rank = job_.rank;
  info.ranks = job_.ranks;
  info.job = fmt::format("unisono-{}-pid-{}", geteuid(), getpid());
  info.memory_bytes = memory_bytes_;
  info.members.push_back(Member{.pid = getpid(), .host = 0});
  UNISONO_ASSIGN(info.memory, memory::create_memory(memory_bytes_));
  return info;
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

Result<JobInfo> Joining::with_others() {
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
  return job_info_of(std::move(*outcome));
}

Result<JobInfo> Joining::job_info_of(Outcome outcome) {
  const Welcome& welcome = outcome.welcome;
  JobInfo info;
  info.rank = job_.rank;
  info.ranks = job_.ranks;
  info.hosts = static_cast<int>(welcome.hosts);
  info.job = welcome.job;
  info.memory_bytes = welcome.memory_bytes;
  info.key = packet_key(wire::key_of(job_.key), welcome.job_id);
  info.memory = std::move(outcome.memory);
  info.connection = std::move(outcome.connection);
  info.accepted = std::move(outcome.accepted);
  const WelcomePlace& own = welcome.places[static_cast<std::size_t>(job_.rank)];
  const std::uint32_t own_host = own.host;
  info.address = own.endpoint.address;
  for (const WelcomePlace& place : welcome.places) {
    Member member{.pid = static_cast<pid_t>(place.pid), .host = static_cast<int>(place.host)};
    if (welcome.hosts > 1) member.address = place.endpoint.address;
    info.members.push_back(member);
  }
  base::log(base::LogLevel::info, "bootstrap", "job {}: host {} of {}", info.job, own_host,
            info.hosts);
  if (welcome.hosts > 1) UNISONO_TRY(meet_peers(welcome, info));
  return info;
}

Status Joining::meet_peers(const Welcome& welcome, JobInfo& info) {
  if (udp_ == nullptr) {
    return with_own_trouble({Code::state, "the rendezvous let several hosts start"});
  }
  std::vector<transport::Endpoint> endpoints;
  for (const WelcomePlace& place : welcome.places) endpoints.push_back(place.endpoint);
  UNISONO_TRY(udp_->meet(endpoints, welcome.max_payload));
  UNISONO_TRY(join_group(info));
  info.datagrams = std::move(udp_);
  const std::string& fault = settings_.text(Setting::fault);
  if (fault.empty()) return base::success();
  Result<transport::FaultOptions> parsed = transport::parse_fault(fault);
  if (!parsed.ok()) {
    return Error{parsed.error().code,
                 fmt::format("UNISONO_FAULT={}: {}", fault, parsed.error().message)};
  }
  transport::FaultOptions options = *parsed;
  options.seed += static_cast<std::uint64_t>(info.rank);
  info.datagrams = std::make_unique<transport::FaultyDatagrams>(std::move(info.datagrams), options,
                                                                base::now_ns);
  return base::success();
}

// One rank of each host: what it hears is in the host's memory, for all.
Status Joining::join_group(JobInfo& info) {
  constexpr int kLeastHosts = 3;  // a message to one other host needs no multicast
  if (info.hosts < kLeastHosts) return base::success();
  UNISONO_ASSIGN(const transport::NetworkSettings network, transport::network_settings(settings_));
  info.multicast = network.multicast;
  const int host = info.members[static_cast<std::size_t>(info.rank)].host;
  const auto first = std::ranges::find(info.members, host, &Member::host);
  if (first - info.members.begin() != info.rank) return base::success();
  UNISONO_ASSIGN(const auto group, transport::multicast_group(network, wire::job_of(info.key),
                                                              udp_->endpoint().address));
  if (!group) return base::success();
  transport::MulticastGroup chosen = *group;
  chosen.local = false;  // nobody else of this host is in it
  return udp_->join(chosen);
}

}  // namespace

Result<JobInfo> join(const JobDescription& job, const base::Settings& settings,
                     base::Descriptor listener) {
  Joining joining(job, settings, std::move(listener));
  return job.address.name.empty() ? joining.alone() : joining.with_others();
}

}  // namespace unisono::bootstrap
